# SPDX-License-Identifier: BSD-3-Clause
"""The guest's carrier follows the tap; traffic is back when the tap is up again."""

from vltest import UmlGuest, check, check_ping, check_traffic, run, virtlane_on_tap


def main():
    with virtlane_on_tap() as (netns, daemon), UmlGuest(daemon.socket) as guest:
        guest.wait_carrier(True)
        check_ping(netns, guest)
        for _ in range(2):
            netns.ip("link", "set", "tap0", "down")
            guest.wait_carrier(False)
            daemon.wait_stat(lambda s: s["link"] == "down", "link down in the counters")
            # Without a carrier the guest's stack sends nothing; its driver still has what it queued.
            received, _ = guest.ping(count=1)
            check(received == 0, "a ping was answered through a tap that is down")
            netns.ip("link", "set", "tap0", "up")
            guest.wait_carrier(True)
            daemon.wait_stat(lambda s: s["link"] == "up", "link up in the counters")
            check_traffic(netns, guest, mib=1)


run(main)
