# SPDX-License-Identifier: BSD-3-Clause
"""Ethernet frames for tests, built and taken apart by hand."""
import struct

ETH_P_TEST = 0x88b5
GUEST_MAC = bytes.fromhex("525400000001")
HOST_MAC = bytes.fromhex("525400000002")
BROADCAST = b"\xff" * 6

VNET = struct.Struct("<BBHHHH")  # flags, gso, hdr_len, gso_size, start, off
NEEDS_CSUM, DATA_VALID = 1, 2
GSO_NONE, GSO_TCPV4, GSO_UDP, GSO_TCPV6, GSO_UDP_L4, GSO_ECN = \
    0, 1, 3, 4, 5, 0x80


def eth(payload=b"", dst=BROADCAST, src=GUEST_MAC, proto=ETH_P_TEST):
    return dst + src + struct.pack(">H", proto) + payload


def frame(seq, length=60):
    """A frame of @length bytes that names itself: sequence number, then a
    pattern that depends on it. Not a broadcast: a bridge would send a copy
    on, and a copy is not charged to the tap's send buffer."""
    body = struct.pack(">I", seq & 0xffffffff)
    fill = max(length - 14 - len(body), 0)
    unit = bytes((seq + i) & 0xff for i in range(min(fill, 251)))
    return eth((body + (unit * (fill // 251 + 1))[:fill])[:length - 14], dst=HOST_MAC)


def seq_of(data):
    """The sequence number of frame(), -1 for another frame."""
    if len(data) < 18 or data[12:14] != struct.pack(">H", ETH_P_TEST):
        return -1
    return struct.unpack_from(">I", data, 14)[0]


def csum(data, start=0):
    """The Internet checksum, not complemented."""
    if len(data) % 2:
        data += b"\0"
    total = start + sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


def ipv4(payload, proto, src="10.0.0.1", dst="10.0.0.2"):
    def addr(a):
        return bytes(int(x) for x in a.split("."))
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), 1, 0x4000,
                       64, proto, 0) + addr(src) + addr(dst)
    return head[:10] + struct.pack(">H", csum(head) ^ 0xffff) + head[12:] + \
        payload


def _pseudo(src, dst, proto, length):
    return bytes(int(x) for a in (src, dst) for x in a.split(".")) + \
        struct.pack(">HH", proto, length)


def udp4(payload, sport=1000, dport=2000, src="10.0.0.1", dst="10.0.0.2",
         partial=False, **mac):
    """A UDP/IPv4 frame; @partial leaves the pseudo-header sum (as with
    NEEDS_CSUM, csum_start 34, csum_offset 6)."""
    head = struct.pack(">HHHH", sport, dport, 8 + len(payload), 0)
    total = csum(_pseudo(src, dst, 17, 8 + len(payload)))
    value = total if partial else csum(head + payload, total) ^ 0xffff
    head = head[:6] + struct.pack(">H", value)
    return eth(ipv4(head + payload, 17, src, dst), proto=0x0800, **mac)


def tcp4(payload, sport=1000, dport=2000, src="10.0.0.1", dst="10.0.0.2",
         seq=0, partial=False, **mac):
    """A TCP/IPv4 frame (NEEDS_CSUM: csum_start 34, csum_offset 16)."""
    head = struct.pack(">HHIIBBHHH", sport, dport, seq, 0, 0x50, 0x10, 8192,
                       0, 0)
    total = csum(_pseudo(src, dst, 6, 20 + len(payload)))
    value = total if partial else csum(head + payload, total) ^ 0xffff
    head = head[:16] + struct.pack(">H", value) + head[18:]
    return eth(ipv4(head + payload, 6, src, dst), proto=0x0800, **mac)


def l4_csum_ok(data):
    """Whether the UDP or TCP checksum of an IPv4 frame is right."""
    total = struct.unpack_from(">H", data, 16)[0]
    l4 = data[34:14 + total]
    pseudo = data[26:34] + struct.pack(">HH", data[23], len(l4))
    return csum(pseudo + l4) == 0xffff


def vnet(flags=0, gso=GSO_NONE, hdr_len=0, gso_size=0, start=0, offset=0,
         num_buffers=None):
    """A virtio-net header: 10 bytes, or 12 with @num_buffers."""
    head = VNET.pack(flags, gso, hdr_len, gso_size, start, offset)
    return head if num_buffers is None else \
        head + struct.pack("<H", num_buffers)
