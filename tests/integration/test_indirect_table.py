# SPDX-License-Identifier: BSD-3-Clause
"""Indirect descriptor tables: the right ones work (alone, and as the last of
direct descriptors), the wrong ones go back with length 0 and are counted."""
from frames import frame
from rig import Rig, each_engine
from vhost_client import F_INDIRECT, INDIRECT, NEXT, WRITE, Driver, bits
from vltest import check_equal, run

LIMIT = 1024  # buffers in one chain


def test(engine):
    with Rig(engine) as r:
        d, q, mem = r.driver, r.driver.tx[0], r.driver.mem
        good = frame(1, 300)
        data = bytes(12) + good
        buf = mem.buffer(len(data), data=data)
        whole = q.table([(buf, len(data), 0)])

        # Right ones.
        q.add([(whole, 16, INDIRECT)])
        q.add([(buf, 12, 0), (q.table([(buf + 12, 100, 0), (buf + 112, 200, 0)]), 32, INDIRECT)])
        q.add([(q.table([(buf + i, 1, 0) for i in range(len(data))]), 16 * len(data), INDIRECT)])
        check_equal([n for _, n in q.wait(3)], [0] * 3, "used lengths")
        check_equal(r.host.take(3), [good] * 3, "frames of valid tables")
        check_equal(r.queue("tx")["drop_chain"], 0, "drop_chain")

        # Wrong ones.
        end = mem.regions[0].gpa + mem.regions[0].size
        big = mem.alloc(16 * (LIMIT + 1))
        for i in range(LIMIT + 1):
            q.set_desc(i, buf, 1, NEXT if i < LIMIT else 0, i + 1, big)
        nested = mem.alloc(32)
        q.set_desc(0, whole, 16, INDIRECT, 0, nested)
        past = mem.alloc(32)
        q.set_desc(0, buf, 12, NEXT, 2, past)
        q.set_desc(1, buf + 12, 300, 0, 0, past)
        writable = q.table([(buf, 12, 0), (buf + 12, 300, WRITE)])
        wrong = [[(whole, n, INDIRECT)] for n in
                 (0, 1, 15, 17, 0xfffffff0, 0xffffffff)]
        wrong += [[(end - 8, 16, INDIRECT)], [(end, 16, INDIRECT)],
                  [(0xffff_ffff_ffff_fff0, 16, INDIRECT)], [(0, 16, INDIRECT)],
                  [(big, 16 * (LIMIT + 1), INDIRECT)],
                  [(nested, 16, INDIRECT)], [(past, 32, INDIRECT)],
                  [(writable, 32, INDIRECT)],
                  # INDIRECT together with NEXT
                  [(whole, 16, INDIRECT), (buf, 16, 0)]]
        for n, chain in enumerate(wrong):
            head = q.add(chain)[0]
            check_equal(q.wait(1), [(head, 0)], f"used, wrong table {n}")
            check_equal(r.queue("tx")["drop_chain"], n + 1, f"drop_chain, wrong table {n}")
        check_equal(r.queue("tx")["broken"], False, "broken")
        check_equal(r.host.flush(), 0, "frames of malformed tables")
        r.alive()


def test_not_negotiated(engine):
    """An indirect descriptor without the feature is malformed."""
    with Rig(engine, driver=False) as r:
        d = r.connect(features=Driver.FEATURES & ~bits(F_INDIRECT))
        whole = d.tx[0].table([d.packet(frame(1))])
        d.tx[0].add([(whole, 16, INDIRECT)])
        check_equal(d.tx[0].wait(1)[0][1], 0, "used length")
        check_equal(r.queue("tx")["drop_chain"], 1, "drop_chain")
        r.alive()


def main():
    each_engine(test)
    each_engine(test_not_negotiated)


run(main)
