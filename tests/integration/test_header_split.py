# SPDX-License-Identifier: BSD-3-Clause
"""The virtio header may be split over descriptors at every byte, in both
directions; a chain is a stream of bytes. Nothing is written beside the
buffers."""
from frames import frame
from rig import Rig, each_engine
from vltest import check, check_equal, run

SPLITS = [(n,) for n in range(1, 14)]
SPLITS += [(1, 1), (1, 1, 1), (9, 1, 1, 1), (10, 2), (11, 1, 1), (4, 4, 4), (1,) * 12,
           (1,) * 13, (12, 14), (11, 2, 13), (5, 8, 1)]


def pieces(data, split):
    """Cuts @data at the given lengths."""
    for n in split:
        yield data[:n]
        data = data[n:]
    yield data


def test(engine):
    with Rig(engine) as r:
        d, mem = r.driver, r.driver.mem
        for i, split in enumerate(SPLITS):
            want = frame(i, 300)
            d.tx[0].add([(mem.buffer(len(p), data=p), len(p), 0)
                         for p in pieces(bytes(12) + want, split)])
            check_equal(d.tx[0].wait(1)[0][1], 0, "used length")
            check_equal(r.host.get(2), want, f"frame sent with a header split {split}")
        for i, split in enumerate(SPLITS):
            want = frame(i, 300)
            d.post(*split, 1600)
            r.host.inject(want)
            got = d.recv()
            check(got is not None, f"nothing received into {split}")
            check_equal(got[10:12], b"\1\0", f"num_buffers in {split}")
            check_equal(got[:10], bytes(10), f"header in {split}")
            check_equal(got[12:], want, f"frame received into {split}")
        # Several buffers, the header of the first one in pieces.
        want = frame(99, 1500)
        for _ in range(8):
            d.post(1, 1, 8, 1, 1, 1, 300)
        r.host.inject(want)
        got = d.recv()
        check(got is not None, "nothing received into many small buffers")
        check_equal(got[12:], want, "the merged frame")
        mem.check_canaries()
        r.alive()


run(lambda: each_engine(test))
