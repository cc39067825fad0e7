# SPDX-License-Identifier: BSD-3-Clause
"""No receive buffers while the host floods: the daemon sleeps; with the first
buffers reception goes on by itself."""
import time

from frames import frame, seq_of
from rig import Rig, each_engine
from vltest import check, run, sanitizer


def test(engine):
    with Rig(engine) as r:
        d = r.driver
        for round_ in range(2):
            data = frame(7, 1000)
            start, cpu, n = time.monotonic(), r.daemon.cpu_seconds(), 0
            while time.monotonic() - start < 0.8:
                r.host.inject(*[data] * 50)
                n += 50
            took = time.monotonic() - start
            cpu = r.daemon.cpu_seconds() - cpu
            if not sanitizer():
                check(cpu <= 0.05 * took + 0.01, f"{cpu:.2f} s of CPU in {took:.2f} s, no buffers")
            if round_ == 0:
                # Rings that never had any buffer count as starved at start.
                stat = [r.queue("rx", p)["starved"] for p in (0, 1)]
                check(all(s <= 5 for s in stat), f"starved {stat} times")
            for pair in (0, 1):
                d.post(count=20, pair=pair)
            got = [r.recv_any() for _ in range(20)]
            check(all(g and seq_of(g[12:]) == 7 for g in got), "frames after the drought")
            time.sleep(0.05)
            while r.recv_any(0):
                pass
        # Drain the tap, then it works as ever.
        for _ in range(50):
            for pair in (0, 1):
                d.post(count=len(d.rx[pair].free), pair=pair)
            if r.recv_any(0.05) is None:
                break
            while r.recv_any(0):
                pass
        r.tx_ok(0)
        r.tx_ok(1)


run(lambda: each_engine(test))
