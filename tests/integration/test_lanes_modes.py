# SPDX-License-Identifier: BSD-3-Clause
"""One lane, block and drop behave as they say; an existing tap of one queue gives
one lane and a message."""
from lanes import Destinations, Flood, LaneRig, check_accounted
from rig import each_engine
from vltest import check, check_equal, run

FAST, SLOW = 1, range(2, 12)
STALLED = "8kbit"
RATES = {FAST: "100mbit", **dict.fromkeys(SLOW, STALLED)}


def offer(flood):
    for _ in flood.run(0.5, {FAST: 500, **dict.fromkeys(SLOW, 100)}, (1000, 200, 1514)):
        pass


def modes(engine):
    for backend, options, waits in (("", ("--tx-full=block",), True), ("", ("--tx-full=drop",), False),
                                    (",lanes=1,sndbuf=131072", (), True)):
        with LaneRig(engine, backend or ",sndbuf=131072", options=options) as r, Destinations(r, RATES) as d:
            flood = Flood(r, d)
            offer(flood)
            tx = r.queue("tx")
            check_equal(tx["blocked"] > 0, waits, f"whether {options or backend} waits")
            check_equal(bool(r.drops()), not waits, f"whether {options or backend} drops")
            d.change(dict.fromkeys(SLOW, "100mbit"))
            flood.drain()
            check_accounted(r, flood)


def single_queue(engine):
    with LaneRig(engine, tap_first=True) as r:
        check_equal(r.lane_states(), ["express"], "lanes of a tap with one queue")
        check("1 of 8 lanes" in r.daemon.log(), "it is not said that there is one lane only")
        r.tx_ok()


def test(engine):
    modes(engine)
    single_queue(engine)


run(lambda: each_engine(test))
