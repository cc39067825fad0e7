# SPDX-License-Identifier: BSD-3-Clause
"""With lanes a slow destination, UDP or TCP, leaves a fast one what it has alone, and nobody waits long.

The daemon runs with its defaults, and with a limited send buffer. `./dev bench-hol`
measures the same for longer, against tighter bars.
"""

from hol import Network
from vltest import check, run, sanitizer

# What else runs on the machine can only make it look worse.
ATTEMPTS = 3


def faults(flow, alone, values):
    """What is not as it must be, in words."""
    bars = [
        (values["fast"] >= 0.9 * alone, f"{values['fast']:.1f} Mbit/s to the outside, {alone:.1f} alone"),
        (values["slow"] >= 9.0, f"{values['slow']:.2f} Mbit/s to VM2, of 10"),
        (values["shaper_drops"] == 0, f"{values['shaper_drops']} packets waited in HTB's queue until it was full"),
    ]
    if not sanitizer():
        p99 = values["slow_p99"]
        bars.append((p99 is not None and p99 <= 50, f"round trip to VM2: p99 is {p99} ms"))
    if flow == "udp":
        bars.append((values["drops"] > 0, "60 Mbit/s into 10, and nothing was counted as dropped"))
    return [text for met, text in bars if not met]


def show(flow, alone, values):
    """The figures."""
    print(f"{flow} to VM2 {values['slow']:.2f}, TCP to the outside {values['fast']:.1f} of {alone:.1f} Mbit/s alone; "
          f"{values['drops']} drops, {values['retransmitted']} segments sent again; round trip p50/p99, ms: "
          f"VM2 {values['slow_p50']}/{values['slow_p99']}, outside {values['fast_p50']}/{values['fast_p99']}", flush=True)


def test(net, flow):
    """One kind of slow flow, tried until nothing else was in the way."""
    for _ in range(ATTEMPTS):
        alone = net.measure(None)["fast"]
        values = net.measure(flow)
        show(flow, alone, values)
        bad = faults(flow, alone, values) if alone > 80 else [f"{alone:.1f} Mbit/s to the outside alone"]
        if not bad:
            return
    check(False, f"{flow}: " + "; ".join(bad))


def main():
    for backend in ("", "sndbuf=200000"):
        print(backend or "defaults")
        with Network(backend) as net:
            for flow in ("udp", "tcp"):
                test(net, flow)


run(main)
