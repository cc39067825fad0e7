# SPDX-License-Identifier: BSD-3-Clause
"""The interface is set down and up, loses its carrier, and is deleted: the device status and stat
say so, packets are dropped and counted meanwhile, buffers come back, no CPU is used; when it is up
again traffic flows."""
import struct
import time

from frames import frame
from packet import PacketRig
from rig import each_engine
from vhost_client import GET_CONFIG, poll
from vltest import check, check_equal, run, sanitizer


def link_up(client):
    """The link bit of the status field in the config space."""
    data = client.call(GET_CONFIG, struct.pack("<III", 6, 2, 0) + bytes(2))
    return struct.unpack_from("<H", data, 12)[0] & 1


def send_nowhere(r, counter):
    """Packets that cannot be sent are counted, and their buffers come back."""
    before = r.queue("tx")[counter]
    for i in range(10):
        r.driver.send(*[frame(i)] * 100)
        check_equal({n for _, n in r.driver.tx[0].wait(100)}, {0}, "used lengths")
    r.wait_counter("tx", counter, before + 1000)


def check_idle(r, what):
    """Nothing is done while there is nothing to do."""
    cpu = r.daemon.cpu_seconds()
    time.sleep(0.5)
    cpu = r.daemon.cpu_seconds() - cpu
    check(sanitizer() or cpu <= 0.01, f"{cpu:.2f} s of CPU in half a second with an interface that is {what}")


def changes(r, netns, ifname):
    """Down and up again, of one of the ends."""
    client = r.driver.client
    netns.ip("link", "set", ifname, "down")
    check(poll(lambda: not link_up(client)), f"{ifname} down: status still says up")
    check_equal(r.daemon.stat()["link"], "down", "link in stat")
    send_nowhere(r, "drop_down")
    check_idle(r, "down")
    netns.ip("link", "set", ifname, "up")
    check(poll(lambda: link_up(client)), f"{ifname} up: status still says down")
    r.alive()


def test(engine):
    with PacketRig(engine) as r:
        r.alive()
        r.driver.post(count=20)
        lines = r.log_lines()
        for _ in range(2):
            changes(r, r.ns, "veth0")
            changes(r, r.far, "far0")
        check(r.log_lines() - lines < 20, "too many log lines")
        r.ns.ip("link", "set", "veth0", "mtu", "9000")
        r.far.ip("link", "set", "far0", "mtu", "9000")
        want = frame(1, 9014)
        r.driver.send(want)
        check_equal(r.host.take(1), [want], "a frame of the new MTU")
        r.ns.ip("link", "del", "veth0")
        r.daemon.wait_stat(lambda s: s["link"] == "gone", "link gone in stat", 3)
        send_nowhere(r, "drop_gone")
        check_idle(r, "deleted")
        # Rings can be stopped, and another front-end is still served.
        for i in r.driver.queues:
            r.driver.client.get_vring_base(i)
        r.connect()
        send_nowhere(r, "drop_gone")


run(lambda: each_engine(test))
