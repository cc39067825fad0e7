# SPDX-License-Identifier: BSD-3-Clause
"""A stop with full lanes answers at once and leaves guest memory alone. One lane,
block and drop behave as they say; an existing tap of one queue gives one lane
and a message."""
import time

from lanes import Destinations, Flood, LaneRig, check_accounted
from rig import each_engine
from vltest import check, check_equal, run, sanitizer

FAST, SLOW = 1, range(2, 12)
STALLED = "8kbit"
RATES = {FAST: "100mbit", **dict.fromkeys(SLOW, STALLED)}


def offer(flood, seconds=0.5):
    for _ in flood.run(seconds, {FAST: 500, **dict.fromkeys(SLOW, 100)}, (1000, 200, 1514)):
        pass


def stop(engine):
    with LaneRig(engine) as r, Destinations(r, RATES) as d:
        flood = Flood(r, d)
        offer(flood, 1)
        pair = r.daemon.stat()["queue_pairs"][0]
        check(sum(lane["parked_packets"] for lane in pair["lanes"]) > 0, "nothing waits: the test shows nothing")
        start = time.monotonic()
        base = r.driver.client.get_vring_base(1)
        took = time.monotonic() - start
        if not sanitizer():
            check(took < 0.05, f"the stop took {took * 1000:.0f} ms")
        flood.reap()
        check_equal(len(flood.busy), (flood.queue.avail_idx - base) & 0xffff, "chains not given back")
        before = r.driver.mem.snapshot()
        d.change(dict.fromkeys(SLOW, "100mbit"))
        flood.receive(0.3)
        check(r.driver.mem.snapshot() == before, "guest memory changed after the stop")
        r.driver.client.setup_vring(1, flood.queue, base)
        flood.drain()
        check_accounted(r, flood)


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
    stop(engine)
    modes(engine)
    single_queue(engine)


run(lambda: each_engine(test))
