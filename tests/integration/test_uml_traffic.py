# SPDX-License-Identifier: BSD-3-Clause
"""A Linux guest in user-mode-linux has ping, TCP and UDP, with either I/O engine."""

from vltest import UmlGuest, check_equal, check_traffic, check_udp, engines, run, virtlane_on_tap


def main():
    for engine in engines():
        print(f"engine {engine}", flush=True)
        with virtlane_on_tap(engine=engine) as (netns, daemon), UmlGuest(daemon.socket) as guest:
            guest.wait_carrier(True)
            check_traffic(netns, guest)
            check_udp(netns, guest)
            stat = daemon.stat()
            check_equal(stat["engine"], engine, "engine")
            for counter, value in stat["queue_pairs"][0]["tx"].items():
                if counter.startswith("drop_"):
                    check_equal(value, 0, counter)


run(main)
