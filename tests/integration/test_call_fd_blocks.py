# SPDX-License-Identifier: BSD-3-Clause
"""A call descriptor that is full and that the front-end made blocking again
(it shares the open file) holds up nobody: messages are answered, the session
ends, the next front-end is served and SIGTERM ends the daemon."""
import os
import time

from frames import frame
from rig import Rig, each_engine
from vhost_client import SET_VRING_CALL, Driver, F_EVENT_IDX, WRITE, bits, eventfd
from vltest import check, run


def block(driver, ring):
    fd = eventfd()
    os.write(fd, (2**64 - 2).to_bytes(8, "little"))
    driver.client.vring_fd(SET_VRING_CALL, ring, fd)
    driver.client.sync()
    os.set_blocking(fd, True)
    return fd


def test(engine):
    with Rig(engine, features=Driver.FEATURES & ~bits(F_EVENT_IDX)) as r:
        for _ in range(2):
            d = r.driver
            fds = [block(d, ring) for ring in range(4)]
            d.send(frame(1), frame(2))
            d.send(frame(3), frame(4), pair=1)
            time.sleep(0.1)
            begin = time.monotonic()
            d.client.get_vring_base(1)
            check(time.monotonic() - begin < 2, "GET_VRING_BASE takes too long")
            d = r.connect()
            r.alive()
            for fd in fds:
                os.close(fd)
        # The control queue, whose commands another thread executes.
        d = r.connect(ctrl=True)
        fd = block(d, 4)
        body, status = d.mem.buffer(3, data=b"\0\0\1"), d.mem.buffer(1, 0xff)
        for _ in range(3):
            d.ctrl.add([(body, 3, 0), (status, 1, WRITE)])
            d.ctrl.wait(1)
            d.client.sync()
        r.disconnect()
        os.close(fd)
        # Ends while a worker is held.
        d = r.connect()
        fd = block(d, 1)
        d.send(frame(1))
        time.sleep(0.1)
        r.daemon.stop()
        os.close(fd)


run(lambda: each_engine(test))
