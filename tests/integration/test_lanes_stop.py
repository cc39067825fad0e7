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
# Of two that share a lane one stands out, so it gets a lane of its own.
OFFERED = {n: int(60 * 1.5 ** i) for i, n in enumerate(SLOW)}
# A lane that is full stays so for seconds: it is writable at a half.
STALLED, DRAINING, FAST = "16kbit", "400kbit", "100mbit"
LENGTHS = (1000, 200, 1514)
ROUNDS = 3
STOP = 0.05
QUIET = 0.5


def full_lanes(r):
    """Side lanes that are slow and have packets that wait."""
    return [lane["state"] == "slow" and lane["parked_packets"] > 0 for lane in r.lanes()[1:]]


def fill(r, flood):
    """Floods until every lane is full, the first one too."""
    asked = 0
    refusals = r.lanes()[0]["refusals"]
    for passed in flood.run(6, OFFERED, LENGTHS):
        if passed - asked < 0.05:
            continue
        asked = passed
        if all(full_lanes(r)) and r.lanes()[0]["refusals"] > refusals:
            return passed
    check(False, f"not every lane is full: {[(l['state'], l['destinations'], l['parked_packets']) for l in r.lanes()]}")
    return None


def stop(r, flood):
    """Stops the transmitq; its base."""
    parked = [lane["parked_packets"] for lane in r.lanes()]
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
