#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a slow destination does to a fast one, by ways to handle a full tap; see bench/README.md."""

import argparse
import contextlib
import json
import os
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "integration" / "lib"))
# pylint: disable=wrong-import-position,import-error
from hol import UDP_OFFERED, Network
from vltest import TestFailure, run

from cpu import cpu_seconds, tsc_hz
from hol_svg import picture
from report import machine, say

# Less than what the shaped port's queue holds, so that the send buffer fills first.
SNDBUF = 200000

ALONE = "alone"
SCENARIOS = {
    "udp": f"UDP to VM2 ({UDP_OFFERED} Mbit/s offered), TCP to the outside",
    "tcp": "TCP to VM2, TCP to the outside",
}


class Row:
    """One way to handle a full tap, and what was measured with it.

    rounds: {scenario: list of the values of each round}.
    """

    def __init__(self, key, name, backend, *options):
        self.key = key
        self.name = name
        self.backend = backend
        self.options = options
        self.network = None
        self.rounds = {ALONE: [], **{scenario: [] for scenario in SCENARIOS}}

    def arguments(self):
        """The daemon's arguments, as far as they matter here."""
        return " ".join([",".join(filter(None, ("--backend=tap,name=tap0", self.backend))), *self.options])

    def measure(self, scenario, seconds, warm_up):
        """One measurement of one scenario."""
        flow = None if scenario == ALONE else scenario
        values = self.network.measure(flow, seconds, warm_up)
        cpu = values.pop("cpu")
        bits = 1e6 * (values["fast"] + values.get("slow", 0)) * values["time"]
        values["cpu_percent"] = 100 * cpu / values["time"]
        values["bits_per_cycle"] = bits / (cpu * tsc_hz()) if cpu else None
        values["retransmitted_percent"] = 100 * values["retransmitted"] / max(1, values["segments"])
        if flow:
            values["of_alone"] = values["fast"] / self.rounds[ALONE][-1]["fast"]
        self.rounds[scenario].append(values)

    def median(self, scenario, figure):
        """Median of the rounds; None where nothing was measured."""
        values = [v[figure] for v in self.rounds[scenario] if v.get(figure) is not None]
        return statistics.median(values) if values else None


class MeteredNetwork(Network):
    """Counts the daemon's CPU time too."""

    def reading(self, flows):
        return {"cpu": cpu_seconds(self.daemon.pid), **super().reading(flows)}


def make_rows(sndbuf):
    """The rows of the table. The last one is what virtlane does unless told otherwise."""
    limited = f"sndbuf={sndbuf or SNDBUF}"
    return [
        Row("block-unlimited", "block, unlimited send buffer", "sndbuf=unlimited", "--tx-full=block"),
        Row("block", "block, limited send buffer", limited, "--tx-full=block"),
        Row("drop", "drop, limited send buffer", limited, "--tx-full=drop"),
        Row("lanes", "lanes", f"lanes=8,sndbuf={sndbuf or 'auto'}", "--tx-full=lanes"),
    ]


def start(rows, stack):
    """Set up all rows beside each other; those that cannot be are not available."""
    for row in rows:
        say(f"starting: {row.name}: {row.arguments()}")
        try:
            row.network = stack.enter_context(MeteredNetwork(row.backend, *row.options))
        except TestFailure as why:
            say(f"not available: {why}")


def show(form, *values):
    """The values by a format, or a dash for each that is missing."""
    return " / ".join(form.format(v) if v is not None else "-" for v in values)


def cells(row, scenario):
    """A line of the table."""
    def m(figure, of=scenario):
        return row.median(of, figure)

    return [
        show("{:.2f}", m("slow")), show("{:.1f}", m("fast")), show("{:.1%}", m("of_alone")),
        show("{:.0f}", m("slow_p50"), m("slow_p99")), show("{:.0f}", m("fast_p50"), m("fast_p99")),
        show("{:.0f}", m("fast_p50", ALONE), m("fast_p99", ALONE)),
        show("{:.0%}", m("slow_lost"), m("fast_lost")),
        show("{:.1f}", m("cpu_percent")), show("{:.1f}", m("bits_per_cycle")),
        show("{:.0f}", m("drops"), m("shaper_drops")),
        show("{:.0f}", m("retransmitted")) + f" ({show('{:.2f} %', m('retransmitted_percent'))})",
    ]


HEAD = [
    ("", ""), ("VM2", "Mbit/s"), ("outside", "Mbit/s"), ("outside", "of alone"),
    ("VM2, ms", "p50 / p99"), ("outside, ms", "p50 / p99"), ("alone, ms", "p50 / p99"),
    ("pings lost", "VM2 / outside"),
    ("CPU", "%"), ("bits per", "cycle"), ("drops by", "virtlane / HTB"), ("TCP segments", "sent again"),
]


def table(rows, scenario):
    """Print the table of a scenario."""
    lines = [[h[i] for h in HEAD] for i in range(2)]
    for row in rows:
        lines.append([row.name] + (cells(row, scenario) if row.network else ["not available"]))
    widths = [max(len(line[i]) for line in lines if i < len(line)) for i in range(len(HEAD))]
    print(f"\n{SCENARIOS[scenario]}")
    for line in lines:
        padded = [f"{line[0]:<{widths[0]}}"] + [f"{c:>{w}}" for c, w in zip(line[1:], widths[1:])]
        print("  " + "  ".join(padded).rstrip())


def bars(rows):
    """[(text, met)]: what lanes promise, and that the fault is there without them."""
    by_key = {row.key: row for row in rows if row.network}
    found = []
    for scenario, title in SCENARIOS.items():
        def m(key, figure, of=scenario):
            return by_key[key].median(of, figure)

        if "block" in by_key:
            share = m("block", "of_alone")
            found.append((f"block: outside {share:.1%} of alone, fault shown if below 50 %", share < 0.5, title))
        if "lanes" in by_key:
            share, slow = m("lanes", "of_alone"), m("lanes", "slow")
            found.append((f"lanes: outside {share:.1%} of alone, bar 99 %", share >= 0.99, title))
            found.append((f"lanes: VM2 {slow:.2f} Mbit/s, bar 9.3", slow >= 9.3, title))
            p99, alone = m("lanes", "fast_p99"), m("lanes", "fast_p99", ALONE)
            found.append((f"lanes: p99 to the outside {p99:.1f} ms, {p99 / alone:.2f} x alone, bar 1.2",
                          p99 <= 1.2 * alone, title))
            p99 = m("lanes", "slow_p99")
            if p99 is not None:
                found.append((f"lanes: p99 to VM2 {p99:.1f} ms, bar 50", p99 <= 50, title))
    return found


def as_dict(rows, found):
    """Everything, round by round, for JSON."""
    return {
        "rows": [{"key": r.key, "name": r.name, "arguments": r.arguments(), "available": bool(r.network),
                  "rounds": r.rounds} for r in rows],
        "bars": [{"scenario": title, "text": text, "met": met} for text, met, title in found],
    }


def bench(args):
    """Measure, print, write."""
    rounds, seconds, warm_up = (1, 3, 2) if args.quick else (3, 8, 3)
    where = machine()
    say(f"{where['cpu']}, {where['cpus']} CPUs, Linux {where['kernel']}, load {where['load_at_start']:.2f}")
    rows = make_rows(args.sndbuf)
    with contextlib.ExitStack() as stack:
        start(rows, stack)
        for number in range(rounds):
            for row in filter(lambda r: r.network, rows):
                for scenario in (ALONE, *SCENARIOS):
                    say(f"round {number + 1} of {rounds}: {row.name}: "
                        + SCENARIOS.get(scenario, "TCP to the outside alone"))
                    row.measure(scenario, seconds, warm_up)
    for scenario in SCENARIOS:
        table(rows, scenario)
    found = bars(rows)
    print()
    for text, met, title in found:
        print(f"  {text}: {'met' if met else 'NOT MET'}   ({title})")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump({"machine": where, **as_dict(rows, found)}, f, indent=1)
            f.write("\n")
    if args.svg:
        with open(args.svg, "w", encoding="utf-8") as f:
            f.write(picture([r for r in rows if r.network], SCENARIOS))
    print(f"\n{sum(met for _, met, _ in found)} of {len(found)} bars met; load is now {os.getloadavg()[0]:.2f}")


def main():
    """Command line."""
    parser = argparse.ArgumentParser(prog="./dev bench-hol", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round of 3 s each, two minutes in all")
    parser.add_argument("--sndbuf", metavar="BYTES", type=int,
                        help=f"the limited send buffer of all rows ({SNDBUF}; lanes: as they choose)")
    parser.add_argument("--json", metavar="FILE", help="also write every round to FILE")
    parser.add_argument("--svg", metavar="FILE", help="also draw the result")
    args = parser.parse_args()
    run(lambda: bench(args))


if __name__ == "__main__":
    main()
