# SPDX-License-Identifier: BSD-3-Clause
"""A transmit chain that cannot hold a virtio header and an Ethernet header.

It goes back at once with used length 0 and is counted as drop_short; what
was queued behind it in the same burst still leaves.
"""
from frames import frame
from rig import Rig, each_engine
from vltest import check_equal, run


def test(engine):
    with Rig(engine) as r:
        d, tx = r.driver, r.driver.tx[0]
        lengths = (1, 2, 9, 10, 11, 12, 13, 25)
        good = frame(7, 60)
        shortest = frame(0, 14)
        chains = [[(d.mem.buffer(n, 0), n, 0)] for n in lengths]
        chains += [[d.packet(shortest)], [d.packet(good)]]
        heads = tx.add(*chains)
        used = tx.wait(len(chains))
        check_equal(sorted(used), sorted((h, 0) for h in heads), "used entries")
        check_equal(r.queue("tx")["drop_short"], len(lengths), "drop_short")
        got = r.host.take(2, 1)
        check_equal(got[-1:], [good], "the good frame behind the short ones")
        check_equal(r.queue("tx")["broken"], False, "broken")

        # Only empty descriptors: no byte at all.
        tx.add([(d.mem.buffer(16), 0, 0)])
        check_equal([n for _, n in tx.wait(1)], [0], "length of an empty chain")
        r.alive()


run(lambda: each_engine(test))
