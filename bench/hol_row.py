# SPDX-License-Identifier: BSD-3-Clause
"""The rows, scenarios, columns and bars that the parts of bench_hol are made of."""

import statistics

from hol import Network, OwnTapNetwork

from cpu import cpu_seconds, tsc_hz


class Scenario:
    """What is measured together in one go.

    title: in words. flow: to VM2, None if only the one to the outside runs.
    vm2: Mbit/s that VM2's port lets through, None for all. references: {name of
    a figure: key of the scenario}; the figure is what the outside gets here as
    a share of what it gets there, in the same turn.
    """

    def __init__(self, title, flow=None, vm2=10, **references):
        self.title = title
        self.flow = flow
        self.vm2 = vm2
        self.references = references


class Metered:
    """Counts the CPU time of what carries the packets, for a Network."""

    def reading(self, flows):
        """As Network.reading()."""
        return {"cpu": cpu_seconds(*(p.pid for p in self.carriers())), **super().reading(flows)}

    def carriers(self):
        """Processes that count: a guest that is one process and has its card in it counts too."""
        return [p for p in (self.daemon, self.guest if self.guest.kind == "qemu" else None) if p]


class MeteredNetwork(Metered, Network):
    """A guest behind virtlane."""


class MeteredOwnTap(Metered, OwnTapNetwork):
    """A guest with QEMU's own card."""


class Row:
    """One way to handle a full tap, and what was measured with it.

    arguments: the command line as far as it matters here. make: returns the
    network, not yet set up, of make(slow=, fast=) Mbit/s.
    rounds: {scenario: list of the values of each round}.
    """

    def __init__(self, key, name, arguments, make, fast=100):
        self.key = key
        self.name = name
        self.arguments = arguments
        self.make = make
        self.mbit = {"slow": 10, "fast": fast}
        self.network = None
        self.rounds = {}

    def start(self, stack):
        """Set up the network."""
        self.network = stack.enter_context(self.make(**self.mbit))

    def measure(self, key, scenario, seconds, warm_up):
        """One measurement of one scenario."""
        net = self.network
        if net.slow.mbit != scenario.vm2:
            net.slow.shape(net.host, scenario.vm2)
        values = net.measure(scenario.flow, seconds, warm_up)
        cpu = values.pop("cpu")
        bits = 1e6 * (values["fast"] + values.get("slow", 0)) * values["time"]
        values["cpu_percent"] = 100 * cpu / values["time"]
        values["bits_per_cycle"] = bits / (cpu * tsc_hz()) if cpu else None
        values["retransmitted_percent"] = 100 * values["retransmitted"] / max(1, values["segments"])
        for figure, reference in scenario.references.items():
            values[figure] = values["fast"] / self.rounds[reference][-1]["fast"]
        self.rounds.setdefault(key, []).append(values)

    def median(self, scenario, figure):
        """Median of the rounds; None where nothing was measured."""
        values = [v[figure] for v in self.rounds.get(scenario, ()) if v.get(figure) is not None]
        return statistics.median(values) if values else None

    def as_dict(self):
        """Everything, for JSON."""
        return {"key": self.key, "name": self.name, "arguments": self.arguments,
                "available": bool(self.rounds), "rounds": self.rounds}


def virtlane(key, name, backend, *options, fast=100, **more):
    """A row of virtlane. more: as Network()."""
    arguments = " ".join([",".join(filter(None, ("--backend=tap,name=tap0", backend))), *options])
    return Row(key, name, arguments, lambda **ports: MeteredNetwork(backend, *options, **ports, **more), fast)


def qemu_tap(key, name, netdev):
    """A row of QEMU's own tap device."""
    return Row(key, name, f"-netdev tap,ifname=tap0,{netdev}", lambda **ports: MeteredOwnTap(netdev, **ports))


def show(form, *values):
    """The values by a format, or a dash for each that is missing."""
    return " / ".join(form.format(v) if v is not None else "-" for v in values)


def column(head, unit, form, *figures, scenario=None):
    """A column of figures, of another scenario than the table's if one is named."""
    return head, unit, lambda row, key: show(form, *(row.median(scenario or key, f) for f in figures))


def sent_again(row, key):
    """Number and share of TCP's repetitions."""
    return (show("{:.0f}", row.median(key, "retransmitted"))
            + f" ({show('{:.2f} %', row.median(key, 'retransmitted_percent'))})")


def table(title, key, rows, columns):
    """Print the table of a scenario."""
    lines = [["", *(c[i] for c in columns)] for i in range(2)]
    for row in rows:
        there = row.rounds.get(key)
        lines.append([row.name] + ([cell(row, key) for _, _, cell in columns] if there else ["not measured"]))
    widths = [max(len(line[i]) for line in lines if i < len(line)) for i in range(len(lines[0]))]
    print(f"\n{title}")
    for line in lines:
        padded = [f"{line[0]:<{widths[0]}}"] + [f"{c:>{w}}" for c, w in zip(line[1:], widths[1:])]
        print("  " + "  ".join(padded).rstrip())


def fault(row, key):
    """(text, met): without lanes the slow flow takes the way out from the fast one."""
    share = row.median(key, "of_alone")
    return f"{row.name}: outside {share:.1%} of alone, fault shown if below 50 %", share < 0.5


def share_kept(row, key, least, figure="of_alone", what="alone"):
    """(text, met): the outside keeps its share."""
    share = row.median(key, figure)
    return f"{row.name}: outside {share:.1%} of {what}, bar {least:.0%}", share >= least


def alone_kept(row, other, key, least):
    """(text, met): what the shares are of is not small itself, by what another row gets alone."""
    share = row.median(key, "fast") / other.median(key, "fast")
    return f"{row.name}: alone {share:.1%} of what {other.name} gets alone, bar {least:.0%}", share >= least


def slow_served(row, key):
    """(text, met): VM2 gets what its port carries."""
    slow = row.median(key, "slow")
    return f"{row.name}: VM2 {slow:.2f} Mbit/s, bar 9.3", slow >= 9.3


def round_trips(row, key, alone):
    """(text, met) of both round trips."""
    p99, before = row.median(key, "fast_p99"), row.median(alone, "fast_p99")
    if p99 is not None and before:
        yield (f"{row.name}: p99 to the outside {p99:.1f} ms, {p99 / before:.2f} x alone, bar 1.2",
               p99 <= 1.2 * before)
    p99 = row.median(key, "slow_p99")
    if p99 is not None:
        yield f"{row.name}: p99 to VM2 {p99:.1f} ms, bar 50", p99 <= 50
