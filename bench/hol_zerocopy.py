# SPDX-License-Identifier: BSD-3-Clause
"""The part of bench_hol about zero-copy: two remotes of a tunnel, and pages that HTB holds."""

from hol_vxlan import VxlanNetwork

from hol_parts import ALONE, RATES, REST, TO_BOTH, Part
from hol_row import Metered, Row, Scenario, column, fault, show, slow_served

# As in the published table: nothing but zero-copy and its limit is in the way.
UNLIMITED = "sndbuf=unlimited"
# Of 100 Mbit/s, as published.
OUTSIDE = 93


class MeteredTunnel(Metered, VxlanNetwork):
    """A guest behind virtlane's tunnel endpoint. Pending packets and completions out of order are its, too."""

    def reading(self, flows):
        """As Network.reading()."""
        pair = self.daemon.stat()["queue_pairs"][0]
        tx = pair["tx"]
        return {**super().reading(flows), "out_of_order": tx["out_of_order"], "zc_packets": tx["zc_packets"],
                "zc_copied": tx["zc_copied"], "packets": tx["packets"]}

    def measure(self, slow_flow, seconds=3, warm_up=1.5, fast_flow="tcp"):
        """As Network.measure()."""
        values = super().measure(slow_flow, seconds, warm_up, fast_flow)
        zerocopy = self.daemon.stat()["queue_pairs"][0]["zerocopy"]
        values["pending_max"] = zerocopy["pending_descriptors_max"]
        values["window"] = zerocopy["window"]
        return values


def tunnel(key, name, backend, *options):
    """A row of the tunnel."""
    arguments = " ".join([f"--backend=vxlan,vni=7,local=...,remote=...,remote=...,{backend}", *options])
    return Row(key, name, arguments, lambda **ports: MeteredTunnel(backend, *options, **ports))


def shares(row, key):
    """Of all packets those sent without a copy, and of these those that the kernel copied after all."""
    packets, sent, copied = (row.median(key, name) for name in ("packets", "zc_packets", "zc_copied"))
    return show("{:.0%}", sent / packets if packets else None, copied / sent if sent else None)


ZEROCOPY = [
    column("pending", "most / window", "{:.0f}", "pending_max", "window"),
    column("completed", "out of order", "{:.0f}", "out_of_order"),
    ("zero-copy", "sent / kernel copied", shares),
]


class ZeroCopy(Part):
    """10 and 100 Mbit/s behind a tunnel."""

    scenarios = {
        ALONE: Scenario("TCP to the outside alone"),
        "udp": Scenario(TO_BOTH, "udp", of_alone=ALONE),
        "tcp": Scenario("TCP to VM2, TCP to the outside", "tcp", of_alone=ALONE),
    }
    shown = ("udp", "tcp")
    columns = [*RATES, *ZEROCOPY, *REST]

    def __init__(self, sndbuf=None):
        unlimited = f"sndbuf={sndbuf}" if sndbuf else UNLIMITED
        super().__init__([
            tunnel("classic", "zero-copy, stops at the limit", f"zerocopy=on,lanes=1,{unlimited}", "--tx-full=block"),
            tunnel("fallback", "zero-copy, copies at the limit", f"zerocopy=on,lanes=1,{unlimited}", "--tx-full=lanes"),
            tunnel("copy", "always copies", f"zerocopy=off,lanes=1,{unlimited}", "--tx-full=lanes"),
            tunnel("zerocopy-lanes", "zero-copy, lanes", "zerocopy=on", "--tx-full=lanes"),
            tunnel("default", "as it comes (auto, lanes)", "zerocopy=auto", "--tx-full=lanes"),
        ])

    def judge(self, row, key):
        if row.key == "classic" and key == "udp":
            yield fault(row, key)
        if row.key in ("fallback", "zerocopy-lanes", "default"):
            fast = row.median(key, "fast")
            yield f"{row.name}: outside {fast:.1f} of 100 Mbit/s, bar {OUTSIDE}", fast >= OUTSIDE
            yield slow_served(row, key)
        if row.key != "copy":
            most, window = row.median(key, "pending_max"), row.median(key, "window")
            yield f"{row.name}: {most:.0f} descriptors pending at most, bar {window:.0f}", most <= window
