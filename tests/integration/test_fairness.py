# SPDX-License-Identifier: BSD-3-Clause
"""A transmit queue with tens of thousands of buffers does not keep its worker
to itself: what arrives meanwhile for the receive queue of the same pair, on
the other pair and on the control channel is served in between."""
import time

from frames import frame, seq_of
from rig import Rig, each_engine
from vltest import check, run

SIZE = 32768


def test(engine):
    with Rig(engine, size=SIZE) as r:
        d, q = r.driver, r.driver.tx[0]
        d.post(count=10)
        d.post(count=10, pair=1)
        gpa, n, _ = d.packet(frame(1, 1514))
        for i in range(SIZE):
            q.set_desc(i, gpa, n)
            q.set_entry(i, i)
        q.set_avail_idx(SIZE)
        d.send(frame(2), pair=1, kick=False)
        start = time.monotonic()
        q.kick()
        d.tx[1].kick()
        while q.used_idx() == 0:
            check(time.monotonic() - start < 2, "nothing is transmitted")
        r.host.inject(frame(50), frame(51))
        got = None
        while got is None and time.monotonic() - start < 5:
            got = d.recv(0, 0) or d.recv(1, 0)
        received, at = time.monotonic() - start, q.used_idx()
        check(got is not None and seq_of(got[12:]) in (50, 51), "nothing was received")
        d.client.sync()
        answered = time.monotonic() - start
        other = None
        while q.used_idx() != SIZE:
            check(time.monotonic() - start < 10, "the flood does not end")
            if other is None and d.tx[1].used_idx() == 1:
                other = q.used_idx()
        took = time.monotonic() - start
        print(f"received after {received * 1e3:.1f} ms ({at} sent), answered after "
              f"{answered * 1e3:.1f}, flood over after {took * 1e3:.1f} ms")
        check(at < SIZE, "receive waited for the whole transmit queue")
        check(other is not None, "the other pair waited")
        check(answered < took or took < 0.05, "the control channel waited")


run(lambda: each_engine(test))
