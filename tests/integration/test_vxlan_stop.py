# SPDX-License-Identifier: BSD-3-Clause
"""A stop, another memory table and a disconnect while HTB holds as many pages of the guest as it may: the answer
waits until they are released, no longer than that takes, and says so in the log; what the guest writes to its
memory after the answer is not sent."""

import re
import time

from frames import frame, seq_of
from rig import wait_frame
from vltest import check, check_equal, run, sanitizer, wait_for
from vxlan import TunnelRig

WINDOW = 128
LENGTH = 1400
# All of the window takes 1.5 s.
MBIT = 1
TAKES = WINDOW * (LENGTH + 50) * 8 / (MBIT * 1e6)
BACKEND = "zerocopy=on,lanes=1,sndbuf=unlimited"


def shape(netns):
    """HTB on the host's way out."""
    for line in ("qdisc add dev u0 root handle 1: htb default 10",
                 f"class add dev u0 parent 1: classid 1:10 htb rate {MBIT}mbit ceil {MBIT}mbit burst 3k cburst 3k",
                 "qdisc add dev u0 parent 1:10 handle 10: pfifo limit 1000"):
        netns.run("tc", *line.split())


def fill(rig, first):
    """Sends frames until as much is pending as may be, and some more; where the buffers of the former are."""
    frames = [frame(first + i, LENGTH) for i in range(WINDOW + 40)]
    start = rig.driver.mem.alloc(0)
    rig.driver.send(*frames[:WINDOW], kick=False)
    end = rig.driver.mem.alloc(0)
    rig.driver.send(*frames[WINDOW:])
    wait_for(lambda: rig.daemon.stat()["queue_pairs"][0]["zerocopy"]["pending_descriptors"] >= WINDOW - 4, 3,
             "the window to be full")
    return start, end


def scribble(rig, area):
    """Overwrites what was sent."""
    start, end = area
    rig.driver.mem.write(start, b"\xdb" * (end - start))


def arrivals(rig, first, what):
    """Everything that comes is what was sent; how many frames."""
    count = 0
    while (got := wait_frame(rig.host, lambda f: len(f) == LENGTH)) is not None:
        check(got == frame(seq_of(got), LENGTH), f"{what}: a frame has {got[:40].hex()}...")
        check(seq_of(got) >= first, f"{what}: an old frame")
        count += 1
    return count


def answered(rig, what, took, line):
    """The time until the answer, and what the log says about it."""
    print(f"{what}: {took:.2f} s, all of the window takes {TAKES:.2f} s", flush=True)
    check(0.3 * TAKES < took, f"{what}: answered after {took:.2f} s, before the pages can have been released")
    if not sanitizer():
        check(took < 1.5 * TAKES + 0.5, f"{what}: answered after {took:.2f} s only")
    said = "\n".join(rig.daemon.log().splitlines()[line:])
    check(re.search(r"stopping for 1 s: the kernel has not let go of \d+ packets, the oldest of lane 0", said), f"{what}: the log does not say what is waited for:\n{said}")


def test_stop(rig):
    """GET_VRING_BASE."""
    line, area = rig.log_lines(), fill(rig, 0)
    start = time.monotonic()
    base = rig.driver.client.get_vring_base(1)
    took = time.monotonic() - start
    scribble(rig, area)
    check_equal(rig.daemon.stat()["queue_pairs"][0]["zerocopy"]["pending_packets"], 0, "pending after the answer")
    answered(rig, "stop", took, line)
    rig.driver.tx[0].reap()
    check(arrivals(rig, 0, "stop") >= WINDOW - 4, "what was pending did not arrive")
    rig.driver.client.setup_vring(1, rig.driver.tx[0], base)
    check(arrivals(rig, WINDOW - 4, "start again") > 0, "the rest does not go out")


def test_memory(rig):
    """SET_MEM_TABLE with rings that run."""
    line, area = rig.log_lines(), fill(rig, 1000)
    start = time.monotonic()
    check_equal(rig.driver.client.set_mem_table(rig.driver.mem.regions), 0, "answer")
    took = time.monotonic() - start
    scribble(rig, area)
    answered(rig, "memory table", took, line)
    check(arrivals(rig, 1000, "memory table") >= WINDOW - 4, "what was pending did not arrive")


def test_disconnect(rig):
    """The socket closes; the next front-end is served when all is released, and gets no part of it."""
    line = rig.log_lines()
    fill(rig, 2000)
    start = time.monotonic()
    rig.disconnect()
    rig.connect()
    answered(rig, "disconnect", time.monotonic() - start, line)
    check(arrivals(rig, 2000, "disconnect") >= WINDOW - 4, "what was pending did not arrive")
    rig.host.sock.setblocking(False)
    rig.alive(fds=False)


def main():
    for test in (test_stop, test_memory, test_disconnect):
        with TunnelRig("uring", BACKEND, options=("--tx-full=block",)) as rig:
            shape(rig.ns)
            test(rig)
            check(rig.daemon.alive(), "the daemon has ended")


run(main)
