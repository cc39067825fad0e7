# SPDX-License-Identifier: BSD-3-Clause
"""An idle guest costs no CPU at all, and the daemon is small."""

import time

from vltest import ADDRESS, HOST, MAC, UmlGuest, check, check_ping, engines, run, sanitizer, virtlane_on_tap

SECONDS = 5
RSS_KIB = 16 << 10


def main():
    for engine in engines():
        with virtlane_on_tap(engine=engine) as (netns, daemon), UmlGuest(daemon.socket) as guest:
            check_ping(netns, guest)
            # Fixed neighbour entries, or the kernels would probe them meanwhile.
            address = netns.run("cat", "/sys/class/net/tap0/address").stdout.strip()
            netns.ip("neigh", "replace", ADDRESS, "lladdr", MAC, "dev", "tap0")
            guest.run(f"/usr/bin/ip neigh replace {HOST} lladdr {address} dev eth0")
            time.sleep(1)
            cpu, wakeups = daemon.cpu_seconds(), daemon.wakeups()
            time.sleep(SECONDS)
            cpu, wakeups = daemon.cpu_seconds() - cpu, daemon.wakeups() - wakeups
            print(f"{engine}: {cpu:.2f} s CPU, {wakeups} context switches in {SECONDS} s, {daemon.rss_kib()} KiB")
            check(wakeups == 0, f"{engine}: {wakeups} context switches of an idle daemon")
            check(cpu == 0, f"{engine}: {cpu} s of CPU while idle")
            if not sanitizer():
                check(daemon.rss_kib() < RSS_KIB, f"{engine}: {daemon.rss_kib()} KiB resident")


run(main)
