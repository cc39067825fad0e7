# SPDX-License-Identifier: BSD-3-Clause
"""A guest that reboots finds its network again, on the same daemon."""

from vltest import UmlGuest, check_traffic, run, virtlane_on_tap


def main():
    with virtlane_on_tap() as (netns, daemon), UmlGuest(daemon.socket) as guest:
        for _ in range(2):
            guest.wait_carrier(True)
            check_traffic(netns, guest, mib=2)
            guest.reboot()
        check_traffic(netns, guest, mib=2)
        daemon.wait_stat(lambda s: s["connected"], "connected")


run(main)
