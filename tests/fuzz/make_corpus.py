#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the seeds of all targets but vhost into corpus/TARGET/.

Run after a change of an input format. Seeds have speaking names; what a fuzzer
has found is added by hand, under the hash that it gives."""

import pathlib
import struct

HERE = pathlib.Path(__file__).parent / "corpus"
NEXT, WRITE, INDIRECT = 1, 2, 4
RX, TX, CTRL = 0, 1, 2
DATA = 0xC000
VERSION_1, MRG, CSUM, TSO4, GUEST_CSUM, GUEST_TSO4 = 1 << 32, 1 << 15, 1, 1 << 11, 2, 1 << 7


def memory(at, data):
    return b"".join(bytes([0]) + struct.pack("<HBB", at + i & 0xFFFF, at + i >> 16, len(data[i:i + 255]))
                    + data[i:i + 255] for i in range(0, len(data), 255))


def desc(ring, index, addr, length, flags=0, following=0):
    return struct.pack("<BBHIIBH", 1, ring, index, addr, length, flags, following)


def avail(ring, head):
    return struct.pack("<BBH", 2, ring, head)


def table(at, addr, length, flags=0, following=0):
    return struct.pack("<BHIIBH", 3, at, addr, length, flags, following)


def rings(size_log=5, start=0):
    return struct.pack("<BH", size_log - 1, start) * 3


def ring_seeds():
    """steps: 4 pop(how) 5 push(which, len) 6 unpop(n) 7 publish 8, 9 kicks 10 available"""
    head = rings() + b"\0\0"
    pop, push, publish = b"\4\1", b"\5\0" + struct.pack("<I", 0), b"\7"
    one = desc(0, 0, DATA, 64) + avail(0, 0)
    two = desc(0, 0, DATA, 12, NEXT, 5) + desc(0, 5, DATA + 64, 1500, WRITE) + avail(0, 0)
    ind = desc(0, 3, DATA, 32, INDIRECT) + table(DATA, DATA + 99, 12, NEXT, 1)
    ind += table(DATA + 16, DATA + 200, 999, WRITE) + avail(0, 3)
    yield "direct", head + one + pop + push + publish
    yield "chained", head + two + pop + push + publish
    yield "indirect", head + ind + pop + push + publish
    yield "no_features", rings() + b"\1\1" + one + ind + pop + pop + push + push + publish
    yield "unpop", head + one + two + ind + pop * 3 + b"\6\2" + pop + pop + push * 3 + publish
    yield "little_room", head + two + b"\4\2" + b"\4\4" + pop + push
    yield "self_loop", head + desc(0, 0, DATA, 0, NEXT, 0) + avail(0, 0) + pop + push
    yield "nested", head + desc(0, 0, DATA, 32, INDIRECT) + table(DATA, DATA, 32, INDIRECT) + avail(0, 0) + pop
    yield "across_regions", head + desc(0, 0, 0x1FFF0, 64) + avail(0, 0) + pop + push
    yield "unmapped", head + desc(0, 0, 0xFFFFFFF0, 64) + avail(0, 0) + pop + push
    yield "bad_head", head + avail(0, 999) + pop + one + pop
    yield "avail_jump", head + memory(0x2002, b"\0\x80") + pop + one + pop
    yield "wrap", rings(2, 65534) + b"\0\0" + (one + b"\x08" + pop + push + publish + b"\x09") * 6
    yield "smallest", rings(1) + b"\0\0" + one + pop + push + publish + one + pop + push + publish


def header_seeds():
    def header(flags, gso, hdr_len, gso_size, start, offset, frame, features):
        return struct.pack("<BBHHHHIQ", flags, gso, hdr_len, gso_size, start, offset, frame, features)
    full = CSUM | TSO4 | 1 << 12 | 1 << 13 | 1 << 56
    yield "plain", header(0, 0, 0, 0, 0, 0, 60, 0)
    yield "csum", header(1, 0, 0, 0, 34, 16, 60, full)
    yield "csum_past_end", header(1, 0, 0, 0, 65535, 65535, 60, full)
    yield "tso4", header(1, 1, 54, 1448, 34, 16, 9000, full)
    yield "tso6_ecn", header(1, 0x84, 74, 1428, 54, 16, 9000, full)
    yield "uso", header(1, 5, 42, 1400, 34, 6, 9000, full)
    yield "all_ones", b"\xff" * 22
    yield "empty", b""


def device_seeds():
    """steps: 4 frames arrive(how many, len) 5 host answers(which) 6 restart(ring) 8 run"""
    def head(mode, features, size_log=5, start=0):
        return struct.pack("<BQ", mode, features) + rings(size_log, start)
    run = b"\x08"
    send = desc(TX, 0, DATA, 12, NEXT, 1) + desc(TX, 1, DATA + 64, 60) + avail(TX, 0)
    small = desc(TX, 2, DATA, 5) + avail(TX, 2)
    large = desc(TX, 3, DATA, 12, NEXT, 4) + desc(TX, 4, DATA + 64, 9000) + avail(TX, 3)
    tso = memory(0xF000, struct.pack("<BBHHHH", 1, 1, 54, 1448, 34, 16))
    tso += desc(TX, 5, 0xF000, 0x8000) + avail(TX, 5)
    post = b"".join(desc(RX, i, 0x10000 + i * 2048, 1600, WRITE) + avail(RX, i) for i in range(8))
    bits = b"".join(desc(RX, i, 0x10000 + i * 128, 100, WRITE) + avail(RX, i) for i in range(30))
    # One large buffer, then many small ones (all the same); frames that come last are read first.
    mixed = desc(RX, 30, 0x10000, 0x1FFFF, WRITE) + avail(RX, 30)
    mixed += desc(RX, 1, 0x10000, 100, WRITE) + avail(RX, 1) * 200

    def arrive(length, count=1):
        return struct.pack("<BBI", 4, count, length)
    command = memory(DATA, bytes([1, 1, 2, 0, 0, 0, 0, 9]))
    command += desc(CTRL, 0, DATA, 8, NEXT, 1) + desc(CTRL, 1, DATA + 64, 1, WRITE) + avail(CTRL, 0)
    every = 0x01FFFFFFFFFFFFFF
    for mode in range(4):
        yield f"send_{mode}", head(mode, VERSION_1) + send + run + small + large + run
        yield f"tso_{mode}", head(mode, VERSION_1 | CSUM | TSO4) + tso + run
        yield f"legacy_{mode}", head(mode, 0) + send + post + arrive(70) + run
        yield f"receive_{mode}", head(mode, VERSION_1) + post + arrive(72, 5) + run + arrive(9000) + run
        yield f"merge_{mode}", head(mode, VERSION_1 | MRG) + bits + arrive(1526, 2) + run
        yield f"large_{mode}", head(mode, VERSION_1 | MRG | GUEST_CSUM | GUEST_TSO4) + post + arrive(12000) + run
        yield f"large_then_bits_{mode}", (head(mode, VERSION_1 | MRG, 8) + mixed + arrive(900, 65)
                                          + arrive(60, 75) + run)
        yield f"wait_{mode}", head(mode, VERSION_1 | MRG) + bits[:60] + arrive(1526) + run + bits[60:] + run
        yield f"full_{mode}", head(mode, VERSION_1) + send + b"\5\1" + run + send + run
        yield f"down_{mode}", head(mode, VERSION_1) + send + b"\5\2" + run + send + run
        yield f"restart_{mode}", head(mode, every, 3, 65533) + (send + post + arrive(60) + run + b"\6\0\6\1\6\2") * 3
        yield f"control_{mode}", head(mode, every) + command + run + send + run


def gso_seeds():
    """virtio header, frame length, headers; no payload is needed"""
    def frame(gso, payload, tags=b"", ipv6=False, udp=False, options=b"", flags=0x18, size=1400):
        proto = 17 if udp else 6
        transport = bytes(4) + struct.pack(">HH", payload + 8, 0) if udp else \
            bytes(12) + bytes([(20 + len(options)) << 2, flags]) + bytes(6) + options
        total = len(transport) + payload
        ip = struct.pack(">IHBB", 6 << 28, total, proto, 64) + bytes(32) if ipv6 else \
            struct.pack(">BBHHHBBH", 0x45, 0, total + 20, 1, 0x4000, 64, proto, 0) + bytes(8)
        l3 = bytes(12) + tags + (b"\x86\xdd" if ipv6 else b"\x08\x00")
        head = l3 + ip + transport
        return struct.pack("<BBHHHHI", 1, gso, 5000, size, len(l3 + ip), 6 if udp else 16,
                           len(head) + payload) + head
    vlan, qinq = b"\x81\x00\x00\x05", b"\x88\xa8\x00\x06"
    yield "tcp4", frame(1, 64000)
    yield "tcp4_ecn", frame(0x81, 9000, flags=0xd9, options=bytes(12))
    yield "tcp6_longest", frame(4, 9000, qinq + vlan, ipv6=True, options=bytes(40))
    yield "udp4_tag", frame(5, 9000, vlan, udp=True)
    yield "udp6", frame(5, 9000, ipv6=True, udp=True)
    yield "tiny_segments", frame(1, 65000, size=1)
    yield "syn", frame(1, 9000, flags=2)
    yield "cut_off", frame(1, 9000)[:40]


def vxlan_seeds():
    """what the driver takes, gso_size, MTU, datagram"""
    def folded(data):
        total = sum(struct.unpack(f">{len(data) // 2}H", data))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        return total

    def datagram(payload, ipv6=False, tcp=False, vni=7, tags=b"", extension=b"", options=b"", flags=0x10):
        proto = 6 if tcp else 17
        length = payload + (20 if tcp else 8)
        addrs = bytes(15) + b"\1" + bytes(15) + b"\2" if ipv6 else bytes([10, 0, 0, 1, 10, 0, 0, 2])
        partial = folded(addrs + struct.pack(">II", length, proto))
        transport = bytes(12) + bytes([0x50, flags, 0, 0]) + struct.pack(">HH", partial, 0) if tcp else \
            bytes(4) + struct.pack(">HH", length, partial)
        if ipv6:
            ip = struct.pack(">IHBB", 6 << 28, length + len(extension), 60 if extension else proto, 64) + addrs
            ip += bytes([proto]) + extension[1:] if extension else b""
        else:
            ip = struct.pack(">BBHHHBBH", 0x45 + len(options) // 4, 0, 20 + len(options) + length, 1, 0x4000, 64,
                             proto, 0) + addrs + options
        ether = b"\2" + bytes(5) + b"\2" + bytes(4) + b"\1" + tags + (b"\x86\xdd" if ipv6 else b"\x08\x00")
        return struct.pack(">II", 8 << 24, vni << 8) + ether + ip + transport + bytes(payload)

    def seed(bits, gso_size, data, mtu=1450):
        return struct.pack("<BHH", bits, gso_size, mtu) + data
    nothing, everything = 0, 63
    for bits in nothing, 1, everything:
        yield f"plain_{bits}", seed(bits, 0, datagram(50))
        yield f"super_udp4_{bits}", seed(bits, 100, datagram(450))
        yield f"super_udp6_{bits}", seed(bits, 100, datagram(450, ipv6=True, tags=b"\x81\x00\x00\x05"))
        yield f"super_tcp4_{bits}", seed(bits, 0, datagram(1500, tcp=True, flags=0x90), mtu=600)
        yield f"super_options_{bits}", seed(bits, 100, datagram(450, options=b"\1" * 8))
        yield f"super_extension_{bits}", seed(bits, 100, datagram(450, ipv6=True, extension=bytes(8)))
        yield f"train_{bits}", seed(bits, len(datagram(60)), datagram(60) * 4 + datagram(20))
    yield "train_other_vni", seed(nothing, len(datagram(60)), datagram(60) + datagram(60, vni=8) + datagram(60))
    yield "train_of_crumbs", seed(nothing, 1, datagram(60))
    yield "header_only", seed(nothing, 0, datagram(0)[:8])
    yield "cut_off", seed(everything, 0, datagram(0, ipv6=True)[:50])
    yield "lies_about_length", seed(nothing, 0, datagram(900)[:400])


SEEDS = {"ring": ring_seeds, "net_hdr": header_seeds, "gso": gso_seeds, "device": device_seeds,
         "vxlan": vxlan_seeds}


def main():
    for target, seeds in SEEDS.items():
        (HERE / target).mkdir(parents=True, exist_ok=True)
        for name, data in seeds():
            (HERE / target / name).write_bytes(data)


main()
