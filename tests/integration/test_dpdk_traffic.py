# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's virtio-user sends, receives and answers; every frame is accounted for."""

import time

from vltest import VirtioUser, check, check_equal, engines, run, send_frames, virtlane_on_tap, wait_for

FRAMES = 20000
# Ring features that change how the driver lays out its descriptors.
DEVICES = ("", "mrg_rxbuf=0,queue_size=64")


def transmit(netns, daemon, testpmd):
    """What the driver counts as sent arrives at the tap."""
    sent, seen = testpmd.stats()["tx"], netns.counter("tap0", "rx_packets")
    for size in ("64", "1514"):
        testpmd.command("stop")
        testpmd.command(f"set txpkts {size}")
        testpmd.forward("txonly")
        time.sleep(0.5)
        testpmd.command("stop")
    sent = testpmd.stats()["tx"] - sent
    check(sent > 1000, f"only {sent} packets sent")
    wait_for(lambda: netns.counter("tap0", "rx_packets") - seen >= sent, 5, f"all of {sent} packets on the tap")
    check_equal(netns.counter("tap0", "rx_packets") - seen, sent, "packets on the tap")
    check_equal(netns.counter("tap0", "rx_errors"), 0, "errors on the tap")
    print(f"transmitted {sent}: {daemon.stat()['queue_pairs'][0]['worker']}")


def receive(netns, testpmd):
    """What is sent into the tap arrives in the driver."""
    testpmd.forward("rxonly")
    got, lost = testpmd.stats()["rx"], netns.counter("tap0", "tx_dropped")
    send_frames(netns, "tap0", FRAMES)
    wait_for(lambda: testpmd.stats()["rx"] - got + netns.counter("tap0", "tx_dropped") - lost >= FRAMES, 10,
             "all frames in testpmd", 0.2)
    got, lost = testpmd.stats()["rx"] - got, netns.counter("tap0", "tx_dropped") - lost
    print(f"received {got}, {lost} dropped in front of the tap's queue")
    check_equal(got + lost, FRAMES, "frames accounted for")
    check(lost < FRAMES / 10, "the daemon does not keep up with a gentle sender")


def main():
    for engine in engines():
        for device in DEVICES:
            print(f"engine {engine}, {device or 'default'}", flush=True)
            with virtlane_on_tap(engine=engine) as (netns, daemon):
                with VirtioUser(daemon.socket, device=device) as testpmd:
                    testpmd.wait_link()
                    testpmd.forward("icmpecho")
                    received, text = netns.ping("10.9.0.77", count=5)
                    check(received == 5, text)
                    transmit(netns, daemon, testpmd)
                    receive(netns, testpmd)


run(main)
