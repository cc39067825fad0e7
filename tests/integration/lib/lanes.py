# SPDX-License-Identifier: BSD-3-Clause
"""Many destinations behind one bridge port, each with a rate of its own, and a
front-end that floods them.

        tap0 --- br0 --- out0, HTB: a class for each destination --- far0

A destination is a MAC address. What its class holds back stays charged to the
queue of the tap that took it."""
import subprocess
import time

from frames import ETH_P_TEST, GUEST_MAC
from rig import Rig
from vhost_client import HostSide, Memory
from vltest import check, check_equal, need_program

HEAD = 20  # addresses, type, destination, sequence number


def mac(number):
    return bytes.fromhex("525400aa") + number.to_bytes(2, "big")


def frame(number, seq, length):
    """A frame for destination @number that names itself."""
    head = mac(number) + GUEST_MAC + ETH_P_TEST.to_bytes(2, "big") + number.to_bytes(2, "big") + seq.to_bytes(4, "big")
    return head + bytes([seq & 0xff]) * (length - len(head))


class Destinations:
    """Context manager: the network behind tap0, rates by destination number."""

    def __init__(self, rig, rates):
        need_program("tc", "bridge")
        self.ns = ns = rig.ns
        ns.ip("link", "add", "br0", "type", "bridge", "forward_delay", "0", "mcast_snooping", "0")
        ns.ip("link", "add", "out0", "type", "veth", "peer", "name", "far0")
        for port in ("tap0", "out0"):
            ns.ip("link", "set", port, "master", "br0")
        for name in ("tap0", "br0", "out0", "far0"):
            ns.ip("link", "set", name, "up")
        lines = ["qdisc add dev out0 root handle 1: htb default 1",
                 "class add dev out0 parent 1: classid 1:1 htb rate 10gbit quantum 1514"]
        for number, rate in rates.items():
            lines += [self._class("add", number, rate),
                      f"qdisc add dev out0 parent 1:{number + 16:x} pfifo limit 1000"]
        # ldh [4]; add #1:10; ret a: the end of the MAC address is the class.
        lines.append("filter add dev out0 parent 1: protocol all prio 1 bpf bytecode \"3,40 0 0 4,4 0 0 65552,22 0 0 0\"")
        self._batch(lines)
        # One CPU receives, or frames that left in order would overtake each other there.
        ns.run("sh", "-c", "echo 1 > /sys/class/net/far0/queues/rx-0/rps_cpus")
        self.host = HostSide(ns, "far0", ETH_P_TEST)

    @staticmethod
    def _class(verb, number, rate):
        return f"class {verb} dev out0 parent 1: classid 1:{number + 16:x} htb rate {rate} ceil {rate} burst 3k cburst 3k quantum 1514"

    def _batch(self, lines):
        subprocess.run(["nsenter", f"--net=/run/netns/{self.ns.name}", "tc", "-b", "-"], input="\n".join(lines) + "\n",
                       text=True, check=True, timeout=30)

    def change(self, rates):
        """Other rates from now on."""
        self._batch([self._class("change", number, rate) for number, rate in rates.items()])

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.host.close()


class Flood:
    """Frames of one transmitq to destinations, and what came of them."""

    def __init__(self, rig, destinations):
        self.queue = rig.driver.tx[0]
        self.mem = rig.driver.mem
        self.hdr_len = rig.driver.hdr_len
        self.host = destinations.host
        self.free = [self.mem.buffer(1600) for _ in range(self.queue.size)]
        self.busy = {}
        self.sent, self.got, self.next = {}, {}, {}
        self.last, self.stall = {}, {}

    def reap(self):
        for head, length in self.queue.reap():
            check_equal(length, 0, "used length")
            self.free.append(self.busy.pop(head))

    def send(self, number, length):
        """One frame, not kicked; whether there was room in the ring."""
        if not self.free or not self.queue.free:
            return False
        seq = self.sent.get(number, 0)
        gpa = self.free.pop()
        data = bytes(self.hdr_len) + frame(number, seq, length)
        self.mem.write(gpa, data)
        head = self.queue.chain([(gpa, len(data), 0)])
        self.queue.queue(head)
        self.busy[head] = gpa
        self.sent[number] = seq + 1
        return True

    def kick(self):
        self.queue.publish()
        self.queue.kick()

    def receive(self, timeout=0.0):
        """Takes what arrived, checks order and content; how many frames."""
        count = 0
        while True:
            data = self.host.get(timeout)
            if data is None:
                return count
            if data[6:12] != GUEST_MAC or data[:4] != mac(0)[:4]:
                continue
            count += 1
            number, seq = int.from_bytes(data[14:16], "big"), int.from_bytes(data[16:20], "big")
            check(seq >= self.next.get(number, 0), f"destination {number}: frame {seq} after {self.next.get(number, 0) - 1}")
            check(data[HEAD:] == bytes([seq & 0xff]) * (len(data) - HEAD), f"destination {number}: content of frame {seq}")
            self.next[number] = seq + 1
            self.got[number] = self.got.get(number, 0) + 1
            now = time.monotonic()
            self.stall[number] = max(self.stall.get(number, 0), now - self.last.get(number, now))
            self.last[number] = now

    def run(self, seconds, rates, lengths=(1000,)):
        """Offers frames per second by destination number for a while; what does
        not fit into the ring is not offered. @rates may be changed meanwhile by
        a generator's caller: yields once per round."""
        start = last = time.monotonic()
        owed = dict.fromkeys(rates, 0.0)
        while (now := time.monotonic()) - start < seconds:
            for number, rate in rates.items():
                owed[number] = min(owed[number] + rate * (now - last), 32)
            last = now
            self.reap()
            while any(value >= 1 for value in owed.values()):
                for number in rates:
                    if owed[number] >= 1:
                        owed[number] -= 1
                        self.send(number, lengths[self.sent.get(number, 0) % len(lengths)])
            self.kick()
            self.receive()
            yield now - start

    def drain(self, seconds=3):
        """Takes all that is still under way."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.reap()
            if not self.receive(0.1) and not self.busy:
                return


class LaneRig(Rig):
    """A rig whose daemon makes tap0 itself, with as many queues as it wants;
    with @tap_first it is there already, with one queue."""

    def __init__(self, engine=None, backend="", tap_first=False, **args):
        super().__init__(engine, pairs=1, tap=tap_first, backend=backend or ",lanes=8", mem=Memory(64 << 20), **args)

    def drops(self):
        """Dropped packets by reason, all that are not 0."""
        return {k: v for k, v in self.queue("tx").items() if k.startswith("drop_") and v}

    def lane_states(self):
        return [lane["state"] for lane in self.daemon.stat()["queue_pairs"][0]["lanes"]]


def check_accounted(rig, flood, timeout=5):
    """Every frame arrives or was counted as dropped."""
    end = time.monotonic() + timeout
    while True:
        flood.reap()
        flood.receive(0.05)
        sent, got, drops = sum(flood.sent.values()), sum(flood.got.values()), sum(rig.drops().values())
        if got + drops >= sent or time.monotonic() > end:
            break
    check_equal(got + drops, sent, f"frames that arrived ({got}) or were dropped ({rig.drops()})")
