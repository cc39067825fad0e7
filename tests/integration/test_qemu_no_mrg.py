# SPDX-License-Identifier: BSD-3-Clause
"""Traffic of a QEMU guest with receive buffers that are not merged."""

from vltest import QemuGuest, check_traffic, run, virtlane_on_tap

DEVICE = "mrg_rxbuf=off"


def main():
    with virtlane_on_tap() as (netns, daemon), QemuGuest(daemon.socket, device=DEVICE) as guest:
        guest.wait_carrier(True)
        check_traffic(netns, guest, mib=4)


run(main)
