# SPDX-License-Identifier: BSD-3-Clause
"""A daemon on a tap in a namespace, a scripted front-end, and the host side."""
import contextlib
import os
import time

from frames import frame, seq_of, udp4
from vhost_client import Driver, HostSide
import vltest
from vltest import Netns, Virtlane, check, check_equal, need_tun, wait_for


def engines():
    """The I/O engines to test; $VIRTLANE_ENGINE picks one."""
    one = os.environ.get("VIRTLANE_ENGINE")
    return (one,) if one else vltest.engines()


def each_engine(test):
    """Calls test(engine) for every engine."""
    for engine in engines():
        print(f"engine {engine}", flush=True)
        test(engine)


def wait_frame(host, match, limit=50000):
    """The first frame on the host side for which match(frame); None: none."""
    for _ in range(limit):
        got = host.get(3)
        if got is None or match(got):
            return got
    return None


class Rig:
    """Context manager. Attributes: ns, daemon, host, driver.

    driver=False starts none; then connect() makes one (again). Other keyword
    arguments are the Driver's."""

    def __init__(self, engine=None, pairs=2, backend="", driver=True, vnet=False, tap=True,
                 options=(), mtu=None, **driver_args):
        need_tun()
        self.engine, self.pairs, self.options = engine, pairs, options
        self.backend = "tap,name=tap0" + backend
        self.tap, self.mtu, self.vnet = tap, mtu, vnet
        self.want_driver = driver
        self.driver_args = driver_args
        self.driver = None
        self.sequence = 0x1000000
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.ns = stack.enter_context(Netns())
            if self.tap:
                self.ns.add_tap("tap0", None, queues=self.pairs, mtu=self.mtu)
            self.daemon = stack.enter_context(Virtlane(
                *self.options, backend=self.backend, pairs=self.pairs, engine=self.engine,
                netns=self.ns))
            self.path = self.daemon.socket
            self.host = stack.enter_context(HostSide(self.ns, "tap0", vnet=self.vnet))
            self.idle_fds = self.daemon.fds()
            stack.callback(self.disconnect)
            if self.want_driver:
                self.connect()
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *exc):
        self.stack.__exit__(*exc)

    def connect(self, **args):
        """A new driver, after the old one has left."""
        self.disconnect()
        self.driver = Driver(self.path, **{"pairs": self.pairs, "max_pairs": self.pairs,
                                           **self.driver_args, **args})
        self.busy_fds = self.daemon.fds()
        return self.driver

    def disconnect(self):
        if self.driver:
            self.driver.close()
            self.driver = None

    def fds_settle(self, want):
        """Waits until the daemon has exactly so many descriptors open."""
        wait_for(lambda: self.daemon.fds() == want, 3,
                 f"{want} open descriptors in the daemon (has {self.daemon.fds()})")

    def queue(self, kind, pair=0):
        """The counters of a queue: kind is "tx" or "rx"."""
        return self.daemon.stat()["queue_pairs"][pair][kind]

    def wait_counter(self, kind, name, value, pair=0, timeout=3):
        """Waits until a counter of a queue has that value."""
        got = {}

        def reached():
            got["is"] = self.queue(kind, pair)[name]
            return got["is"] == value
        try:
            wait_for(reached, timeout, name)
        except Exception:
            check_equal(got["is"], value, f"{kind} {name}")

    def steer(self, pair=0):
        """Frames of frame() for the guest go to @pair from now on: the tap
        sends a flow to the queue it last came from. One of two frames may go
        by a probe, which does not count."""
        self.tx_ok(pair)
        self.tx_ok(pair)

    def tx_ok(self, pair=0, driver=None):
        """A good frame passes from the guest to the host."""
        driver = driver or self.driver
        self.sequence += 1
        want = frame(self.sequence, 100)
        driver.send(want, pair=pair)
        skip = 10 if self.vnet else 0
        got = wait_frame(self.host, lambda f: seq_of(f[skip:]) == self.sequence)
        check(got, f"a good frame on transmitq {pair} does not arrive")
        check_equal(got[skip:], want, "the frame")
        used = driver.tx[pair].wait(1)
        check(all(n == 0 for _, n in used), "used length of a transmit chain is not 0")

    def rx_ok(self, pair=0, driver=None):
        """A good frame passes from the host to the guest, on that pair.

        The tap sends a flow's frames to the queue that it last came from."""
        driver = driver or self.driver
        self.sequence += 1
        port = 20000 + pair
        tag = self.sequence.to_bytes(8, "big")
        first = udp4(tag, port, 9, "10.0.0.1", "10.0.0.2")
        driver.send(first, pair=pair)
        driver.tx[pair].wait(1)
        check(wait_frame(self.host, lambda f: f.endswith(first)), "the flow's first frame is lost")
        driver.post(pair=pair, count=2)
        want = udp4(tag, 9, port, "10.0.0.2", "10.0.0.1")
        self.host.inject((bytes(10) if self.vnet else b"") + want)
        for _ in range(200):
            got = driver.recv(pair)
            check(got is not None, f"a good frame on receiveq {pair} does not arrive")
            if got[driver.hdr_len:] == want:
                return
            driver.post(pair=pair)
        check(False, "other frames only")

    def recv_any(self, timeout=1.0):
        """The next packet on any pair, None when none comes."""
        end = time.monotonic() + timeout
        while True:
            for pair in range(len(self.driver.rx)):
                got = self.driver.recv(pair, 0)
                if got is not None:
                    return got
            if time.monotonic() > end:
                return None
            time.sleep(0.0005)

    def alive(self, pairs=None, fds=True):
        """Everything still works: each pair both ways, the control channel,
        the process; nothing leaked, nothing written where it must not be."""
        check(self.daemon.alive(), "the daemon has ended")
        for pair in range(self.pairs) if pairs is None else pairs:
            self.tx_ok(pair)
            self.rx_ok(pair)
        self.driver.client.sync()
        self.driver.mem.check_canaries()
        if fds:
            self.fds_settle(self.busy_fds)

    def log_lines(self):
        return len(self.daemon.log().splitlines())
