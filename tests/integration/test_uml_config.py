# SPDX-License-Identifier: BSD-3-Clause
"""The guest sees the configured MAC and MTU, and the offloads that virtio-net has here."""

from vltest import UmlGuest, check, check_equal, check_traffic, run, virtlane_on_tap

OFFLOADS = ("rx-checksumming", "tx-checksumming", "scatter-gather", "tcp-segmentation-offload",
            "tx-tcp-segmentation", "tx-tcp6-segmentation")


def main():
    options = ("--mac=52:54:00:0a:0b:0c", "--mtu=1400")
    with virtlane_on_tap(*options, mtu=1400) as (netns, daemon), UmlGuest(daemon.socket) as guest:
        check_equal(guest.out("cat /sys/class/net/eth0/address"), "52:54:00:0a:0b:0c", "MAC")
        check_equal(guest.out("cat /sys/class/net/eth0/mtu"), "1400", "MTU")
        check("driver: virtio_net" in guest.out("ethtool -i eth0"), "not virtio_net")
        features = dict(line.strip().split(": ", 1) for line in guest.out("ethtool -k eth0").splitlines()[1:])
        for name in OFFLOADS:
            check_equal(features[name].split()[0], "on", name)
        check_traffic(netns, guest, mib=2)
        # The driver asks for a change of its offloads through the control queue.
        guest.run("ethtool -K eth0 lro off || ethtool -K eth0 rx-gro-hw off", status=None)
        guest.run("/usr/bin/ip link set eth0 promisc on && /usr/bin/ip link set eth0 promisc off")
        check_traffic(netns, guest, mib=2)
        check_equal(daemon.stat()["ctrl_errors"], 0, "refused control commands")


run(main)
