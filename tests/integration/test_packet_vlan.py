# SPDX-License-Identifier: BSD-3-Clause
"""VLAN tags pass both ways, byte for byte: one, two, 802.1ad, priority only; on small frames, on
frames of MTU size and on frames with segmentation offload."""
import struct

from frames import GSO_TCPV4, NEEDS_CSUM, VNET, frame, l4_csum_ok, tcp4, vnet
from packet import PacketRig
from rig import each_engine
from vhost_client import Driver, F_GUEST_CSUM, F_GUEST_TSO4, F_GUEST_TSO6, bits
from vltest import check, check_equal, run

Q, AD = 0x8100, 0x88a8
TAGS = (((Q, 5),), ((Q, 0xe000),), ((AD, 100),), ((AD, 7), (Q, 0x2009)), ((Q, 7), (Q, 9)), ((Q, 0),))
GUEST = bits(F_GUEST_CSUM, F_GUEST_TSO4, F_GUEST_TSO6)
STATUS_VLAN, STATUS_TPID = 1 << 4, 1 << 6
DATA = bytes(range(200)) * 20
FLOW = (6000, 5000, "10.0.0.2", "10.0.0.1")


def tagged(data, tags):
    """The frame with these tags."""
    return data[:12] + b"".join(struct.pack(">HH", *tag) for tag in tags) + data[12:]


def longest(tags):
    """Bytes of a frame that the kernel sends with these tags more: one of 802.1Q is beyond the MTU."""
    return 1514 - 4 * len(tags) + 4 * (bool(tags) and tags[0][0] == Q)


def seen(host):
    """The next frame at the far end as it was on the wire, behind a virtio header: what the kernel took off is put back."""
    data, notes = host.sock.recvmsg(1 << 17, 256)[:2]
    for _, _, body in notes:
        status, _, _, _, _, tci, tpid = struct.unpack("IIIHHHH", body)
        if status & STATUS_VLAN:
            check(status & STATUS_TPID, "the kernel does not say which type the tag has")
            data = data[:10] + tagged(data[10:], ((tpid, tci),))
    return data


def to_far(r):
    """From the driver."""
    r.host.sock.settimeout(3)
    for tags in ((), *TAGS):
        for length in (60, 61, longest(tags)):
            want = tagged(frame(length, length), tags)
            r.driver.send(want)
            r.driver.tx[0].wait(1)
            got = seen(r.host)
            check_equal(got[10:], want, f"frame of {length} bytes with tags {tags}")


def large_to_far(r):
    """A frame that waits for segmentation behind its tag."""
    want = tagged(tcp4(DATA, *FLOW, partial=True), ((Q, 5),))
    r.driver.tx[0].add([r.driver.packet(want, vnet(NEEDS_CSUM, GSO_TCPV4, 58, 1000, 38, 16, 0))])
    r.driver.tx[0].wait(1)
    data, notes = r.host.sock.recvmsg(1 << 17, 256)[:2]
    check_equal(data[10:], want[:12] + want[16:], "the large frame without its tag")
    check(any(struct.unpack("IIIHHHH", body)[5] == 5 for _, _, body in notes), "its tag is lost")


def to_driver(r, what, buffers=1600):
    """To the driver, with frames without tags between."""
    d = r.driver
    for tags in TAGS:
        for length in (60, 61, longest(tags)):
            d.post(buffers, count=3)
            want = tagged(frame(length, length), tags)
            r.host.inject(vnet() + frame(1, 100), vnet() + want, vnet() + frame(2, 1514))
            for part in (frame(1, 100), want, frame(2, 1514)):
                got = d.recv()
                check(got is not None, f"{what}: no frame of {length} bytes with tags {tags}")
                check_equal(got[12:], part, f"{what}: frame of {length} bytes with tags {tags}")


def large_to_driver(r, large):
    """A tagged frame that waits for segmentation: whole, or in segments each with the tag."""
    d = r.driver
    d.post(1600, count=10)
    want = tagged(tcp4(DATA, *FLOW, partial=True), ((AD, 5),))
    r.host.inject(vnet(NEEDS_CSUM, GSO_TCPV4, 58, 1000, 38, 16) + want)
    if large:
        got = d.recv()
        check_equal(VNET.unpack(got[:10]), (NEEDS_CSUM, GSO_TCPV4, VNET.unpack(got[:10])[2], 1000, 38, 16), "header")
        check_equal(got[12:], want, "the large frame")
        return
    for i in range(4):
        got = d.recv()[12:]
        check_equal(got[12:16], struct.pack(">HH", AD, 5), "the tag of a segment")
        got = got[:12] + got[16:]
        check_equal(got[54:], DATA[1000 * i:1000 * i + 1000], "payload of a segment")
        check(l4_csum_ok(got), "checksum of a segment")


def test(engine):
    with PacketRig(engine, backend=",promisc=on", vnet=True) as r:
        to_far(r)
        large_to_far(r)
        to_driver(r, "buffers of a frame")
        large_to_driver(r, True)
        r.connect(features=Driver.FEATURES & ~GUEST)
        to_driver(r, "no offloads")
        large_to_driver(r, False)
        r.alive()


run(lambda: each_engine(test))
