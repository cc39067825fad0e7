# SPDX-License-Identifier: BSD-3-Clause
"""virtio-user with two queue pairs: each carries its own traffic, both ways."""

import socket
import time

from vltest import VirtioUser, check, run, virtlane_on_tap


def main():
    with virtlane_on_tap(pairs=2) as (netns, daemon):
        with VirtioUser(daemon.socket, queues=2) as testpmd:
            testpmd.wait_link()
            testpmd.forward("txonly")
            time.sleep(0.5)
            testpmd.forward("rxonly")
            netns.ip("neigh", "replace", "10.9.0.2", "lladdr", "52:54:00:09:00:02", "dev", "tap0")
            with netns.entered():
                socks = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(64)]
            for sock in socks:
                with sock:
                    for _ in range(8):
                        sock.sendto(b"x" * 100, ("10.9.0.2", 9))
            daemon.wait_stat(lambda s: sum(p["rx"]["packets"] for p in s["queue_pairs"]) >= 512, "512 received")
            for number, pair in enumerate(daemon.stat()["queue_pairs"]):
                check(pair["tx"]["packets"] > 100, f"pair {number}: {pair['tx']['packets']} transmitted")
                check(pair["rx"]["packets"] > 32, f"pair {number}: {pair['rx']['packets']} received")


run(main)
