# SPDX-License-Identifier: BSD-3-Clause
"""Descriptors of length 0 inside a chain are skipped, wherever they are and
whatever their address: nothing is accessed there, and the rest of the chain
is the packet."""
from frames import frame, seq_of
from rig import Rig, each_engine
from vhost_client import WRITE, bits, F_INDIRECT, INDIRECT
from vltest import check, check_equal, run

NOWHERE = 0xffff_ffff_f000


def test(engine):
    with Rig(engine) as r:
        d = r.driver
        check(d.features & bits(F_INDIRECT), "indirect descriptors are not offered")
        seq = 0
        for where in range(3):
            for address in (d.mem.buffer(16), NOWHERE, 0):
                for indirect in (False, True):
                    seq += 1
                    body = bytes(12) + frame(seq, 200)
                    segs = [(d.mem.buffer(100, data=body[:100]), 100, 0),
                            (d.mem.buffer(112, data=body[100:]), 112, 0)]
                    segs.insert(where, (address, 0, 0))
                    if indirect:
                        segs = [(d.tx[0].table(segs), 16 * 3, INDIRECT)]
                    d.tx[0].add(segs)
                    check_equal(d.tx[0].wait(1)[0][1], 0, "used length")
                    got = r.host.get(1)
                    check(got is not None, f"no frame: empty descriptor at place {where}, "
                          f"address {address:#x}, indirect {indirect}")
                    check_equal(got, body[12:], "the frame")

                    lens = [300, 1300]
                    rx = [(d.mem.buffer(n, 0xff), n, WRITE) for n in lens]
                    rx.insert(where, (address, 0, WRITE))
                    head = d.rx[0].add([(d.rx[0].table(rx), 48, INDIRECT)] if indirect
                                       else rx)[0]
                    d.posted[0][head] = [s for s in rx if s[1]]
                    r.host.inject(frame(seq, 700))
                    got = d.recv()
                    check(got is not None and seq_of(got[12:]) == seq and
                          got[12:] == frame(seq, 700), "the received frame")
        check_equal(r.queue("tx")["drop_chain"], 0, "drop_chain")
        r.alive(pairs=[0])
        r.alive(pairs=[1])


run(lambda: each_engine(test))
