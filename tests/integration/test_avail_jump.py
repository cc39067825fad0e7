# SPDX-License-Identifier: BSD-3-Clause
"""An available index that claims more chains than the ring has, or a head
beyond it, breaks that queue: the err descriptor is signalled, stat says so,
nothing old is processed again. Every other queue goes on, and a restart mends
the broken one."""
import time

from frames import frame
from rig import Rig, each_engine
from vhost_client import drain, poll
from vltest import check, check_equal, run


def test(engine):
    def jump(by):
        return lambda q: q.set_avail_idx(q.avail_idx + by)

    def head(value):
        def act(q):
            q.queue(value)
            q.publish()
        return act
    with Rig(engine) as r:
        d, client = r.driver, r.driver.client
        for index in (1, 0):
            q = d.queues[index]
            kind = "tx" if index else "rx"
            for act in (jump(q.size + 1), jump(0x8000), jump(-1), head(q.size), head(0xffff)):
                if index:
                    r.tx_ok(0)
                drain(q.err_fd)
                if kind == "rx":
                    r.steer(0)
                passed = r.ns.counter("tap0", "rx_packets")
                act(q)
                q.kick(force=True)
                if kind == "rx":
                    r.host.inject(frame(1))
                check(poll(lambda: drain(q.err_fd), 2), f"{kind}: err fd not signalled")
                check_equal(r.queue(kind)["broken"], True, f"{kind} broken")
                check_equal(r.ns.counter("tap0", "rx_packets"), passed,
                            "frames sent again from a broken queue")
                q.kick(force=True)
                r.tx_ok(1)
                if kind == "rx":
                    r.tx_ok(0)
                r.rx_ok(1)
                check_equal(q.reap(), [], "chains used on a broken queue")
                # The driver resets the queue.
                client.get_vring_base(index)
                q.restart()
                if kind == "rx":
                    d.posted[0].clear()
                client.setup_vring(index, q)
                client.sync()
                time.sleep(0.01)
                check_equal(r.queue(kind)["broken"], False, f"{kind} broken after a restart")
        # As often as it likes, without filling the log.
        lines = r.log_lines()
        for _ in range(50):
            d.tx[0].set_avail_idx(d.tx[0].avail_idx + d.tx[0].size + 1)
            d.tx[0].kick(force=True)
            check(poll(lambda: drain(d.tx[0].err_fd), 2), "err fd not signalled")
            client.get_vring_base(1)
            d.tx[0].restart()
            client.setup_vring(1, d.tx[0])
            client.sync()
        check(r.log_lines() - lines < 20, f"{r.log_lines() - lines} log lines for 50 broken queues")
        r.alive()


run(lambda: each_engine(test))
