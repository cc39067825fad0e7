# SPDX-License-Identifier: BSD-3-Clause
"""A slow and a fast destination of one guest: what each of them gets.

        guest eth0 10.9.0.2
              |
    virtlane, tap0 --- br0 --- slow0, HTB  10 Mbit/s --- "VM2"         10.9.0.12
                        \\---- fast0, HTB 100 Mbit/s --- "the outside" 10.9.0.13

Each box is a network namespace. What HTB holds back stays charged to the send
buffer of tap0, so a small send buffer pushes back as soon as VM2's queue grows.
Addresses are static everywhere: no frame is flooded, none is asked for.
"""

import contextlib
import re
import time

from vltest import (ADDRESS, MAC, Iperf3Server, Netns, QemuGuest, UmlGuest, Virtlane, need_program, need_tun,
                    wait_for)

UDP_PAYLOAD = 1400
UDP_OFFERED = 60
PING_INTERVAL = 0.01
PORT = 5201


class TapGuest(QemuGuest):
    """The same machine as a QemuGuest, with QEMU's own card on tap0 of its namespace.

    netdev, device: more properties of QEMU's -netdev tap and of the card."""

    def __init__(self, netns, netdev="", device=""):
        super().__init__(netns=netns)
        properties = ("tap,id=n,ifname=tap0,script=no,downscript=no,vhost=off", netdev)
        self.argv += ["-netdev", ",".join(filter(None, properties)),
                      "-device", ",".join(filter(None, (f"virtio-net-pci,netdev=n,mac={MAC},romfile=", device)))]


class Destination:
    """A namespace behind a port of the bridge, with an iperf3 server when loaded.

    mbit: what HTB lets through to it; None is as much as the host can."""

    # What HTB counts of a frame that carries one of the guest's: "" is all of it.
    counted = ""

    def __init__(self, name, number, mbit):
        self.name = name
        self.address = f"10.9.0.{number}"
        self.mac = f"52:54:00:09:00:{number}"
        self.mbit = mbit
        self.port = name + "0"
        self.netns = Netns(name)

    def connect(self, host):
        """Plug it into br0 of the host's namespace."""
        there = self.netns
        host.ip("link", "add", self.port, "type", "veth", "peer", "name", "eth0", "netns", there.name)
        there.ip("link", "set", "eth0", "address", self.mac)
        there.configure("eth0", f"{self.address}/24")
        there.ip("neigh", "add", ADDRESS, "lladdr", MAC, "dev", "eth0")
        host.ip("link", "set", self.port, "master", "br0", "up")
        host.run("bridge", "fdb", "replace", self.mac, "dev", self.port, "master", "static")
        if self.mbit:
            self.shape(host, self.mbit)

    def shape(self, host, mbit):
        """From now on HTB lets through so many Mbit/s (None: everything)."""
        if self.mbit:
            host.run("tc", "qdisc", "del", "dev", self.port, "root", check=False)
        self.mbit = mbit
        if not mbit:
            return
        rate = f"{mbit}mbit"
        for line in (f"qdisc add dev {{}} root handle 1: {self.counted} htb default 10",
                     f"class add dev {{}} parent 1: classid 1:10 htb rate {rate} ceil {rate} burst 6k cburst 6k",
                     "qdisc add dev {} parent 1:10 handle 10: pfifo limit 1000"):
            host.run("tc", *line.format(self.port).split())

    def received(self, flow):
        """Payload bytes that its iperf3 server has got up to now."""
        if flow == "udp":
            return UDP_PAYLOAD * snmp(self.netns.run("cat", "/proc/net/snmp").stdout, "Udp", "InDatagrams")
        sockets = self.netns.run("ss", "-Htin", f"sport = :{PORT}").stdout
        return sum(int(n) for n in re.findall(r"bytes_received:(\d+)", sockets))

    def pings(self, seconds):
        """A running ping to the guest; the echo reply takes the shaped way."""
        count = int(seconds / PING_INTERVAL)
        return self.netns.popen("ping", "-n", "-i", str(PING_INTERVAL), "-c", str(count), "-W", "3", ADDRESS)


def snmp(text, protocol, name):
    """A counter from the text of /proc/net/snmp."""
    names, values = [line.split() for line in text.splitlines() if line.startswith(protocol + ":")]
    return int(values[names.index(name)])


def percentile(values, percent):
    """The value below which that many percent of them are; None of nothing."""
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * percent / 100))] if values else None


class Network:
    """The whole picture, as a context manager. backend: more words for
    --backend=tap,name=tap0; options: more of the daemon's command line;
    slow, fast: Mbit/s of the ports; guest: its class."""

    destination = Destination
    card = "tap,name=tap0"

    def __init__(self, backend="", *options, slow=10, fast=100, guest=UmlGuest):
        need_tun()
        need_program("tc", "bridge", "ss", "ping", "iperf3")
        self.host = Netns("host")
        self.slow = self.destination("slow", 12, slow)
        self.fast = self.destination("fast", 13, fast)
        self.daemon = Virtlane(f"--mac={MAC}", *options, netns=self.host,
                               backend=",".join(filter(None, (self.card, backend))))
        self.guest_class = guest
        self.guest = None
        self.stack = contextlib.ExitStack()

    def start_way_out(self, stack):
        """Start what carries the guest's packets; tap0 is there afterwards, on br0."""
        # The daemon makes tap0, with as many queues as it wants.
        stack.enter_context(self.daemon)
        self.plug_tap()

    def plug_tap(self):
        """Put tap0 on br0."""
        self.host.ip("link", "set", "tap0", "master", "br0", "up")
        self.host.run("bridge", "fdb", "replace", MAC, "dev", "tap0", "master", "static")

    def make_guest(self, stack):
        """The guest, not started."""
        # Its only way out is the daemon.
        return self.guest_class(self.daemon.socket, netns=stack.enter_context(Netns("guest")))

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            for netns in (self.host, self.slow.netns, self.fast.netns):
                stack.enter_context(netns)
            self.host.ip("link", "add", "br0", "type", "bridge", "forward_delay", "0", "mcast_snooping", "0")
            self.host.ip("link", "set", "br0", "up")
            self.start_way_out(stack)
            for destination in (self.slow, self.fast):
                destination.connect(self.host)
            self.guest = stack.enter_context(self.make_guest(stack))
            self.guest.wait_carrier(True)
            for destination in (self.slow, self.fast):
                self.guest.run(f"/usr/bin/ip neigh add {destination.address} lladdr {destination.mac} dev eth0")
                wait_for(lambda d=destination: self.guest.ping(d.address, 1)[0], 5, "the first ping")
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *exc):
        return self.stack.__exit__(*exc)

    @contextlib.contextmanager
    def flows(self, flows):
        """iperf3 runs meanwhile: flows is a list of (destination, "tcp" or "udp").

        "tcp" may have a number behind it, of Mbit/s that it must not exceed."""
        with contextlib.ExitStack() as stack:
            for destination, flow in flows:
                stack.enter_context(Iperf3Server(destination.netns, PORT))
                before = destination.received(flow)
                mbit = flow.removeprefix("tcp")
                how = f"-u -b {UDP_OFFERED}M -l {UDP_PAYLOAD}" if flow == "udp" else f"-b {mbit}M" if mbit else ""
                self.guest.run(f"iperf3 -c {destination.address} -p {PORT} -t 3600 {how} >/dev/null 2>&1 &")
                # It is running before the next one can be in its way.
                wait_for(lambda d=destination, f=flow, b=before: d.received(f) > b + 20000, 10,
                         f"{flow} to {destination.name}")
            yield
            self.guest.run("killall iperf3; while pidof iperf3; do usleep 50000; done", 20, None)
        wait_for(self.drained, 10, "the queues to drain")

    def shaper(self, destination):
        """(packets dropped, packets waiting) of a port, if it is shaped."""
        if not destination.mbit:
            return 0, 0
        text = self.host.run("tc", "-s", "qdisc", "show", "dev", destination.port).stdout
        leaf = text[text.index("qdisc pfifo 10:"):]
        return (int(re.search(r"dropped (\d+)", leaf).group(1)),
                int(re.search(r"backlog \d+\w* (\d+)p", leaf).group(1)))

    def drained(self):
        """Whether nothing is under way any more."""
        return not any(self.shaper(d)[1] for d in (self.slow, self.fast))

    def daemon_counters(self):
        """What the daemon counted, of all queue pairs together."""
        tx = [pair["tx"] for pair in self.daemon.stat()["queue_pairs"]]
        values = {name: sum(t[name] for t in tx) for name in tx[0] if name.startswith("drop")}
        return {**values, "drops": sum(values.values()), "blocked": sum(t["blocked"] for t in tx)}

    def reading(self, flows):
        """All counters that measure() takes the differences of."""
        values = {d.name + "_bytes": d.received(flow) for d, flow in flows}
        values["time"] = time.monotonic()
        values.update(self.daemon_counters())
        values["shaper_drops"] = sum(self.shaper(d)[0] for d in (self.slow, self.fast))
        guest = self.guest.out("cat /proc/net/snmp")
        values["retransmitted"] = snmp(guest, "Tcp", "RetransSegs")
        values["segments"] = snmp(guest, "Tcp", "OutSegs")
        values["datagrams"] = snmp(guest, "Udp", "OutDatagrams")
        return values

    def measure(self, slow_flow, seconds=3, warm_up=1.5, fast_flow="tcp"):
        """A slow flow ("tcp", "udp" or None) to VM2 and another to the outside, together.

        Pings to both run for exactly as long as is measured, as many whatever else does.

        Returns Mbit/s of payload that arrived ("slow", "fast"), round-trip times in ms
        ("slow_p50" ...) with the share of pings lost, the daemon's drops in all and by
        reason, retransmissions and so on.
        """
        flows = [(d, flow) for d, flow in ((self.fast, fast_flow), (self.slow, slow_flow)) if flow]
        with self.flows(flows), contextlib.ExitStack() as stack:
            time.sleep(warm_up)
            first = self.reading(flows)
            pings = {d.name: stack.enter_context(d.pings(seconds)) for d, _ in flows}
            time.sleep(seconds)
            last = self.reading(flows)
            for ping in pings.values():
                ping.wait(20)
        values = {key: last[key] - first[key] for key in first}
        for destination, _ in flows:
            name = destination.name
            values[name] = 8e-6 * values.pop(name + "_bytes") / values["time"]
            text = pings[name].output()
            times = [float(t) for t in re.findall(r" time=([0-9.]+) ms", text)]
            values[name + "_p50"] = percentile(times, 50)
            values[name + "_p99"] = percentile(times, 99)
            values[name + "_lost"] = 1 - len(times) * PING_INTERVAL / seconds
        return values


class OwnTapNetwork(Network):
    """The same with QEMU's own card on tap0, and no daemon."""

    def __init__(self, netdev="", **ports):
        super().__init__(**ports)
        self.daemon = None
        self.netdev = netdev

    def start_way_out(self, stack):
        self.host.add_tap("tap0", None)
        self.plug_tap()

    def make_guest(self, stack):
        return TapGuest(self.host, self.netdev)

    def daemon_counters(self):
        return {}
