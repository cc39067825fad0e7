# SPDX-License-Identifier: BSD-3-Clause
"""A tunnel endpoint of virtlane's, and others of the kernel's.

    host: virtlane, u0 .1 ---- wire: br0 ---- far0: u0 .2, vx0 (10.9.0.1)
                                       \\----- far1: u0 .3, vx0 (10.9.0.11)

Each name before a colon is a network namespace."""
import contextlib

from rig import Rig
from vhost_client import HostSide
from vltest import MAC, Netns, UmlGuest, Virtlane, need_program, need_root, wait_for

VNI = 7


class Underlay:
    """Context manager: the host, and @count others on one network; ip6: it is IPv6."""

    def __init__(self, count=1, ip6=False, mtu=1500):
        need_root()
        need_program("ip", "bridge", "ping")
        self.ip6, self.mtu = ip6, mtu
        self.host = Netns("host")
        self.wire = Netns("wire")
        self.far = [Netns(f"far{i}") for i in range(count)]
        self.stack = contextlib.ExitStack()

    def address(self, number):
        """Of the host (0), or of far[number - 1]."""
        return f"fd00:8::{number + 1}" if self.ip6 else f"10.8.0.{number + 1}"

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            for netns in (self.wire, self.host, *self.far):
                stack.enter_context(netns)
            self.wire.ip("link", "add", "br0", "type", "bridge", "forward_delay", "0", "mcast_snooping", "0")
            self.wire.ip("link", "set", "br0", "up", "mtu", str(self.mtu))
            for number, netns in enumerate((self.host, *self.far)):
                self.wire.ip("link", "add", f"w{number}", "mtu", str(self.mtu), "type", "veth", "peer", "name", "u0",
                             "mtu", str(self.mtu), "netns", netns.name)
                self.wire.ip("link", "set", f"w{number}", "master", "br0", "up")
                prefix = "/64" if self.ip6 else "/24"
                if self.ip6:
                    netns.sysctl("net/ipv6/conf/u0/disable_ipv6", 0)
                netns.ip("addr", "add", self.address(number) + prefix, "dev", "u0", *(["nodad"] if self.ip6 else []))
                netns.ip("link", "set", "u0", "up")
                netns.ip("link", "set", "lo", "up")
                # One CPU receives, or what was sent in order overtakes itself when the sender changes its CPU.
                for where, port in ((netns, "u0"), (self.wire, f"w{number}")):
                    where.run("sh", "-c", f"echo 1 >/sys/class/net/{port}/queues/rx-0/rps_cpus")
            # While a neighbour is asked for, packets wait, and those behind them overtake them.
            for far in self.far:
                wait_for(lambda there=far: not there.run("ping", "-n", "-c", "1", "-W", "1", self.address(0),
                                                         check=False).returncode, 10, "the underlay to work")
            self.enter_more(stack)
            self.stack = stack.pop_all()
        return self

    def enter_more(self, stack):
        """For a class that has more on it."""

    def __exit__(self, *exc):
        return self.stack.__exit__(*exc)


class Tunnel(Underlay):
    """The same, with a vxlan device vx0 of the kernel's on each of the others.

    backend: more words for --backend=vxlan; device: for "ip link add type vxlan";
    guest_net: whether vx0 gets the address 10.9.0.1, 10.9.0.11 and so on."""

    def __init__(self, count=1, backend="", *options, device=(), guest_net=True, engine=None, **underlay):
        super().__init__(count, **underlay)
        self.device, self.guest_net = device, guest_net
        self.backend = ",".join(filter(None, (
            f"vxlan,vni={VNI},local={self.address(0)}",
            *(f"remote={self.address(i + 1)}" for i in range(count)), backend)))
        self.options, self.engine = options, engine
        self.daemon = None

    def enter_more(self, stack):
        for number, far in enumerate(self.far):
            far.ip("link", "add", "vx0", "type", "vxlan", "id", str(VNI), "dstport", "4789",
                   "dev", "u0", "local", self.address(number + 1), "remote", self.address(0), *self.device)
            if self.guest_net:
                far.ip("addr", "add", f"10.9.0.{number}1/24" if number else "10.9.0.1/24", "dev", "vx0")
            far.ip("link", "set", "vx0", "up")
        self.daemon = stack.enter_context(Virtlane(f"--mac={MAC}", *self.options, backend=self.backend,
                                                   engine=self.engine, netns=self.host))

    def guest(self, **more):
        """A guest behind virtlane, not started."""
        return UmlGuest(self.daemon.socket, **more)

    def tunnel(self, pair=0):
        """Counters of the tunnel."""
        return self.daemon.stat()["queue_pairs"][pair]["tunnel"]


class TunnelRig(Rig):
    """A Rig whose host side is vx0 of the first of @count others, in self.far."""

    def __init__(self, engine=None, backend="", count=1, pairs=1, ip6=False, mtu=1500, options=(), **args):
        need_root()
        # The tap is not used, the rest of a rig is.
        super().__init__(engine, pairs=pairs, tap=False, **args)
        self.tunnel_net = Tunnel(count, backend, *options, device=("nolearning",), guest_net=False,
                                 engine=engine, ip6=ip6, mtu=mtu)

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            net = stack.enter_context(self.tunnel_net)
            self.ns, self.far, self.daemon = net.host, net.far, net.daemon
            self.path = self.daemon.socket
            for far in self.far:
                # No frames of the kernel's own among ours.
                far.sysctl("net/ipv6/conf/vx0/disable_ipv6", 1)
            self.hosts = [stack.enter_context(HostSide(far, "vx0", vnet=self.vnet)) for far in self.far]
            self.host = self.hosts[0]
            self.idle_fds = self.daemon.fds()
            stack.callback(self.disconnect)
            if self.want_driver:
                self.connect()
            self.stack = stack.pop_all()
        return self

    def tunnel(self, pair=0):
        """Counters of the tunnel."""
        return self.daemon.stat()["queue_pairs"][pair]["tunnel"]
