# SPDX-License-Identifier: BSD-3-Clause
"""Without lanes a slow destination takes the way out from a fast one.

This is the fault that lanes are there for: as long as --tx-full=block and drop show
it, test_hol_lanes measures something.
"""

from hol import Network
from vltest import check, run

# Below what the shaped port can hold, so that the send buffer fills first.
SNDBUF = 200000


def show(mode, flow, alone, values):
    """One line of figures."""
    print(f"{mode}: {flow} to VM2 {values['slow']:.2f}, TCP to the outside {values['fast']:.1f} "
          f"of {alone:.1f} Mbit/s alone, {values['drops']} drops, {values['blocked']} times blocked")


def test(mode, flows):
    """The fast destination gets less than half of what it gets alone."""
    with Network(f"sndbuf={SNDBUF}", f"--tx-full={mode}") as net:
        alone = net.measure(None)["fast"]
        check(alone > 80, f"{mode}: {alone:.1f} Mbit/s to the outside alone")
        for flow in flows:
            values = net.measure(flow)
            show(mode, flow, alone, values)
            check(values["fast"] < 0.5 * alone, f"{mode}: the fast destination is not blocked by a slow {flow} flow")
            check(values["slow"] > 8.5, f"{mode}: {values['slow']:.2f} Mbit/s to VM2: it was not slow by its shaper")
            check(values["shaper_drops"] == 0, f"{mode}: HTB dropped, so its queue was full before the send buffer")
            if mode == "block":
                check(values["drops"] == 0, f"{mode}: {values['drops']} packets dropped")
            else:
                check(values["drops"] > 0, f"{mode}: nothing was dropped")


def main():
    test("block", ("udp", "tcp"))
    test("drop", ("udp",))


run(main)
