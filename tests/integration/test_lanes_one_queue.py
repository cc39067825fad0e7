# SPDX-License-Identifier: BSD-3-Clause
"""Whatever lane or probe a packet goes by, the host puts it into the same transmit queue: order holds
there too."""
import re
import time

from frames import ETH_P_TEST
from lanes import Flood, LaneRig
from rig import each_engine
from vhost_client import HostSide
from vltest import check, check_equal, need_program, run

QUEUES = 16
DESTINATIONS = 3


class Uplink:
    """Bridges tap0 to a port with many transmit queues, each with a qdisc that counts."""

    def __init__(self, rig):
        need_program("tc")
        self.ns = ns = rig.ns
        ns.run("sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6")
        ns.ip("link", "add", "br0", "type", "bridge", "forward_delay", "0", "mcast_snooping", "0")
        ns.ip("link", "add", "out0", "numtxqueues", str(QUEUES), "numrxqueues", "1",
              "type", "veth", "peer", "name", "far0", "numrxqueues", str(QUEUES))
        ns.run("tc", "qdisc", "add", "dev", "out0", "root", "handle", "1:", "mq")
        for port in ("tap0", "out0"):
            ns.ip("link", "set", port, "master", "br0")
        for name in ("tap0", "br0", "out0", "far0"):
            ns.ip("link", "set", name, "up")
        self.host = HostSide(ns, "far0", ETH_P_TEST)

    def packets(self):
        """Packets that each transmit queue has sent, where it did."""
        text = self.ns.run("tc", "-s", "qdisc", "show", "dev", "out0").stdout
        sent = re.findall(r"parent 1:(\w+).*\n Sent \d+ bytes (\d+) pkt", text)
        return {queue: int(count) for queue, count in sent if int(count)}

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.host.close()


def test(engine):
    with LaneRig(engine) as r, Uplink(r) as up:
        flood = Flood(r, up)
        before = up.packets()
        start = time.monotonic()
        for _ in flood.run(1.5, dict.fromkeys(range(1, DESTINATIONS + 1), 1000)):
            pass
        flood.drain()
        lane = r.lanes()[0]
        queues = {queue: count - before.get(queue, 0) for queue, count in up.packets().items()}
        queues = {queue: count for queue, count in queues.items() if count}
        print(f"{time.monotonic() - start:.1f} s: transmit queues {queues}, {lane['probes']} of {lane['packets']} by a probe",
              flush=True)
        check(lane["probes"] > 100, f"only {lane['probes']} probes: the test shows nothing")
        check_equal(len(queues), 1, "transmit queues that were used")
        check(max(queues.values()) >= sum(flood.sent.values()), "frames are missing")


run(lambda: each_engine(test))
