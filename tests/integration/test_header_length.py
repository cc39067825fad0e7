# SPDX-License-Identifier: BSD-3-Clause
"""The virtio header is 10 bytes for a legacy driver without mergeable buffers
and 12 for any other, also after renegotiation within a session."""
from frames import frame
from rig import Rig, each_engine
from vhost_client import Driver, F_MRG_RXBUF, F_VERSION_1, bits
from vltest import check_equal, run


def test(engine):
    with Rig(engine) as r:
        d = r.driver
        for reconnect in (False, True):
            for version in (0, 1, 1, 0):
                for merge in (0, 1):
                    take = Driver.FEATURES & ~bits(F_MRG_RXBUF, F_VERSION_1)
                    take |= version << F_VERSION_1 | merge << F_MRG_RXBUF
                    if reconnect:
                        d = r.connect(features=take)
                    else:
                        for i in d.queues:
                            d.client.get_vring_base(i)
                        d.features = take & d.offered
                        d.client.set_features(d.features)
                        d.hdr_len = 12 if version or merge else 10
                        for i, q in d.queues.items():
                            q.restart()
                            d.client.setup_vring(i, q)
                        d.posted = [{} for _ in d.rx]
                    what = f"VERSION_1 {version}, MRG_RXBUF {merge}, reconnect {reconnect}"
                    want = frame(5, 333)
                    d.send(want)
                    d.tx[0].wait(1)
                    check_equal(r.host.get(2), want, f"sent, {what}")
                    for pair in (0, 1):
                        d.post(1600, pair=pair)
                    r.host.inject(want)
                    got = r.recv_any()
                    check_equal(got and got[d.hdr_len:], want, f"received, {what}")
                    check_equal(got[:d.hdr_len], bytes(10) + b"\1\0"[:d.hdr_len - 10],
                                f"header, {what}")
        r.alive()


run(lambda: each_engine(test))
