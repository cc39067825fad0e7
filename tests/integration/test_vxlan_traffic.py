# SPDX-License-Identifier: BSD-3-Clause
"""A guest behind virtlane's tunnel endpoint and a vxlan device of the kernel have ping, TCP and UDP,
over IPv4 and IPv6, with small and with jumbo frames; the guest uses the MTU that the underlay leaves."""

from vltest import check, check_equal, check_traffic, check_udp, engines, run
from vxlan import Tunnel


def test(engine, ip6, mtu):
    """One kind of underlay."""
    print(f"engine {engine}, IPv{6 if ip6 else 4}, MTU {mtu}", flush=True)
    with Tunnel(engine=engine, ip6=ip6, mtu=mtu) as net, net.guest() as guest:
        guest.wait_carrier(True)
        inner = mtu - (70 if ip6 else 50)
        check_equal(int(guest.out("cat /sys/class/net/eth0/mtu")), inner, "the guest's MTU")
        check_traffic(net.far[0], guest)
        check_udp(net.far[0], guest)
        check(guest.ping(size=inner - 28)[0], f"no answer to a ping of {inner} bytes")
        drops = {name: value for name, value in net.tunnel().items() if name.startswith("drop_") and value}
        for name, value in net.daemon.stat()["queue_pairs"][0]["tx"].items():
            if name.startswith("drop_") and value:
                drops["tx " + name] = value
        check_equal(drops, {}, "drops")


def main():
    for engine in engines():
        test(engine, False, 1500)
    test(engines()[0], True, 1500)
    test(engines()[0], False, 9000)


run(main)
