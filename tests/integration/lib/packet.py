# SPDX-License-Identifier: BSD-3-Clause
"""A daemon on one end of a veth pair, and what is on the other end.

    host namespace: virtlane --backend=packet,ifname=veth0 --- far namespace: far0
"""
import contextlib

from frames import GUEST_MAC
from lanes import Destinations, LaneView
from rig import Rig
from vhost_client import HostSide, Memory
from vltest import MAC, Netns, Virtlane, need_root

BACKEND = "packet,ifname=veth0"


@contextlib.contextmanager
def veth_pair(address="10.9.0.1/24", mtu=None):
    """Two namespaces with a cable between them: yields (host, far)."""
    need_root()
    with Netns("host") as host, Netns("far") as far:
        host.ip("link", "add", "veth0", "type", "veth", "peer", "name", "far0", "netns", far.name)
        for netns, name in ((host, "veth0"), (far, "far0")):
            if mtu:
                netns.ip("link", "set", name, "mtu", str(mtu))
        # The far end first: veth0 has a carrier from the beginning.
        far.configure("far0", address)
        host.configure("veth0", None)
        yield host, far


@contextlib.contextmanager
def virtlane_on_veth(*options, backend="", **more):
    """The daemon on a pair: yields (host, far, virtlane)."""
    with veth_pair() as (host, far), Virtlane(f"--mac={MAC}", *options, netns=host, backend=BACKEND + backend,
                                              **more) as daemon:
        yield host, far, daemon


class PacketRig(Rig):
    """A Rig on veth0; .host is at the other end, in namespace .far."""

    def __init__(self, engine=None, pairs=1, backend="", **more):
        super().__init__(engine, pairs, **more)
        self.backend = BACKEND + backend
        self.far = None

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.ns, self.far = stack.enter_context(veth_pair(None, self.mtu))
            self.daemon = stack.enter_context(Virtlane(
                "--mac=" + GUEST_MAC.hex(":"), *self.options, backend=self.backend, pairs=self.pairs,
                engine=self.engine, netns=self.ns))
            self.path = self.daemon.socket
            self.host = stack.enter_context(HostSide(self.far, "far0", vnet=self.vnet))
            self.idle_fds = self.daemon.fds()
            stack.callback(self.disconnect)
            if self.want_driver:
                self.connect()
            self.stack = stack.pop_all()
        return self

    def alive(self, pairs=(0,), fds=True):
        """As in Rig; only the first pair receives."""
        for pair in range(self.pairs):
            self.tx_ok(pair)
        super().alive(pairs, fds)


class PacketLaneRig(LaneView, PacketRig):
    """A PacketRig for many frames."""

    def __init__(self, engine=None, backend="", **args):
        super().__init__(engine, backend=backend, mem=Memory(64 << 20), **args)


class PacketDestinations(Destinations):
    """Destinations by classes of veth0 itself."""

    port = "veth0"

    def make_network(self):
        """It is there."""

    def open_host(self, rig):
        return self.receiver(rig.far)
