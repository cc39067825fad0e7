# SPDX-License-Identifier: BSD-3-Clause
"""Batches leave by a ring in shared memory, with a system call for each batch and not for each frame.
Order is kept with frames that do not fit there; what the queueing discipline drops in the middle of a
batch is counted, and the rest goes on; when all of the ring is held in the host, frames go by system
calls again; once that is over, or the interface was down, by the ring."""
import contextlib
import ctypes
import os

from frames import GSO_TCPV4, NEEDS_CSUM, frame, seq_of, tcp4, vnet
from lanes import Flood, check_accounted
from packet import PacketDestinations, PacketLaneRig, PacketRig
from rig import each_engine
from vltest import check, check_equal, run, wait_for

BATCH = 64
DATA = bytes(range(250)) * 20
FLOW = (6000, 5000, "10.0.0.2", "10.0.0.1")


def batches():
    """What is sent together: None is a frame with segmentation offload, which is too large."""
    yield from [range(i, i + BATCH) for i in range(0, 20 * BATCH, BATCH)]
    yield [*range(20), None, *range(20, 30), None, None, *range(30, 50)]
    yield [None, *range(20)]
    yield [*range(20), None]
    yield range(40)


def system_calls(engine):
    with PacketRig(engine, vnet=True, mtu=1500) as r:
        d, q = r.driver, r.driver.tx[0]
        before = r.daemon.stat()["queue_pairs"][0]["worker"]["syscalls"]
        sent = 0
        for batch in batches():
            heads = [[d.packet(tcp4(DATA, *FLOW, partial=True), vnet(NEEDS_CSUM, GSO_TCPV4, 54, 1000, 34, 16, 0))]
                     if i is None else [d.packet(frame(i, 60 + i % 1455))] for i in batch]
            q.add(*heads)
            check_equal({n for _, n in q.wait(len(heads))}, {0}, "used lengths")
            got = r.host.take(len(heads))
            check_equal([None if len(f) > 1600 else seq_of(f[10:]) for f in got], list(batch), "frames in order")
            for i, data in zip(batch, got):
                check_equal(data[10:], tcp4(DATA, *FLOW, partial=True) if i is None else frame(i, 60 + i % 1455), "a frame")
            sent += len(heads)
        each = (r.daemon.stat()["queue_pairs"][0]["worker"]["syscalls"] - before) / sent
        print(f"{each:.3f} system calls per packet", flush=True)
        check(each < 0.25, f"{each:.3f} system calls per packet")
        # One that is longer than the MTU, in a batch: the kernel refuses it.
        refused = r.queue("tx")["drop_refused"]
        for _ in range(2):
            d.send(*[frame(i, 1600 if i == 20 else 100) for i in range(40)])
            q.wait(40)
        check_equal([seq_of(f[10:]) for f in r.host.take(78)], 2 * [i for i in range(40) if i != 20], "frames that are not too long")
        r.wait_counter("tx", "drop_refused", refused + 2)
        # A partial checksum is completed by nobody up to here.
        want = tcp4(DATA[:100], *FLOW, partial=True)
        for _ in range(2):
            q.add(*[[d.packet(want, vnet(NEEDS_CSUM, 0, 0, 0, 34, 16, 0))]] * 20)
            q.wait(20)
        got = r.host.take(40)
        check_equal(len(got), 40, "frames with partial checksums")
        check_equal({(f[0] & NEEDS_CSUM, f[10:]) for f in got}, {(NEEDS_CSUM, want)}, "frame with a partial checksum")


def offer(flood, number, count, length):
    """Batches to a destination; every chain comes back."""
    for _ in range(count // BATCH):
        check(all(flood.send(number, length) for _ in range(BATCH)), "the ring is full")
        flood.kick()
        while flood.busy:
            flood.reap()


def full_queue(engine):
    """A queue of 5 packets: nearly all of a batch is dropped by it."""
    with PacketLaneRig(engine, ",lanes=1") as r, PacketDestinations(r, {1: "50mbit", 2: "200kbit"}) as d:
        r.ns.run("tc", "qdisc", "change", "dev", "veth0", "parent", f"1:{2 + 16:x}", "pfifo", "limit", "5")
        flood = Flood(r, d)
        for _ in range(3):
            offer(flood, 2, 4 * BATCH, 700)
            offer(flood, 1, 4 * BATCH, 200)
        d.change({2: "100mbit"})
        flood.drain()
        check_accounted(r, flood)
        check_equal(set(r.drops()), {"drop_nomem"}, "reasons of drops")
        check(r.drops()["drop_nomem"] > 600, f"the queue was not full: {r.drops()}")
        check_equal(flood.got[1], flood.sent[1], "frames of the destination that is not full")


def all_held(engine):
    """More frames in HTB than the ring has slots."""
    with PacketLaneRig(engine, ",lanes=1") as r, PacketDestinations(r, {1: "8kbit"}) as d:
        flood = Flood(r, d)
        offer(flood, 1, 14 * BATCH, 700)
        check(flood.receive() < 100, "HTB does not hold the frames")
        d.change({1: "1gbit"})
        flood.drain()
        check_accounted(r, flood)
        check_equal(r.drops(), {}, "drops")
        offer(flood, 1, 4 * BATCH, 700)
        flood.drain()
        check_equal(flood.got[1], 18 * BATCH, "frames that arrived")


@contextlib.contextmanager
def control_thread_stopped(daemon):
    """It does not see the link meanwhile; the workers run."""
    seize, interrupt, detach, wait_all = 0x4206, 0x4207, 17, 0x40000000
    libc, pid = ctypes.CDLL(None, use_errno=True), daemon.pid
    check(libc.ptrace(seize, pid, None, None) == 0, os.strerror(ctypes.get_errno()))
    libc.ptrace(interrupt, pid, None, None)
    os.waitpid(pid, wait_all)
    try:
        yield
    finally:
        libc.ptrace(detach, pid, None, None)


def all_given_up(engine):
    """The interface is down, and nobody says so, while more frames come than the ring has slots."""
    with PacketRig(engine, backend=",lanes=1", mtu=1500) as r:
        q = r.driver.tx[0]
        batch = [[r.driver.packet(frame(i, 100))] for i in range(BATCH)]

        def offer_batches(count):
            for _ in range(count):
                q.add(*batch)
                q.wait(BATCH)

        def each():
            before = r.daemon.stat()["queue_pairs"][0]["worker"]["syscalls"]
            offer_batches(10)
            return (r.daemon.stat()["queue_pairs"][0]["worker"]["syscalls"] - before) / (10 * BATCH)
        offer_batches(3)
        check(each() < 0.25, "system calls per packet")
        with control_thread_stopped(r.daemon):
            r.ns.ip("link", "set", "veth0", "down")
            offer_batches(8)
        r.ns.ip("link", "set", "veth0", "up")
        r.wait_counter("tx", "drop_down", 8 * BATCH)
        wait_for(lambda: r.daemon.stat()["link"] == "up", 3, "the link to be up")
        offer_batches(2)
        check(each() < 0.25, "system calls per packet after the interface was down")
        while r.host.get(0.1):
            pass
        r.alive(fds=False)


def test(engine):
    system_calls(engine)
    full_queue(engine)
    all_held(engine)
    all_given_up(engine)


run(lambda: each_engine(test))
