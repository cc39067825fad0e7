# SPDX-License-Identifier: BSD-3-Clause
"""A Linux guest on a packet socket has ping, TCP and UDP, with either engine; offloads pass both ways."""

from packet import virtlane_on_veth
from vltest import Iperf3Server, UmlGuest, check, check_equal, check_traffic, check_udp, engines, iperf3, run


def main():
    for engine in engines():
        print(f"engine {engine}", flush=True)
        with virtlane_on_veth(engine=engine) as (_, far, daemon), UmlGuest(daemon.socket) as guest:
            guest.wait_carrier(True)
            check_traffic(far, guest)
            check_udp(far, guest)
            with Iperf3Server(far):
                for way in ((), ("-R",)):
                    rate = iperf3(guest, *way)["sum_received"]["bits_per_second"]
                    print(f"iperf3 {' '.join(way)}: {rate / 1e6:.0f} Mbit/s")
                    check(rate > 50e6, f"iperf3 {way}: {rate / 1e6:.0f} Mbit/s")
            pair = daemon.stat()["queue_pairs"][0]
            for counter, value in (*pair["tx"].items(), *pair["rx"].items()):
                if counter.startswith("drop_"):
                    check_equal(value, 0, counter)
            check(pair["tx"]["gso_packets"] > 100, "the guest's segmentation offload is not used")
            check(pair["rx"]["gso_packets"] > 100, "no frame came to the guest in one piece")


run(main)
