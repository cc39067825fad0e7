# SPDX-License-Identifier: BSD-3-Clause
"""What strangers, other tenants and broken senders put on the underlay is dropped and counted, reaches no
guest, and teaches virtlane nothing. Datagrams that had been fragmented are refused, as RFC 7348 has it; so is
what does not fit the underlay."""

import os
import random
import re
import socket

from frames import GUEST_MAC, eth, frame, seq_of
from rig import each_engine, wait_frame
from vltest import check, check_equal, run, wait_for
from vxlan import VNI, TunnelRig

HEADER = bytes.fromhex("08000000") + VNI.to_bytes(3, "big") + b"\0"
FRAME = eth(b"y" * 100, dst=GUEST_MAC, src=bytes.fromhex("0200000000aa"))


class Sender:
    """A UDP socket of a host on the underlay."""

    def __init__(self, netns, address):
        with netns.entered():
            self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind((address, 0))

    def send(self, *datagrams):
        for data in datagrams:
            self.sock.sendto(data, ("10.8.0.1", 4789))


def counted(rig, name, count):
    """That many more were dropped for this reason."""
    wait_for(lambda: rig.tunnel()[name] >= count, 3, f"{name} to reach {count} (is {rig.tunnel()[name]})")
    check_equal(rig.tunnel()[name], count, name)


def nothing_came(rig, what):
    """The guest got no frame."""
    got = rig.driver.recv(0, 0.2)
    check(got is None, f"{what}: the guest gets {got and got[:64].hex()}")


def test(engine):
    """All of it, with one engine."""
    with TunnelRig(engine, count=2) as rig:
        friend = Sender(rig.far[0], "10.8.0.2")
        rig.far[1].ip("addr", "add", "10.8.0.77/24", "dev", "u0")
        stranger = Sender(rig.far[1], "10.8.0.77")
        rig.driver.post(count=32)

        stranger.send(*[HEADER + FRAME] * 5)
        counted(rig, "drop_peer", 5)
        nothing_came(rig, "a stranger")

        other = HEADER[:4] + (VNI + 1).to_bytes(3, "big") + b"\0"
        friend.send(other + FRAME, bytes(8) + FRAME, b"", b"\x08", HEADER[:7])
        nothing_came(rig, "another tenant")
        friend.send(HEADER, HEADER + FRAME[:13])
        counted(rig, "drop_short", 2)
        nothing_came(rig, "no frame")

        # Longer than the underlay's MTU: it comes in fragments.
        friend.send(HEADER + eth(b"z" * 3000, dst=GUEST_MAC))
        counted(rig, "drop_fragment", 1)
        nothing_came(rig, "a fragmented datagram")

        dice = random.Random(os.environ.get("SEED", "1"))
        for _ in range(2000):
            data = bytearray(HEADER + FRAME[:dice.randrange(120)])
            for _ in range(dice.randrange(4)):
                data[dice.randrange(len(data))] = dice.randrange(256)
            friend.send(bytes(data))
        # Reserved bits are not ours to judge.
        check_equal(rig.tunnel()["moved"], 0, "addresses moved")

        rig.driver.send(eth(b"w" * 1487))
        wait_for(lambda: rig.tunnel()["drop_mtu"], 3, "a frame that is too long to be counted")
        check("does not fit the path to this remote" in rig.daemon.log(), "it is not said in the log")
        # The garbage that had the form of a frame goes to the guest.
        while rig.recv_any(0.2) is not None:
            rig.driver.post()
        rig.alive(fds=False)


def test_unreachable(engine):
    """A remote that there is no way to, and an underlay that loses its address."""
    with TunnelRig(engine, "remote=10.77.0.1") as rig:
        rig.driver.send(frame(1, 100))
        check(wait_frame(rig.host, lambda f: seq_of(f) == 1), "the other remote gets no copy")
        counted(rig, "drop_unreachable", 1)
        check_equal(rig.tunnel()["flood_drops"], 0, "flood_drops")
        check(re.search(r"10\.77\.0\.1: this remote cannot be reached \(Network is unreachable\)", rig.daemon.log()),
              f"it is not said in the log:\n{rig.daemon.log()}")
        rig.ns.ip("addr", "del", "10.8.0.1/24", "dev", "u0")
        # At first the kernel may say that it has no room instead.
        for seq in range(2, 6):
            rig.driver.send(frame(seq, 100))
            rig.driver.tx[0].wait(1)
        wait_for(lambda: rig.tunnel()["drop_unreachable"] > 4, 3, "frames without a way to be counted")
        check("10.8.0.2: this remote cannot be reached" in rig.daemon.log(), "it is not said in the log")
        rig.ns.ip("addr", "add", "10.8.0.1/24", "dev", "u0")
        rig.alive(fds=False)


def both(engine):
    """Everything, with one engine."""
    test(engine)
    test_unreachable(engine)


run(lambda: each_engine(both))
