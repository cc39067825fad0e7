# SPDX-License-Identifier: BSD-3-Clause
"""SET_FEATURES, a new kick descriptor or a message that is refused do not
disable rings. A session without protocol features has its rings enabled from
the start, also when the last SET_FEATURES takes bit 30 away."""
import os

from frames import frame, seq_of
from rig import Rig, each_engine
from vhost_client import F_LOG_ALL, F_PROTOCOL, SET_VRING_KICK, Driver, bits, eventfd
from vltest import check, check_equal, run


def test(engine):
    with Rig(engine) as r:
        d = r.driver
        log = bits(F_LOG_ALL) & d.offered
        n = 0
        for i in range(20):
            d.send(*[frame(n + j) for j in range(10)])
            d.client.set_features(d.features | (log if i % 2 else 0))
            d.tx[0].wait(10)
            got = [seq_of(f) for f in r.host.take(10)]
            check_equal(got, list(range(n, n + 10)), "frames across SET_FEATURES")
            n += 10
        r.alive()
        # Another kick descriptor while it runs.
        old = d.tx[0].kick_fd
        d.tx[0].kick_fd = eventfd()
        d.send(frame(1), kick=False)
        d.client.vring_fd(SET_VRING_KICK, 1, d.tx[0].kick_fd)
        check_equal([seq_of(f) for f in r.host.take(1)], [1], "not kicked on the new one yet")
        d.send(frame(2))
        check_equal([seq_of(f) for f in r.host.take(1)], [2], "kicked on the new descriptor")
        os.close(old)
        r.alive()


def test_without_protocol_features(engine):
    with Rig(engine, driver=False) as r:
        # Never acknowledged, or dropped by the last SET_FEATURES.
        d = r.connect(features=Driver.FEATURES & ~bits(F_PROTOCOL), protocol=0, pairs=1)
        r.alive(pairs=[0], fds=False)
        d = r.connect(features=Driver.FEATURES & ~bits(F_PROTOCOL), pairs=2)
        check(not d.client.features & bits(F_PROTOCOL), "the test sends bit 30")
        r.alive()


def main():
    each_engine(test)
    each_engine(test_without_protocol_features)


run(main)
