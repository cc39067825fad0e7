# SPDX-License-Identifier: BSD-3-Clause
"""The call descriptor may be absent, exchanged at any time, a socket instead
of an eventfd, full, or closed at the other end: the ring runs regardless."""
import os
import socket

from frames import frame
from rig import Rig, each_engine
from vhost_client import SET_VRING_CALL, Driver, F_EVENT_IDX, bits, eventfd
from vltest import check, check_equal, run


def test(engine):
    with Rig(engine, features=Driver.FEATURES & ~bits(F_EVENT_IDX)) as r:
        d, q = r.driver, r.driver.tx[0]

        def pass_frames(n):
            d.send(*[frame(i) for i in range(n)])
            q.wait(n)
        # None at all: a driver that polls.
        d.client.vring_fd(SET_VRING_CALL, 1, -1)
        d.client.sync()
        q.called()
        pass_frames(20)
        check_equal(q.called(0.05), 0, "calls on a descriptor that was taken away")

        # Exchanged under load.
        fds = [eventfd() for _ in range(4)]
        for i in range(200):
            d.send(*[frame(i) for i in range(5)])
            d.client.vring_fd(SET_VRING_CALL, 1, fds[i % 4] if i % 5 else -1)
            q.wait(5)
        d.client.vring_fd(SET_VRING_CALL, 1, q.call_fd)
        d.client.sync()
        q.called()
        pass_frames(1)
        check(q.called(1), "no call on the descriptor in place")
        for fd in fds:
            os.close(fd)
        r.fds_settle(r.busy_fds)

        # A socket, first full, then without a reader.
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        theirs.setblocking(False)
        d.client.vring_fd(SET_VRING_CALL, 1, theirs.fileno())
        try:
            while True:
                theirs.send(bytes(65536))
        except BlockingIOError:
            pass
        pass_frames(50)
        ours.close()
        pass_frames(50)
        theirs.close()

        # A pipe without a reader.
        a, b = os.pipe()
        os.close(a)
        d.client.vring_fd(SET_VRING_CALL, 1, b)
        os.close(b)
        pass_frames(50)
        # An eventfd that is full.
        q2 = eventfd()
        os.write(q2, (2**64 - 2).to_bytes(8, "little"))
        os.set_blocking(q2, True)
        d.client.vring_fd(SET_VRING_CALL, 1, q2)
        pass_frames(50)
        d.client.vring_fd(SET_VRING_CALL, 1, q.call_fd)
        d.client.sync()
        os.close(q2)
        r.host.flush(0)
        r.alive()


run(lambda: each_engine(test))
