# SPDX-License-Identifier: BSD-3-Clause
"""A packet socket hands over large frames and partial checksums whatever the driver agreed to.
One that took no GUEST_ features gets segments with complete checksums, in order with the frames
before and behind them; one that did gets them as they are; again whenever that changes."""
import struct

from frames import GSO_ECN, GSO_TCPV4, GSO_UDP_L4, NEEDS_CSUM, VNET, frame, l4_csum_ok, tcp4, udp4, vnet
from packet import PacketRig
from rig import each_engine
from vhost_client import (Driver, F_CTRL_GUEST_OFFLOADS, F_GUEST_CSUM, F_GUEST_TSO4, F_GUEST_TSO6,
                          F_GUEST_USO4, F_GUEST_USO6, F_MRG_RXBUF, bits)
from vltest import check, check_equal, run

GUEST = bits(F_GUEST_CSUM, F_GUEST_TSO4, F_GUEST_TSO6)
USO = bits(F_GUEST_USO4, F_GUEST_USO6)
ALL = Driver.FEATURES | bits(F_CTRL_GUEST_OFFLOADS)
DATA = bytes(range(250)) * 200  # 50000 bytes: 50 segments of 1000
FLOW = (6000, 5000, "10.0.0.2", "10.0.0.1")
HEAD = 12 + 54




def receive(r, size):
    """The next packet; the driver posts as many buffers as it used."""
    packet = r.driver.recv(0, 1)
    if packet:
        r.driver.post(size, count=-(-len(packet) // size))
    return packet


def segments(r, what, size=1600, buffers=64):
    """A large frame between others, two with a partial checksum: all in segments, finished."""
    r.driver.post(size, count=buffers)
    r.host.inject(vnet() + frame(1, 300),
                  vnet(NEEDS_CSUM, GSO_TCPV4 | GSO_ECN, 54, 1000, 34, 16) + tcp4(DATA, *FLOW, partial=True),
                  vnet(NEEDS_CSUM, 0, 0, 0, 34, 16) + tcp4(DATA[:501], *FLOW, seq=len(DATA), partial=True),
                  vnet(NEEDS_CSUM, 0, 0, 0, 34, 6) + udp4(DATA[:301], *FLOW, partial=True),
                  vnet() + frame(2, 300))
    got = [receive(r, size) for _ in range(54)]
    check(all(got), f"{what}: {len([g for g in got if g])} frames only")
    check_equal(got[0][12:], frame(1, 300), f"{what}: the frame before")
    check_equal(got[53][12:], frame(2, 300), f"{what}: the frame behind")
    for i, packet in enumerate(got[1:53]):
        check_equal(packet[:10], bytes(10), f"{what}: header of frame {i}")
        check(l4_csum_ok(packet[12:]), f"{what}: checksum of frame {i}")
    for i, packet in enumerate(got[1:51]):
        check_equal(packet[HEAD:], DATA[1000 * i:1000 * i + 1000], f"{what}: payload of segment {i}")
        check_equal(struct.unpack_from(">I", packet, 12 + 38)[0], 1000 * i, f"{what}: sequence number")
        check_equal(struct.unpack_from(">H", packet, 12 + 18)[0], 1 + i, f"{what}: IP identification")
    check_equal(got[51][HEAD:], DATA[:501], f"{what}: payload of the small TCP frame")
    check_equal(got[52][12 + 42:], DATA[:301], f"{what}: payload of the UDP frame")


def whole(r, what):
    """They come as they are, with what the header says of them; UDP in segments if @r took no USO."""
    r.driver.post(4200, count=40)
    datagrams = 3 if r.driver.offered & USO else 0
    frames = [vnet(NEEDS_CSUM, GSO_TCPV4, 54, 1000, 34, 16) + tcp4(DATA, *FLOW, partial=True),
              vnet(NEEDS_CSUM, 0, 0, 0, 34, 16) + tcp4(DATA[:500], *FLOW, partial=True)]
    if datagrams:
        # Before Linux 6.2 nobody can send such a frame.
        frames.insert(1, vnet(NEEDS_CSUM, GSO_UDP_L4, 42, 500, 34, 6) + udp4(DATA[:1500], *FLOW, partial=True))
    r.host.inject(*frames)
    got = [r.driver.recv(0, 1) for _ in range(2 + datagrams)]
    check(all(got), f"{what}: {len([g for g in got if g])} frames only")
    check_equal(VNET.unpack(got[0][:10])[:2], (NEEDS_CSUM, GSO_TCPV4), f"{what}: header")
    check_equal(got[0][HEAD:], DATA, f"{what}: payload")
    for i, packet in enumerate(got[1:-1]):
        check_equal(VNET.unpack(packet[:10])[:2], (NEEDS_CSUM, 0), f"{what}: header of a datagram")
        check_equal(packet[12 + 42:], DATA[500 * i:500 * i + 500], f"{what}: payload of a datagram")
    check_equal(VNET.unpack(got[-1][:10])[0], NEEDS_CSUM, f"{what}: header of the small frame")


def cut_off(r):
    """What cannot be segmented is dropped and counted, and the queue goes on."""
    before = r.queue("rx")["drop_refused"]
    r.driver.post(count=4)
    bad = bytearray(tcp4(DATA, *FLOW, partial=True))
    bad[14 + 6] = 0x20  # a fragment, which GSO does not make
    r.host.inject(vnet(NEEDS_CSUM, GSO_TCPV4, 54, 1000, 34, 16) + bytes(bad), vnet() + frame(3, 300))
    got = r.driver.recv()
    check(got and got[12:] == frame(3, 300), "the frame behind one that cannot be segmented")
    check_equal(r.queue("rx")["drop_refused"] - before, 1, "drop_refused")


def offloads(r, mask):
    """VIRTIO_NET_CTRL_GUEST_OFFLOADS_SET."""
    check_equal(r.driver.command(5, 0, struct.pack("<Q", mask)), 0, "ack of GUEST_OFFLOADS")


def test(engine):
    with PacketRig(engine, backend=",promisc=on", vnet=True, ctrl=True, features=ALL & ~GUEST) as r:
        check_equal(r.driver.offered & GUEST, GUEST, "offered")
        segments(r, "nothing negotiated")
        cut_off(r)
        segments(r, "few buffers", 1600, 3)
        r.connect(features=ALL)
        whole(r, "all but USO")
        offloads(r, 0)
        segments(r, "none, by the control queue")
        offloads(r, GUEST)
        whole(r, "all but USO, by the control queue")
        r.connect(features=ALL & ~GUEST & ~bits(F_MRG_RXBUF))
        segments(r, "buffers that are not merged")
        r.connect(features=ALL & ~GUEST)
        segments(r, "buffers that are merged", 400, 20)
        segments(r, "large buffers", 70000, 8)
        r.alive()


run(lambda: each_engine(test))
