# SPDX-License-Identifier: BSD-3-Clause
"""Packets per CPU second of the back-end between a driver and packet sockets.

Each candidate has a veth pair of its own: it works on veth0, packets are counted
and made at the other end, in another namespace.
"""

import contextlib
import functools

from packet import BACKEND, veth_pair
from vltest import VhostPacket, Virtlane, Workdir, need_program

from bench_tap import FIGURES, SIZES, VIRTLANE, BackEnd, TestpmdBackEnd, drivers
from cpu import BACK_END, on_cpu
from report import Bar, Experiment, say

TESTPMD = "testpmd vhost-af_packet"


@contextlib.contextmanager
def pair():
    """A veth pair of which the far end sends what is to be segmented in segments."""
    with veth_pair(None) as (host, far):
        far.run("ethtool", "-K", "far0", "tso", "off", "gso", "off")
        yield host, far


@contextlib.contextmanager
def virtlane():
    """virtlane on veth0; what comes is for anybody."""
    with pair() as (host, far):
        with on_cpu(BACK_END):
            stack = contextlib.ExitStack()
            daemon = stack.enter_context(Virtlane(netns=host, backend=BACKEND + ",promisc=on"))
        with stack:
            yield BackEnd(far, daemon.socket, daemon, "far0")


@contextlib.contextmanager
def testpmd():
    """DPDK's testpmd between a vhost-user port and packet sockets on veth0."""
    with Workdir() as work, pair() as (host, far):
        with on_cpu(BACK_END):
            process = VhostPacket(work / "vu.sock", "veth0", host).start()
        with contextlib.ExitStack() as stack:
            stack.push(process)
            process.command("stop")
            yield TestpmdBackEnd(far, work / "vu.sock", process, "far0")


def transmit(ours, theirs, rounds, seconds):
    """Frames of Ethernet size from DPDK's driver."""
    with drivers((ours, theirs)):
        for size in SIZES:
            e = Experiment(f"packet TX, {size} B, driver: DPDK virtio-user", FIGURES,
                           [Bar(VIRTLANE, TESTPMD, 1.3, "per_cpu")])
            say(e.title)
            e.run(rounds, {VIRTLANE: functools.partial(ours.drive, size, seconds),
                           TESTPMD: functools.partial(theirs.drive, size, seconds)})
            yield e


def receive(ours, theirs, rounds, seconds):
    """Frames from the far end."""
    for size in SIZES:
        e = Experiment(f"packet RX, {size} B, driver: vl-flood", FIGURES, [Bar(VIRTLANE, TESTPMD, 1.3, "per_cpu")])
        say(e.title)
        e.run(rounds, {VIRTLANE: functools.partial(ours.flood, "rx", size, seconds),
                       TESTPMD: functools.partial(theirs.flood, "rx", size, seconds)})
        yield e


def measure(rounds=9, seconds=0.5):
    """All experiments with packet sockets."""
    need_program("dpdk-testpmd", "ethtool")
    with contextlib.ExitStack() as stack:
        say("starting virtlane, testpmd and their drivers")
        ours = stack.enter_context(virtlane())
        theirs = stack.enter_context(testpmd())
        return [*transmit(ours, theirs, rounds, seconds), *receive(ours, theirs, rounds, seconds)]
