# SPDX-License-Identifier: BSD-3-Clause
"""Classes of HTB on the interface itself: a slow destination leaves a fast one what it has
alone, order is kept, and what is dropped is counted, also what the queueing discipline drops."""
from lanes import Flood, beside, check_accounted, check_unharmed
from packet import PacketDestinations, PacketLaneRig
from rig import each_engine
from vltest import check, check_equal, run

FAST, SLOW = (1, 2), (3, 4, 5)
RATES = {**dict.fromkeys(FAST, "50mbit"), **dict.fromkeys(SLOW, "200kbit")}


def finish(r, d, flood):
    """Everything arrives that was not dropped."""
    d.change(dict.fromkeys(SLOW, "100mbit"))
    flood.drain()
    check(not flood.busy, "chains did not come back")
    check_accounted(r, flood)


def fault():
    """What lanes are for."""
    with PacketLaneRig(None, ",sndbuf=80000", options=("--tx-full=block",)) as r, PacketDestinations(r, RATES) as d:
        flood = Flood(r, d)
        parts, _ = beside(flood, FAST, SLOW)
        print(f"block: {parts}", flush=True)
        check(max(parts.values()) < 0.8, f"without lanes the fast ones lose nothing: {parts}")
        finish(r, d, flood)


def lanes(engine):
    for backend in ("", ",sndbuf=200000"):
        print(backend or "defaults", flush=True)
        with PacketLaneRig(engine, backend) as r, PacketDestinations(r, RATES) as d:
            check_equal(len(r.lanes()), 8, "lanes")
            flood = Flood(r, d)
            check_unharmed(r, flood, FAST, SLOW)
            check("drop_nomem" not in r.drops(), f"HTB's queue was full: {r.drops()}")
            finish(r, d, flood)


def full_queue(engine):
    """The queueing discipline drops: each packet is lost once, and counted, and the others go on."""
    with PacketLaneRig(engine, ",lanes=1") as r, PacketDestinations(r, {1: "50mbit", 2: "200kbit"}) as d:
        r.ns.run("tc", "qdisc", "change", "dev", "veth0", "parent", f"1:{2 + 16:x}", "pfifo", "limit", "5")
        flood = Flood(r, d)
        for _ in flood.run(0.5, {1: 1000, 2: 1000}, (1000, 200, 1514)):
            pass
        d.change({2: "100mbit"})
        flood.drain()
        check_accounted(r, flood)
        check_equal(set(r.drops()), {"drop_nomem"}, "reasons of drops")
        check_equal(flood.got[1], flood.sent[1], "frames of the destination that is not full")


def test(engine):
    lanes(engine)
    full_queue(engine)


def main():
    fault()
    each_engine(test)


run(main)
