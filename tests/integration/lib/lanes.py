# SPDX-License-Identifier: BSD-3-Clause
"""Many destinations behind one bridge port, each with a rate of its own, and a
front-end that floods them.

        tap0 --- br0 --- out0, HTB: a class for each destination --- far0

A destination is a MAC address. What its class holds back stays charged to the
queue of the tap that took it."""
import contextlib
import os
import re
import select
import socket
import struct
import subprocess
import time

from frames import ETH_P_TEST, GUEST_MAC
from rig import Rig
from vhost_client import INDIRECT, HostSide, Memory
from vltest import Netns, Virtlane, check, check_equal, need_program, sanitizer

HEAD = 20  # addresses, type, destination, sequence number
SO_TIMESTAMPNS = 35  # CLOCK_REALTIME
PIECES = 4  # descriptors of a chain that is not "direct"
LAYOUTS = ("direct", "chained", "indirect")


def mac(number):
    return bytes.fromhex("525400aa") + number.to_bytes(2, "big")


def frame(number, seq, length):
    """A frame for destination @number that names itself."""
    head = mac(number) + GUEST_MAC + ETH_P_TEST.to_bytes(2, "big") + number.to_bytes(2, "big") + seq.to_bytes(4, "big")
    return head + bytes([seq & 0xff]) * (length - len(head))


class Destinations:
    """Context manager: the network behind tap0, rates by destination number."""

    port = "out0"

    def __init__(self, rig, rates):
        need_program("tc", "bridge")
        self.ns = rig.ns
        self.make_network()
        self.shape(rates)
        self.host = self.open_host(rig)

    def make_network(self):
        """Everything up to the shaped port."""
        ns = self.ns
        ns.ip("link", "add", "br0", "type", "bridge", "forward_delay", "0", "mcast_snooping", "0")
        ns.ip("link", "add", "out0", "type", "veth", "peer", "name", "far0")
        for port in ("tap0", "out0"):
            ns.ip("link", "set", port, "master", "br0")
        for name in ("tap0", "br0", "out0", "far0"):
            ns.ip("link", "set", name, "up")

    def shape(self, rates):
        """A class of the port for each destination."""
        port = self.port
        lines = [f"qdisc add dev {port} root handle 1: htb default 1",
                 f"class add dev {port} parent 1: classid 1:1 htb rate 10gbit quantum 1514"]
        for number, rate in rates.items():
            lines += [self._class("add", number, rate),
                      f"qdisc add dev {port} parent 1:{number + 16:x} pfifo limit 1000"]
        # ldh [4]; add #1:10; ret a: the end of the MAC address is the class.
        lines.append(f"filter add dev {port} parent 1: protocol all prio 1 bpf bytecode "
                     "\"3,40 0 0 4,4 0 0 65552,22 0 0 0\"")
        self._batch(lines)

    def open_host(self, _rig):
        """The far side of the port."""
        return self.receiver(self.ns)

    @staticmethod
    def receiver(ns):
        """What arrives at far0 in a namespace."""
        # One CPU receives, or frames that left in order would overtake each other there.
        ns.run("sh", "-c", "echo 1 > /sys/class/net/far0/queues/rx-0/rps_cpus")
        return HostSide(ns, "far0", ETH_P_TEST)

    def _class(self, verb, number, rate):
        return f"class {verb} dev {self.port} parent 1: classid 1:{number + 16:x} htb rate {rate} ceil {rate} burst 3k cburst 3k quantum 1514"

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
    """Frames to destinations, and what came of them. Destination N is sent to by
    transmitq N modulo their number. layout: one descriptor for a frame ("direct"),
    PIECES of the ring ("chained"), or of a table ("indirect")."""

    def __init__(self, rig, destinations, layout="direct"):
        self.queues = rig.driver.tx
        self.queue = self.queues[0]
        self.mem = rig.driver.mem
        self.hdr_len = rig.driver.hdr_len
        self.sock = destinations.host.sock
        self.sock.setblocking(False)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.layout = layout
        self.descs = PIECES if layout == "chained" else 1
        self.free = [[(self.mem.buffer(1600), self.mem.alloc(16 * PIECES)) for _ in range(queue.size)]
                     for queue in self.queues]
        self.busy = {}  # (transmitq, head) -> buffer
        self.sent, self.got, self.next = {}, {}, {}
        self.last, self.stall = {}, {}
        self.arrived = lambda number, seq, when: None
        self.pauses = []  # times in which run() did not get to run
        self.realtime = time.time() - time.monotonic()

    def reap(self):
        for i, queue in enumerate(self.queues):
            for head, length in queue.reap():
                check_equal(length, 0, "used length")
                self.free[i].append(self.busy.pop((i, head)))

    def unreturned(self, i=0):
        """Descriptors of transmitq @i that the device has."""
        self.reap()
        return self.queues[i].size - len(self.queues[i].free)

    def chain(self, queue, buffer, length):
        """The descriptors for what is in @buffer; the head."""
        gpa, table = buffer
        if self.layout == "direct":
            return queue.chain([(gpa, length, 0)])
        cuts = [0, self.hdr_len, self.hdr_len + 30, self.hdr_len + 45, length]
        pieces = [(gpa + at, end - at, 0) for at, end in zip(cuts, cuts[1:])]
        if self.layout == "chained":
            return queue.chain(pieces)
        for i, (at, size, _) in enumerate(pieces):
            queue.set_desc(i, at, size, int(i < PIECES - 1), i + 1, table)
        return queue.chain([(table, 16 * PIECES, INDIRECT)])

    def send(self, number, length):
        """One frame, not kicked; whether there was room in the ring."""
        i = number % len(self.queues)
        queue = self.queues[i]
        if not self.free[i] or len(queue.free) < self.descs:
            return False
        seq = self.sent.get(number, 0)
        buffer = self.free[i].pop()
        data = bytes(self.hdr_len) + frame(number, seq, length)
        self.mem.write(buffer[0], data)
        head = self.chain(queue, buffer, len(data))
        queue.queue(head)
        self.busy[i, head] = buffer
        self.sent[number] = seq + 1
        return True

    def kick(self):
        for queue in self.queues:
            queue.publish()
            queue.kick()

    def receive(self, timeout=0.0):
        """Takes what arrived, checks order and content; how many frames."""
        count = 0
        while True:
            try:
                data, notes, _, _ = self.sock.recvmsg(2048, 256)
            except BlockingIOError:
                if not timeout or not select.select([self.sock], [], [], timeout)[0]:
                    return count
                continue
            if data[6:12] != GUEST_MAC or data[:4] != mac(0)[:4]:
                continue
            count += 1
            number, seq = int.from_bytes(data[14:16], "big"), int.from_bytes(data[16:20], "big")
            check(seq >= self.next.get(number, 0), f"destination {number}: frame {seq} after {self.next.get(number, 0) - 1}")
            check(data[HEAD:] == bytes([seq & 0xff]) * (len(data) - HEAD), f"destination {number}: content of frame {seq}")
            self.next[number] = seq + 1
            self.got[number] = self.got.get(number, 0) + 1
            # When the kernel had it, however late this program looks.
            when = next(sec + nsec / 1e9 for level, kind, body in notes if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS)
                        for sec, nsec in [struct.unpack("qq", body)]) - self.realtime
            self.stall[number] = max(self.stall.get(number, 0), when - self.last.get(number, when))
            self.last[number] = when
            self.arrived(number, seq, when)

    def run(self, seconds, rates, lengths=(1000,), burst=32):
        """Offers frames per second by destination number for a while; what does
        not fit into the ring is not offered, and no more than @burst of a
        destination at once. @rates may be changed meanwhile by a generator's
        caller: yields once per round."""
        start = last = self.round = time.monotonic()
        owed = dict.fromkeys(rates, 0.0)
        while (now := time.monotonic()) - start < seconds:
            self.round = now
            for number, rate in rates.items():
                owed[number] = min(owed[number] + rate * (now - last), burst)
            if now - last > 0.01:
                self.pauses.append((last, now))
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


class LaneView:
    """What tests of lanes ask a rig."""

    def drops(self):
        """Dropped packets by reason, all that are not 0."""
        drops = {}
        for pair in self.daemon.stat()["queue_pairs"]:
            for name, value in pair["tx"].items():
                if name.startswith("drop_") and value:
                    drops[name] = drops.get(name, 0) + value
        return drops

    def lanes(self, pair=0):
        """What stat says of each lane."""
        return self.daemon.stat()["queue_pairs"][pair]["lanes"]

    def lane_states(self, pair=0):
        return [lane["state"] for lane in self.lanes(pair)]


class LaneRig(LaneView, Rig):
    """A rig whose daemon makes tap0 itself, with as many queues as it wants;
    with @tap_first it is there already, with one queue."""

    def __init__(self, engine=None, backend="", tap_first=False, pairs=1, **args):
        super().__init__(engine, pairs=pairs, tap=tap_first, backend=backend or ",lanes=8", mem=Memory(64 << 20), **args)


class OtherTapRig(LaneRig):
    """A LaneRig that does not make its tap and daemon in the usual way."""

    def start_daemon(self, stack):
        """Sets self.ns, the namespace of tap0, and returns a daemon that runs."""
        raise NotImplementedError

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.daemon = self.start_daemon(stack)
            self.path = self.daemon.socket
            self.host = stack.enter_context(HostSide(self.ns, "tap0"))
            stack.callback(self.disconnect)
            self.connect()
            self.stack = stack.pop_all()
        return self


class FdLaneRig(OtherTapRig):
    """tap0 was opened by another program, @queues for each pair, in another network
    namespace than the daemon's."""

    def __init__(self, engine, pairs, queues):
        super().__init__(engine, pairs=pairs)
        self.count = pairs * queues

    def start_daemon(self, stack):
        self.ns = stack.enter_context(Netns())
        other = stack.enter_context(Netns("d"))
        fds = [self.ns.open_tap(multi_queue=True) for _ in range(self.count)]
        try:
            self.ns.configure("tap0", None)
            return stack.enter_context(Virtlane(
                backend="tap,fds=" + ":".join(map(str, fds)), pairs=self.pairs, engine=self.engine,
                netns=other, pass_fds=fds))
        finally:
            for fd in fds:
                os.close(fd)


def not_run(pid):
    """Seconds that the threads of a process were ready to run and did not, up to now."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as f:
            total += int(f.read().split()[1])
    return total / 1e9


def elsewhere(rig):
    """What the network behind the tap dropped itself, which no test is about."""
    qdisc = re.findall(r"dropped ([1-9]\d*)", rig.ns.run("tc", "-s", "qdisc", "show").stdout)
    return f"qdiscs dropped {qdisc}, {rig.ns.ip('-s', 'link')}"


def check_accounted(rig, flood, timeout=5):
    """Every frame arrives or was counted as dropped."""
    end = time.monotonic() + timeout
    while True:
        flood.reap()
        flood.receive(0.05)
        sent, got, drops = sum(flood.sent.values()), sum(flood.got.values()), sum(rig.drops().values())
        if got + drops >= sent or time.monotonic() > end:
            break
    if got + drops != sent:
        check_equal(got + drops, sent, f"frames that arrived ({got}) or were dropped ({rig.drops()}), {elsewhere(rig)}")


def beside(flood, fast, slow, offered=400, seconds=1.0):
    """Part of the frames to the destinations @fast that arrive while those to @slow
    are too many, for each, and the longest gap between them; what they get alone
    is 1. What does not fit into the ring counts as lost."""
    def measure(rates, warm_up):
        for _ in flood.run(warm_up, rates):
            pass
        before = dict(flood.got)
        flood.stall.clear()
        for _ in flood.run(seconds, rates):
            pass
        return {n: flood.got.get(n, 0) - before.get(n, 0) for n in fast}
    alone = measure(dict.fromkeys(fast, offered), 0.2)
    check(all(n > 0.5 * offered * seconds for n in alone.values()), f"frames that arrived alone: {alone}")
    got = measure(dict.fromkeys([*fast, *slow], offered), 0.7)
    return {n: got[n] / alone[n] for n in fast}, max(flood.stall.get(n, seconds) for n in fast)


def check_unharmed(rig, flood, fast, slow, attempts=3):
    """The destinations @fast get beside the destinations @slow what they get alone.
    What else runs on the machine can only make it look worse."""
    for _ in range(attempts):
        parts, gap = beside(flood, fast, slow)
        print(f"fast ones get {', '.join(f'{part:.3f}' for part in parts.values())} of what they get alone, longest gap "
              f"{gap:.3f} s, drops {rig.drops()}", flush=True)
        if sanitizer() or (min(parts.values()) >= 0.95 and gap < 0.1):
            break
    else:
        check(False, f"fast destinations beside slow ones: {parts}, longest gap {gap:.3f} s")
    for pair in {n % rig.pairs for n in slow}:
        slow_ones = rig.lane_states(pair).count("slow")
        check(slow_ones > 0, f"no lane of pair {pair} is slow: the test shows nothing")
