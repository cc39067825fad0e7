# SPDX-License-Identifier: BSD-3-Clause
"""Full transmit and receive load at once: nothing stalls, and a ping works afterwards."""

import time

from vltest import VirtioUser, check, engines, run, send_frames, virtlane_on_tap


def main():
    for engine in engines():
        with virtlane_on_tap(engine=engine) as (netns, daemon), VirtioUser(daemon.socket) as testpmd:
            testpmd.wait_link()
            # Sends as fast as it can and drops what it receives, after counting it.
            testpmd.command("set txonly-flows 8", timeout=5)
            testpmd.forward("txonly")
            before = daemon.stat()["queue_pairs"][0]
            send_frames(netns, "tap0", 100000, pause_every=256)
            time.sleep(0.2)
            after = daemon.stat()["queue_pairs"][0]
            sent = after["tx"]["packets"] - before["tx"]["packets"]
            print(f"{engine}: {sent} transmitted meanwhile")
            check(sent > 10000, f"{engine}: only {sent} packets transmitted under receive load")
            testpmd.forward("icmpecho")
            # txonly leaves received packets in the ring, so the first are old ones.
            netns.ping("10.9.0.77", count=2, wait=1)
            received, text = netns.ping("10.9.0.77", count=5)
            check(received == 5, f"{engine}: {text}")


run(main)
