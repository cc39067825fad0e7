# SPDX-License-Identifier: BSD-3-Clause
"""Traffic of a QEMU guest with a device of the legacy kind (virtio 0.9.5)."""

from vltest import QemuGuest, check_traffic, run, virtlane_on_tap

DEVICE = "disable-modern=on,disable-legacy=off"


def main():
    with virtlane_on_tap() as (netns, daemon), QemuGuest(daemon.socket, device=DEVICE) as guest:
        guest.wait_carrier(True)
        check_traffic(netns, guest, mib=4)


run(main)
