# SPDX-License-Identifier: BSD-3-Clause
"""A Linux guest in QEMU has ping, TCP and UDP, with either I/O engine."""

from vltest import MAC, QemuGuest, check_equal, check_traffic, check_udp, engines, run, virtlane_on_tap


def main():
    for engine in engines():
        print(f"engine {engine}", flush=True)
        with virtlane_on_tap(engine=engine) as (netns, daemon):
            with QemuGuest(daemon.socket, device="disable-legacy=on") as guest:
                guest.wait_carrier(True)
                check_equal(guest.out("cat /sys/class/net/eth0/address"), MAC, "MAC")
                check_traffic(netns, guest, mib=4)
                check_udp(netns, guest, rate="12M")


run(main)
