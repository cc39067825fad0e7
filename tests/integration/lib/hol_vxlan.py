# SPDX-License-Identifier: BSD-3-Clause
"""The network of hol.py with a tunnel: the slow and the fast destination are hosts
on an underlay, each with a vxlan device of the kernel's.

        guest eth0 10.9.0.2
              |
    virtlane, UDP sockets of 10.8.0.1, on br0
                        br0 --- slow0, HTB  10 Mbit/s --- 10.8.0.12, vx0 10.9.0.12
                            \\-- fast0, HTB 100 Mbit/s --- 10.8.0.13, vx0 10.9.0.13

The underlay takes frames of 9000 bytes: so what the tunnel adds to each hardly
counts, and frames are long enough to be sent without a copy."""

from hol import UDP_PAYLOAD, Destination, Network
from vltest import ADDRESS, MAC

VNI = 7
LOCAL = "10.8.0.1"
MTU = 9000
HEADERS = 14 + 20 + 8


class Host(Destination):
    """A destination behind a tunnel."""

    # Not the headers of the tunnel.
    counted = "stab overhead -50 linklayer ethernet"

    def __init__(self, name, number, mbit):
        super().__init__(name, number, mbit)
        self.outer = f"10.8.0.{number}"

    def received(self, flow):
        if flow != "udp":
            return super().received(flow)
        # The datagrams that carry the tunnel count as UDP's too.
        return self.netns.counter("vx0", "rx_bytes") * UDP_PAYLOAD // (UDP_PAYLOAD + HEADERS)

    def connect(self, host):
        """Plug it into br0 of the host's namespace."""
        there = self.netns
        host.ip("link", "add", self.port, "mtu", str(MTU), "type", "veth", "peer", "name", "eth0", "mtu", str(MTU),
                "netns", there.name)
        there.configure("eth0", f"{self.outer}/24")
        there.ip("link", "add", "vx0", "address", self.mac, "type", "vxlan", "id", str(VNI), "dstport", "4789", "dev", "eth0",
                 "local", self.outer, "remote", LOCAL)
        there.configure("vx0", f"{self.address}/24")
        there.ip("neigh", "add", ADDRESS, "lladdr", MAC, "dev", "vx0")
        host.ip("link", "set", self.port, "master", "br0", "up")
        if self.mbit:
            self.shape(host, self.mbit)


class VxlanNetwork(Network):
    """backend: more words for --backend=vxlan; the rest as Network."""

    destination = Host
    card = f"vxlan,vni={VNI},local={LOCAL},remote=10.8.0.12,remote=10.8.0.13"

    def __enter__(self):
        super().__enter__()
        # Or the guest's own limit, of some 90 packets of a socket, comes before any of ours.
        self.guest.run("echo 4000000 >/proc/sys/net/core/wmem_default")
        return self

    def start_way_out(self, stack):
        self.host.ip("link", "set", "br0", "mtu", str(MTU))
        self.host.configure("br0", f"{LOCAL}/24")
        stack.enter_context(self.daemon)
