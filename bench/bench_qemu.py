# SPDX-License-Identifier: BSD-3-Clause
"""A guest in QEMU: virtlane against QEMU's own virtio-net on the same kind of tap.

Both have the same kernel, image, addresses and namespace. Each is booted
several times in turn, since no two boots are equally fast. The price is what
QEMU and the back-end together spend; iperf3 on the host is the same for both.
"""

import contextlib
import time

from hol import TapGuest
from vltest import MAC, Iperf3Server, Netns, QemuGuest, Virtlane, iperf3, need_program, need_tun

from cpu import cpu_seconds, tsc_hz
from report import Bar, Experiment, say

VIRTLANE, OWN, OWN_INTX = "virtlane", "QEMU virtio-net", "the same without MSI-X"
DIRECTIONS = {"guest to host": (), "host to guest": ("-R",)}
FIGURES = {
    "rate": ("Mbit/s", 1e-6, "{:.0f}"),
    "bits_per_cycle": ("bits/cycle (CPU time x TSC)", 1, "{:.3f}"),
}


@contextlib.contextmanager
def guest_of(candidate):
    """A booted guest: yields (netns, guest, back-end processes)."""
    with Netns() as netns, contextlib.ExitStack() as stack:
        netns.add_tap()
        if candidate == VIRTLANE:
            daemon = stack.enter_context(Virtlane(f"--mac={MAC}", netns=netns))
            guest = stack.enter_context(QemuGuest(daemon.socket, netns=netns))
            yield netns, guest, (guest, daemon)
        else:
            guest = stack.enter_context(TapGuest(netns, device="vectors=0" if candidate == OWN_INTX else ""))
            yield netns, guest, (guest,)


def tcp(guest, processes, options, seconds):
    """One iperf3 run."""
    pids = [p.pid for p in processes]
    before = cpu_seconds(*pids)
    end = iperf3(guest, *options, seconds=seconds)["sum_received"]
    cpu = cpu_seconds(*pids) - before
    return {"rate": end["bits_per_second"], "bits_per_cycle": end["bytes"] * 8 / (cpu * tsc_hz())}


def measure(boots=3, runs=2, seconds=5):
    """TCP in both directions."""
    need_tun()
    need_program("qemu-system-x86_64", "iperf3")
    bars = [Bar(VIRTLANE, own, 1.0, figure) for own in (OWN, OWN_INTX) for figure in FIGURES]
    found = {d: Experiment(f"TCP, {d}, Linux in QEMU (software emulation)", FIGURES, bars) for d in DIRECTIONS}
    for boot in range(boots):
        for candidate in (VIRTLANE, OWN, OWN_INTX):
            say(f"boot {boot + 1} of {boots}: {candidate}")
            with guest_of(candidate) as (netns, guest, processes), Iperf3Server(netns):
                guest.wait_carrier(True)
                iperf3(guest, seconds=1)
                for _ in range(runs):
                    for direction, options in DIRECTIONS.items():
                        found[direction].add(candidate, **tcp(guest, processes, options, seconds))
                        time.sleep(0.2)
    return list(found.values())
