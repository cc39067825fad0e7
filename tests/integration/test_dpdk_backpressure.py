# SPDX-License-Identifier: BSD-3-Clause
"""A shaped bridge port fills the tap's send buffer: the daemon waits, losing and spinning nothing."""

import time

from vltest import Netns, VirtioUser, Virtlane, check, check_equal, engines, need_program, need_tun, run, sanitizer

MBIT = 20
FRAME = 1000
SECONDS = 3
# Below what the queue of the shaped port holds, so that the send buffer fills first.
SNDBUF = 200000
FAR_MAC = "02:00:00:00:00:02"


def shaped_bridge(netns, far):
    """tap0 and a veth to `far` on a bridge; the veth's port is shaped."""
    netns.ip("link", "add", "br0", "type", "bridge", "forward_delay", "0", "mcast_snooping", "0")
    netns.ip("link", "add", "port0", "type", "veth", "peer", "name", "far0", "netns", far.name)
    far.ip("link", "set", "far0", "address", FAR_MAC, "up")
    for device in ("tap0", "port0"):
        netns.ip("link", "set", device, "master", "br0", "up")
    netns.ip("link", "set", "br0", "up")
    netns.run("bridge", "fdb", "replace", FAR_MAC, "dev", "port0", "master", "static")
    netns.run("tc", "qdisc", "add", "dev", "port0", "root", "handle", "1:", "htb", "default", "10")
    netns.run("tc", "class", "add", "dev", "port0", "parent", "1:", "classid", "1:10", "htb",
              "rate", f"{MBIT}mbit", "burst", "15k", "cburst", "15k")
    netns.run("tc", "qdisc", "add", "dev", "port0", "parent", "1:10", "pfifo", "limit", "1000")


def main():
    need_tun()
    need_program("tc", "bridge")
    for engine in engines():
        with Netns("near") as netns, Netns("far") as far:
            netns.add_tap(address=None)
            shaped_bridge(netns, far)
            with Virtlane(netns=netns, backend=f"tap,name=tap0,sndbuf={SNDBUF}", engine=engine) as daemon:
                with VirtioUser(daemon.socket, options=(f"--eth-peer=0,{FAR_MAC}", f"--txpkts={FRAME}")) as testpmd:
                    testpmd.wait_link()
                    testpmd.forward("txonly")
                    time.sleep(0.5)
                    cpu, arrived = daemon.cpu_seconds(), far.counter("far0", "rx_packets")
                    time.sleep(SECONDS)
                    cpu, arrived = daemon.cpu_seconds() - cpu, far.counter("far0", "rx_packets") - arrived
                    testpmd.command("stop")
                    sent = testpmd.stats()["tx"]
                    rate = arrived * FRAME * 8 / SECONDS / 1e6
                    print(f"{engine}: {rate:.1f} Mbit/s, {cpu:.2f} s CPU in {SECONDS} s")
                    check(rate > 0.85 * MBIT, f"{engine}: {rate:.1f} Mbit/s through a port of {MBIT}")
                    check(cpu < (1.5 if sanitizer() else 0.6), f"{engine}: {cpu:.2f} s of CPU while blocked")
                    # What the driver has handed over arrives, all of it.
                    stat = daemon.wait_stat(lambda s: s["queue_pairs"][0]["tx"]["packets"] >= sent, "the rest", 10)
                    tx = stat["queue_pairs"][0]["tx"]
                    check_equal(tx["packets"], sent, f"{engine}: transmitted packets")
                    check(tx["blocked"] > 0, f"{engine}: the tap never pushed back")
                    for name, value in tx.items():
                        check(not name.startswith("drop_") or value == 0, f"{engine}: {name} is {value}")
                    time.sleep(1)
                    check_equal(far.counter("far0", "rx_packets"), sent, f"{engine}: packets behind the port")
                check(len(daemon.log().splitlines()) < 40, "the log is flooded")


run(main)
