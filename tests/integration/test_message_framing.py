# SPDX-License-Identifier: BSD-3-Clause
"""Messages arrive in pieces, with sizes that are too small, too large or
absurd, with unknown numbers and versions, or stop in the middle. The session
may end over it, the daemon does not, and the next front-end is served."""
import struct
import time

from rig import Rig
from vhost_client import GET_FEATURES, GET_QUEUE_NUM, HEADER, NEED_REPLY, REPLY, SET_FEATURES, \
    SET_MEM_TABLE, SET_OWNER, SET_VRING_KICK, SET_VRING_NUM, U64, VERSION, Client, Closed, \
    Memory, Virtqueue, UVA_BIAS, SET_VRING_ADDR, SET_VRING_CALL, SET_VRING_ENABLE
from vltest import check, check_equal, run


def served(r):
    c = Client(r.path)
    c.sync()
    c.close()


def in_pieces(r):
    """One byte at a time, payload too, and several messages in one write."""
    c = Client(r.path)
    for part in HEADER.pack(GET_FEATURES, VERSION, 0):
        c.raw(bytes([part]))
        time.sleep(0.005)
    features = U64.unpack(c.receive()[2])[0]
    c.start_session()
    for part in HEADER.pack(SET_FEATURES, VERSION, 8) + U64.pack(features):
        c.raw(bytes([part]))
        time.sleep(0.002)
    c.sync()
    c.raw(HEADER.pack(GET_QUEUE_NUM, VERSION, 0) * 50)
    for _ in range(50):
        check_equal(c.receive()[0], GET_QUEUE_NUM, "reply")
    # A slow one does not hold the worker threads or the next session.
    c.raw(HEADER.pack(SET_FEATURES, VERSION, 8)[:5])
    c.close()
    served(r)


def wrong_sizes(r):
    for request in (GET_FEATURES, SET_OWNER, SET_FEATURES, SET_MEM_TABLE, SET_VRING_NUM,
                    SET_VRING_KICK, 24, 25, 37, 99, 0, 0xffffffff):
        for size in (0, 1, 7, 9, 4095, 4096, 65536, 0x7fffffff, 0xffffffff):
            for flags in (VERSION, VERSION | NEED_REPLY, 0, 2, VERSION | REPLY, 0xffffffff):
                c = Client(r.path)
                try:
                    c.send(request, b"\x55" * min(size, 8192), flags=flags, size=size)
                except Closed:
                    pass
                if size >= 4096 or flags & 3 != VERSION:
                    check(c.ended(), f"request {request}, {size} bytes, flags {flags:#x}: "
                          "the session goes on")
                c.close()
        check(r.daemon.alive(), f"request {request} ended the daemon")
    served(r)


def unknown_requests(r):
    for request in (0, 99, 26, 33, 35, 1000, 0x80000001):
        c = Client(r.path)
        c.start_session()
        try:
            c.send(request, b"", flags=VERSION | NEED_REPLY)
            got, _, data = c.receive()
            check_equal(got, request, "reply to")
            check(U64.unpack(data)[0] != 0, f"request {request} was acknowledged as done")
            c.sync()
        except Closed:
            pass
        c.close()
    served(r)


def absurd_tables(r):
    """Counts inside the payload that contradict its size."""
    mem = Memory(1 << 20)
    for n, regions, fds in ((9, 8, 8), (0xffffffff, 1, 1), (0, 0, 0), (8, 1, 8), (2, 2, 1),
                            (1, 1, 2), (1, 1, 0)):
        c = Client(r.path)
        c.start_session()
        payload = struct.pack("<II", n, 0) + mem.regions[0].wire() * regions
        try:
            answer = c.ack(SET_MEM_TABLE, payload, [mem.regions[0].fd] * fds)
            check(answer != 0, f"table of {n} with {regions} regions, {fds} fds was accepted")
        except Closed:
            pass
        c.close()
    mem.close()
    served(r)


def cut_short(r):
    """The front-end leaves after each byte of a whole set-up."""
    mem = Memory(1 << 20)
    q = Virtqueue(mem, 64)
    feature = U64.pack(1 << 32 | 1 << 30)
    setup = [(SET_OWNER, b"", []), (SET_FEATURES, feature, []),
             (SET_MEM_TABLE, struct.pack("<II", 1, 0) + mem.regions[0].wire(),
              [mem.regions[0].fd]),
             (SET_VRING_NUM, struct.pack("<II", 1, 64), []),
             (SET_VRING_ADDR, struct.pack("<IIQQQQ", 1, 0, q.desc + UVA_BIAS, q.used + UVA_BIAS,
                                          q.avail + UVA_BIAS, 0), []),
             (SET_VRING_CALL, U64.pack(1), [q.call_fd]),
             (SET_VRING_KICK, U64.pack(1), [q.kick_fd]),
             (SET_VRING_ENABLE, struct.pack("<II", 1, 1), [])]
    for last, (request, payload, fds) in enumerate(setup):
        data = HEADER.pack(request, VERSION, len(payload)) + payload
        for cut in range(len(data) + 1):
            c = Client(r.path)
            for before in setup[:last]:
                c.send(*before)
            if cut:
                c.raw(data[:cut], fds)
            c.close()
    q.close()
    mem.close()
    served(r)


def main():
    with Rig(driver=False) as r:
        base, lines = r.daemon.fds(), r.log_lines()
        for part in (in_pieces, wrong_sizes, unknown_requests, absurd_tables, cut_short):
            part(r)
            r.fds_settle(base)
            check(r.daemon.alive(), f"{part.__name__} ended the daemon")
        check(r.log_lines() - lines < 6000, "too many log lines")
        r.connect()
        r.alive()


run(main)
