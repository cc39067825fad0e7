# SPDX-License-Identifier: BSD-3-Clause
"""GET_VRING_BASE answers the next available index, and a ring goes on from
there: nothing lost, nothing twice, at any index and over the wrap of 65536. A
driver that resets its ring starts at 0."""
import random

from frames import frame, seq_of
from rig import Rig, each_engine
from vltest import check, check_equal, run


def test(engine):
    rng = random.Random(3)
    with Rig(engine, size=64) as r:
        d, q, rx = r.driver, r.driver.tx[0], r.driver.rx[0]
        for start in (0, 1, 40000, 65534, 65535):
            for index, ring in ((1, q), (0, rx), (2, d.rx[1])):
                d.client.get_vring_base(index)
                ring.restart(start)
                d.client.setup_vring(index, ring, start)
            d.posted, d.reaped = [{}, {}], [[], []]
            at = start
            for n in range(6):
                count = rng.randrange(0, 40)
                d.send(*[frame(i) for i in range(count)])
                q.wait(count)
                at = (at + count) & 0xffff
                base = d.client.get_vring_base(1)
                check_equal(base, at, "base of the transmitq")
                d.client.setup_vring(1, q, base)
                got = [seq_of(f) for f in r.host.take(count, 2)]
                check_equal(got, list(range(count)), f"frames, round {n} from {start}")
            # Receive: what is left in the ring is not lost by a stop.
            d.post(count=30)
            d.post(count=30, pair=1)
            for n in range(10):
                r.host.inject(frame(n))
                got = r.recv_any()
                check(got is not None and seq_of(got[12:]) == n, f"frame {n} from {start}")
                for index, ring in ((0, rx), (2, d.rx[1])):
                    base = d.client.get_vring_base(index)
                    check_equal(base, ring.used_idx(), f"base of receiveq {index}")
                    d.client.setup_vring(index, ring, base)
            check_equal(r.host.flush(), 0, "frames sent twice")
        # Guest reset: index 0 again, ring cleared.
        for index, ring in d.queues.items():
            d.client.get_vring_base(index)
            ring.restart(0)
            d.client.setup_vring(index, ring, 0)
        d.posted, d.reaped = [{}, {}], [[], []]
        r.alive()


run(lambda: each_engine(test))
