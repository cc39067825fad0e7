# SPDX-License-Identifier: BSD-3-Clause
"""What was measured in which round, and what it says against the bars."""

import json
import os
import statistics
import time


# A load that never sleeps and got less of its CPU than this was disturbed.
UNDISTURBED = 0.93
# Rounds that may be added when others were disturbed.
EXTRA = 6


class Bar:
    """A candidate must reach `least` times what the reference does (None: to be seen, no more)."""

    def __init__(self, candidate, reference, least, figure):
        self.candidate = candidate
        self.reference = reference
        self.least = least
        self.figure = figure


class Experiment:
    """Rounds of several candidates that do the same work one after the other.

    title: what the work is. figures: {key: (heading, factor, format)} of what a
    round yields. bars: list of Bar. A round may also say which "share" of its
    CPU the load got, which never sleeps: all of it on an idle machine.
    """

    def __init__(self, title, figures, bars):
        self.title = title
        self.figures = figures
        self.bars = bars
        self.rounds = {}

    def run(self, wanted, candidates):
        """Rounds of {name: function that returns the values}, more when some were disturbed."""
        done = 0
        while done < wanted or (len(self.undisturbed()) < wanted and done < wanted + EXTRA):
            for name, measure in candidates.items():
                self.add(name, **measure())
            done += 1

    def add(self, candidate, **values):
        """The values of one round."""
        self.rounds.setdefault(candidate, []).append(values)

    def undisturbed(self):
        """Numbers of the rounds in which every candidate's load had its CPU for itself."""
        together = zip(*self.rounds.values())
        return [i for i, round_ in enumerate(together) if all(r.get("share", 1) >= UNDISTURBED for r in round_)]

    def used(self):
        """Numbers of the rounds that count: the undisturbed ones, or all if there are too few."""
        good = self.undisturbed()
        return good if len(good) >= 3 else list(range(len(next(iter(self.rounds.values())))))

    def values(self, candidate, figure):
        """A figure of a candidate in all rounds that count."""
        return [self.rounds[candidate][i][figure] for i in self.used()]

    def ratio(self, bar):
        """(median, lowest, highest) of the ratio of the two in the same round."""
        pairs = zip(self.values(bar.candidate, bar.figure), self.values(bar.reference, bar.figure))
        ratios = [a / b for a, b in pairs if b]
        return statistics.median(ratios), min(ratios), max(ratios)

    def met(self, bar):
        """Whether the median reaches the bar; None if there is none."""
        return None if bar.least is None else self.ratio(bar)[0] >= bar.least

    def as_dict(self):
        """All of it, for JSON."""
        bars = []
        for bar in self.bars:
            median, low, high = self.ratio(bar)
            bars.append({"candidate": bar.candidate, "reference": bar.reference, "figure": bar.figure,
                         "least": bar.least, "ratio": median, "lowest": low, "highest": high,
                         "met": self.met(bar)})
        return {"title": self.title, "rounds": self.rounds, "rounds_used": self.used(), "bars": bars}

    def rows(self):
        """Lines of the table: candidate, figures with their range."""
        for candidate in self.rounds:
            cells = [candidate]
            for key, (_, factor, form) in self.figures.items():
                values = [v * factor for v in self.values(candidate, key)]
                low, high = (form.format(f(values)) for f in (min, max))
                cells += [form.format(statistics.median(values)), f"[{low} .. {high}]"]
            yield cells

    def print(self):
        """The table of figures, then the bars."""
        head = [""]
        for heading, _, _ in self.figures.values():
            head += [heading, ""]
        rows = [head, *self.rows()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        print(f"\n{self.title}")
        for row in rows:
            cells = [f"{row[0]:<{widths[0]}}"] + [f"{c:>{w}}" for c, w in zip(row[1:], widths[1:])]
            print("  " + "  ".join(cells).rstrip())
        for bar in self.bars:
            median, low, high = self.ratio(bar)
            verdict = f", bar {bar.least:.2f}: {'met' if self.met(bar) else 'NOT MET'}" if bar.least else ""
            print(f"  {self.figures[bar.figure][0]}: {bar.candidate} is {median:.3f} x {bar.reference} "
                  f"[{low:.2f} .. {high:.2f}]{verdict}")
        all_rounds, good = len(next(iter(self.rounds.values()))), len(self.undisturbed())
        if good < all_rounds:
            print(f"  {good} of {all_rounds} rounds were undisturbed by other work"
                  + ("; these count" if good >= 3 else "; the machine is too busy to tell, repeat this"))


def machine():
    """What the figures depend on."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        models = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    return {"cpu": models[0] if models else "unknown", "cpus": os.cpu_count(),
            "kernel": os.uname().release, "load_at_start": os.getloadavg()[0],
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


def write_json(path, where, experiments):
    """Everything that was measured, round by round."""
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"machine": where, "experiments": [e.as_dict() for e in experiments]}, f, indent=1)
        f.write("\n")


START = time.monotonic()


def say(text):
    """A progress line."""
    print(f"[{time.monotonic() - START:5.1f} s] {text}", flush=True)
