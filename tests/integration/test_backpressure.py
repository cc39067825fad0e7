# SPDX-License-Identifier: BSD-3-Clause
"""A slow way out and a small send buffer: frames wait in the ring. None is
lost, duplicated or reordered, the daemon does not spin and does not flood the
log, and memory stays bounded."""
import time

from frames import frame, seq_of
from rig import Rig, each_engine
from shaper import Shaper
from vltest import check, check_equal, run, sanitizer

FRAMES, SIZE = 900, 1000


def test(engine):
    with Rig(engine, pairs=1, backend=",sndbuf=20000") as r, Shaper(r, "8mbit") as s:
        d, q = r.driver, r.driver.tx[0]
        lines, cpu, rss = r.log_lines(), r.daemon.cpu_seconds(), r.daemon.rss_kib()
        sent, got, start = 0, [], time.monotonic()
        while len(got) < FRAMES and time.monotonic() - start < 10:
            batch = min(len(q.free), 32, FRAMES - sent)
            if batch:
                d.send(*[frame(sent + i, SIZE) for i in range(batch)])
                sent += batch
            check(all(n == 0 for _, n in q.reap()), "used length")
            got += [seq_of(f) for f in s.host.take(20, 0.05)]
        took = time.monotonic() - start
        check_equal(len(got), FRAMES, "frames that arrived")
        check_equal(got, list(range(FRAMES)), "order")
        check(took > 0.5, f"the shaper had no effect: {took:.2f} s")
        check_equal(s.host.flush(), 0, "duplicates")
        stat = r.queue("tx")
        check(stat["blocked"] > 0, "the tap never pushed back: the test shows nothing")
        check_equal([(k, v) for k, v in stat.items() if k.startswith("drop_") and v], [], "drops")
        check_equal(stat["pending"], 0, "pending")
        if not sanitizer():
            cpu = r.daemon.cpu_seconds() - cpu
            check(cpu < 0.3 * took, f"{cpu:.2f} s of CPU in {took:.2f} s")
            check(r.daemon.rss_kib() - rss < 4096, "resident memory grew")
        check(r.log_lines() - lines < 10, f"{r.log_lines() - lines} log lines")

        # Stalled for good: asleep, not spinning; released: all there.
        s.rate("8kbit")
        d.send(*[frame(i, SIZE) for i in range(100)])
        time.sleep(0.3)
        cpu = r.daemon.cpu_seconds()
        time.sleep(0.5)
        if not sanitizer():
            check(r.daemon.cpu_seconds() - cpu <= 0.03, "busy while the way out is stalled")
        s.rate("100mbit")
        check_equal([seq_of(f) for f in s.host.take(100, 8)], list(range(100)),
                    "frames after the stall")


run(lambda: each_engine(test))
