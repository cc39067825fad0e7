# SPDX-License-Identifier: BSD-3-Clause
"""The way out is full when the tap goes down: what waits is dropped and
counted, as everything is that is sent into a tap that is down, and the queue
does not wait for a readiness that does not come."""
from frames import frame
from rig import Rig, each_engine
from shaper import Shaper
from vltest import check, run, wait_for

FRAMES = 60


def test(engine):
    with Rig(engine, pairs=1, backend=",sndbuf=20000") as r, Shaper(r, "8kbit"):
        r.driver.send(*[frame(i, 1000) for i in range(FRAMES)])
        wait_for(lambda: r.queue("tx")["blocked"] > 0, 3, "push-back of the tap")
        sent = r.queue("tx")["packets"]
        check(sent < FRAMES, "the tap took all frames: the test shows nothing")
        r.ns.ip("link", "set", "tap0", "down")
        r.wait_counter("tx", "drop_down", FRAMES - sent)
        check(len(r.driver.tx[0].reap()) == FRAMES, "not all chains came back")


run(lambda: each_engine(test))
