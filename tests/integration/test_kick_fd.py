# SPDX-License-Identifier: BSD-3-Clause
"""A kick descriptor that nobody can wait for is refused; one that can signal
but never does, or always does, costs no CPU time."""
import os
import select
import socket
import time

from rig import Rig, each_engine
from vhost_client import SET_VRING_KICK
from vltest import check, run, sanitizer


def cpu_share(daemon):
    before = daemon.cpu_seconds()
    time.sleep(0.3)
    return (daemon.cpu_seconds() - before) / 0.3


def test(engine):
    with Rig(engine) as r:
        for ring in range(4):
            for path in ("/dev/null", "/dev/zero", "/dev/full"):
                fd = os.open(path, os.O_RDWR)
                check(r.driver.client.vring_fd(SET_VRING_KICK, ring, fd), f"{path} was taken")
                os.close(fd)
        read_end, write_end = os.pipe()
        os.close(write_end)
        ours, theirs = socket.socketpair()
        theirs.close()
        epoll = select.epoll()
        for fd in (read_end, ours.fileno(), epoll.fileno()):
            for ring in range(4):
                check(not r.driver.client.vring_fd(SET_VRING_KICK, ring, fd), "was refused")
            r.driver.client.sync()
            share = cpu_share(r.daemon)
            check(sanitizer() or share < 0.05, f"{share:.0%} of a CPU for an idle device")
        os.close(read_end)
        ours.close()
        epoll.close()
        r.connect()
        r.alive()


run(lambda: each_engine(test))
