# SPDX-License-Identifier: BSD-3-Clause
"""A control queue full of commands that take the kernel a while does not keep
the daemon from answering its front-end, the stats socket and SIGTERM."""
import struct
import time

from rig import Rig, each_engine
from vhost_client import NEXT, WRITE, Virtqueue
from vltest import check, run

PAIRS = 8
COMMANDS = 16384


def full_queue(driver):
    """A queue of as many VQ_PAIRS_SET, of 1 and of all pairs in turn."""
    q, mem = Virtqueue(driver.mem, 2 * COMMANDS, driver.event_idx), driver.mem
    bodies = [mem.buffer(4, data=struct.pack("<BBH", 4, 0, n)) for n in (1, PAIRS)]
    status = mem.buffer(1)
    for i in range(COMMANDS):
        q.set_desc(2 * i, bodies[i % 2], 4, NEXT, 2 * i + 1)
        q.set_desc(2 * i + 1, status, 1, WRITE)
        q.set_entry(i, 2 * i)
    q.set_avail_idx(COMMANDS)
    return q


def test(engine):
    with Rig(engine, pairs=PAIRS, size=64) as r:
        q = full_queue(r.driver)
        r.driver.client.setup_vring(2 * PAIRS, q)
        begin = time.monotonic()
        for _ in range(10):
            r.driver.client.sync()
            r.daemon.stat()
        took = time.monotonic() - begin
        check(took < 2, f"20 answers took {took:.1f} s")
        check(0 < q.used_idx() < COMMANDS, "the flood is not one: all commands are done")
        r.daemon.stop(2)


run(lambda: each_engine(test))
