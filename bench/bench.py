#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compare virtlane with named references on this machine; see bench/README.md."""

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "integration" / "lib"))
# pylint: disable=wrong-import-position,import-error
from vltest import run

import bench_lanes
import bench_packet
import bench_qemu
import bench_tap
import bench_vxlan
from report import machine, say, write_json

WHAT = {"tap": bench_tap.measure, "packet": bench_packet.measure, "vxlan": bench_vxlan.measure,
        "lanes": bench_lanes.measure, "qemu": bench_qemu.measure}


def bench(names, path):
    """Measure, print, write."""
    where = machine()
    say(f"{where['cpu']}, {where['cpus']} CPUs, Linux {where['kernel']}, load {where['load_at_start']:.2f}")
    found = []
    for name in names:
        found += WHAT[name]()
    for experiment in found:
        experiment.print()
    if path:
        write_json(path, where, found)
    bars = [experiment.met(bar) for experiment in found for bar in experiment.bars if bar.least is not None]
    print(f"\n{sum(bars)} of {len(bars)} bars met; load is now {os.getloadavg()[0]:.2f}")


def main():
    """Command line."""
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("what", nargs="?", choices=sorted(WHAT), help="one part only (all)")
    parser.add_argument("--json", metavar="FILE", help="also write every round to FILE")
    args = parser.parse_args()
    run(lambda: bench([args.what] if args.what else list(WHAT), args.json))


if __name__ == "__main__":
    main()
