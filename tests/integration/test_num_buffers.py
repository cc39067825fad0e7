# SPDX-License-Identifier: BSD-3-Clause
"""With VERSION_1 the received header has num_buffers, and it is 1 when
mergeable buffers were not negotiated. Every header byte is written."""
from frames import frame
from rig import Rig, each_engine
from vhost_client import Driver, F_CSUM, F_GUEST_CSUM, F_GUEST_TSO4, F_GUEST_TSO6, \
    F_MRG_RXBUF, bits
from vltest import check_equal, run

OFF = bits(F_MRG_RXBUF, F_GUEST_CSUM, F_GUEST_TSO4, F_GUEST_TSO6, F_CSUM)


def test(engine):
    with Rig(engine, features=Driver.FEATURES & ~OFF) as r:
        d = r.driver
        r.steer(0)
        for i in range(20):
            d.post(fill=0xff)
            r.host.inject(frame(i, 60 + i))
            got = d.recv()
            check_equal(got[:12], bytes(10) + b"\1\0", "the virtio header")
            check_equal(got[12:], frame(i, 60 + i), "the frame")
        r.alive()


run(lambda: each_engine(test))
