# SPDX-License-Identifier: BSD-3-Clause
"""The host interface moves to another network namespace under a running device:
frames pass as before, and the link is not "gone" (which the driver would take
for a pulled cable) but unknown. Deleted there, it does not end sessions."""
from frames import frame
from rig import Rig, each_engine
from vhost_client import HostSide
from vltest import Netns, check, check_equal, run, wait_for


def test(engine):
    with Rig(engine) as r, Netns("other") as other:
        r.ns.ip("link", "set", "tap0", "netns", other.name)
        other.ip("link", "set", "tap0", "up")
        r.daemon.wait_stat(lambda s: s["link"] == "unknown", "link unknown in stat", 3)
        r.host.close()
        r.host = HostSide(other)
        r.alive()
        r.connect()
        r.alive()
        # Back again, it is seen again.
        other.ip("link", "set", "tap0", "netns", r.ns.name)
        r.ns.ip("link", "set", "tap0", "up")
        r.daemon.wait_stat(lambda s: s["link"] == "up", "link up in stat", 3)
        r.ns.ip("link", "set", "tap0", "netns", other.name)
        r.daemon.wait_stat(lambda s: s["link"] == "unknown", "link unknown in stat", 3)
        other.ip("link", "del", "tap0")
        for _ in range(2):
            d = r.connect()
            d.send(*[frame(i) for i in range(100)])
            check_equal({n for _, n in d.tx[0].wait(100)}, {0}, "used lengths")
            d.client.sync()
        wait_for(lambda: r.queue("tx")["drop_gone"] >= 200, 3, "dropped frames counted")
        check(r.daemon.alive(), "the daemon has ended")


run(lambda: each_engine(test))
