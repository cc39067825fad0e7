#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A Linux guest on the network through virtlane, and what it gets out of it.

Everything is in network namespaces of its own and gone at the end: one holds
the tap and the daemon, the guest's process runs in an empty one, so the only
way out of the guest is the daemon.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration" / "lib"))
# pylint: disable=wrong-import-position,import-error
from vltest import (ADDRESS, HOST, MAC, Iperf3Server, Netns, TestFailure, Virtlane, iperf3, make_guest,
                    need_program, run)

NAMES = {"uml": "user-mode-linux", "qemu": "QEMU, software emulation"}
UDP_BYTES = 64
START = time.monotonic()


def say(text):
    """A progress line."""
    print(f"[{time.monotonic() - START:5.1f} s] {text}", flush=True)


def work(stat):
    """(bits moved, cycles spent, nanoseconds of CPU) by the workers up to now."""
    bits = cycles = cpu = 0
    for pair in stat["queue_pairs"]:
        bits += 8 * (pair["tx"]["bytes"] + pair["rx"]["bytes"])
        cycles += pair["worker"]["cycles"]
        cpu += pair["worker"]["cpu_ns"]
    return bits, cycles, cpu


class Meter:
    """Runs one measurement and notes what the daemon spent on it."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.rows = []

    def measure(self, title, action):
        """action() returns the text of its result."""
        say(f"{title} ...")
        before, start = work(self.daemon.stat()), time.monotonic()
        result = action()
        after, end = work(self.daemon.stat()), time.monotonic()
        bits, cycles, cpu = (b - a for a, b in zip(before, after))
        load = f"{cpu / 1e7 / (end - start):.0f} %"
        self.rows.append((title, result, load, f"{bits / cycles:.2f}" if cycles else "-"))

    def table(self):
        """Print all rows."""
        rows = [("", "result", "CPU", "bits/cycle")] + self.rows
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        print()
        for number, row in enumerate(rows):
            print(f"  {row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]:>{widths[3]}}")
            if number == 0:
                print("  " + "-" * (sum(widths) + 6))
        print()


def ping(guest):
    """Round trip from the guest."""
    received, text = guest.ping(HOST, count=40, interval="0.05")
    if received != 40:
        raise TestFailure(f"only {received} of 40 pings were answered\n{text}")
    low, average, high = text.split("round-trip min/avg/max = ")[1].split(" ")[0].split("/")
    return f"{average} ms average ({low} to {high})"


def tcp(guest, *options):
    """TCP throughput."""
    end = iperf3(guest, *options, seconds=4)
    return f"{end['sum_received']['bits_per_second'] / 1e6:,.0f} Mbit/s"


def udp(guest, *options):
    """UDP packets as fast as the sender can; what arrives in the receiving program counts."""
    end = iperf3(guest, "-u", "-b", "0", "-l", str(UDP_BYTES), *options, seconds=3)["sum"]
    arrived = end["packets"] - end["lost_packets"]
    return f"{arrived / end['seconds']:,.0f} packets/s received of {end['packets'] / end['seconds']:,.0f} sent"


def show_counters(daemon):
    """The daemon's own view."""
    print("  virtlanectl stat:\n", flush=True)
    program = os.environ.get("VIRTLANECTL")
    if program and os.access(program, os.X_OK):
        text = subprocess.run([program, "stat", daemon.stats], stdout=subprocess.PIPE, text=True, check=True).stdout
        print("\n".join("  " + line for line in text.splitlines()))
    stat = daemon.stat()
    print(f"\n  bits per cycle over all: {stat['bits_per_cycle']:.2f} (cycles from {stat['cycles_source']})")


def passed(daemon, host):
    """(packets given to the guest, packets for which the tap's own queue was full) up to now."""
    given = sum(pair["rx"]["packets"] for pair in daemon.stat()["queue_pairs"])
    return given, host.counter("tap0", "tx_dropped")


def explain(given, lost):
    """Where the packets are that were sent to the guest and not received."""
    print("  UDP, host to guest: the sender is faster than the guest, so most of what it sends is dropped,\n"
          f"  and not by virtlane. {lost:,} packets found the queue of tap0 in the host's kernel full, so that\n"
          f"  virtlane has never seen them. It gave {given:,} to the guest, whose kernel dropped those that\n"
          "  the receiving program had no time to read.\n")


def demo(kind):
    """The whole demonstration."""
    need_program("iperf3")
    say(f"virtlane demo: a Linux guest ({NAMES[kind]}) whose only network card is virtlane")
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(Netns("host"))
        nowhere = stack.enter_context(Netns("guest"))
        daemon = stack.enter_context(Virtlane(f"--mac={MAC}", netns=host))
        host.configure("tap0", f"{HOST}/24")
        say(f"virtlane runs in namespace {host.name} with tap0 ({HOST}), engine {daemon.stat()['engine']}")
        guest = make_guest(kind, daemon.socket, netns=nowhere)
        guest.boot(wait=False)
        stack.push(guest)
        say("the guest boots ...")
        guest.wait_ready()
        guest.wait_carrier(True)
        say(f"guest is up: {guest.out('uname -sr')}, {guest.out('cat /sys/class/net/eth0/address')}, "
            f"{ADDRESS}, link up")
        meter = Meter(daemon)
        meter.measure("ping", lambda: ping(guest))
        stack.enter_context(Iperf3Server(host))
        meter.measure("TCP, guest to host", lambda: tcp(guest))
        meter.measure("TCP, host to guest", lambda: tcp(guest, "-R"))
        meter.measure(f"UDP {UDP_BYTES} B, guest to host", lambda: udp(guest))
        before = passed(daemon, host)
        meter.measure(f"UDP {UDP_BYTES} B, host to guest", lambda: udp(guest, "-R"))
        given, lost = (b - a for a, b in zip(before, passed(daemon, host)))
        say("done")
        meter.table()
        explain(given, lost)
        show_counters(daemon)


def main():
    """Command line."""
    parser = argparse.ArgumentParser(prog="./dev demo", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--guest", choices=sorted(NAMES), default="uml", help="kind of guest (uml)")
    kind = parser.parse_args().guest
    if os.geteuid():
        sys.exit("error: needs root, to make network namespaces")
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        sys.exit("error: needs /dev/net/tun; load its module: modprobe tun")
    run(lambda: demo(kind))


if __name__ == "__main__":
    main()
