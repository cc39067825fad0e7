# SPDX-License-Identifier: BSD-3-Clause
"""Receive buffers too small for the header or for the frame, malformed ones,
and read-only ones, while traffic waits: the queue goes on with the next."""
from frames import frame
from rig import Rig, each_engine
from vhost_client import WRITE, Driver, F_GUEST_TSO4, F_GUEST_TSO6, F_MRG_RXBUF, bits
from vltest import check, check_equal, run


def passes(r, what):
    """A good frame arrives within a few good buffers."""
    d = r.driver
    d.post(1600, count=16)
    want = frame(4242, 900)
    r.host.inject(want)
    for _ in range(60):
        d.post(1600)
        got = d.recv()
        check(got is not None, f"nothing received after {what}")
        if got[12:] == want:
            return
    check(False, f"the good frame did not arrive after {what}")


def test_mergeable(engine):
    with Rig(engine) as r:
        d = r.driver
        r.steer(0)
        r.host.inject(*[frame(i, 400) for i in range(4)])
        for n in range(1, 12):
            d.rx[0].add([(d.mem.buffer(n), n, WRITE)])
            r.host.inject(frame(n, 200))
        # They are not filled past their end, and do not stop the queue.
        for head, length in d.rx[0].reap():
            check(head not in d.posted[0] and length <= 11, f"used length {length}")
        # Whatever the device made of them: they are all gone in the end.
        d.posted[0] = {h: [] for h in d.rx[0].chains}
        for _ in range(20):
            r.host.inject(frame(1, 60))
        passes(r, "buffers of 1 to 11 bytes")
        d.mem.check_canaries()
        r.alive()


def test_not_mergeable(engine):
    off = bits(F_MRG_RXBUF, F_GUEST_TSO4, F_GUEST_TSO6)
    with Rig(engine, features=Driver.FEATURES & ~off) as r:
        d = r.driver
        for n in list(range(1, 14)) + [100, 411]:
            d.rx[0].add([(d.mem.buffer(n), n, WRITE)])
        d.posted[0] = {h: [] for h in d.rx[0].chains}
        r.steer(0)
        r.host.inject(*[frame(i, 400) for i in range(30)])
        passes(r, "buffers smaller than the frame")
        d.mem.check_canaries()
        check(r.queue("rx")["drop_truncated"] >= 1, "no frame counted as too large")
        r.alive()


def test_malformed(engine):
    """Read-only, unmapped, readable before writable: back with length 0."""
    with Rig(engine) as r:
        d, q, mem = r.driver, r.driver.rx[0], r.driver.mem
        end = mem.regions[0].gpa + mem.regions[0].size
        buf = mem.buffer(1600)
        wrong = [[(buf, 1600, 0)], [(0xffff_ffff_f000, 1600, WRITE)],
                 [(end - 100, 200, WRITE)], [(0, 1600, WRITE)],
                 [(0xffff_ffff_ffff_fff0, 0x20, WRITE)],
                 [(buf, 800, 0), (buf + 800, 800, WRITE)],
                 [(buf, 800, WRITE), (buf + 800, 800, 0)]]
        heads = q.add(*wrong)
        d.post(1600)
        want = frame(3, 500)
        r.steer(0)
        r.host.inject(want)
        used = q.wait(len(wrong) + 1)
        check_equal(sorted(used[:-1]), sorted((h, 0) for h in heads), "used entries")
        check_equal(d.content(0, *used[-1])[12:], want, "the frame")
        check_equal(r.queue("rx")["drop_chain"], len(wrong), "drop_chain")
        r.alive()


def main():
    for test in (test_mergeable, test_not_mergeable, test_malformed):
        each_engine(test)


run(main)
