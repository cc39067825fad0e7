# SPDX-License-Identifier: BSD-3-Clause
"""Notifications are suppressed as the driver asks, by event index or by flag,
and the driver is told truthfully when the device wants to be kicked."""
import time

from frames import frame, seq_of
from rig import Rig, each_engine
from vhost_client import NO_INTERRUPT, Driver, F_EVENT_IDX, bits, poll
from vltest import check, check_equal, run


def test_used_event(engine):
    """A call comes when the used index passes used_event, not otherwise."""
    with Rig(engine) as r:
        d, q = r.driver, r.driver.tx[0]
        check(d.event_idx, "event index is not offered")
        d.send(frame(0))
        q.wait(1)
        check(q.called(1), "no call for the first completion")
        for start in range(3):
            q.set_used_event(q.used_idx() + 30)
            for i in range(20):
                d.send(frame(i))
                q.wait(1)
            check_equal(q.called(0.05), 0, f"calls before used_event, round {start}")
            d.send(*[frame(i) for i in range(11)])
            q.wait(11)
            check(q.called(1), "no call when used_event was passed")
            d.send(frame(0))
            q.wait(1)
            check_equal(q.called(0.05), 0, "calls after used_event was passed")
        stat = r.queue("tx")
        check(stat["notifications_suppressed"] >= 60, f"suppressed: {stat}")
        check(4 <= stat["notifications_sent"] <= 6, f"sent: {stat}")


def test_flag(engine):
    """Without the feature the available flag decides."""
    with Rig(engine, features=Driver.FEATURES & ~bits(F_EVENT_IDX)) as r:
        d, q = r.driver, r.driver.tx[0]
        d.send(frame(0))
        q.wait(1)
        check(q.called(1), "no call")
        q.set_avail_flags(NO_INTERRUPT)
        for i in range(5):
            d.send(frame(i))
            q.wait(1)
        check_equal(q.called(0.05), 0, "calls that were not wanted")
        q.set_avail_flags(0)
        d.send(frame(9))
        q.wait(1)
        check(q.called(1), "no call after the flag was cleared")
        check(poll(lambda: q.used_flags() == 0), "an idle device must want kicks")


def test_avail_event(engine):
    """An idle device asks for a kick at the very next buffer."""
    with Rig(engine) as r:
        d = r.driver
        for i in range(300):
            d.send(frame(i))
            d.tx[0].wait(1)
            if i % 30 == 0:
                q = d.tx[0]
                check(poll(lambda q=q: q.avail_event() == q.avail_idx),
                      f"avail_event {q.avail_event()}, available index {q.avail_idx}")


def test_restart(engine):
    """The first completion after a restart calls, whatever used_event says."""
    with Rig(engine) as r:
        d = r.driver
        for index, q in ((1, d.tx[0]), (0, d.rx[0])):
            r.steer(0)
            q.reap()
            for i in range(3):
                if index:
                    d.send(frame(i))
                else:
                    d.post(kick=True)
                    r.host.inject(frame(i))
                q.wait(1)
            base = d.client.get_vring_base(index)
            q.called(0.05)
            q.set_used_event(base - 1)
            d.client.setup_vring(index, q, base)
            d.client.sync()
            if index:
                d.send(frame(9))
            else:
                d.post()
                r.host.inject(frame(9))
            q.wait(1)
            check(q.called(1), f"no call after the restart of ring {index}")
        r.alive()


def test_buffers_one_by_one(engine):
    """A large frame waits; buffers come one at a time, kicked by the rules.
    It must be delivered with the last one that it needs."""
    with Rig(engine, mtu=9000) as r:
        d = r.driver
        want = frame(5, 9000)
        r.steer(0)
        for n in range(3):
            r.host.inject(want)
            for _ in range(10):
                d.post(1000)
                time.sleep(0.002)
            got = d.recv(timeout=2)
            check(got is not None, f"the frame did not arrive, round {n}")
            check_equal(seq_of(got[12:]), 5, "sequence number")
            check_equal(got[12:], want, "the frame")


def main():
    for test in (test_used_event, test_flag, test_avail_event, test_restart,
                 test_buffers_one_by_one):
        each_engine(test)


run(main)
