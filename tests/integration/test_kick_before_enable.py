# SPDX-License-Identifier: BSD-3-Clause
"""Buffers that were there before a ring ran are found when it starts to run:
kicked before it was enabled, never kicked, or left from before a reconnect.
A ring that is not enabled is left alone."""
import os
import time

from frames import frame, seq_of
from rig import Rig, each_engine
from vhost_client import SET_VRING_ENABLE, U64
from vltest import check_equal, run


def test(engine):
    with Rig(engine, driver=False) as r:
        for kick in ("before the ring is known", "before enable", "never"):
            d = r.connect(start=False)
            for i, q in d.queues.items():
                if i % 2:
                    d.send(frame(i, 100), pair=i // 2, kick=False)
                else:
                    d.post(pair=i // 2, count=20, kick=False)
                if kick == "before the ring is known":
                    os.write(q.kick_fd, U64.pack(1))
                d.client.setup_vring(i, q, enable=False)
                d.client.sync()
                if kick == "before enable":
                    os.write(q.kick_fd, U64.pack(1))
            time.sleep(0.1)
            check_equal(r.host.flush(), 0, "frames from rings that are not enabled")
            check_equal([q.used_idx() for q in d.queues.values()], [0] * 4, "used indices")
            for i in d.queues:
                d.client.state(SET_VRING_ENABLE, i, 1)
            r.busy_fds = r.daemon.fds()
            got = sorted(seq_of(f) for f in r.host.take(2))
            check_equal(got, [1, 3], f"frames, kick {kick}")
            for i in range(4):
                r.host.inject(frame(50 + i))
            seen = [seq_of((r.recv_any() or b"")[12:]) for _ in range(4)]
            check_equal(sorted(seen), [50, 51, 52, 53], f"frames received, kick {kick}")

            # Disabled in the middle: left alone; enabled: goes on.
            d.client.state(SET_VRING_ENABLE, 1, 0)
            d.client.sync()
            d.send(frame(77))
            time.sleep(0.05)
            check_equal(r.host.flush(), 0, "frames of a disabled ring")
            d.client.state(SET_VRING_ENABLE, 1, 1)
            check_equal([seq_of(f) for f in r.host.take(1)], [77], "after enable")
        r.alive()


run(lambda: each_engine(test))
