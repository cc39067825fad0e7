# SPDX-License-Identifier: BSD-3-Clause
"""A batch of transmitted packets is one submission with io_uring; it is not
held back for more packets; a single packet leaves at once."""
import time

from frames import frame, seq_of
from rig import Rig, each_engine
from vltest import check, check_equal, run, sanitizer


def test(engine):
    with Rig(engine) as r:
        d, q = r.driver, r.driver.tx[0]
        rounds, batch = 10, 128
        before = r.daemon.stat()["queue_pairs"][0]
        for n in range(rounds):
            d.send(*[frame(n * batch + i) for i in range(batch)])
            q.wait(batch)
        after = r.daemon.stat()["queue_pairs"][0]
        calls = after["worker"]["syscalls"] - before["worker"]["syscalls"]
        each = calls / (rounds * batch)
        print(f"{each:.3f} system calls per packet")
        check(each < (0.2 if engine == "uring" else 1.3), f"{each:.3f} system calls per packet")
        check_equal([seq_of(f) for f in r.host.take(rounds * batch)],
                    list(range(rounds * batch)), "frames in order")
        if engine == "uring":
            n = after["tx"]["batches"] - before["tx"]["batches"]
            check(n <= rounds * batch / 8, f"{n} submissions for {rounds * batch} packets")
        times = []
        for i in range(20):
            time.sleep(0.01)
            start = time.monotonic()
            d.send(frame(i))
            check(r.host.get(1) is not None, "a single packet did not leave")
            times.append(time.monotonic() - start)
        times.sort()
        if not sanitizer():
            check(times[10] < 0.01, f"a single packet took {times[10] * 1e3:.1f} ms")


run(lambda: each_engine(test))
