# SPDX-License-Identifier: BSD-3-Clause
"""Lanes over queues of a tap that someone else opened, for one pair and for two;
and over a tap that belongs to the user, by a daemon without privileges, which
has one lane and says so where that tap has one queue."""
import os
import shutil

from lanes import Destinations, FdLaneRig, Flood, OtherTapRig, check_accounted, check_unharmed
from rig import each_engine
from vltest import Netns, Virtlane, Workdir, check, check_equal, need_tun, run, virtlane_binary

# Even ones are sent to by pair 0, odd ones by pair 1 if there is one.
FAST, SLOW = (1, 2), (3, 4, 5)
RATES = {**dict.fromkeys(FAST, "50mbit"), **dict.fromkeys(SLOW, "200kbit")}
AS_NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--inh-caps=-all",
             "--bounding-set=-all")


class UserRig(OtherTapRig):
    """The tap is persistent and belongs to the user of the daemon, who has no
    capabilities."""

    def __init__(self, engine, queues):
        super().__init__(engine)
        self.queues = queues

    def start_daemon(self, stack):
        self.ns = stack.enter_context(Netns())
        self.ns.add_tap("tap0", None, queues=self.queues, user="nobody")
        return stack.enter_context(Virtlane(backend=self.backend, engine=self.engine, netns=self.ns,
                                            prefix=AS_NOBODY))

    def check_user(self):
        """It is as it should be."""
        with open(f"/proc/{self.daemon.pid}/status", encoding="ascii") as f:
            status = dict(line.split(":\t", 1) for line in f)
        check(status["Uid"].split()[1] != "0", "the daemon runs as root")
        check_equal(int(status["CapEff"], 16), 0, "capabilities of the daemon")


def traffic(r, lanes):
    """The tap has so many lanes for each pair, and they do what they are for."""
    check_equal([len(r.lanes(pair)) for pair in range(r.pairs)], [lanes] * r.pairs, "lanes")
    with Destinations(r, RATES) as d:
        flood = Flood(r, d)
        check_unharmed(r, flood, FAST, SLOW)
        d.change(dict.fromkeys(SLOW, "100mbit"))
        flood.drain()
        check(not flood.busy, "chains did not come back")
        check_accounted(r, flood)


def test(engine):
    for pairs, lanes in (1, 8), (2, 4):
        # Two more for each pair are probes.
        with FdLaneRig(engine, pairs, lanes + 2) as r:
            traffic(r, lanes)
    with UserRig(engine, 8) as r:
        r.check_user()
        traffic(r, 8)
    with UserRig(engine, 1) as r:
        r.check_user()
        check_equal(r.lane_states(), ["express"], "lanes of a tap with one queue")
        check("1 of 8 lanes" in r.daemon.log(), "it is not said that there is one lane only")
        r.tx_ok()


def main():
    need_tun()
    with Workdir() as work:
        # Where the user "nobody" may enter.
        os.environ["VIRTLANE"] = shutil.copy(virtlane_binary(), work / "virtlane")
        os.chmod(work.path, 0o755)
        each_engine(test)


run(main)
