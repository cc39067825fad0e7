# SPDX-License-Identifier: BSD-3-Clause
"""A QEMU guest with two processors sends and receives on two queue pairs."""

from vltest import Iperf3Server, QemuGuest, check, check_traffic, iperf3, run, virtlane_on_tap


def main():
    with virtlane_on_tap(pairs=2) as (netns, daemon), QemuGuest(daemon.socket, queues=2) as guest:
        check_traffic(netns, guest, mib=1)
        guest.run("ethtool -L eth0 combined 2", status=None)
        check("Combined:\t2" in guest.out("ethtool -l eth0").split("Current")[1], "one queue pair only")
        with Iperf3Server(netns):
            iperf3(guest, parallel=8)
            iperf3(guest, "-R", parallel=8)
        for number, pair in enumerate(daemon.stat()["queue_pairs"]):
            for name in ("tx", "rx"):
                check(pair[name]["packets"] > 100, f"pair {number}: {pair[name]['packets']} {name} packets")


run(main)
