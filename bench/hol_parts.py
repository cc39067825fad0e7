# SPDX-License-Identifier: BSD-3-Clause
"""The parts of bench_hol: which ways of handling a full tap, under what, against which bars."""

from hol import UDP_OFFERED
from vltest import QemuGuest

from hol_row import (Scenario, alone_kept, column, fault, qemu_tap, round_trips, sent_again, share_kept, slow_served,
                     virtlane)

# Less than what the shaped port's queue holds, so that the send buffer fills first.
SNDBUF = 200000
QEMU_SNDBUFS = {"64k": ("64 KiB", 65536), "1m": ("1 MiB", 1048576)}
ALONE = "alone"
TO_BOTH = f"UDP to VM2 ({UDP_OFFERED} Mbit/s offered), TCP to the outside"
GIGABIT = 1000

RATES = [column("VM2", "Mbit/s", "{:.2f}", "slow"), column("outside", "Mbit/s", "{:.1f}", "fast"),
         column("alone", "Mbit/s", "{:.1f}", "fast", scenario=ALONE),
         column("outside", "of alone", "{:.1%}", "of_alone")]
REST = [
    column("VM2, ms", "p50 / p99", "{:.0f}", "slow_p50", "slow_p99"),
    column("outside, ms", "p50 / p99", "{:.1f}", "fast_p50", "fast_p99"),
    column("alone, ms", "p50 / p99", "{:.1f}", "fast_p50", "fast_p99", scenario=ALONE),
    column("pings lost", "VM2 / outside", "{:.0%}", "slow_lost", "fast_lost"),
    column("CPU", "%", "{:.1f}", "cpu_percent"), column("bits per", "cycle", "{:.2f}", "bits_per_cycle"),
    column("drops by", "virtlane / HTB", "{:.0f}", "drops", "shaper_drops"),
    ("TCP segments", "sent again", sent_again),
]


class Part:
    """Rows that take turns, each turn being all scenarios.

    full, quick: (rounds, seconds, warm-up) of a measurement. shown: keys of the
    scenarios that have a table; the others are references only.
    """

    scenarios = {}
    shown = ()
    columns = [*RATES, *REST]
    full, quick = (3, 8, 3), (1, 3, 2)

    def __init__(self, rows):
        self.rows = rows

    def measured(self):
        """{key: row} of those that were."""
        return {row.key: row for row in self.rows if row.rounds}

    def bars(self):
        """[(text, met, scenario's title)]: what lanes promise, and that the fault is there without them."""
        return [(text, met, self.scenarios[key].title)
                for key in self.shown for row in self.measured().values() if row.rounds.get(key)
                for text, met in self.judge(row, key)]

    def judge(self, row, key):
        """Yields (text, met) of a row in a scenario."""
        raise NotImplementedError


class Uml(Part):
    """A guest in user-mode-linux, 10 and 100 Mbit/s."""

    scenarios = {
        ALONE: Scenario("TCP to the outside alone"),
        "udp": Scenario(TO_BOTH, "udp", of_alone=ALONE),
        "tcp": Scenario("TCP to VM2, TCP to the outside", "tcp", of_alone=ALONE),
    }
    shown = ("udp", "tcp")

    def __init__(self, sndbuf=None):
        limited = f"sndbuf={sndbuf or SNDBUF}"
        super().__init__([
            virtlane("block-unlimited", "block, unlimited send buffer", "sndbuf=unlimited", "--tx-full=block"),
            virtlane("block", "block, limited send buffer", limited, "--tx-full=block"),
            virtlane("drop", "drop, limited send buffer", limited, "--tx-full=drop"),
            virtlane("lanes", "lanes", f"lanes=8,sndbuf={sndbuf or 'auto'}", "--tx-full=lanes"),
        ])

    def judge(self, row, key):
        if row.key == "block":
            yield fault(row, key)
        if row.key == "lanes":
            yield share_kept(row, key, 0.99)
            yield slow_served(row, key)
            yield from round_trips(row, key, ALONE)


class Qemu(Part):
    """A guest in QEMU with its own tap device, or behind virtlane."""

    scenarios = {ALONE: Scenario("TCP to the outside alone"), "udp": Scenario(TO_BOTH, "udp", of_alone=ALONE)}
    shown = ("udp",)
    full, quick = (3, 6, 3), (1, 3, 2)

    def __init__(self, sndbuf=None):
        sizes = {"": (f"{sndbuf} bytes", sndbuf)} if sndbuf else QEMU_SNDBUFS
        rows = []
        for suffix, (size, number) in sizes.items():
            limited = f"sndbuf={number}"
            rows += [
                qemu_tap(f"own-{suffix}", f"QEMU's own tap, {size}", limited),
                virtlane(f"block-{suffix}", f"virtlane, block, {size}", limited, "--tx-full=block", guest=QemuGuest),
                virtlane(f"lanes-{suffix}", f"virtlane, lanes, {size}", f"lanes=8,{limited}", "--tx-full=lanes",
                         guest=QemuGuest),
            ]
        super().__init__(rows)

    def judge(self, row, key):
        way, suffix = row.key.split("-")
        if way == "own":
            yield fault(row, key)
        if way != "lanes":
            return
        own = self.measured().get(f"own-{suffix}")
        if own:
            yield alone_kept(row, own, ALONE, 0.98)
        yield share_kept(row, key, 0.98)
        yield slow_served(row, key)
        yield from round_trips(row, key, ALONE)


class Gigabit(Part):
    """As Uml, with an outside of 1 Gbit/s, or one that is as fast as the machine.

    What goes to VM2 takes CPU time of the guest and of everything else from the
    fast flow, however well it is kept apart. So there are two references: the
    fast flow alone, and beside the same flow to VM2 while its port is not shaped.
    """

    scenarios = {
        ALONE: Scenario("TCP to the outside alone"),
        "udp-open": Scenario(TO_BOTH + ", VM2 not shaped", "udp", None),
        "udp": Scenario(TO_BOTH, "udp", of_alone=ALONE, of_open="udp-open"),
        "tcp-open": Scenario("TCP to VM2 (10 Mbit/s by itself), TCP to the outside, VM2 not shaped", "tcp10", None),
        "tcp": Scenario("TCP to VM2, TCP to the outside", "tcp", of_alone=ALONE, of_open="tcp-open"),
    }
    shown = ("udp", "tcp")
    full, quick = (5, 3, 3), (1, 2, 2)

    def __init__(self, sndbuf=None):
        limited = f"sndbuf={sndbuf or SNDBUF}"
        lanes = (f"lanes=8,sndbuf={sndbuf or 'auto'}", "--tx-full=lanes")
        super().__init__([
            virtlane("block-unlimited", "block, unlimited, 1 Gbit/s", "sndbuf=unlimited", "--tx-full=block",
                     fast=GIGABIT),
            virtlane("block", "block, limited, 1 Gbit/s", limited, "--tx-full=block", fast=GIGABIT),
            virtlane("lanes", "lanes, 1 Gbit/s", *lanes, fast=GIGABIT),
            virtlane("unlimited-open", "block, unlimited, outside not shaped", "sndbuf=unlimited", "--tx-full=block",
                     fast=None),
            virtlane("lanes-open", "lanes, outside not shaped", *lanes, fast=None),
        ])

    @property
    def columns(self):
        """With those of the second reference."""
        def same(form, figure):
            return lambda row, key: show_of(row, key + "-open", form, figure)
        return [*RATES, ("same load", "Mbit/s", same("{:.1f}", "fast")),
                column("outside", "of same load", "{:.1%}", "of_open"),
                ("UDP sent", "same / here", datagrams), *REST]

    def judge(self, row, key):
        if row.key == "block":
            yield fault(row, key)
        if row.key.startswith("lanes"):
            yield share_kept(row, key, 0.98, "of_open", "the same beside a VM2 that is not shaped")
            yield slow_served(row, key)


def show_of(row, key, form, figure):
    """A figure of that scenario."""
    return column("", "", form, figure, scenario=key)[2](row, key)


def datagrams(row, key):
    """Datagrams per second that the guest sent, beside an unshaped VM2 and here, in thousands."""
    def rate(of):
        count, seconds = row.median(of, "datagrams"), row.median(of, "time")
        return f"{count / seconds / 1000:.1f}k" if count else "-"
    return f"{rate(key + '-open')} / {rate(key)}"


PARTS = {"uml": Uml, "qemu": Qemu, "gigabit": Gigabit}
