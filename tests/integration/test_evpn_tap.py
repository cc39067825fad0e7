# SPDX-License-Identifier: BSD-3-Clause
"""Guests on taps of several hosts that FRR joins reach each other, and one that moves is followed.

Bridges and kernel VXLAN devices as docs/evpn.md makes them, and no static entry.
"""

import contextlib

from evpn import KERNEL, Fabric, check_follow, check_reach, check_transfer, daemon, guest, guest_address, guest_mac
from vltest import check_equal, run, wait_for


def main():
    with contextlib.ExitStack() as stack:
        hosts = stack.enter_context(Fabric(KERNEL, KERNEL, KERNEL))
        a, b, c = hosts
        stays = stack.enter_context(guest(stack.enter_context(daemon(a, 1)), 1))

        at_b = stack.enter_context(daemon(b, 2))
        with guest(at_b, 2) as moves:
            check_reach(stays, moves, guest_address(2))
            check_reach(moves, stays, guest_address(1))
            check_follow(hosts, stays, 2, b)

        # The daemon on b still holds the tap, so b goes on to believe that the guest is there.
        print("to another host", flush=True)
        with daemon(c, 2) as at_c, guest(at_c, 2) as moves:
            check_equal(b.place(guest_mac(2)), b.address, "where host b believes the guest to be")
            moves.ping(guest_address(1), 1)
            check_follow(hosts, stays, 2, c)
            check_transfer(stays, moves, guest_address(2), 1)

        # And back. This time c knows that the guest is gone: its tap lost the carrier.
        print("and back", flush=True)
        wait_for(lambda: a.place(guest_mac(2)) is None, 3, "the end of the guest to be announced")
        with guest(at_b, 2) as moves:
            check_follow(hosts, stays, 2, b)
            check_transfer(moves, stays, guest_address(1), 1)


run(main)
