# SPDX-License-Identifier: BSD-3-Clause
"""No buffer is left behind when it arrives just as the device goes to sleep,
nobody sleeps for ever for a completion, and one batch is one notification."""
import random
import select
import time

from frames import frame
from rig import Rig, each_engine
from vhost_client import INDIRECT, Driver, F_EVENT_IDX, bits
from vltest import check, check_equal, run

ROUNDS = 10000


def test_sleep_race(engine):
    """A sender that kicks only when told to and sleeps until it is called."""
    with Rig(engine) as r:
        d, q = r.driver, r.driver.tx[0]
        heads = [q.chain([d.packet(frame(i))]) for i in range(2)]
        q.chains.clear()
        rng = random.Random(7)
        for i in range(ROUNDS):
            # The second buffer comes at any moment after the first, or just
            # when that one was used and the device is about to sleep.
            first = q.avail_idx
            q.set_used_event(first + 1)
            q.queue(heads[0])
            q.publish()
            q.kick()
            q.queue(heads[1])
            if i % 2:
                at = time.perf_counter_ns() + rng.randrange(60000)
                while time.perf_counter_ns() < at:
                    pass
            else:
                for _ in range(2000):
                    if q.used_idx() != first:
                        break
                for _ in range(rng.randrange(60)):
                    pass
            q.publish()
            q.kick()
            left = 2
            end = time.monotonic() + 2
            while left:
                check(time.monotonic() < end, f"round {i}: {left} chains forgotten")
                left -= len(q.reap())
                if left:
                    q.set_used_event(q.used_seen + left - 1)
                    left -= len(q.reap())
                if left:
                    check(select.select([q.call_fd], [], [], 2)[0],
                          f"round {i}: no call, {left} chains outstanding")
                    q.called()
        check_equal(r.queue("tx")["packets"], 2 * ROUNDS, "packets")


def test_batches(engine):
    """200 buffers in one publish take few notifications, also with a bad one
    in the middle."""
    with Rig(engine, features=Driver.FEATURES & ~bits(F_EVENT_IDX)) as r:
        d, q = r.driver, r.driver.tx[0]
        chains = [[d.packet(frame(i))] for i in range(200)]
        chains[100] = [(1, 1, INDIRECT)]
        q.add(*chains)
        q.wait(200)
        check(r.queue("tx")["notifications_sent"] <= 20,
              f"{r.queue('tx')['notifications_sent']} notifications for 200 buffers")
        check_equal(r.queue("tx")["drop_chain"], 1, "drop_chain")
        check_equal(r.host.flush(), 199, "frames")
        d.send(frame(1000))
        check_equal(q.wait(1)[0][1], 0, "used length")
        r.alive()


def main():
    each_engine(test_sleep_race)
    each_engine(test_batches)


run(main)
