# SPDX-License-Identifier: BSD-3-Clause
"""virtio-user listens, the daemon connects; after the daemon is killed the next one takes over."""

from vltest import VirtioUser, Workdir, check, run, virtlane_on_tap


def main():
    with Workdir() as work, virtlane_on_tap(socket_path=work / "s", mode="client") as (netns, daemon):
        with VirtioUser(daemon.socket, server=True) as testpmd:
            for _ in range(2):
                daemon.wait_stat(lambda s: s["connected"], "connected to the front-end", 15)
                testpmd.wait_link()
                testpmd.forward("icmpecho")
                received, text = netns.ping("10.9.0.77", count=5)
                check(received >= 4, text)
                daemon.kill9()
                testpmd.wait_link(up=False)
                daemon.start()
            daemon.wait_stat(lambda s: s["connected"], "connected to the front-end", 15)


run(main)
