# SPDX-License-Identifier: BSD-3-Clause
"""The tap is deleted under a guest: the daemon says so, does not spin, and ends cleanly."""

import time

from vltest import HOST, UmlGuest, check, check_ping, engines, run, virtlane_on_tap


def main():
    for engine in engines():
        with virtlane_on_tap(engine=engine) as (netns, daemon), UmlGuest(daemon.socket) as guest:
            check_ping(netns, guest)
            netns.ip("link", "del", "tap0")
            daemon.wait_stat(lambda s: s["link"] == "gone", "link gone in the counters")
            guest.wait_carrier(False)
            cpu = daemon.cpu_seconds()
            # With a fixed neighbour the guest goes on sending, without a carrier only to its queue.
            guest.run(f"/usr/bin/ip neigh replace {HOST} lladdr 02:00:00:00:00:01 dev eth0")
            guest.run(f"ping -c 2 -W 1 {HOST}", status=None)
            time.sleep(2)
            cpu = daemon.cpu_seconds() - cpu
            check(cpu <= 0.03, f"{engine}: {cpu} s of CPU in over 3 s without a tap")
            check(len(daemon.log().splitlines()) < 40, "the log is flooded")


run(main)
