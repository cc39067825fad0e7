# SPDX-License-Identifier: BSD-3-Clause
"""Guests on taps of several hosts that FRR joins reach each other, and one that moves is followed.

Bridges and kernel VXLAN devices as docs/evpn.md makes them, and no static entry.
"""

import contextlib
import re

from evpn import MTU, TAP, Fabric, check_transfer, document, guest_mac
from vltest import UmlGuest, Virtlane, check, check_equal, run, wait_for

STAYS, MOVES = "10.9.0.1", "10.9.0.2"


def backend():
    """--backend and --mtu of the document."""
    text = document("The guest")
    check(f"--mtu={MTU}" in text, "the MTU of the document")
    return re.search(r"--backend=(\S+)", text).group(1)


def daemon(host, number):
    """The daemon of a guest, on a host's tap."""
    return Virtlane(f"--mac={guest_mac(number)}", f"--mtu={MTU}", backend=backend(), netns=host.netns)


def guest(vhost, address):
    """A guest that uses this daemon."""
    return UmlGuest(vhost.socket, address=f"{address}/24")


def check_reach(one, other, address):
    """Ping, also with the largest packets, and TCP."""
    wait_for(lambda: one.ping(address, 1)[0], 5, f"ping from {one.name} to {address}")
    for size in (56, MTU - 28, 4000):
        received, text = one.ping(address, 3, size)
        check(received == 3, f"ping with {size} bytes:\n{text}")
    check_transfer(one, other, address)


def check_follow(hosts, stays, now, seconds=3):
    """The guest that moved is reached at its new host, by all hosts, without a word from it."""
    wait_for(lambda: stays.ping(MOVES, 1)[0], seconds, f"the guest at host {now.number}")
    for host in hosts:
        wait_for(lambda h=host: h.place(guest_mac(2)) == now.address, seconds,
                 f"host {host.number} to know that the guest is at {now.address}")


def main():
    with contextlib.ExitStack() as stack:
        hosts = stack.enter_context(Fabric())
        a, b, c = hosts
        stays = stack.enter_context(guest(stack.enter_context(daemon(a, 1)), STAYS))

        at_b = stack.enter_context(daemon(b, 2))
        with guest(at_b, MOVES) as moves:
            check_reach(stays, moves, MOVES)
            check_reach(moves, stays, STAYS)
            check_follow(hosts, stays, b)

        # The daemon on b still holds the tap, so b goes on to believe that the guest is there.
        print("to another host", flush=True)
        with daemon(c, 2) as at_c, guest(at_c, MOVES) as moves:
            check_equal(b.place(guest_mac(2)), b.address, "where host b believes the guest to be")
            moves.ping(STAYS, 1)
            check_follow(hosts, stays, c)
            check_transfer(stays, moves, MOVES, 1)

        # Back, and this time nobody has to be told to forget: c's tap lost its carrier.
        print("and back", flush=True)
        wait_for(lambda: a.place(guest_mac(2)) is None, 3, "the end of the guest to be announced")
        with guest(at_b, MOVES) as moves:
            # The guest that moved says nothing by itself.
            check_follow(hosts, stays, b)
            check_transfer(moves, stays, STAYS, 1)
        check(TAP in backend(), "the tap of the document")


run(main)
