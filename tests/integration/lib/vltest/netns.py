# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces and what is in them."""

import contextlib
import ctypes
import fcntl
import itertools
import os
import struct
import subprocess

from .harness import TestFailure
from .proc import Process

_CLONE_NEWNET = 0x40000000
# From <linux/if_tun.h>.
_TUNSETIFF = 0x400454CA
_IFF_TAP, _IFF_NO_PI, _IFF_VNET_HDR, _IFF_MULTI_QUEUE = 0x2, 0x1000, 0x4000, 0x100
_libc = ctypes.CDLL(None, use_errno=True)
_numbers = itertools.count()


def _setns(fd):
    if _libc.setns(fd, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


class Netns:
    """A network namespace of this test alone, as a context manager.

    Loopback is up, IPv6 off (no unasked frames), and bridge netfilter off: it
    would hide the back-pressure of a bridge port's qdisc from the tap.
    """

    def __init__(self, label="n"):
        self.name = f"vl{os.getpid()}{label}{next(_numbers)}"
        self.prefix = ["ip", "netns", "exec", self.name]

    def __enter__(self):
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        try:
            self.ip("link", "set", "lo", "up")
            self.sysctl("net/ipv6/conf/all/disable_ipv6", 1)
            self.sysctl("net/ipv6/conf/default/disable_ipv6", 1)
            for table in ("iptables", "ip6tables", "arptables"):
                self.sysctl(f"net/bridge/bridge-nf-call-{table}", 0)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        subprocess.run(["ip", "netns", "del", self.name], check=False)

    @contextlib.contextmanager
    def entered(self):
        """This thread is in the namespace; sockets and taps opened meanwhile stay there."""
        with open("/proc/thread-self/ns/net", "rb") as before:
            with open(f"/run/netns/{self.name}", "rb") as there:
                _setns(there.fileno())
            try:
                yield
            finally:
                _setns(before.fileno())

    def sysctl(self, name, value):
        """Write /proc/sys/NAME in the namespace; a setting that does not exist is passed over."""
        with self.entered(), contextlib.suppress(FileNotFoundError):
            with open("/proc/sys/" + name, "w", encoding="ascii") as f:
                f.write(str(value))

    def run(self, *argv, check=True, timeout=60):
        """Run a program inside and return its subprocess.CompletedProcess (output is text)."""
        done = subprocess.run(
            self.prefix + list(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False)
        if check and done.returncode:
            raise TestFailure(f"{' '.join(argv)}: exit status {done.returncode}\n{done.stdout}")
        return done

    def popen(self, *argv, **options):
        """A Process (not started) inside; see Process for the options."""
        return Process(list(argv), netns=self, **options)

    def ip(self, *args, check=True):
        """Run ip(8) for this namespace and return its output."""
        done = subprocess.run(["ip", "-n", self.name, *args], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if check and done.returncode:
            raise TestFailure(f"ip {' '.join(args)}: {done.stdout}")
        return done.stdout

    def add_tap(self, name="tap0", address="10.9.0.1/24", queues=1, user=None, mtu=None):
        """Make a persistent tap, up, with an address."""
        args = ["tuntap", "add", "dev", name, "mode", "tap"]
        if queues > 1:
            args.append("multi_queue")
        if user:
            args += ["user", user]
        self.ip(*args)
        if mtu:
            self.ip("link", "set", name, "mtu", str(mtu))
        self.configure(name, address)

    def open_tap(self, name="tap0", multi_queue=False, blocking=True):
        """Open a tap (made if it does not exist) in the namespace; returns its descriptor."""
        flags = _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR | (_IFF_MULTI_QUEUE if multi_queue else 0)
        with self.entered():
            fd = os.open("/dev/net/tun", os.O_RDWR | (0 if blocking else os.O_NONBLOCK))
            fcntl.ioctl(fd, _TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
        os.set_inheritable(fd, True)
        return fd

    def configure(self, name, address="10.9.0.1/24"):
        """Give an interface an address and bring it up."""
        if address:
            self.ip("addr", "add", address, "dev", name)
        self.ip("link", "set", name, "up")

    def ping(self, address, count=3, interval=0.05, size=56, wait=2):
        """Ping; returns (received, text)."""
        text = self.run("ping", "-n", "-c", str(count), "-i", str(interval), "-s", str(size),
                        "-W", str(wait), address, check=False).stdout
        received = [word for word in text.split("\n") if " received" in word]
        return (int(received[0].split()[3]) if received else 0), text

    def counter(self, interface, name):
        """A counter of an interface, for example rx_packets."""
        text = self.run("cat", f"/sys/class/net/{interface}/statistics/{name}").stdout
        return int(text)
