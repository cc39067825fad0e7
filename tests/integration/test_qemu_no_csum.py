# SPDX-License-Identifier: BSD-3-Clause
"""Traffic of a QEMU guest with no checksum and segmentation offload at all."""

from vltest import QemuGuest, check_traffic, run, virtlane_on_tap

DEVICE = ("csum=off,guest_csum=off,gso=off,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off,"
          "host_tso4=off,host_tso6=off,host_ecn=off,host_ufo=off")


def main():
    with virtlane_on_tap() as (netns, daemon), QemuGuest(daemon.socket, device=DEVICE) as guest:
        guest.wait_carrier(True)
        check_traffic(netns, guest, mib=4)


run(main)
