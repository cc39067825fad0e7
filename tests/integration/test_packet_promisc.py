# SPDX-License-Identifier: BSD-3-Clause
"""The guest gets frames for its MAC address and for groups; when it changes the address, for the new
one; with promisc=on those for others too. The interface is told, and not any more at the end."""
import re

from frames import BROADCAST, GUEST_MAC, eth
from packet import BACKEND, PacketRig
from rig import each_engine
from vhost_client import Driver, F_CTRL_MAC_ADDR, bits
from vltest import MAC, Netns, Virtlane, check, check_equal, run

NEW_MAC = bytes.fromhex("525400000077")
OTHERS = bytes.fromhex("525400000099")
IPV4_GROUP = bytes.fromhex("01005e010203")
IPV6_GROUP = bytes.fromhex("333300010203")


def received(r, *addresses):
    """Which of frames for these addresses the driver gets."""
    r.driver.post(count=2 * len(addresses))
    r.host.inject(*[eth(b"\2" * 50, dst=a) for a in addresses], eth(b"end" * 10, dst=BROADCAST))
    got = []
    while True:
        packet = r.driver.recv()
        check(packet is not None, "the last frame does not arrive")
        if packet[26:29] == b"end":
            return got
        got.append(packet[12:18])


def flags(r):
    """(promiscuity, all groups) of veth0."""
    text = r.ns.ip("-d", "link", "show", "veth0")
    return tuple(int(re.search(rf"{name} (\d+)", text).group(1)) for name in ("promiscuity", "allmulti"))


def selective(engine):
    groups = (BROADCAST, IPV4_GROUP, IPV6_GROUP)
    with PacketRig(engine, ctrl=True, features=Driver.FEATURES | bits(F_CTRL_MAC_ADDR)) as r:
        everything = (OTHERS, GUEST_MAC, NEW_MAC, *groups)
        check_equal(received(r, *everything), [GUEST_MAC, *groups], "received")
        check_equal(flags(r)[1], 1, "all groups")
        check_equal(r.driver.command(1, 1, NEW_MAC), 0, "ack of MAC_ADDR_SET")
        check_equal(received(r, *everything), [NEW_MAC, *groups], "received with another address")
        # The next driver has the offered address again.
        r.connect()
        check_equal(received(r, *everything), [GUEST_MAC, *groups], "received by the next driver")


def promiscuous(engine):
    with PacketRig(engine, backend=",promisc=on") as r:
        check_equal(received(r, OTHERS, GUEST_MAC, IPV4_GROUP), [OTHERS, GUEST_MAC, IPV4_GROUP], "received")
        check(flags(r)[0] >= 1, "the interface is not promiscuous")
        r.daemon.stop()
        check_equal(flags(r), (0, 0), "flags of the interface at the end")


def idle(engine):
    """What came while no driver was there is not given to the next one."""
    with PacketRig(engine, driver=False) as r:
        r.host.inject(*[eth(b"old" * 20, dst=GUEST_MAC)] * 50)
        r.connect()
        check_equal(received(r, GUEST_MAC), [GUEST_MAC], "received")
        # It takes a few of these, and leaves.
        r.host.inject(*[eth(b"old" * 20, dst=GUEST_MAC)] * 50)
        r.disconnect()
        r.daemon.wait_stat(lambda s: not s["connected"], "the driver to have left")
        r.host.inject(*[eth(b"old" * 20, dst=GUEST_MAC)] * 50)
        r.connect()
        check_equal(received(r, GUEST_MAC), [GUEST_MAC], "received")


def mistakes():
    """What cannot be opened is explained."""
    with Netns() as netns:
        netns.ip("link", "add", "veth0", "type", "veth", "peer", "name", "far0")
        for backend, prefix, word in (
                (BACKEND.replace("veth0", "none0"), (), "no such interface"),
                ("packet,ifname=lo", (), "not an Ethernet interface"),
                ("packet", (), "ifname= is missing"),
                ("packet,ifname=veth0,promisc=yes", (), "give on or off"),
                (BACKEND, ("setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"), "CAP_NET_RAW")):
            with Virtlane(f"--mac={MAC}", netns=netns, backend=backend, prefix=prefix, ready=False) as daemon:
                check(daemon.wait(5) in (1, 2), f"exit status with {backend}")
                check(word in daemon.log(), f"{backend}: the log does not say {word!r}:\n{daemon.log()}")


def test(engine):
    selective(engine)
    promiscuous(engine)
    idle(engine)


def main():
    mistakes()
    each_engine(test)


run(main)
