# SPDX-License-Identifier: BSD-3-Clause
"""The used length counts what the device wrote: 0 for a transmitted chain of
any shape, header and frame for a received one, exactly 1 for a control
command."""
from frames import frame
from rig import Rig, each_engine
from vhost_client import INDIRECT, WRITE
from vltest import check, check_equal, run


def test(engine):
    with Rig(engine, ctrl=True) as r:
        d, q = r.driver, r.driver.tx[0]
        gpa, n, _ = d.packet(frame(1, 200))
        q.add([(gpa, n, 0)], [(gpa, 12, 0), (gpa + 12, 200, 0)],
              [(q.table([(gpa, n, 0)]), 16, INDIRECT)])
        check_equal([n for _, n in q.wait(3)], [0, 0, 0], "transmit lengths")

        for size in (14, 60, 1514):
            d.post(1600)
            r.host.inject(frame(2, size))
            check_equal(d.rx[0].wait(1)[0][1], 12 + size, "received length")

        check(d.offered & 1 << 17, "no control queue offered")
        status = d.mem.buffer(1, 0xff)
        command = d.mem.buffer(3, data=bytes([0, 0, 1]))  # promiscuous on
        d.ctrl.add([(command, 2, 0), (command + 2, 1, 0), (status, 1, WRITE)])
        check_equal(d.ctrl.wait(1)[0][1], 1, "control length")
        check(d.mem.read(status, 1)[0] in (0, 1), "no status written")
        r.alive()


run(lambda: each_engine(test))
