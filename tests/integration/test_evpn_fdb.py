# SPDX-License-Identifier: BSD-3-Clause
"""fdb= takes remotes and addresses from FRR, and gives it the guest's: guests reach each other without
a static entry, whether virtlane or the kernel is the end of the tunnels, and one that moves is followed.
"""

import contextlib

from evpn import (KERNEL, VIRTLANE, VXLAN, Fabric, check_follow, check_reach, check_transfer, daemon, guest,
                  guest_address, guest_mac)
from vltest import check, check_equal, run, wait_for


def main():
    with contextlib.ExitStack() as stack:
        hosts = stack.enter_context(Fabric(VIRTLANE, VIRTLANE, KERNEL))
        a, b, c = hosts
        stays = stack.enter_context(guest(stack.enter_context(daemon(a, 1)), 1))
        at_b = stack.enter_context(daemon(b, 2))
        check_equal(c.place(guest_mac(2)), None, "where a guest is that is not there yet")

        print("virtlane to virtlane", flush=True)
        with guest(at_b, 2) as moves:
            # Announced before it says anything.
            for host in hosts:
                wait_for(lambda h=host: h.place(guest_mac(2)) == b.address, 3, "the guest to be announced")
            before = c.netns.counter(VXLAN, "rx_packets")
            check_reach(stays, moves, guest_address(2))
            check_reach(moves, stays, guest_address(1))
            others = c.netns.counter(VXLAN, "rx_packets") - before
            check(others < 100, f"{others} packets between a and b went to c too")
        wait_for(lambda: c.place(guest_mac(2)) is None, 3, "the end of the guest to be announced")

        print("to the kernel", flush=True)
        at_c = stack.enter_context(daemon(c, 2))
        with guest(at_c, 2) as moves:
            moves.ping(guest_address(1), 1)
            check_follow(hosts, stays, 2, c)
            check_reach(stays, moves, guest_address(2))
            check_reach(moves, stays, guest_address(1))

        # The daemon at c still holds the tap, so c goes on to believe that the guest is there.
        print("and back", flush=True)
        check_equal(a.place(guest_mac(2)), c.address, "where the guest was")
        with guest(at_b, 2) as moves:
            check_follow(hosts, stays, 2, b)
            check_transfer(stays, moves, guest_address(2), 1)

        # The daemon ends without a chance to say so.
        at_b.kill9()
        wait_for(lambda: c.place(guest_mac(2)) != b.address, 3, "the end of the daemon to be announced")
        for host in (a, b):
            check_equal(host.netns.counter(VXLAN, "tx_packets"), 0, "packets of the kernel's own device")


run(main)
