# SPDX-License-Identifier: BSD-3-Clause
"""Tap queues opened by someone else, blocking or not, also from another
network namespace: an idle device sleeps, and the first frame after a second
of silence passes at once, both ways. Two for each queue pair are lanes, of
which the second ones receive nothing."""
import fcntl
import os
import struct
import time

from rig import Rig, each_engine
from vltest import Netns, Virtlane, check, check_equal, run, sanitizer
from vhost_client import Driver, HostSide

TUNSETIFF = 0x400454ca
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR, IFF_MULTI_QUEUE = 2, 0x1000, 0x4000, 0x100


def open_queues(ns, name, count, blocking):
    """Opens @count queues of a tap in @ns."""
    fds = []
    with ns.entered():
        for _ in range(count):
            fd = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC |
                         (0 if blocking else os.O_NONBLOCK))
            fcntl.ioctl(fd, TUNSETIFF, struct.pack(
                "16sH22x", name.encode(), IFF_TAP | IFF_NO_PI | IFF_VNET_HDR | IFF_MULTI_QUEUE))
            fds.append(fd)
    return fds


class FdRig(Rig):
    """The tap is in another namespace than the daemon."""

    def __init__(self, engine, blocking, lanes):
        super().__init__(engine)
        self.blocking, self.lanes = blocking, lanes

    def __enter__(self):
        self.ns = self.stack.enter_context(Netns())
        other = self.stack.enter_context(Netns("d"))
        fds = open_queues(self.ns, "tap0", 2 * self.lanes, self.blocking)
        try:
            self.ns.configure("tap0", None)
            self.daemon = self.stack.enter_context(Virtlane(
                backend="tap,fds=" + ":".join(map(str, fds)), pairs=2, engine=self.engine,
                netns=other, pass_fds=fds))
        finally:
            for fd in fds:
                os.close(fd)
        self.path = self.daemon.socket
        self.host = self.stack.enter_context(HostSide(self.ns, "tap0"))
        self.stack.callback(self.disconnect)
        self.connect()
        return self


def test(engine):
    for blocking, lanes in (True, 1), (False, 1), (True, 2):
        with FdRig(engine, blocking, lanes) as r:
            check_equal([len(pair["lanes"]) for pair in r.daemon.stat()["queue_pairs"]],
                        [lanes] * 2, "lanes")
            assert isinstance(r.driver, Driver)
            r.alive()
            r.driver.post(count=20)
            r.driver.post(count=20, pair=1)
            time.sleep(0.1)
            cpu, wakes = r.daemon.cpu_seconds(), r.daemon.wakeups()
            time.sleep(1)
            wakes = r.daemon.wakeups() - wakes
            if not sanitizer():
                check(r.daemon.cpu_seconds() - cpu <= 0.01, "CPU used while idle")
                check(wakes <= 4, f"{wakes} context switches in an idle second")
            start = time.monotonic()
            r.rx_ok(0)
            r.tx_ok(1)
            check(time.monotonic() - start < 1, "slow after a second of silence")
            r.alive()


run(lambda: each_engine(test))
