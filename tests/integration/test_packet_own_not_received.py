# SPDX-License-Identifier: BSD-3-Clause
"""What the guest sends does not come back to it, by whichever lane it went, nor what the host sends
on the interface; also where everything else is received."""
import socket
import time

from frames import BROADCAST, GUEST_MAC, HOST_MAC, eth, frame
from packet import PacketRig
from rig import each_engine
from vltest import check, check_equal, run

COUNT = 200


def test(engine):
    with PacketRig(engine, backend=",promisc=on") as r:
        d = r.driver
        d.post(count=128)
        for dst in (BROADCAST, GUEST_MAC, HOST_MAC):
            for i in range(COUNT):
                d.send(eth(i.to_bytes(4, "big").ljust(60, b"\1"), dst=dst))
                d.tx[0].wait(1)
                # So that probes take some.
                if i % 20 == 0:
                    time.sleep(0.002)
            check_equal(len(r.host.take(COUNT)), COUNT, "frames at the far end")
        check(r.daemon.stat()["queue_pairs"][0]["lanes"][0]["probes"] > 2, "no frame went by a probe")
        with r.ns.entered():
            sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        with sock:
            sock.bind(("veth0", 0))
            for dst in (BROADCAST, GUEST_MAC):
                sock.send(eth(bytes(50), dst=dst, src=HOST_MAC))
        check_equal(len(r.host.take(2)), 2, "the host's frames at the far end")
        r.host.inject(frame(7, 100))
        got = d.recv()
        check(got, "nothing is received at all")
        check_equal(got[12:], frame(7, 100), "the first frame that is received")
        check(d.recv(timeout=0.2) is None, "another frame was received")


run(lambda: each_engine(test))
