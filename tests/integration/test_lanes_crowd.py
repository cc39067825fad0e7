# SPDX-License-Identifier: BSD-3-Clause
"""More slow destinations than lanes; then all but one become fast: those that shared
a lane with the one that stays slow get away from it, since there are lanes enough."""
from lanes import Destinations, Flood, LaneRig, check_accounted
from vltest import check, run, sanitizer

NUMBERS = range(2, 14)
SLOW, FAST = "100kbit", "20mbit"
OFFERED = 150


def offer(flood, seconds):
    """Frames that arrived of each destination."""
    before = dict(flood.got)
    flood.stall.clear()
    flood.last.clear()
    for _ in flood.run(seconds, dict.fromkeys(NUMBERS, OFFERED)):
        pass
    return {n: flood.got.get(n, 0) - before.get(n, 0) for n in NUMBERS}


def test(backend, settle):
    with LaneRig(None, backend) as r, Destinations(r, dict.fromkeys(NUMBERS, SLOW)) as d:
        flood = Flood(r, d)
        offer(flood, 2)
        crowd = max(r.lanes()[1:], key=lambda lane: lane["destinations"])
        stays = int(crowd["busiest"][0]["mac"][-2:], 16)
        fast = [n for n in NUMBERS if n != stays]
        d.change(dict.fromkeys(fast, FAST))
        offer(flood, settle)
        got = offer(flood, 1.5)
        gap = max(flood.stall.get(n, 1.5) for n in fast)
        print(f"{backend}: {crowd['destinations']} shared a lane, {stays} stays slow; of {OFFERED * 1.5:.0f} frames "
              f"arrived {got}, longest gap {gap:.3f} s, "
              f"lanes {[(lane['state'], lane['destinations']) for lane in r.lanes()[1:]]}", flush=True)
        if not sanitizer():
            check(min(got[n] for n in fast) >= 0.9 * OFFERED * 1.5, f"fast destinations share a slow lane: {got}")
            check(gap < 0.1, f"a fast destination stalls for {gap:.3f} s")
        d.change({stays: FAST})
        flood.drain()
        check(not flood.busy, "chains did not come back")
        check_accounted(r, flood)


def main():
    # With two side lanes it takes longer until one can be had.
    for backend, settle in ((",lanes=8", 1.5), (",lanes=8,sndbuf=80000", 1.5), (",lanes=3,sndbuf=80000", 4)):
        test(backend, settle)


run(main)
