# SPDX-License-Identifier: BSD-3-Clause
"""What the tap may deliver follows what the driver negotiated: complete
checksums and frames of MTU size for one that took no GUEST_ features, large
ones for one that did; again whenever that changes: by renegotiation on the
same session, by the control queue, by a new front-end."""
import struct

from frames import GSO_TCPV4, NEEDS_CSUM, VNET, l4_csum_ok, tcp4, vnet
from rig import Rig, each_engine
from vhost_client import Driver, F_CTRL_GUEST_OFFLOADS, F_GUEST_CSUM, F_GUEST_TSO4, \
    F_GUEST_TSO6, bits
from vltest import check, check_equal, run

GUEST = bits(F_GUEST_CSUM, F_GUEST_TSO4, F_GUEST_TSO6)
ALL = Driver.FEATURES | bits(F_CTRL_GUEST_OFFLOADS)
DATA = bytes(range(200)) * 20  # 4000 bytes: 4 segments of 1000


def receive(r, what, large):
    """Injects one GSO frame and one with a partial checksum."""
    d = r.driver
    # The tap steers a flow to the queue it was last seen on.
    d.send(tcp4(b"x", 5000, 6000, "10.0.0.1", "10.0.0.2"))
    d.tx[0].wait(1)
    d.post(4200, count=6)
    flow = (6000, 5000, "10.0.0.2", "10.0.0.1")
    r.host.inject(vnet(NEEDS_CSUM, GSO_TCPV4, 54, 1000, 34, 16) + tcp4(DATA, *flow, partial=True))
    r.host.inject(vnet(NEEDS_CSUM, 0, 0, 0, 34, 16) + tcp4(DATA[:500], *flow, partial=True))
    got = []
    while sum(len(p) - 12 - 54 for p in got) < len(DATA) + 500:
        got.append(d.recv(0, 1))
        check(got[-1] is not None, f"{what}: {len(got) - 1} frames only")
    if large:
        check_equal(len(got), 2, f"{what}: frames")
        check_equal(VNET.unpack(got[0][:10])[:2], (NEEDS_CSUM, GSO_TCPV4), f"{what}: header")
        check_equal(got[0][66:], DATA, f"{what}: payload")
    else:
        check_equal(len(got), 5, f"{what}: frames")
        check_equal(b"".join(p[66:] for p in got[:4]), DATA, f"{what}: payload")
        for p in got:
            check(len(p) <= 12 + 1514, f"{what}: frame of {len(p) - 12} bytes")
            check_equal(p[:10], bytes(10), f"{what}: header")
            check(l4_csum_ok(p[12:]), f"{what}: wrong checksum")


def renegotiate(r, features):
    """Stops the rings, sets other features, starts them: one session."""
    d = r.driver
    for i in d.queues:
        d.client.get_vring_base(i)
    d.features = features & d.offered
    check(d.client.set_features(d.features) == 0, "SET_FEATURES failed")
    for q in d.queues.values():
        q.restart()
    d.posted = [{} for _ in d.rx]
    d.reaped = [[] for _ in d.rx]
    d.start()


def offloads(r, mask):
    """VIRTIO_NET_CTRL_GUEST_OFFLOADS_SET."""
    d = r.driver
    check_equal(d.command(5, 0, struct.pack("<Q", mask)), 0, "ack of GUEST_OFFLOADS")


def test(engine):
    with Rig(engine, vnet=True, ctrl=True, features=ALL & ~GUEST) as r:
        check_equal(r.driver.offered & GUEST, GUEST, "offered")
        receive(r, "no offloads negotiated", False)
        renegotiate(r, ALL)
        receive(r, "all, after SET_FEATURES", True)
        check(r.driver.features & bits(F_CTRL_GUEST_OFFLOADS), "GUEST_OFFLOADS not offered")
        offloads(r, 0)
        receive(r, "none, by the control queue", False)
        offloads(r, GUEST)
        receive(r, "all, by the control queue", True)
        renegotiate(r, ALL & ~GUEST)
        receive(r, "none, after SET_FEATURES", False)
        r.connect(features=ALL)
        receive(r, "all, new front-end", True)
        r.connect(features=ALL & ~GUEST)
        receive(r, "none, new front-end", False)
        r.alive()


run(lambda: each_engine(test))
