# SPDX-License-Identifier: BSD-3-Clause
"""A frame over several mergeable buffers: one used entry per chain, id its
head, length what was written to it; all but the last are full; num_buffers
counts them, and their lengths add up to header and frame."""
from frames import frame
from rig import Rig, each_engine
from vhost_client import WRITE, U16
from vltest import check_equal, run


def test(engine):
    with Rig(engine, mtu=9000) as r:
        d, q = r.driver, r.driver.rx[0]
        r.steer(0)
        for length in (9000, 1526 - 12, 1527 - 12, 2 * 1526 - 12, 2 * 1526 - 11, 60, 8998):
            chains = []
            for _ in range(8):
                a, b = d.mem.buffer(526, 0xee), d.mem.buffer(1000, 0xee)
                chains.append([(a, 526, WRITE), (b, 1000, WRITE)])
            heads = q.add(*chains)
            segs = dict(zip(heads, chains))
            want = frame(length, length)
            r.host.inject(want)
            need = -(-(12 + length) // 1526)
            used = q.wait(need)
            check_equal(len(used), need, f"used entries, frame of {length}")
            check_equal(sum(n for _, n in used), 12 + length, "sum of used lengths")
            check_equal([n for _, n in used[:-1]], [1526] * (need - 1), "all but the last full")
            check_equal([h for h, _ in used], heads[:need], "ids are the heads, in order")
            data = b""
            for head, n in used:
                part = b"".join(d.mem.read(g, s) for g, s, _ in segs[head])
                data += part[:n]
                check_equal(set(part[n:]) - {0xee}, set(), "bytes past the used length")
            check_equal(U16.unpack_from(data, 10)[0], need, "num_buffers")
            check_equal(data[12:], want, "the frame")
            # Clear what is left over for the next round.
            base = d.client.get_vring_base(0)
            check_equal(base, q.used_idx(), "what GET_VRING_BASE says of the untouched rest")
            q.restart(base)
            d.client.setup_vring(0, q, base)
            d.client.sync()
        r.wait_counter("rx", "packets", 7)
        check_equal(r.queue("rx")["merged"], 5, "merged")
        r.alive()


run(lambda: each_engine(test))
