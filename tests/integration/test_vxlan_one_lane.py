# SPDX-License-Identifier: BSD-3-Clause
"""Two remotes and one lane: what one of them refuses waits, and is not lost because packets for the other one left
in between. What is too long for the path takes nothing with it that follows."""

from frames import GUEST_MAC
from rig import each_engine
from vltest import check, check_equal, run
from vxlan import TunnelRig

MACS = ["02:00:00:00:00:aa", "02:00:00:00:00:bb"]
STATIC = ",".join(f"mac={mac}@10.8.0.{number}" for number, mac in enumerate(MACS, 2))
FRAMES = 200
TOO_LONG = 1600


def frame(remote, seq, length):
    """For the guest behind remote number @remote."""
    head = bytes.fromhex(MACS[remote].replace(":", "")) + GUEST_MAC + b"\x88\xb5" + seq.to_bytes(4, "big")
    return head + bytes([seq & 0xff]) * (length - len(head))


def sequences(host):
    """Of all frames that come until none does."""
    got = []
    while (data := host.get(0.5)) is not None:
        got.append(int.from_bytes(data[14:18], "big"))
    return got


def send(rig, *frames):
    rig.driver.send(*frames)
    rig.driver.tx[0].wait(len(frames), timeout=10)


def shared(engine):
    """Frames to both in turn, more than the send buffers hold, one that is too long among them."""
    with TunnelRig(engine, count=2, backend=f"lanes=1,sndbuf=16384,{STATIC}") as rig:
        for line in ("qdisc add dev u0 root handle 1: htb default 10",
                     "class add dev u0 parent 1: classid 1:10 htb rate 10mbit ceil 10mbit burst 3k cburst 3k"):
            rig.ns.run("tc", *line.split())
        send(rig, *[frame(i % 2, i, TOO_LONG if i == 4 else 600 + 3 * i) for i in range(FRAMES)])
        for remote, host in enumerate(rig.hosts):
            check_equal(sequences(host), [i for i in range(FRAMES) if i % 2 == remote and i != 4], f"frames to remote {remote}")
        tx = rig.queue("tx")
        check_equal((tx["drop_refused"], tx["drop_nomem"]), (1, 0), "drops")
        rig.alive(fds=False)


def behind(engine):
    """Shorter frames behind some that are too long."""
    with TunnelRig(engine, backend=STATIC.split(",", maxsplit=1)[0]) as rig:
        want = [i for i in range(1, FRAMES) if i % 3 == 0]
        send(rig, *[frame(0, i, 100 if i in want else TOO_LONG) for i in range(1, FRAMES)])
        check_equal(sequences(rig.host), want, "frames that are not too long")
        # It fits now.
        rig.ns.ip("link", "set", "u0", "mtu", "2000")
        rig.tunnel_net.wire.ip("link", "set", "w0", "mtu", "2000")
        rig.tunnel_net.wire.ip("link", "set", "w1", "mtu", "2000")
        rig.far[0].ip("link", "set", "u0", "mtu", "2000")
        rig.far[0].ip("link", "set", "vx0", "mtu", "1900")
        before = rig.tunnel()["messages"]
        for _ in range(2):
            send(rig, *[frame(0, i, TOO_LONG) for i in range(32)])
            check_equal(sequences(rig.host), list(range(32)), "frames that fit now")
        check(rig.tunnel()["messages"] - before < 48, "frames do not go together again")


def test(engine):
    shared(engine)
    behind(engine)


run(lambda: each_engine(test))
