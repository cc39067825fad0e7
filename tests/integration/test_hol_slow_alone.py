# SPDX-License-Identifier: BSD-3-Clause
"""A slow destination alone: what is dropped early to keep its queue short costs TCP no throughput."""

from hol import Network
from vltest import check, run

# What else runs on the machine can only make it look worse.
ATTEMPTS = 3


def main():
    with Network() as net:
        for _ in range(ATTEMPTS):
            # TCP has found its rate after a few seconds.
            values = net.measure("tcp", seconds=6, warm_up=4, fast_flow=None)
            again = values["retransmitted"] / values["segments"]
            print(f"TCP to VM2 {values['slow']:.2f} Mbit/s of 10, {again:.2%} of the segments sent again, "
                  f"round trip p50/p99 {values['slow_p50']}/{values['slow_p99']} ms, drops: "
                  f"{ {name: n for name, n in values.items() if name.startswith('drop') and n} }", flush=True)
            if values["slow"] >= 9.3 and again <= 0.01:
                break
        check(values["slow"] >= 9.3, f"TCP to VM2 alone: {values['slow']:.2f} Mbit/s of 10")
        check(again <= 0.01, f"TCP to VM2 alone: {again:.2%} of the segments sent again")
        check(values["shaper_drops"] == 0, "HTB dropped: its queue was full")


run(main)
