# SPDX-License-Identifier: BSD-3-Clause
"""The configuration space can be read in any part that exists; other reads
and every write are refused, and nothing else happens."""
import struct

from rig import Rig
from vhost_client import GET_CONFIG, NEED_REPLY, SET_CONFIG, VERSION, Closed
from vltest import check, check_equal, run

MAC = "52:54:00:12:34:56"


def read(c, offset, size, room=None):
    """The bytes, None when refused (an answer without payload, or the end)."""
    room = size if room is None else room
    try:
        data = c.call(GET_CONFIG, struct.pack("<III", offset, size, 0) + bytes(room))
    except Closed:
        return None
    if not data:
        return None
    got = struct.unpack_from("<III", data)
    check_equal(got[:2], (offset, size), "offset and size of the answer")
    check_equal(len(data), 12 + size, "size of the answer")
    return data[12:]


def main():
    with Rig(options=[f"--mac={MAC}"]) as r:
        c = r.driver.client
        whole = read(c, 0, 12)
        check(whole is not None, "the config space cannot be read")
        check_equal(whole[:6].hex(":"), MAC, "MAC")
        check_equal(struct.unpack_from("<H", whole, 8)[0], 2, "max_virtqueue_pairs")
        for offset in range(12):
            for size in range(1, 13 - offset):
                check_equal(read(c, offset, size), whole[offset:offset + size],
                            f"{size} bytes at {offset}")
        for offset, size, room in ((0xffffffff, 1, None), (0xffffffff, 255, None),
                                   (0, 0, None), (0, 256, None), (255, 2, None), (1000, 1, None),
                                   (0, 0xffffffff, 4), (0xfffffff0, 0x20, None),
                                   (0, 12, 4), (0, 4, 12)):
            got = read(r.driver.client, offset, size, room)
            if size == 0 or room is not None and offset + size <= 12:
                # Zero bytes, a payload of another size: either is a fair reading.
                check_equal(got or b"", whole[offset:offset + size] if got else b"", "bytes")
            elif size == 256 and got is not None:
                check_equal(got[:12], whole, "a space padded with zeroes")
            else:
                check_equal(got, None, f"read of {size} bytes at {offset} with room for {room}")
            if r.driver.client.ended(0.06):
                r.connect()
            r.driver.client.sync()
        for offset in (0, 6, 200):
            c = r.driver.client
            try:
                c.send(SET_CONFIG, struct.pack("<III", offset, 2, 0) + b"\xde\xad",
                       flags=VERSION | NEED_REPLY)
                check(struct.unpack("<Q", c.receive()[2])[0] != 0, "SET_CONFIG was done")
            except Closed:
                r.connect()
        check_equal(read(r.connect().client, 0, 12), whole, "the config space afterwards")
        r.alive()


run(main)
