#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a slow destination does to a fast one, by ways to handle a full tap; see bench/README.md."""

import argparse
import contextlib
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "integration" / "lib"))
# pylint: disable=wrong-import-position,import-error
from vltest import TestFailure, run

from hol_parts import PARTS as TAP_PARTS
from hol_row import table
from hol_svg import picture
from hol_zerocopy import ZeroCopy
from report import machine, say

PARTS = {**TAP_PARTS, "zerocopy": ZeroCopy}


def start(rows, stack):
    """Set up all rows beside each other; those that cannot be are not available."""
    for row in rows:
        say(f"starting: {row.name}: {row.arguments}")
        try:
            row.start(stack)
        except TestFailure as why:
            say(f"not available: {why}")


def measure(part, wanted, rounds, seconds, warm_up):
    """Rounds of the wanted rows, in turn."""
    with contextlib.ExitStack() as stack:
        start(wanted, stack)
        for number in range(rounds):
            for row in filter(lambda r: r.network, wanted):
                for key, scenario in part.scenarios.items():
                    say(f"round {number + 1} of {rounds}: {row.name}: {scenario.title}")
                    row.measure(key, scenario, seconds, warm_up)


def load(path, part):
    """Take over the rounds that a file has."""
    with contextlib.suppress(FileNotFoundError):
        with open(path, encoding="utf-8") as f:
            saved = {row["key"]: row["rounds"] for row in json.load(f)["rows"]}
        for row in part.rows:
            row.rounds = saved.get(row.key, {})


def save(path, where, part, found):
    """Everything, round by round."""
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"machine": where, "rows": [row.as_dict() for row in part.rows],
                   "bars": [{"scenario": title, "text": text, "met": met} for text, met, title in found]},
                  f, indent=1)
        f.write("\n")


def bench(args, part):
    """Measure, print, write."""
    rounds, seconds, warm_up = part.quick if args.quick else part.full
    where = machine()
    say(f"{where['cpu']}, {where['cpus']} CPUs, Linux {where['kernel']}, load {where['load_at_start']:.2f}")
    if args.add:
        load(args.json, part)
    wanted = [row for row in part.rows if not args.rows or row.key in args.rows]
    rounds = rounds if args.rounds is None else args.rounds
    try:
        if rounds:
            measure(part, wanted, rounds, seconds, warm_up)
    except BaseException:
        if args.json:
            save(args.json, where, part, [])
        raise
    for key in part.shown:
        table(part.scenarios[key].title, key, part.rows, part.columns)
    found = part.bars()
    print()
    for text, met, title in found:
        print(f"  {text}: {'met' if met else 'NOT MET'}   ({title})")
    if args.json:
        save(args.json, where, part, found)
    if args.svg:
        with open(args.svg, "w", encoding="utf-8") as f:
            f.write(picture([r for r in part.rows if r.rounds], {k: part.scenarios[k].title for k in part.shown}))
    print(f"\n{sum(met for _, met, _ in found)} of {len(found)} bars met; load is now {os.getloadavg()[0]:.2f}")


def main():
    """Command line."""
    parser = argparse.ArgumentParser(prog="./dev bench-hol", description=__doc__)
    parser.add_argument("what", nargs="?", choices=PARTS, default="uml",
                        help="the published table (uml), QEMU's own tap device (qemu), a fast flow of 1 Gbit/s, or a "
                             "tunnel (zerocopy; ./dev bench-zerocopy)")
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--sndbuf", metavar="BYTES", type=int,
                        help="the limited send buffer of all rows instead of the ones of the part")
    parser.add_argument("--rounds", metavar="N", type=int, help="so many rounds; 0 only shows what --add has")
    parser.add_argument("--rows", metavar="KEY,KEY", type=lambda text: text.split(","), help="these rows only")
    parser.add_argument("--json", metavar="FILE", help="also write every round to FILE")
    parser.add_argument("--add", action="store_true", help="keep the rounds that FILE has, add those of this run")
    parser.add_argument("--svg", metavar="FILE", help="also draw the result (uml)")
    args = parser.parse_args()
    if args.add and not args.json:
        parser.error("--add needs --json FILE")
    if args.svg and args.what != "uml":
        parser.error("--svg draws the part uml")
    part = PARTS[args.what](args.sndbuf)
    unknown = set(args.rows or ()) - {row.key for row in part.rows}
    if unknown:
        parser.error(f"no row {', '.join(sorted(unknown))}; there are {', '.join(row.key for row in part.rows)}")
    run(lambda: bench(args, part))


if __name__ == "__main__":
    main()
