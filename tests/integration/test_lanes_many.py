# SPDX-License-Identifier: BSD-3-Clause
"""200 slow destinations share seven side lanes; a fast one keeps what it has alone.

With the defaults nothing can be full; with a limited send buffer the slow ones
push back, more of them than there are lanes."""
from lanes import Destinations, Flood, LaneRig, check_accounted
from vltest import check, run, sanitizer

FAST = 1
SLOW = range(2, 202)
LIMITED = "sndbuf=512k"


def test(backend):
    rates = {FAST: "20mbit", **dict.fromkeys(SLOW, "50kbit")}
    with LaneRig(backend=backend) as r, Destinations(r, rates) as d:
        flood = Flood(r, d)

        def measure(seconds, offered):
            sent, got = flood.sent.get(FAST, 0), flood.got.get(FAST, 0)
            for _ in flood.run(seconds, offered):
                pass
            return flood.sent[FAST] - sent, flood.got.get(FAST, 0) - got
        sent, alone = measure(1, {FAST: 1000})
        check(alone >= 0.9 * sent, f"{alone} of {sent} frames arrived alone")
        offered = {FAST: 1000, **dict.fromkeys(SLOW, 15)}
        # Where they can fill the tap it takes a moment to tell them apart.
        if LIMITED in backend:
            measure(2, offered)
        flood.stall.clear()
        flood.pauses.clear()
        sent, got = measure(3, offered)
        ran = 3 - sum(end - start for start, end in flood.pauses)
        print(f"{backend}: alone {alone}/s; beside 200 slow ones {got} of {sent} in 3 s, longest gap {flood.stall[FAST]:.3f} s, "
              f"drops {r.drops()}, lanes {r.lane_states()}", flush=True)
        if LIMITED in backend:
            check(sum(r.drops().values()) > 0, "the slow ones got all: the test shows nothing")
        if not sanitizer():
            check(ran > 1, f"this program ran for {ran:.1f} of 3 s only")
            check(got >= 0.95 * ran * alone, f"{got / ran:.0f} frames a second, {alone} alone")
        # Not faster than one CPU receives: it has a backlog of 1000 frames.
        d.change(dict.fromkeys(SLOW, "500kbit"))
        flood.drain()
        check(not flood.busy, "chains did not come back")
        check_accounted(r, flood)


def main():
    for backend in (",lanes=8", f",lanes=8,{LIMITED}"):
        test(backend)


run(main)
