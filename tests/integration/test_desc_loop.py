# SPDX-License-Identifier: BSD-3-Clause
"""A descriptor chain that never ends, also one in which every length is 0.

The chain goes back with length 0 and is counted; the queue, the other queues
and the control channel go on.
"""
import time

from frames import frame
from rig import Rig, each_engine
from vhost_client import INDIRECT, NEXT, WRITE
from vltest import check, check_equal, run


def loops(q, mem, flags):
    """Heads of looping chains: to itself, of two, with lengths, in a table,
    and next past the end of the ring."""
    for length in (0, 32):
        buf = mem.buffer(32)
        a, = q.own(1)
        q.set_desc(a, buf, length, flags | NEXT, a)
        yield a
        a, b = q.own(2)
        q.set_desc(a, buf, length, flags | NEXT, b)
        q.set_desc(b, buf, length, flags | NEXT, a)
        yield a
        a, = q.own(1)
        table = mem.alloc(16 * 4)
        for i in range(4):
            q.set_desc(i, buf, length, flags | NEXT, (i + 1) % 4, table)
        q.set_desc(a, table, 64, INDIRECT)
        yield a
    for bad in (q.size, 0xffff):
        a, = q.own(1)
        q.set_desc(a, mem.buffer(64), 64, flags | NEXT, bad)
        yield a


def test(engine):
    with Rig(engine, ctrl=True) as r:
        d = r.driver
        for kind, q, flags in (("tx", d.tx[0], 0), ("rx", d.rx[0], WRITE)):
            heads = list(loops(q, d.mem, flags))
            for h in heads:
                q.queue(h)
            q.publish()
            q.kick()
            if kind == "rx":
                # Buffers are looked at when there is something to receive.
                r.steer(0)
                r.host.inject(frame(1))
            before = time.monotonic()
            d.client.sync()
            check(time.monotonic() - before < 1, "GET_FEATURES took longer than 1 s")
            used = q.wait(len(heads))
            check_equal(sorted(used), sorted((h, 0) for h in heads), f"used on {kind}")
            r.wait_counter(kind, "drop_chain", len(heads))
            check_equal(r.queue(kind)["broken"], False, f"{kind} broken")
        if d.offered & 1 << 17:
            q = d.ctrl
            heads = list(loops(q, d.mem, 0))
            for h in heads:
                q.queue(h)
            q.publish()
            q.kick()
            before = time.monotonic()
            d.client.sync()
            check(time.monotonic() - before < 1, "GET_FEATURES took longer than 1 s")
            q.wait(len(heads))
        r.alive()


run(lambda: each_engine(test))
