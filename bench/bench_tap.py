# SPDX-License-Identifier: BSD-3-Clause
"""Packets per CPU second of the back-end between a driver and a tap.

Each candidate has a namespace with a tap0 of its own, and is idle while another
is measured. The back-end has one CPU, what loads it another.
"""

import contextlib
import functools
import json
import os
import time

from vltest import Netns, TestFailure, VhostTap, VirtioUser, Workdir, need_program, need_tun, virtlane_on_tap

from cpu import BACK_END, LOAD, cpu_seconds, move, on_cpu
from report import Bar, Experiment, say

SIZES = (64, 1514)
GSO_SIZE = 65536
# Linux's TCP fills fragments of 32 KiB (headers and two or three of them); a
# driver that is given single pages has 17.
GSO_PIECES = (4, 17)
WARM_UP = 0.3
# Nothing here depends on what else runs: both have to wait all the time.
ONE_CPU_ROUNDS = 4

VIRTLANE, TESTPMD, RAW = "virtlane", "testpmd vhost-tap", "raw io_uring loop"
FIGURES = {
    "pps": ("kpackets/s", 1e-3, "{:.0f}"),
    "per_cpu": ("kpackets/CPU s", 1e-3, "{:.0f}"),
}


class BackEnd:
    """A back-end, the interface in a namespace at which its packets are counted, and a driver on its socket."""

    def __init__(self, netns, socket, process, ifname="tap0"):
        self.netns = netns
        self.ifname = ifname
        self.socket = socket
        self.process = process
        self.driver = None
        self.driver_alone = True

    def awake(self):
        """Context: it does its work."""
        return contextlib.nullcontext()

    def drive(self, size, seconds):
        """DPDK's driver sends frames of this size; counted at the interface."""
        self.driver.command("set txpkts " + str(size))
        for _ in range(3):
            with self.awake():
                self.driver.command("start")
                time.sleep(WARM_UP)
                first = self.reading()
                time.sleep(seconds)
                packets, cpu, load, wall = (b - a for a, b in zip(first, self.reading()))
                self.driver.command("stop")
            if packets:
                share = load / wall if self.driver_alone else 1
                return {"pps": packets / wall, "per_cpu": packets / cpu, "share": share}
            say(f"{self.process.name}: nothing arrived at {self.ifname} in {wall:.1f} s, once more")
        raise TestFailure(f"{self.process.name}: nothing arrives at {self.ifname}")

    def reading(self):
        """(packets that arrived at the interface, CPU seconds of the back-end and of the driver, time)."""
        with self.netns.entered(), open("/proc/thread-self/net/dev", encoding="ascii") as f:
            line = next(x for x in f if x.strip().startswith(self.ifname + ":"))
        cpu = [cpu_seconds(p.pid) for p in (self.process, self.driver)]
        return int(line.split(":")[1].split()[1]), *cpu, time.monotonic()

    @contextlib.contextmanager
    def driver_beside(self):
        """The driver meanwhile shares the back-end's CPU."""
        move(self.driver.pid, BACK_END)
        self.driver_alone = False
        try:
            yield
        finally:
            move(self.driver.pid, LOAD)
            self.driver_alone = True

    def flood(self, mode, size, seconds, pieces=1):
        """vl-flood drives it."""
        with self.awake():
            return run_program(self.netns, LOAD, "vl-flood", f"--ifname={self.ifname}", f"--socket={self.socket}",
                               f"--mode={mode}", f"--size={size}", f"--pieces={pieces}",
                               f"--seconds={seconds}", f"--pid={self.process.pid}")


class TestpmdBackEnd(BackEnd):
    """Polls all the time unless it is stopped."""

    @contextlib.contextmanager
    def awake(self):
        """Forwards meanwhile."""
        self.process.command("start")
        try:
            yield
        finally:
            self.process.command("stop")


def run_program(netns, cpu, name, *options):
    """One of our programs in a namespace on a CPU; returns a round's values."""
    with on_cpu(cpu):
        done = netns.run(os.path.join(os.environ["VIRTLANE_BENCH"], name), *options)
    line = json.loads(done.stdout.strip().splitlines()[-1])
    return {"pps": line["packets"] / line["seconds"], "per_cpu": line["packets_per_cpu_second"],
            "share": line["load_cpu_seconds"] / line["seconds"]}


def raw(netns, size, seconds, pieces=1):
    """The raw loop on the back-end's CPU."""
    return run_program(netns, BACK_END, "tap-rawloop", "--ifname=tap0", f"--size={size}",
                       f"--pieces={pieces}", f"--seconds={seconds}")


@contextlib.contextmanager
def virtlane():
    """virtlane on a tap."""
    with on_cpu(BACK_END):
        stack = contextlib.ExitStack()
        netns, daemon = stack.enter_context(virtlane_on_tap())
    with stack:
        yield BackEnd(netns, daemon.socket, daemon)


@contextlib.contextmanager
def testpmd():
    """DPDK's testpmd between a vhost-user port and a tap."""
    with Workdir() as work, Netns("pmd") as netns:
        with on_cpu(BACK_END):
            process = VhostTap(work / "vu.sock", netns=netns).start()
        with contextlib.ExitStack() as stack:
            stack.push(process)
            process.command("stop")
            netns.configure("tap0")
            yield TestpmdBackEnd(netns, work / "vu.sock", process)


@contextlib.contextmanager
def drivers(back_ends):
    """DPDK's driver on each of them, ready to send."""
    with contextlib.ExitStack() as stack:
        for back_end in back_ends:
            with on_cpu(LOAD), back_end.awake():
                back_end.driver = stack.enter_context(VirtioUser(back_end.socket))
                back_end.driver.wait_link()
                back_end.driver.command("set fwd txonly")
        yield


def transmit(ours, theirs, raw_netns, rounds, seconds):
    """Frames of Ethernet size from DPDK's driver."""
    found = []
    with drivers((ours, theirs)):
        for size in SIZES:
            e = Experiment(f"TX, {size} B, driver: DPDK virtio-user", FIGURES,
                           [Bar(VIRTLANE, TESTPMD, 1.3, "per_cpu"), Bar(VIRTLANE, RAW, 0.85, "per_cpu")])
            say(e.title)
            e.run(rounds, {VIRTLANE: functools.partial(ours.drive, size, seconds),
                           TESTPMD: functools.partial(theirs.drive, size, seconds),
                           RAW: functools.partial(raw, raw_netns, size, seconds)})
            found.append(e)
        found += transmit_one_cpu(ours, theirs, ONE_CPU_ROUNDS, seconds)
    return found


def transmit_one_cpu(ours, theirs, rounds, seconds):
    """The same with driver and back-end on one CPU: what polling costs without a CPU of its own."""
    for size in SIZES:
        e = Experiment(f"TX, {size} B, driver: DPDK virtio-user, on the CPU of the back-end", FIGURES,
                       [Bar(VIRTLANE, TESTPMD, 1.3, "per_cpu")])
        say(e.title)
        with ours.driver_beside(), theirs.driver_beside():
            e.run(rounds, {VIRTLANE: functools.partial(ours.drive, size, seconds),
                           TESTPMD: functools.partial(theirs.drive, size, seconds)})
        yield e


def transmit_gso(ours, raw_netns, rounds, seconds):
    """Frames with segmentation offload."""
    for pieces in GSO_PIECES:
        e = Experiment(f"TX, TSO frames of {GSO_SIZE} B in {pieces} buffers, driver: vl-flood", FIGURES,
                       [Bar(VIRTLANE, RAW, 0.9, "per_cpu")])
        say(e.title)
        e.run(rounds, {VIRTLANE: functools.partial(ours.flood, "tx", GSO_SIZE, seconds, pieces),
                       RAW: functools.partial(raw, raw_netns, GSO_SIZE, seconds, pieces)})
        yield e


def receive(ours, theirs, rounds, seconds):
    """Frames from the host."""
    for size in SIZES:
        e = Experiment(f"RX, {size} B, driver: vl-flood", FIGURES, [Bar(VIRTLANE, TESTPMD, 1.3, "per_cpu")])
        say(e.title)
        e.run(rounds, {VIRTLANE: functools.partial(ours.flood, "rx", size, seconds),
                       TESTPMD: functools.partial(theirs.flood, "rx", size, seconds)})
        yield e


def measure(rounds=9, seconds=0.5):
    """All experiments with a tap."""
    need_tun()
    need_program("dpdk-testpmd")
    with contextlib.ExitStack() as stack:
        say("starting virtlane, testpmd and their drivers")
        ours = stack.enter_context(virtlane())
        theirs = stack.enter_context(testpmd())
        raw_netns = stack.enter_context(Netns("raw"))
        raw_netns.add_tap()
        found = transmit(ours, theirs, raw_netns, rounds, seconds)
        found += transmit_gso(ours, raw_netns, rounds, seconds)
        found += receive(ours, theirs, rounds, seconds)
    return found
