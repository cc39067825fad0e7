#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The host interface is deleted under a running device: the daemon stays, uses
no CPU, shows it in stat, gives transmitted buffers back and counts them."""
import time

from frames import frame
from rig import Rig, each_engine
from vltest import check, check_equal, run, sanitizer


def test(engine):
    with Rig(engine) as r:
        r.alive()
        d, q = r.driver, r.driver.tx[0]
        d.post(count=50)
        r.ns.ip("link", "del", "tap0")
        r.daemon.wait_stat(lambda s: s["link"] == "gone", "link gone in stat", 3)
        before = r.queue("tx")["drop_gone"]
        for _ in range(3):
            d.send(*[frame(i) for i in range(100)])
            check_equal({n for _, n in q.wait(100)}, {0}, "used lengths")
        r.wait_counter("tx", "drop_gone", before + 300)
        cpu = r.daemon.cpu_seconds()
        time.sleep(1)
        if not sanitizer():
            cpu = r.daemon.cpu_seconds() - cpu
            check(cpu <= 0.02, f"{cpu:.2f} s of CPU per second for a deleted tap")
        check(r.daemon.alive(), "the daemon has ended")
        d.client.sync()
        check(r.log_lines() < 100, "too many log lines")
        # Rings can be stopped, and another front-end is still served.
        for i in d.queues:
            d.client.get_vring_base(i)
        r.connect()
        r.driver.send(frame(1))
        r.driver.tx[0].wait(1)


run(lambda: each_engine(test))
