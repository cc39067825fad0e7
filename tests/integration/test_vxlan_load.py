# SPDX-License-Identifier: BSD-3-Clause
"""Many frames through a tunnel both ways, sent without a copy while HTB holds their pages: none lost, duplicated,
reordered or changed, although the guest overwrites each buffer as soon as it comes back."""

import os

from vltest import check, check_equal, engines, run, sanitizer, skip
from vxlan import Tunnel

FRAMES = int(os.environ.get("VL_LOAD_FRAMES", 20000 if sanitizer() else 300000))
# Below what this machine sends: HTB holds what it has.
RATE = os.environ.get("VL_LOAD_RATE", "400mbit")

# Words of the backend, the share of FRAMES, options of vl-load.
CASES = [
    ("zerocopy=on", 1, ["--queue-size=1024"]),
    ("zerocopy=on", 4, ["--restarts=100"]),
    ("zerocopy=auto", 4, ["--mrg=off", "--segments=32"]),
]


def shape(netns):
    """HTB on the host's way out."""
    for line in ("qdisc add dev u0 root handle 1: htb default 10",
                 f"class add dev u0 parent 1: classid 1:10 htb rate {RATE} ceil {RATE} burst 64k cburst 64k",
                 "qdisc add dev u0 parent 1:10 handle 10: pfifo limit 100000"):
        netns.run("tc", *line.split())


def load(program, engine, backend, frames, options):
    """One run of vl-load."""
    with Tunnel(1, backend + ",lanes=1,sndbuf=unlimited", engine=engine, mtu=9000, guest_net=False,
                device=("nolearning",)) as net:
        far = net.far[0]
        shape(net.host)
        far.sysctl("net/ipv6/conf/vx0/disable_ipv6", 1)
        done = far.run(program, f"--socket={net.daemon.socket}", "--ifname=vx0", f"--tx={frames}", f"--rx={frames // 4}",
                       *options, check=False, timeout=280)
        held = net.host.run("tc", "-s", "class", "show", "dev", "u0").stdout
        pair = net.daemon.stat()["queue_pairs"][0]
        print(done.stdout, {k: v for k, v in pair["tx"].items() if v}, pair["zerocopy"], held, flush=True)
    drops = {k: v for q in ("tx", "rx", "tunnel") for k, v in pair[q].items() if k.startswith("drop_") and v}
    check_equal(drops, {}, "drops")
    check_equal(done.returncode, 0, "exit status of vl-load")
    return pair


def main():
    program = os.environ.get("VL_LOAD") or skip("set VL_LOAD to the program's path")
    for engine in engines():
        for seed, (backend, part, options) in enumerate(CASES, 1):
            print(f"--- {engine}, {backend} {' '.join(options)}", flush=True)
            pair = load(program, engine, backend, FRAMES // part, [f"--seed={seed}", *options])
            if engine == "uring" and backend == "zerocopy=on":
                sent = pair["tx"]["zc_packets"]
                check(sent > FRAMES // part // 200, f"{sent} frames were sent without a copy: the test shows nothing")


run(main)
