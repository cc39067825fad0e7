# SPDX-License-Identifier: BSD-3-Clause
"""Bits per CPU second of a host that puts a guest's frames into VXLAN: virtlane's tunnel endpoint,
and virtlane on a tap with a bridge and a vxlan device of the kernel's.

    host: virtlane                    --- u0 === u0 --- vx0, far
    host: virtlane, tap0 - br0 - vx0  --- u0 === u0 --- vx0, far

virtlane has one CPU, the guest and the programs at the far end have another. The price
is the time that virtlane's CPU was not idle, so what the kernel does there is part of it.
"""

import contextlib
import functools
import json
import os
import time

from vltest import MAC, Iperf3Server, Netns, TestFailure, UmlGuest, Virtlane, iperf3, need_program, need_tun

from cpu import BACK_END, LOAD, cpu_seconds, on_cpu
from report import Bar, Experiment, say

VNI = "7"
HOST, FAR = "10.8.0.1", "10.8.0.2"
FAR_MAC, NOBODY = "02:00:00:00:08:02", "02:00:00:00:08:99"
# Of the frames that vl-flood makes.
FLOOD_MAC = "02:00:00:00:00:00"
PAYLOAD = 1400
# Ethernet, IPv4 and UDP around it.
FRAME = PAYLOAD + 42
MTU = 1450
WARM_UP = 0.5

VIRTLANE, KERNEL = "virtlane's tunnel", "tap, bridge, kernel's vxlan"
FIGURES = {
    "rate": ("Mbit/s", 1e-6, "{:.0f}"),
    "per_cpu": ("Mbit/CPU s", 1e-6, "{:.0f}"),
    "per_process": ("Mbit/CPU s of virtlane alone", 1e-6, "{:.0f}"),
}
# Device features by which a packet passes u0 that a wire would carry in several.
SEGMENTS = ("tso", "gso", "tx-udp-segmentation")


class Way:
    """A guest's way to the far end: namespaces, and the daemon."""

    def __init__(self, host, far, daemon):
        self.host = host
        self.far = far
        self.daemon = daemon

    def busy(self):
        """(seconds that the host's CPU was not idle, CPU seconds of virtlane, time)."""
        now = time.monotonic()
        with open("/proc/stat", encoding="ascii") as f:
            words = next(line for line in f if line.startswith(f"cpu{BACK_END} ")).split()
        # A thread that waits in io_uring_enter() makes it "iowait".
        idle = (int(words[4]) + int(words[5])) / os.sysconf("SC_CLK_TCK")
        return now - idle, cpu_seconds(self.daemon.pid), now

    def far_work(self, apart):
        """Whether the far end's work on what comes is done by the CPU of the load, or by that of the sender."""
        steer(self.far, LOAD if apart else None)

    def host_work(self, apart):
        """The same for the host and its CPU."""
        steer(self.host, BACK_END if apart else None)

    def aim(self, port):
        """Frames of vl-flood go to this port of the bridge, if there is one."""
        self.host.run("bridge", "fdb", "replace", FLOOD_MAC, "dev", port, "master", "static", check=False)

    def segments(self, device, on):
        """Whether packets pass a device of the host's or, vx0, of the far end's in one that are to be cut."""
        netns = self.far if device == "vx0" else self.host
        for feature in SEGMENTS:
            netns.run("ethtool", "-K", device, feature, "on" if on else "off", check=False)

    @contextlib.contextmanager
    def dropped(self):
        """What is sent to the far end meanwhile is for another host, so it is dropped as soon as it is seen."""
        neighbour = ("neigh", "replace", FAR, "dev", "u0", "nud", "permanent", "lladdr")
        self.host.ip(*neighbour, NOBODY)
        try:
            yield
        finally:
            self.host.ip(*neighbour, FAR_MAC)

    def count(self):
        """Datagrams that arrived at the far end: tc counts those in a packet that is to be cut."""
        qdiscs = json.loads(self.far.run("tc", "-s", "-j", "qdisc", "show", "dev", "u0").stdout)
        return next(q["packets"] for q in qdiscs if q["kind"] == "clsact")

    @contextlib.contextmanager
    def flood(self, mode, seconds, *options):
        """vl-flood beside what is measured meanwhile."""
        netns, ifname = (self.far, "vx0") if mode == "rx" else (self.host, "u0")
        argv = [os.path.join(os.environ["VIRTLANE_BENCH"], "vl-flood"), f"--socket={self.daemon.socket}",
                f"--ifname={ifname}", f"--mode={mode}", f"--size={FRAME}", f"--seconds={seconds}", *options]
        process = netns.popen(*argv)
        with on_cpu(LOAD):
            stack = contextlib.ExitStack()
            stack.enter_context(process)
        with stack:
            yield process

    def transmit(self, seconds, *options):
        """Datagrams from vl-flood."""
        self.aim("vx0")
        with self.dropped(), self.flood("tx", seconds + 2 * WARM_UP, *options) as load:
            packets, *spent = self.watch(seconds, load)
        if not packets:
            raise TestFailure(f"nothing arrives: {self.daemon.log()}")
        return values(packets * PAYLOAD * 8, *spent)

    def watch(self, seconds, load):
        """(datagrams that arrived, and as busy()) meanwhile, after a warm-up; last the CPU seconds of the load."""
        def reading():
            return (self.count(), *self.busy(), cpu_seconds(load.pid))
        time.sleep(WARM_UP)
        first = reading()
        time.sleep(seconds)
        return [b - a for a, b in zip(first, reading())]

    def receive(self, seconds):
        """Frames of the same size to vl-flood."""
        self.aim("tap0")
        self.segments("vx0", False)
        with self.flood("rx", seconds + 2 * WARM_UP) as load:
            _, busy, process, wall, awake = self.watch(seconds, load)
            load.wait(10)
            line = json.loads(load.output().strip().splitlines()[-1])
        self.segments("vx0", True)
        return values(line["packets"] / line["seconds"] * wall * PAYLOAD * 8, busy, process, wall, awake)

    def tcp(self, guest, seconds, *options):
        """TCP of a guest."""
        first = self.busy()
        end = iperf3(guest, *options, seconds=seconds)["sum_received"]
        busy, process, _ = (b - a for a, b in zip(first, self.busy()))
        return values(end["bytes"] * 8, busy, process, end["seconds"])


def steer(netns, cpu):
    """What comes to u0 is work for this CPU; None: for that of the sender."""
    mask = 0 if cpu is None else 1 << cpu
    # /sys is that of the namespace only for a program that was started there.
    netns.run("sh", "-c", f"echo {mask:x} > /sys/class/net/u0/queues/rx-0/rps_cpus")


def values(bits, busy, process, wall, load=None):
    """Of a round. load: CPU seconds of what never sleeps."""
    share = {} if load is None else {"share": load / wall}
    return {"rate": bits / wall, "per_cpu": bits / busy, "per_process": bits / process, **share}


def vxlan_device(netns, local, remote):
    """The kernel's tunnel endpoint."""
    netns.ip("link", "add", "vx0", "mtu", str(MTU), "type", "vxlan", "id", VNI, "dstport", "4789", "dev", "u0",
             "local", local, "remote", remote)


@contextlib.contextmanager
def underlay():
    """A host and the far end, with a vxlan device, on a veth pair."""
    with Netns("host") as host, Netns("far") as far:
        host.ip("link", "add", "u0", "type", "veth", "peer", "name", "u0", "netns", far.name)
        for netns, address in ((host, HOST), (far, FAR)):
            netns.configure("u0", f"{address}/24")
        far.ip("link", "set", "u0", "address", FAR_MAC)
        far.run("tc", "qdisc", "add", "dev", "u0", "clsact")
        # It counts only if there is a filter.
        far.run("tc", "filter", "add", "dev", "u0", "ingress", "protocol", "ip", "u32", "match", "u32", "0", "0",
                "classid", "1:1")
        vxlan_device(far, FAR, HOST)
        far.configure("vx0")
        yield host, far


@contextlib.contextmanager
def tunnel():
    """virtlane is the endpoint."""
    backend = f"vxlan,vni={VNI},local={HOST},remote={FAR},mac={FLOOD_MAC}@{FAR}"
    with underlay() as (host, far):
        with on_cpu(BACK_END):
            stack = contextlib.ExitStack()
            daemon = stack.enter_context(Virtlane(f"--mac={MAC}", netns=host, backend=backend))
        with stack:
            yield Way(host, far, daemon)


@contextlib.contextmanager
def bridged():
    """The kernel is; virtlane is on a tap."""
    with underlay() as (host, far):
        host.add_tap(address=None, mtu=MTU)
        vxlan_device(host, HOST, FAR)
        host.ip("link", "add", "br0", "type", "bridge", "forward_delay", "0", "mcast_snooping", "0")
        for port in ("tap0", "vx0"):
            host.ip("link", "set", port, "master", "br0", "up")
        host.ip("link", "set", "br0", "up")
        host.run("bridge", "fdb", "add", FLOOD_MAC, "dev", "vx0", "dst", FAR, "self", "static")
        with on_cpu(BACK_END):
            stack = contextlib.ExitStack()
            daemon = stack.enter_context(Virtlane(f"--mac={MAC}", f"--mtu={MTU}", netns=host))
        with stack:
            yield Way(host, far, daemon)


class Part:
    """Experiments that have the two ways."""

    def __init__(self, ours, theirs, rounds, seconds):
        self.ways = (ours, theirs)
        self.rounds = rounds
        self.seconds = seconds
        self.guests = ()

    def each(self, method, *args):
        """Call a method of both ways."""
        for way in self.ways:
            method(way, *args)

    def run(self, title, least, candidates):
        """One experiment with [function that takes seconds and returns values], ours and theirs."""
        e = Experiment(f"vxlan {title}", FIGURES, [Bar(VIRTLANE, KERNEL, least, "per_cpu"),
                                                   Bar(VIRTLANE, KERNEL, None, "per_process")])
        say(e.title)
        e.run(self.rounds, {name: functools.partial(candidate, self.seconds)
                            for name, candidate in zip((VIRTLANE, KERNEL), candidates)})
        return e

    def flood(self, title, least, *options):
        """Datagrams that vl-flood sends."""
        return self.run(f"TX, UDP {PAYLOAD} B, {title}", least,
                        [lambda seconds, way=way: way.transmit(seconds, *options) for way in self.ways])

    def iperf3(self, title, least, *options):
        """TCP of the guests."""
        return self.run(f"TCP, {title}", least, [
            lambda seconds, way=way, guest=guest: way.tcp(guest, 2 * seconds, *options)
            for way, guest in zip(self.ways, self.guests)])


def udp(part):
    """Datagrams that vl-flood makes or takes."""
    yield part.flood("driver: vl-flood", 2.0)
    yield part.flood("the same, checksum left to the device", None, "--partial")
    part.each(Way.segments, "u0", False)
    yield part.flood("driver: vl-flood, single packets on u0", None)
    part.each(Way.segments, "u0", True)
    part.each(Way.host_work, True)
    yield part.run(f"RX, {FRAME} B, driver: vl-flood", None, [way.receive for way in part.ways])
    part.each(Way.host_work, False)


@contextlib.contextmanager
def guest_on(way):
    """A guest on the CPU of the load, and a server at the far end."""
    with on_cpu(LOAD):
        stack = contextlib.ExitStack()
        stack.enter_context(Iperf3Server(way.far))
        guest = stack.enter_context(UmlGuest(way.daemon.socket))
    with stack:
        guest.wait_carrier(True)
        iperf3(guest, seconds=1)
        yield guest


def send(part, offload, least):
    """TCP from the guests, the far end's work apart and not, on a veth pair that cuts nothing and on one that does."""
    yield part.iperf3(f"guest to far, offload {offload}, far end's work on virtlane's CPU", least)
    part.each(Way.far_work, True)
    yield part.iperf3(f"guest to far, offload {offload}, far end's work apart", least)
    part.each(Way.segments, "u0", False)
    yield part.iperf3(f"guest to far, offload {offload}, far end's work apart, single packets on u0", None)
    part.each(Way.segments, "u0", True)
    part.each(Way.far_work, False)


def tcp(part):
    """iperf3 in a guest."""
    with contextlib.ExitStack() as stack:
        part.guests = [stack.enter_context(guest_on(way)) for way in part.ways]
        yield from send(part, "on", 0.5)
        part.each(Way.host_work, True)
        yield part.iperf3("far to guest", None, "-R")
        part.each(Way.host_work, False)
        for guest in part.guests:
            # Not all kernels let a driver turn off all of it.
            guest.run("ethtool -K eth0 tso off gso off gro off tx off sg off", status=None)
        yield from send(part, "off", 2.0)


def measure(rounds=5, seconds=1):
    """All experiments with tunnels."""
    need_tun()
    need_program("ethtool", "tc", "bridge", "linux.uml", "iperf3")
    if BACK_END == LOAD:
        say("vxlan: needs two CPUs")
        return []
    with contextlib.ExitStack() as stack:
        say("starting virtlane and the network, twice")
        part = Part(stack.enter_context(tunnel()), stack.enter_context(bridged()), rounds, seconds)
        return [*udp(part), *tcp(part)]
