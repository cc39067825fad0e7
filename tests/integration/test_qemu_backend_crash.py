# SPDX-License-Identifier: BSD-3-Clause
"""The daemon is killed and started again: traffic is back without touching the guest.

QEMU as the client of the socket connects again, as the server it waits for the daemon to come back.
"""

from vltest import QemuGuest, Workdir, check_traffic, run, virtlane_on_tap, wait_for


def crash(netns, daemon, guest):
    """Kill the daemon twice, once with a full stream of packets on its way."""
    guest.wait_carrier(True)
    check_traffic(netns, guest, mib=1)
    for busy in (False, True):
        if busy:
            guest.run("ping -A -q -w 5 -s 1000 10.9.0.1 >/dev/null 2>&1 &")
        daemon.kill9()
        guest.wait_carrier(False)
        daemon.start()
        daemon.wait_stat(lambda s: s["connected"], "the front-end is back", 15)
        guest.wait_carrier(True)
        # Its replies would fill the small receive buffers of the pings that are checked.
        guest.run("killall ping", status=None)
        wait_for(lambda: netns.ping("10.9.0.2", count=1, wait=1)[0] == 1, 10, "ping after the restart")
        check_traffic(netns, guest, mib=1)


def main():
    with virtlane_on_tap() as (netns, daemon):
        with QemuGuest(daemon.socket, reconnect=1) as guest:
            crash(netns, daemon, guest)
    with Workdir() as work, virtlane_on_tap(socket_path=work / "s", mode="client") as (netns, daemon):
        with QemuGuest(daemon.socket, server=True) as guest:
            crash(netns, daemon, guest)


run(main)
