# SPDX-License-Identifier: BSD-3-Clause
"""A packet that the host network refuses for good is dropped once and counted;
it is not tried again, and the packets around it leave in order."""
from frames import GSO_TCPV4, NEEDS_CSUM, frame, seq_of, tcp4, vnet
from rig import Rig, each_engine
from vltest import check_equal, run


def test(engine):
    with Rig(engine) as r:
        d, q = r.driver, r.driver.tx[0]
        # TCP segmentation with the place of UDP's checksum: well formed for
        # the device, nonsense for the kernel.
        bad = tcp4(bytes(3000), partial=True)
        head = vnet(NEEDS_CSUM, GSO_TCPV4, 54, 1000, 34, 6, 0)
        for round_ in range(3):
            chains = [[d.packet(frame(i))] for i in range(100)]
            for at in (0, 13, 14, 50, 99):
                chains[at] = [d.packet(bad, head)]
            q.add(*chains)
            check_equal({n for _, n in q.wait(100)}, {0}, "used lengths")
            want = [i for i in range(100) if i not in (0, 13, 14, 50, 99)]
            check_equal([seq_of(f) for f in r.host.take(95, 1)], want, "frames")
            stat = r.queue("tx")
            check_equal(stat["drop_refused"] + stat["drop_header"], 5 * (round_ + 1), "drops")
        r.alive()


run(lambda: each_engine(test))
