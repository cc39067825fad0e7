# SPDX-License-Identifier: BSD-3-Clause
"""Frames that wait in the tap for a driver without buffers are still there
after the front-end changed the memory, for which all rings stop a moment."""
from frames import udp4
from rig import Rig, each_engine
from vltest import check_equal, run

FRAMES = 20


def test(engine):
    with Rig(engine, pairs=2) as r:
        # A flow belongs to the queue it last came from: that of pair 1.
        r.driver.send(udp4(b"steer", 20001, 9, "10.0.0.1", "10.0.0.2"), pair=1)
        r.driver.tx[1].wait(1)
        r.host.flush()
        for i in range(FRAMES):
            r.host.inject(udp4(bytes([i]) * 8, 9, 20001, "10.0.0.2", "10.0.0.1"))
        r.driver.client.set_mem_table(r.driver.mem.regions)
        r.driver.post(pair=1, count=64)
        got = []
        while len(got) < FRAMES:
            packet = r.driver.recv(1)
            if packet is None:
                break
            if packet[-8:] == bytes([packet[-1]]) * 8:
                got.append(packet[-1])
        check_equal(got, list(range(FRAMES)), "frames")


run(lambda: each_engine(test))
