# SPDX-License-Identifier: BSD-3-Clause
"""A bridge whose other port is shaped: back-pressure for the tap."""
from frames import ETH_P_TEST
from vhost_client import HostSide


class Shaper:
    """Bridges tap0 to a veth pair and shapes its way out with HTB.

    The host side then listens at the far end of the veth pair: .host"""

    def __init__(self, rig, rate):
        self.ns = ns = rig.ns
        ns.ip("link", "add", "br0", "type", "bridge")
        ns.ip("link", "add", "out0", "type", "veth", "peer", "name", "far0")
        for port in ("tap0", "out0"):
            ns.ip("link", "set", port, "master", "br0")
        for name in ("br0", "out0", "far0"):
            ns.ip("link", "set", name, "up")
        self._tc("add", "qdisc", "root", "handle", "1:", "htb", "default", "1")
        self._tc("add", "class", "parent", "1:", "classid", "1:1", *self._rate(rate))
        self.host = HostSide(ns, "far0", ETH_P_TEST)

    @staticmethod
    def _rate(rate):
        return ["htb", "rate", rate, "ceil", rate, "burst", "3000", "cburst", "3000"]

    def _tc(self, verb, kind, *args):
        self.ns.run("tc", kind, verb, "dev", "out0", *args)

    def rate(self, rate):
        """Another rate from now on."""
        self._tc("change", "class", "parent", "1:", "classid", "1:1", *self._rate(rate))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.host.close()
