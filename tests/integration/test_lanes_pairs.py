# SPDX-License-Identifier: BSD-3-Clause
"""Two queue pairs, each with lanes of its own: slow destinations on both leave the
fast ones of both alone, and those on one pair do not show on the other."""
from lanes import Destinations, Flood, LaneRig, beside, check_accounted, check_unharmed
from rig import each_engine
from vltest import check, check_equal, run

# Even ones are sent to by pair 0, odd ones by pair 1.
FAST, SLOW = (1, 2), (3, 4, 5, 6)
RATES = {**dict.fromkeys(FAST, "50mbit"), **dict.fromkeys(SLOW, "200kbit")}


def finish(r, d, flood):
    """Everything arrives that was not dropped."""
    d.change(dict.fromkeys(SLOW, "100mbit"))
    flood.drain()
    check(not flood.busy, "chains did not come back")
    check_accounted(r, flood)


def test(engine):
    with LaneRig(engine, pairs=2) as r, Destinations(r, RATES) as d:
        check_equal([len(r.lanes(pair)) for pair in (0, 1)], [8, 8], "lanes")
        flood = Flood(r, d)
        # Those of pair 1 only.
        check_unharmed(r, flood, FAST, [n for n in SLOW if n % 2])
        check_equal(sum(lane["refusals"] for lane in r.lanes(0)), 0, "refusals on pair 0")
        check_equal(set(r.lane_states(0)), {"express", "idle"}, "lanes of pair 0")
        check_unharmed(r, flood, FAST, SLOW)
        finish(r, d, flood)


def fault(engine):
    with LaneRig(engine, ",sndbuf=80000", pairs=2, options=("--tx-full=block",)) as r, Destinations(r, RATES) as d:
        flood = Flood(r, d)
        parts, gap = beside(flood, FAST, SLOW)
        print(f"block: {parts}, longest gap {gap:.3f} s", flush=True)
        check(max(parts.values()) < 0.8, f"without lanes the fast ones lose nothing: {parts}")
        finish(r, d, flood)


def main():
    fault(None)
    each_engine(test)


run(main)
