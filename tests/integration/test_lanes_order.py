# SPDX-License-Identifier: BSD-3-Clause
"""Slow destinations become fast and fast ones slow, again and again: frames of
each arrive in order, none is lost uncounted, and one that is always fast never
stalls."""
from lanes import Destinations, Flood, LaneRig, check_accounted
from rig import each_engine
from vltest import check, run, sanitizer

STEADY, ONE, OTHER = 1, 2, 3
SLOW, FAST = "400kbit", "100mbit"
FLIPS, PAUSE = 100, 0.05
LENGTHS = (64, 1514, 300, 1000, 90)


def test(engine):
    with LaneRig(engine, ",lanes=8,sndbuf=40000") as r, Destinations(r, {STEADY: FAST, ONE: SLOW, OTHER: FAST}) as d:
        flood = Flood(r, d)
        flips = 0
        for passed in flood.run(FLIPS * PAUSE, {STEADY: 1000, ONE: 1200, OTHER: 1200}, LENGTHS):
            if passed > flips * PAUSE:
                d.change({ONE: (SLOW, FAST)[flips % 2], OTHER: (FAST, SLOW)[flips % 2]})
                flips += 1
        d.change({ONE: FAST, OTHER: FAST})
        flood.drain()
        print(f"sent {flood.sent}, arrived {flood.got}, longest gaps {flood.stall}, drops {r.drops()}", flush=True)
        check(not flood.busy, "chains did not come back")
        check_accounted(r, flood)
        lanes = r.daemon.stat()["queue_pairs"][0]["lanes"]
        check(len(lanes) == 8, f"{len(lanes)} lanes")
        check(sum(lane["refusals"] for lane in lanes) > 0, "nothing pushed back: the test shows nothing")
        if not sanitizer():
            check(flips > FLIPS / 2, f"only {flips} changes")
            check(flood.stall[STEADY] < 0.1, f"the fast destination stalled for {flood.stall[STEADY]:.3f} s")
            check(flood.got[STEADY] >= 0.99 * flood.sent[STEADY], "frames of the fast destination were dropped")


run(lambda: each_engine(test))
