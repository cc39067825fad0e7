# SPDX-License-Identifier: BSD-3-Clause
"""A driver keeps sending while the tap is down: each packet is counted, nothing stalls or spins."""

import time

from vltest import VirtioUser, check, check_equal, engines, run, virtlane_on_tap


def dropped(daemon):
    """Packets dropped since the interface is down."""
    return daemon.stat()["queue_pairs"][0]["tx"]["drop_down"]


def main():
    for engine in engines():
        with virtlane_on_tap(engine=engine) as (netns, daemon), VirtioUser(daemon.socket) as testpmd:
            testpmd.wait_link()
            netns.ip("link", "set", "tap0", "down")
            daemon.wait_stat(lambda s: s["link"] == "down", "link down in the counters")
            before, sent = dropped(daemon), testpmd.stats()["tx"]
            testpmd.forward("txonly")
            time.sleep(0.3)
            testpmd.command("stop")
            sent = testpmd.stats()["tx"] - sent
            check(sent >= 10000, f"{engine}: the driver could send only {sent} packets")
            daemon.wait_stat(lambda s, goal=before + sent: s["queue_pairs"][0]["tx"]["drop_down"] >= goal,
                             "all packets counted as dropped")
            check_equal(dropped(daemon) - before, sent, f"{engine}: drop_down")
            cpu = daemon.cpu_seconds()
            time.sleep(1)
            check(daemon.cpu_seconds() - cpu <= 0.02, f"{engine}: the daemon spins on a tap that is down")
            netns.ip("link", "set", "tap0", "up")
            testpmd.forward("icmpecho")
            received, text = netns.ping("10.9.0.77", count=5)
            check(received == 5, f"{engine}: {text}")


run(main)
