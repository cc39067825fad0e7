# SPDX-License-Identifier: BSD-3-Clause
"""Many frames both ways in random chains: none lost, duplicated, reordered or changed."""

import os

from vltest import check, check_equal, engines, run, sanitizer, skip, virtlane_on_tap

FRAMES = int(os.environ.get("VL_LOAD_FRAMES", 20000 if sanitizer() else 200000))

# What is loaded, the share of FRAMES, and the options of vl-load.
CASES = [
    ("mergeable", 1, ["--mrg=on"]),
    ("not mergeable", 1, ["--mrg=off"]),
    ("legacy, no event index", 4, ["--legacy", "--mrg=off", "--event-idx=off"]),
    ("direct descriptors only, legacy mergeable", 4, ["--legacy", "--indirect=off"]),
    ("segmentation", 4, ["--gso"]),
    ("segmentation, not mergeable", 4, ["--gso", "--mrg=off", "--queue-size=1024"]),
    ("smallest ring", 20, ["--queue-size=2"]),
    ("largest ring", 4, ["--queue-size=32768", "--segments=2"]),
    ("long chains", 4, ["--segments=32"]),
]


def drops(queue):
    """The drop counters of a queue that are not zero."""
    return {k: v for k, v in queue.items() if k.startswith("drop_") and v}


def load(program, engine, options):
    """Runs vl-load on a daemon of its own; returns its exit status, output and the drops."""
    with virtlane_on_tap(engine=engine) as (netns, daemon):
        netns.sysctl("net/ipv6/conf/tap0/disable_ipv6", 1)
        done = netns.run(program, f"--socket={daemon.socket}", "--ifname=tap0", *options,
                         check=False, timeout=120)
        pair = daemon.stat()["queue_pairs"][0]
    print(done.stdout, flush=True)
    return done.returncode, done.stdout, drops(pair["tx"]), drops(pair["rx"])


def main():
    program = os.environ.get("VL_LOAD") or skip("set VL_LOAD to the program's path")
    for engine in engines():
        for seed, (name, part, options) in enumerate(CASES, 1):
            print(f"--- {engine}, {name}", flush=True)
            frames = FRAMES // part
            status, _, tx, rx = load(program, engine, [
                f"--seed={seed}", f"--tx={frames}", f"--rx={frames}", *options])
            check_equal((tx, rx), ({}, {}), f"{engine}, {name}: drops")
            check_equal(status, 0, f"{engine}, {name}: exit status of vl-load")
        print(f"--- {engine}, rings stopped on the way", flush=True)
        status, output, tx, rx = load(program, engine, [
            f"--tx={FRAMES // 2}", f"--rx={FRAMES // 2}", "--restarts=200"])
        check_equal((tx, rx), ({}, {}), f"{engine}, restarts: drops")
        check("lost 0 duplicated 0 reordered 0 changed 0\n" in output,
              f"{engine}, restarts: frames were lost or changed")
        check_equal(status, 0, f"{engine}, restarts: exit status of vl-load")


run(main)
