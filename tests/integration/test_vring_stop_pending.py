# SPDX-License-Identifier: BSD-3-Clause
"""A ring is stopped while the host takes nothing: the answer comes soon, and
after it nothing in guest memory changes. Restarted there, each packet arrives
once and in order. Same for a receive ring with reads under way."""
import time

from frames import frame, seq_of
from rig import Rig, each_engine
from shaper import Shaper
from vhost_client import SET_VRING_ENABLE
from vltest import check, check_equal, run

COUNT = 100


def test(engine):
    with Rig(engine, pairs=1, backend=",sndbuf=20000") as r, Shaper(r, "80kbit") as s:
        d, q = r.driver, r.driver.tx[0]
        d.post(count=200)
        d.send(*[frame(i, 1000) for i in range(COUNT)])
        time.sleep(0.2)
        start = time.monotonic()
        base = {i: d.client.get_vring_base(i) for i in d.queues}
        took = time.monotonic() - start
        check(took < 1, f"the answer took {took:.1f} s")
        before = d.mem.snapshot()
        r.host.inject(*[frame(900 + i, 500) for i in range(20)])
        s.rate("100mbit")
        time.sleep(0.5)
        check(d.mem.snapshot() == before, "guest memory changed after the answer")
        check(base[1] < COUNT, "everything was sent: the test shows nothing")
        check_equal(base[0], d.rx[0].used_idx(), "base of the receiveq")
        for i, ring in d.queues.items():
            d.client.setup_vring(i, ring, base[i])
        q.wait(COUNT)
        check_equal([seq_of(f) for f in s.host.take(COUNT, 5)], list(range(COUNT)), "frames")
        # The bridge says things of its own.
        got, packet = [], b""
        while len(got) < 20 and packet is not None:
            packet = d.recv()
            got += [n for n in [seq_of((packet or b"")[12:])] if n >= 0]
        check_equal(got, list(range(900, 920)), "received")

        # The same by disabling the ring.
        s.rate("80kbit")
        d.send(*[frame(i, 1000) for i in range(COUNT)])
        time.sleep(0.2)
        for i in d.queues:
            d.client.state(SET_VRING_ENABLE, i, 0)
        d.client.sync()
        before = d.mem.snapshot()
        s.rate("100mbit")
        time.sleep(0.3)
        check(d.mem.snapshot() == before, "guest memory changed after the disable")
        for i in d.queues:
            d.client.state(SET_VRING_ENABLE, i, 1)
        check_equal([seq_of(f) for f in s.host.take(COUNT, 5)], list(range(COUNT)), "frames")

        # And by a disconnect: the next front-end is served at once.
        s.rate("80kbit")
        d.send(*[frame(i, 1000) for i in range(COUNT)])
        time.sleep(0.1)
        start = time.monotonic()
        d = r.connect()
        check(time.monotonic() - start < 2, "the next session waits for the stalled host")
        s.rate("100mbit")
        s.host.flush(0.3)
        d.send(frame(7))
        check_equal([seq_of(f) for f in s.host.take(1)], [7], "frame of the next session")


run(lambda: each_engine(test))
