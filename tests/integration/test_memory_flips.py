# SPDX-License-Identifier: BSD-3-Clause
"""A guest that changes descriptors and headers while the device reads them.

Another process flips lengths, flags, addresses and header fields between a
small and a huge value. Whatever the device saw, it saw once: every chain
comes back, nothing is written outside the buffers, the process goes on."""
import mmap
import os
import struct
import subprocess
import sys
import time

from frames import frame
from rig import Rig, each_engine
from vhost_client import INDIRECT, NEXT, WRITE
from vltest import check, check_equal, run

SECONDS = 5
COUNT = 16
SIZE = 2000


def flip(fd, pairs):
    """Writes both values at each offset in turn, for ever."""
    mem = mmap.mmap(fd, 0)
    plan = []
    for item in pairs:
        at, fmt, a, b = item.split(",")
        plan.append((struct.Struct(fmt), int(at), int(a), int(b)))
    while True:
        for packer, at, a, b in plan:
            packer.pack_into(mem, at, b)
            packer.pack_into(mem, at, a)


def flipper(mem, plan):
    """Starts the flipping process for (gpa, format, value, value) items."""
    words = [f"{mem.find(gpa)[1]},{fmt},{a},{b}" for gpa, fmt, a, b in plan]
    fd = mem.regions[0].fd
    return subprocess.Popen([sys.executable, __file__, "flip", str(fd)] + words, pass_fds=[fd])


def test(engine):
    with Rig(engine) as r:
        d, mem, tx, rx = r.driver, r.driver.mem, r.driver.tx[0], r.driver.rx[0]
        plan = []
        tx_heads, rx_heads = tx.own(COUNT), rx.own(COUNT)
        for i in range(COUNT):
            gpa, n, _ = d.packet(frame(i, 200))
            tx.set_desc(tx_heads[i], gpa, n)
            at = tx.desc + 16 * tx_heads[i]
            plan += [
                [(at + 8, "I", n, 0xfffff000), (at + 8, "I", n, 5)],
                [(at + 12, "H", 0, INDIRECT), (at + 8, "I", n, n - 4)],
                [(at + 12, "H", 0, NEXT | WRITE), (at + 14, "H", 0, 0xffff)],
                [(at, "Q", gpa, 0xffff_ffff_0000), (at + 12, "H", 0, NEXT)],
                [(gpa, "B", 0, 1), (gpa + 6, "H", 14, 0xfff0)],
                [(gpa, "B", 1, 1), (gpa + 8, "H", 6, 0xffff), (gpa + 6, "H", 14, 0)],
                [(gpa, "B", 0, 1), (gpa + 1, "B", 0, 1), (gpa + 4, "H", 0, 0xffff)],
                [(at + 8, "I", n, 12), (at + 8, "I", n, 26)],
            ][i % 8]
            gpa = mem.buffer(SIZE)
            rx.set_desc(rx_heads[i], gpa, SIZE, WRITE)
            at = rx.desc + 16 * rx_heads[i]
            plan += [
                [(at + 8, "I", SIZE, 10)],
                [(at + 8, "I", SIZE, 0xffffffff)],
                [(at + 12, "H", WRITE, 0), (at + 8, "I", SIZE, 100)],
                [(at + 12, "H", WRITE, WRITE | NEXT), (at + 14, "H", rx_heads[i], 0xffff)],
            ][i % 4]
        child = flipper(mem, plan)
        try:
            for h in rx_heads:
                rx.queue(h)
            rx.publish()
            rx.kick()
            end, i, sent = time.monotonic() + SECONDS, 0, 0
            while time.monotonic() < end:
                for h in tx_heads:
                    tx.queue(h)
                tx.publish()
                tx.kick()
                r.host.inject(frame(i, 60 + i % 1400), frame(i, 100))
                used = tx.wait(COUNT)
                sent += COUNT
                check_equal(set(n for _, n in used), {0}, "transmit used length")
                for head, n in rx.reap():
                    check(n <= SIZE, f"receive used length {n}")
                    rx.queue(head)
                rx.publish()
                rx.kick()
                i += 1
                if i % 64 == 0:
                    d.client.sync()
                    r.host.flush(0)
        finally:
            child.kill()
            child.wait()
        stat = r.queue("tx")
        took = sum(v for k, v in stat.items() if k == "packets" or k.startswith("drop_"))
        check_equal(took, sent, "chains that have a counter")
        check_equal(stat["broken"], False, "broken")
        check(stat["packets"] and stat["drop_chain"],
              f"the flips were never seen: {stat}")
        mem.check_canaries()
        # As they should be, for the last of them that are still posted.
        r.alive(pairs=[1])
        for _ in range(2 * COUNT):
            r.host.inject(frame(1))
        r.host.flush()
        r.tx_ok(0)
        check(os.path.exists(f"/proc/{r.daemon.pid}"), "the daemon has ended")


if sys.argv[1:2] == ["flip"]:
    flip(int(sys.argv[2]), sys.argv[3:])
else:
    run(lambda: each_engine(test))
