# SPDX-License-Identifier: BSD-3-Clause
"""While the host interface is down, transmitted packets are dropped and
counted, their buffers come back, and the device status says so. When it is up
again traffic flows, with nothing done to either side."""
import struct

from frames import frame
from rig import Rig, each_engine
from vhost_client import GET_CONFIG, poll
from vltest import check, check_equal, run

PACKETS = 3000


def link_up(client):
    """The link bit of the status field in the config space."""
    data = client.call(GET_CONFIG, struct.pack("<III", 6, 2, 0) + bytes(2))
    return struct.unpack_from("<H", data, 12)[0] & 1


def test(engine):
    with Rig(engine) as r:
        d, q = r.driver, r.driver.tx[0]
        check_equal(link_up(d.client), 1, "status, up")
        lines = r.log_lines()
        for _ in range(2):
            before = r.queue("tx")["drop_down"]
            r.ns.ip("link", "set", "tap0", "down")
            check(poll(lambda: not link_up(d.client)), "status still says up")
            check_equal(r.daemon.stat()["link"], "down", "link in stat")
            mark = d.mem.mark()
            for i in range(PACKETS // 100):
                d.send(*[frame(i)] * 100)
                check_equal({n for _, n in q.wait(100)}, {0}, "used lengths")
                d.mem.release(mark)
            r.wait_counter("tx", "drop_down", before + PACKETS)
            r.ns.ip("link", "set", "tap0", "up")
            check(poll(lambda: link_up(d.client)), "status still says down")
            r.alive()
        for _ in range(30):
            r.ns.ip("link", "set", "tap0", "down")
            check(poll(lambda: not link_up(d.client)), "status still says up")
            r.ns.ip("link", "set", "tap0", "up")
            check(poll(lambda: link_up(d.client)), "status still says down")
        r.alive()
        check(r.log_lines() - lines < 20, "too many log lines")


run(lambda: each_engine(test))
