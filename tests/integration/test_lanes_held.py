# SPDX-License-Identifier: BSD-3-Clause
"""However many packets wait, they hold at most half of the virtqueue's descriptors,
and the pool stays within its bound: as the daemon says, asked as often as
possible, and as the driver sees it. Rings of three sizes; one descriptor for a
frame, several, and tables."""
import json
import socket
import threading
import time

from lanes import LAYOUTS, PIECES, Destinations, Flood, LaneRig, check_accounted
from rig import engines
from vltest import check, check_equal, run, sanitizer

SIZES = (64, 256, 1024)
# More than side lanes, so that some share.
SLOW = range(2, 14)
STALLED, FAST = "16kbit", "100mbit"
LENGTHS = (1514, 100, 300, 64)
POOL = 1 << 20
TURNS = 4
QUIET = 0.05


class Sampler(threading.Thread):
    """Asks for what is held again and again."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path = path
        self.samples = 0
        self.most = {"descriptors": 0, "pool_bytes": 0}
        self.bounds = set()
        self.faults = []
        self.stopping = False

    def run(self):
        while not self.stopping:
            self.look()
            # Elsewhere something has to happen too.
            time.sleep(0.0005)

    def look(self):
        """One sample."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(5)
            s.connect(self.path)
            s.sendall(b"stat\n")
            with s.makefile("r", encoding="utf-8") as f:
                held = json.loads(f.readline())["queue_pairs"][0]["held"]
        self.samples += 1
        self.bounds.add((held["descriptors_max"], held["pool_bytes_max"]))
        for name in self.most:
            self.most[name] = max(self.most[name], held[name])
            if held[name] > held[name + "_max"]:
                self.faults.append(held)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.stopping = True
        self.join()


def fill(flood, start):
    """As many frames as the ring has room for, seen by the device all at once;
    their destinations take turns."""
    count = 0
    flood.reap()
    while flood.send(SLOW[(start + count) % len(SLOW)], LENGTHS[(start + count) // len(SLOW) % len(LENGTHS)]):
        count += 1
    flood.kick()
    return start + count


def unreturned(flood, size):
    """Descriptors that the device still has after a moment of quiet, and the seconds
    until they are half of the ring at most."""
    start = time.monotonic()
    time.sleep(QUIET)
    after = flood.unreturned()
    end = start + (30 if sanitizer() else 3)
    while (left := flood.unreturned()) > size // 2:
        check(time.monotonic() < end, f"{left} of {size} descriptors do not come back")
        time.sleep(0.001)
    return after, time.monotonic() - start


def flood_it(engine, size, layout):
    """Fills ring and lanes again and again; the most descriptors and pool bytes held."""
    with LaneRig(engine, ",lanes=8,sndbuf=60000", size=size) as r, Destinations(r, dict.fromkeys(SLOW, STALLED)) as d:
        flood = Flood(r, d, layout)
        late = count = 0
        with Sampler(r.daemon.stats) as sampler:
            for turn in range(TURNS):
                # All at once, then as fast as there is room.
                end = time.monotonic() + 0.12
                while time.monotonic() < end:
                    count = fill(flood, count)
                    flood.receive()
                held, took = unreturned(flood, size)
                late += held > size // 2
                if held > size // 2:
                    print(f"turn {turn}: {held} of {size} descriptors were out after {QUIET} s, {took:.3f} s until half")
        print(f"{engine}, {size} descriptors, {layout}: {sampler.samples} samples, most held {sampler.most}, "
              f"{held} out after a moment of quiet, {count} frames, drops {r.drops()}", flush=True)
        check(not sampler.faults, f"more held than there may be: {sampler.faults[:3]}")
        check_equal(sampler.bounds, {(size // 2, POOL)}, "bounds (descriptors, bytes)")
        check(late <= (TURNS if sanitizer() else 1), f"{late} of {TURNS} times descriptors came back late")
        check(sampler.samples > 100, f"{sampler.samples} samples only")
        d.change(dict.fromkeys(SLOW, FAST))
        flood.drain()
        check(not flood.busy, "chains did not come back")
        check_accounted(r, flood)
        held = r.daemon.stat()["queue_pairs"][0]["held"]
        check_equal((held["descriptors"], held["pool_bytes"]), (0, 0), "held at the end")
        return sampler.most


def main():
    number = 0
    for size in SIZES:
        for layout in LAYOUTS:
            # Which engine it is makes no difference to what is held.
            most = flood_it(engines()[number % len(engines())], size, layout)
            number += 1
            check(most["descriptors"] > size // 2 - PIECES, f"only {most['descriptors']} of {size} descriptors were held")
            check(most["pool_bytes"] > 0.95 * POOL, f"only {most['pool_bytes']} bytes of the pool were used")


run(main)
