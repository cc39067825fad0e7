# SPDX-License-Identifier: BSD-3-Clause
"""GET_VRING_BASE while every lane is full: it is answered within 50 ms, guest
memory does not change afterwards although packets go on leaving, and the ring
goes on where it was when it is started again."""
import time

from lanes import Destinations, Flood, LaneRig, check_accounted, not_run
from rig import each_engine
from vltest import check, check_equal, run, sanitizer

SIDE_LANES = 7
SLOW = range(2, 2 + SIDE_LANES)
# Slow enough for a lane to be full until it is looked at, fast enough for one that
# was given back to be empty soon: only then somebody gets it.
STALLED, DRAINING, FAST = "64kbit", "400kbit", "100mbit"
LENGTHS = (1000, 200, 1514)
ROUNDS = 3
STOP = 0.05
QUIET = 0.5


def offer(lanes):
    """Frames a second by destination. Those that share a lane get lanes of their own,
    one by one, if there is one that stands out: so it does."""
    rates = dict.fromkeys(SLOW, 150)
    for lane in lanes:
        if lane["destinations"] > 1 and lane["busiest"]:
            rates[int(lane["busiest"][0]["mac"][-2:], 16)] = 2000
    return rates


def fill(r, flood):
    """Floods until every lane is full, the first one too; the seconds it took."""
    asked = 0
    first, rates = r.lanes()[0]["refusals"], dict.fromkeys(SLOW, 150)
    for passed in flood.run(10, rates, LENGTHS):
        if passed - asked < 0.05:
            continue
        asked, lanes = passed, r.lanes()
        if all(lane["state"] == "slow" and lane["parked_packets"] for lane in lanes[1:]) and lanes[0]["refusals"] > first:
            return passed
        rates.update(offer(lanes))
    check(False, f"not every lane is full: {[(lane['state'], lane['destinations']) for lane in r.lanes()]}")
    return None


def stop(r, flood):
    """Stops the transmitq; its base."""
    parked = [lane["parked_packets"] for lane in r.lanes()]
    check(all(parked[1:]), f"not every lane has packets that wait: {parked}")
    waited, start = not_run(r.daemon.pid), time.monotonic()
    base = r.driver.client.get_vring_base(1)
    took = time.monotonic() - start
    waited = not_run(r.daemon.pid) - waited
    print(f"stop with {parked} packets waiting, {len(flood.busy)} chains not back: {took * 1000:.1f} ms", flush=True)
    if not sanitizer():
        check(took - waited < STOP, f"the stop took {took * 1000:.0f} ms")
    return base


def quiet(r, d, flood):
    """Nothing writes to guest memory, while what waits leaves."""
    before = r.driver.mem.snapshot()
    left = sum(lane["parked_packets"] for lane in r.lanes())
    check(left > 0, "nothing waits after the stop")
    d.change(dict.fromkeys(SLOW, DRAINING))
    arrived, end = 0, time.monotonic() + QUIET
    while time.monotonic() < end:
        arrived += flood.receive()
        time.sleep(0.005)
        check(r.driver.mem.snapshot() == before, "guest memory changed after the stop")
    check(arrived > 0, "nothing drained: the test shows nothing")
    now = sum(lane["parked_packets"] for lane in r.lanes())
    print(f"{arrived} arrived after the stop, of {left} packets {now} wait", flush=True)
    check(now < left, "what waited did not go on")


def test(engine):
    with LaneRig(engine, ",lanes=8,sndbuf=60000") as r, Destinations(r, dict.fromkeys(SLOW, STALLED)) as d:
        flood = Flood(r, d)
        for _ in range(ROUNDS):
            d.change(dict.fromkeys(SLOW, STALLED))
            print(f"{fill(r, flood):.2f} s until every lane is full", flush=True)
            base = stop(r, flood)
            flood.reap()
            check_equal(len(flood.busy), (flood.queue.avail_idx - base) & 0xffff, "chains not given back")
            quiet(r, d, flood)
            r.driver.client.setup_vring(1, flood.queue, base)
            # It goes on, in order, and a frame of each gets through.
            d.change(dict.fromkeys(SLOW, FAST))
            flood.drain()
            check(not flood.busy, "chains did not come back after the restart")
            check_accounted(r, flood)
            sent = dict(flood.sent)
            for _ in flood.run(0.2, dict.fromkeys(SLOW, 50)):
                pass
            flood.drain()
            check_accounted(r, flood)
            for number in SLOW:
                check_equal(flood.next[number], flood.sent[number], f"frames to {number} after the restart")
                check(flood.sent[number] > sent[number], "nothing was sent after the restart")
        r.driver.mem.check_canaries()


run(lambda: each_engine(test))
