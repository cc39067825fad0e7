# SPDX-License-Identifier: BSD-3-Clause
"""QEMU is killed: the daemon lets go of the guest's memory and serves the next one."""

from vltest import QemuGuest, check, check_traffic, run, virtlane_on_tap, wait_for


def main():
    with virtlane_on_tap() as (netns, daemon):
        fds = daemon.fds()
        for _ in range(2):
            with QemuGuest(daemon.socket) as guest:
                check_traffic(netns, guest, mib=1)
                guest.run("ping -A -q -w 5 -s 1000 10.9.0.1 >/dev/null 2>&1 &")
                guest.kill()
            stat = daemon.wait_stat(lambda s: not s["connected"], "the lost connection in the counters")
            check(stat["guest_memory"] == 0, f"{stat['guest_memory']} bytes of guest memory still mapped")
            wait_for(lambda: daemon.fds() <= fds, 5, f"as few descriptors as before the first guest ({fds})")


run(main)
