# SPDX-License-Identifier: BSD-3-Clause
"""Every message with no, one, eight and as many descriptors as can be sent:
whatever the answer, none of them stays open when the session is over, and a
message that may come without one (NOFD) is not refused."""
import os
import struct

from rig import Rig
from vhost_client import NOFD, SET_VRING_CALL, SET_VRING_ERR, SET_VRING_KICK, U64, Client, \
    Closed, Memory
from vltest import check, check_equal, run

REQUESTS = list(range(1, 42)) + [99]
COUNTS = (0, 1, 8, 253)


def main():
    with Rig(driver=False) as r:
        mem = Memory(1 << 20)
        region = mem.regions[0]
        null = os.open("/dev/null", os.O_RDWR)
        payloads = [b"", U64.pack(0), U64.pack(1 | NOFD), struct.pack("<II", 1, 0),
                    struct.pack("<II", 1, 0) + region.wire(),
                    struct.pack("<II", 8, 0) + region.wire() * 8,
                    bytes(8) + region.wire(), struct.pack("<IIQQQQ", 1, 0, 0, 0, 0, 0)]
        base = r.daemon.fds()
        lines = r.log_lines()
        for request in REQUESTS:
            for count in COUNTS:
                for payload in payloads:
                    c = Client(r.path)
                    c.start_session(0xffff)
                    fds = [region.fd] * count if count != 253 else [null] * count
                    try:
                        c.send(request, payload, fds, 9)
                        c.silent(0)
                    except Closed:
                        pass
                    c.close()
            check(r.daemon.alive(), f"request {request} ended the daemon")
            c = Client(r.path)
            c.sync()
            c.close()
            r.fds_settle(base)

        # On one session, for as long as it lasts.
        c = Client(r.path)
        c.start_session()
        event = os.eventfd(0)
        for _ in range(300):
            for request in (SET_VRING_CALL, SET_VRING_KICK, SET_VRING_ERR):
                check_equal(c.ack(request, U64.pack(1), [event]), 0, "one descriptor")
                check_equal(c.ack(request, U64.pack(1 | NOFD)), 0, "NOFD")
            # A kick has to be waited for, which /dev/null does not offer.
            check(c.ack(SET_VRING_KICK, U64.pack(1), [null]) != 0, "a kick without events")
        check(r.daemon.fds() <= base + 2, "descriptors pile up within a session")
        c.close()
        r.fds_settle(base)
        os.close(event)
        os.close(null)
        mem.close()
        check(r.log_lines() - lines < 6000, "too many log lines")
        r.connect()
        r.alive()


run(main)
