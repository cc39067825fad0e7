# SPDX-License-Identifier: BSD-3-Clause
"""A QEMU guest that reboots or is reset finds its network again, on the same daemon."""

from vltest import QemuGuest, check_equal, check_traffic, run, virtlane_on_tap


def main():
    with virtlane_on_tap() as (netns, daemon), QemuGuest(daemon.socket) as guest:
        check_traffic(netns, guest, mib=1)
        guest.reboot()
        check_traffic(netns, guest, mib=1)
        guest.reset()
        check_traffic(netns, guest, mib=1)
        check_equal(daemon.stat()["protocol_errors"], 0, "protocol errors")


run(main)
