# SPDX-License-Identifier: BSD-3-Clause
"""What lanes cost where nothing is slow: packets per CPU second into a tap that is never full."""

import contextlib
import functools

from vltest import Netns, Virtlane, check, need_tun

from bench_tap import FIGURES, GSO_PIECES, GSO_SIZE, SIZES, BackEnd
from cpu import BACK_END, on_cpu
from report import Bar, Experiment, say

LANES = 8
# What lanes=8,sndbuf=auto chooses for the express lane.
SNDBUF = 512 * 1024

# {candidate: (lanes, backend options)}
WITH, ONE, UNLIMITED = f"lanes={LANES}", "lanes=1, same sndbuf", "lanes=1, unlimited"
CANDIDATES = {
    WITH: (LANES, f"lanes={LANES},sndbuf={SNDBUF}"),
    ONE: (1, f"lanes=1,sndbuf={SNDBUF}"),
    UNLIMITED: (1, "lanes=1,sndbuf=unlimited"),
}
BARS = [Bar(WITH, ONE, 0.97, "per_cpu"), Bar(WITH, UNLIMITED, None, "per_cpu")]


@contextlib.contextmanager
def back_end(lanes, options):
    """virtlane on a tap that it made itself, since one made for a single queue has a single lane."""
    with Netns() as netns, contextlib.ExitStack() as stack:
        with on_cpu(BACK_END):
            daemon = stack.enter_context(Virtlane(backend=f"tap,name=tap0,{options}", netns=netns))
        netns.configure("tap0")
        got = len(daemon.stat()["queue_pairs"][0]["lanes"])
        check(got == lanes, f"{got} lanes instead of {lanes}")
        yield BackEnd(netns, daemon.socket, daemon)


def measure(rounds=9, seconds=0.5):
    """Frames of all sizes through each of them."""
    need_tun()
    found = []
    with contextlib.ExitStack() as stack:
        there = {name: stack.enter_context(back_end(*how)) for name, how in CANDIDATES.items()}
        work = [(f"TX, {size} B, driver: vl-flood", size, 1) for size in SIZES]
        work += [(f"TX, TSO frames of {GSO_SIZE} B in {pieces} buffers, driver: vl-flood", GSO_SIZE, pieces)
                 for pieces in GSO_PIECES]
        for title, size, pieces in work:
            e = Experiment(title, FIGURES, BARS)
            say(e.title)
            e.run(rounds, {name: functools.partial(b.flood, "tx", size, seconds, pieces)
                           for name, b in there.items()})
            found.append(e)
        for name, b in there.items():
            refused = sum(lane["refusals"] for lane in b.process.stat()["queue_pairs"][0]["lanes"])
            check(refused == 0, f"{name}: the tap was full {refused} times, so this was not an unshaped device")
    return found
