# SPDX-License-Identifier: BSD-3-Clause
"""Commands on the control queue, complete and not: the acknowledgement is one
byte, also when its buffer is larger; a command without its data is an error,
not the end; one without room for the acknowledgement just comes back."""
import struct

from rig import Rig, each_engine
from vhost_client import INDIRECT, WRITE, Driver, F_CTRL_GUEST_OFFLOADS, F_CTRL_MAC_ADDR, \
    F_CTRL_RX, F_CTRL_RX_EXTRA, F_GUEST_ANNOUNCE, bits
from vltest import check, check_equal, run

OK, ERR = 0, 1
MAC = bytes.fromhex("525400abcdef")
GOOD = [
    ("promiscuous", 0, 0, b"\1"), ("all multicast", 0, 1, b"\1"), ("all unicast", 0, 2, b"\1"),
    ("no multicast", 0, 3, b"\0"), ("no unicast", 0, 4, b"\0"), ("no broadcast", 0, 5, b"\0"),
    ("MAC table", 1, 0, struct.pack("<I", 1) + MAC + struct.pack("<I", 0)),
    ("MAC address", 1, 1, MAC),
    ("announce ack", 3, 0, b""),
    ("queue pairs", 4, 0, struct.pack("<H", 2)),
    ("offloads", 5, 0, struct.pack("<Q", 0)),
]
BAD = [("class 99", 99, 0, b"\1"), ("command 99", 0, 99, b"\1"), ("MQ 0", 4, 0, b"\0\0"),
       ("MQ 3 of 2", 4, 0, struct.pack("<H", 3)), ("MQ 65535", 4, 0, b"\xff\xff"),
       ("offloads not negotiated", 5, 0, b"\xff" * 8),
       ("MAC table cut", 1, 0, struct.pack("<I", 100) + MAC),
       ("MAC table absurd", 1, 0, struct.pack("<I", 0xffffffff) + MAC + bytes(4)),
       ("MAC address cut", 1, 1, MAC[:3])]


def test(engine):
    take = Driver.FEATURES | bits(F_CTRL_GUEST_OFFLOADS, F_CTRL_MAC_ADDR, F_CTRL_RX,
                                  F_CTRL_RX_EXTRA, F_GUEST_ANNOUNCE)
    with Rig(engine, ctrl=True, features=take) as r:
        d, q, mem = r.driver, r.driver.ctrl, r.driver.mem
        check(d.features & 1 << 17, "no control queue offered")

        def command(segs):
            """Hands a chain over; its used length."""
            q.add(segs)
            return q.wait(1)[0][1]

        def buf(data):
            return mem.buffer(len(data), data=data), len(data), 0

        for name, class_, cmd, data in GOOD:
            if class_ == 0 and cmd > 1 and not d.features & bits(F_CTRL_RX_EXTRA):
                continue
            body = bytes([class_, cmd]) + data
            # Whole, status of 1 and of 4096 bytes.
            for size in (1, 4096):
                status = mem.buffer(size, 0xff)
                check_equal(command([buf(body), (status, size, WRITE)]), 1, f"{name}: length")
                check_equal(mem.read(status, 1)[0], OK, f"{name}: ack")
                check_equal(set(mem.read(status, size)[1:]) - {0xff}, set(),
                            f"{name}: written past the ack")
            # Byte by byte, also in a table.
            for indirect in (False, True):
                status = mem.buffer(1, 0xff)
                segs = [buf(bytes([b])) for b in body] + [(status, 1, WRITE)]
                if indirect:
                    segs = [(q.table(segs), 16 * len(segs), INDIRECT)]
                check_equal(command(segs), 1, f"{name}, split: length")
                check_equal(mem.read(status, 1)[0], OK, f"{name}, split: ack")
            # Status behind an empty one, and split.
            status = mem.buffer(2, 0xff)
            check_equal(command([buf(body), (status, 0, WRITE), (status, 1, WRITE),
                                 (status + 1, 1, WRITE)]), 1, f"{name}: length")
            check_equal(mem.read(status, 2), b"\0\xff", f"{name}: ack in the first byte")
            # No status, one of length 0.
            check_equal(command([buf(body)]), 0, f"{name}, no status: length")
            check_equal(command([buf(body), (status, 0, WRITE)]), 0,
                        f"{name}, empty status: length")
            # Data missing.
            for cut in range(len(body)):
                status = mem.buffer(1, 0xff)
                segs = ([buf(body[:cut])] if cut else []) + [(status, 1, WRITE)]
                check_equal(command(segs), 1, f"{name}, {cut} bytes: length")
                check_equal(mem.read(status, 1)[0], ERR, f"{name}, {cut} bytes: ack")
        for name, class_, cmd, data in BAD:
            status = mem.buffer(1, 0xff)
            check_equal(command([buf(bytes([class_, cmd]) + data), (status, 1, WRITE)]), 1,
                        f"{name}: length")
            check_equal(mem.read(status, 1)[0], ERR, f"{name}: ack")
        # Malformed chains.
        end = mem.regions[0].gpa + mem.regions[0].size
        for segs in ([(end, 3, 0), (mem.buffer(1), 1, WRITE)],
                     [(mem.buffer(1), 1, WRITE), buf(b"xyz")],
                     [buf(b"\0\0\1"), (end - 1, 2, WRITE)], [(0, 0, 0)]):
            check_equal(command(segs), 0, "length of a malformed command")
        # A very long one: bounded, an error or ignored, not the end.
        status = mem.buffer(1, 0xff)
        long = mem.alloc(1 << 20)
        mem.write(long, b"\1\0" + struct.pack("<I", 170000))
        check_equal(command([(long, 1 << 20, 0), (status, 1, WRITE)]), 1, "long: length")
        mem.check_canaries()
        # All pairs still on, offloads as negotiated: both pairs pass traffic.
        status = mem.buffer(1, 0xff)
        command([buf(b"\4\0\2\0"), (status, 1, WRITE)])
        check_equal(mem.read(status, 1)[0], OK, "MQ 2")
        r.alive()


run(lambda: each_engine(test))
