# SPDX-License-Identifier: BSD-3-Clause
"""A tunnel that cannot be is refused at the start, with what is wrong and how to mend it."""

import re

from vltest import TestFailure, Virtlane, check, run
from vxlan import Underlay

HERE = "vxlan,vni=7,local=10.8.0.1,remote=10.8.0.2"

# The backend, further options, and what is said of it.
WRONG = [
    ("vxlan,local=10.8.0.1,remote=10.8.0.2", [], r"vni= is missing"),
    ("vxlan,vni=7,remote=10.8.0.2", [], r"local= is missing"),
    ("vxlan,vni=7,local=10.8.0.1", [], r"give at least one remote=ADDRESS"),
    ("vxlan,vni=16777216,local=10.8.0.1,remote=10.8.0.2", [], r"vni=16777216: give a number from 0 to 16777215"),
    ("vxlan,vni=7,local=host,remote=10.8.0.2", [], r"local=host: give the IPv4 or IPv6 address"),
    ("vxlan,vni=7,local=10.8.0.1,remote=224.0.0.1", [], r"remote=224.0.0.1: give the IPv4 or IPv6 address of a host"),
    ("vxlan,vni=7,local=10.8.0.1,remote=fd00::1", [], r"remote=fd00::1 and local=10.8.0.1: both must be IPv4"),
    ("vxlan,vni=7,local=10.8.0.1,remote=10.8.0.1", [], r"remote=10.8.0.1 is this host's own address"),
    ("vxlan,vni=7,local=10.9.9.9,remote=10.8.0.2", [], r"local=10.9.9.9: no interface here has this address"),
    (HERE + ",mac=52:54:00:12:34:56", [], r"mac=52:54:00:12:34:56: give the MAC address of a guest and the address"),
    (HERE + ",zerocopy=yes", [], r"zerocopy=yes: give auto, on or off"),
    (HERE + ",name=tap0", [], r"'name' is no parameter of backend vxlan; give vni, local,"),
    (HERE, ["--mtu=1500"], r"--mtu=1500: u0 has an MTU of 1500, of which the tunnel needs 50: give --mtu=1450"),
]


def refused(net, backend, options, text):
    """It does not start, and says why."""
    daemon = Virtlane(*options, backend=backend, netns=net.host)
    try:
        with daemon:
            pass
    except TestFailure:
        check(re.search(text, daemon.log()), f"{backend} {options}: it should say '{text}', it says:\n{daemon.log()}")
        return
    check(False, f"{backend} {options}: it starts")


def main():
    with Underlay() as net:
        for backend, options, text in WRONG:
            refused(net, backend, options, text)

        with Virtlane(backend=HERE, netns=net.host):
            refused(net, HERE, [], r"UDP port 4789 of 10.8.0.1 is in use, by a vxlan device")
            # Another port is another tunnel.
            with Virtlane(backend=HERE + ",port=4790", netns=net.host):
                pass
        net.host.ip("link", "add", "vx0", "type", "vxlan", "id", "9", "dstport", "4789", "local", "10.8.0.1",
                    "remote", "10.8.0.2")
        net.host.ip("link", "set", "vx0", "up")
        refused(net, HERE, [], r"UDP port 4789 of 10.8.0.1 is in use, by a vxlan device")
        net.host.ip("link", "del", "vx0")

        net.host.ip("link", "set", "u0", "mtu", "100")
        refused(net, HERE, [], r"u0 has an MTU of 100, of which the tunnel needs 50: raise it with \"ip link set u0 mtu 118\"")


run(main)
