# SPDX-License-Identifier: BSD-3-Clause
"""A user without privileges uses a persistent tap that belongs to them."""

import os
import shutil

from vltest import Netns, VirtioUser, Virtlane, Workdir, check, engines, need_tun, run, virtlane_binary

AS_NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--inh-caps=-all",
             "--bounding-set=-all")


def serve(work):
    """The test proper; the daemon's program is in a directory that everyone may enter."""
    os.environ["VIRTLANE"] = shutil.copy(virtlane_binary(), work / "virtlane")
    os.chmod(work.path, 0o755)
    for engine in engines():
        with Netns() as netns:
            netns.add_tap(user="nobody")
            with Virtlane(netns=netns, prefix=AS_NOBODY, engine=engine) as daemon:
                with open(f"/proc/{daemon.pid}/status", encoding="ascii") as f:
                    status = dict(line.split(":\t", 1) for line in f)
                check(status["Uid"].split()[1] != "0", "the daemon runs as root")
                check(int(status["CapEff"], 16) == 0, "the daemon has capabilities")
                with VirtioUser(daemon.socket) as testpmd:
                    testpmd.wait_link()
                    testpmd.forward("icmpecho")
                    received, text = netns.ping("10.9.0.77", count=5)
                    check(received == 5, f"{engine}: {text}")


def main():
    need_tun()
    with Workdir() as work:
        serve(work)


run(main)
