# SPDX-License-Identifier: BSD-3-Clause
"""Where frames of the guest go: to all remotes while nobody knows better, then to the one that the address
was seen with, until that was too long ago; static addresses stay where they are; tags stay on."""

import time

from frames import BROADCAST, GUEST_MAC, eth
from rig import each_engine
from vltest import check_equal, run
from vxlan import TunnelRig

A, B, STATIC = (bytes.fromhex(f"0200000000{n:02x}") for n in (0xa, 0xb, 0xc))
TP_STATUS_VLAN_VALID = 0x10
GROUP = bytes.fromhex("01005e000001")


def arrivals(rig, data, tag=b""):
    """The numbers of the remotes that get the frame, with that tag in it."""
    rig.driver.send(data[:12] + tag + data[12:])
    got = []
    for number, host in enumerate(rig.hosts):
        while (there := host.get(0.1)) is not None:
            # The kernel has taken the tag out, and says so.
            if there == data and bool(host.status & TP_STATUS_VLAN_VALID) == bool(tag):
                got.append(number)
    return got


def learn(rig, mac, number):
    """The guest gets a frame from @mac, of remote @number."""
    data = eth(b"hello".ljust(46), dst=GUEST_MAC, src=mac)
    rig.driver.post()
    rig.hosts[number].inject(data)
    check_equal(rig.driver.recv(0)[rig.driver.hdr_len:], data, "the frame that came")


def test(engine):
    """All of it, with one engine."""
    backend = "ageing=2,mac=02:00:00:00:00:0c@10.8.0.3"
    with TunnelRig(engine, backend, count=2) as rig:
        body = b"x" * 100
        to_a, to_b = eth(body, dst=A), eth(body, dst=B)
        for mac in (BROADCAST, GROUP):
            check_equal(arrivals(rig, eth(body, dst=mac)), [0, 1], "remotes that get a frame for a group")
        check_equal(arrivals(rig, to_a), [0, 1], "remotes that get a frame for an unknown address")
        check_equal(arrivals(rig, eth(body, dst=STATIC)), [1], "remotes that get a frame for a static address")

        learn(rig, A, 0)
        learn(rig, B, 1)
        check_equal(arrivals(rig, to_a), [0], "remotes that get a frame for A")
        check_equal(arrivals(rig, to_b), [1], "remotes that get a frame for B")
        check_equal(arrivals(rig, to_a, bytes.fromhex("8100 0123")), [0], "remotes that get a tagged frame")

        # It moves; a static one does not.
        learn(rig, A, 1)
        learn(rig, STATIC, 0)
        check_equal(arrivals(rig, to_a), [1], "remotes that get a frame for A, which moved")
        check_equal(arrivals(rig, eth(body, dst=STATIC)), [1], "remotes that get a frame for a static address")
        stat = rig.tunnel()
        check_equal((stat["learned"], stat["moved"]), (2, 1), "addresses learned and moved")

        time.sleep(2.5)
        check_equal(arrivals(rig, to_a), [0, 1], "remotes that get a frame for A, which was long not heard of")
        check_equal(arrivals(rig, eth(body, dst=STATIC)), [1], "remotes that get a frame for a static address")
        rig.alive(fds=False)


run(lambda: each_engine(test))
