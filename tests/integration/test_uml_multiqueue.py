# SPDX-License-Identifier: BSD-3-Clause
"""The guest turns a second queue pair on and off by the control queue; both then carry traffic."""

import socket

from vltest import ADDRESS, UmlGuest, check, check_traffic, run, virtlane_on_tap


def rx_packets(daemon):
    """Packets given to the guest, by queue pair."""
    return [pair["rx"]["packets"] for pair in daemon.stat()["queue_pairs"]]


def spray(netns):
    """Datagrams of 64 flows towards the guest, which the tap spreads over its queues."""
    with netns.entered():
        socks = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(64)]
    for sock in socks:
        with sock:
            for _ in range(4):
                sock.sendto(b"x" * 100, (ADDRESS, 9))


def main():
    with virtlane_on_tap(pairs=2) as (netns, daemon), UmlGuest(daemon.socket) as guest:
        check_traffic(netns, guest, mib=2)
        guest.run("ethtool -L eth0 combined 2")
        daemon.wait_stat(lambda s: s["queue_pairs"][1]["rx"]["running"], "second pair running")
        before = rx_packets(daemon)
        spray(netns)
        daemon.wait_stat(lambda s: s["queue_pairs"][1]["rx"]["packets"] > before[1] + 16, "traffic on both")
        check_traffic(netns, guest, mib=2)
        guest.run("ethtool -L eth0 combined 1")
        before = rx_packets(daemon)
        spray(netns)
        daemon.wait_stat(lambda s: s["queue_pairs"][0]["rx"]["packets"] >= before[0] + 256,
                         "all traffic on the first pair")
        check(rx_packets(daemon)[1] == before[1], "traffic on a queue pair that the guest does not use")
        check_traffic(netns, guest, mib=2)


run(main)
