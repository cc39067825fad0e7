# SPDX-License-Identifier: BSD-3-Clause
"""A thousand front-ends that leave at a random message, with traffic both ways
in between: descriptors and memory stay flat, and the next one is served."""
import random

from frames import frame
from rig import Rig, engines
from vhost_client import Client, Driver, Memory, Virtqueue, SET_VRING_BASE, \
    SET_VRING_CALL, SET_VRING_ENABLE, SET_VRING_ERR, SET_VRING_KICK, SET_VRING_NUM
from vltest import check, run, sanitizer

CONNECTS = 1000


class Leaver:
    """Sets a session up step by step, on rings that are reused."""

    def __init__(self):
        self.mem = Memory(4 << 20)
        self.queues = [Virtqueue(self.mem, 64, True) for _ in range(4)]
        self.buffers = [self.mem.buffer(1600) for _ in range(40)]
        self.out = self.mem.buffer(112, data=bytes(12) + frame(1, 100))

    def steps(self, c):
        """Generator: one message, or some traffic, at a time."""
        offered = c.start_session(0xffff & ~8)
        yield
        c.set_features(Driver.FEATURES & offered)
        yield
        c.set_mem_table(self.mem.regions)
        yield
        for i, q in enumerate(self.queues):
            q.restart()
            c.state(SET_VRING_NUM, i, q.size)
            yield
            c.state(SET_VRING_BASE, i, 0)
            yield
            c.vring_addr(i, q)
            yield
            c.vring_fd(SET_VRING_CALL, i, q.call_fd)
            c.vring_fd(SET_VRING_ERR, i, q.err_fd)
            yield
            c.vring_fd(SET_VRING_KICK, i, q.kick_fd)
            yield
            c.state(SET_VRING_ENABLE, i, 1)
            yield
        c.sync()
        for n in range(20):
            for i, q in enumerate(self.queues):
                if i % 2:
                    q.add(*[[(self.out, 112, 0)]] * 3)
                else:
                    q.add([(self.buffers[20 * (i // 2) + n], 1600, 2)])
            yield
        for i in range(4):
            c.get_vring_base(i)
            yield


def run_sessions(r, count, seed):
    rng = random.Random(seed)
    one = Leaver()
    noise = [frame(i, 200) for i in range(4)]
    warm = None
    for n in range(count):
        c = Client(r.path)
        left = rng.randrange(0, 55)
        for _ in one.steps(c):
            left -= 1
            if left < 0:
                break
            if left % 8 == 0:
                r.host.inject(*noise)
        c.close()
        if n == count // 4:
            r.fds_settle(r.idle_fds)
            warm = r.daemon.rss_kib(), r.daemon.maps()
    r.fds_settle(r.idle_fds)
    rss, maps = r.daemon.rss_kib() - warm[0], r.daemon.maps() - warm[1]
    print(f"{count} sessions: {rss} KiB, {maps} mappings more")
    check(maps <= 4, f"{maps} more mappings")
    if not sanitizer():
        check(rss < 512, f"{rss} KiB more resident memory")
    for q in one.queues:
        q.close()
    one.mem.close()


def main():
    for seed, engine in enumerate(engines()):
        with Rig(engine, driver=False) as r:
            run_sessions(r, CONNECTS // len(engines()), seed)
            r.connect()
            # What still waits in the tap goes first.
            for _ in range(40):
                for pair in (0, 1):
                    r.driver.post(pair=pair, count=len(r.driver.rx[pair].free))
                while r.recv_any(0.001):
                    pass
            r.host.flush(0)
            r.tx_ok(0)
            r.tx_ok(1)
            check(r.daemon.stat()["sessions"] >= CONNECTS // len(engines()), "sessions in stat")


run(main)
