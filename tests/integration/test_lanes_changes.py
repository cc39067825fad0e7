# SPDX-License-Identifier: BSD-3-Clause
"""Four destinations, two slow and two fast, and 100 times one of the slow becomes
fast and one of the fast slow: a fast one never stalls and loses nothing, each
gets its frames in order, and every frame arrives or was counted as dropped.

A destination is fast from its change on, in what follows, and settled from the
moment in which the first frame that was sent after the change has arrived: all
that was queued before it at the old rate has left then."""
import random
import threading

from lanes import Destinations, Flood, LaneRig, check_accounted, not_run
from rig import engines
from vltest import check, run, sanitizer

NUMBERS = (1, 2, 3, 4)
SLOW, FAST = "400kbit", "50mbit"
SLOWER = "200kbit"
OFFERED = 250
LENGTHS = (64, 1514, 300, 1000, 90, 700)
CHANGES, PAUSE = 100, 0.15
STALL = 0.1
# Another program had the processor: only then is a stall no fault.
ATTEMPTS = 3


class Period:
    """A time in which a destination was fast."""

    def __init__(self, start, sent):
        self.start, self.sent = start, sent
        self.settled = None  # first frame that may not be lost
        self.times = [start]
        self.stalls = []
        self.lost = self.frames = 0
        self.next = None

    def arrival(self, seq, when, sent):
        """Frame @seq arrived when @sent frames had been sent."""
        self.times.append(when)
        if self.settled is None and seq >= self.sent:
            self.settled = sent
        if self.settled is not None and seq >= self.settled:
            self.lost += seq - (self.settled if self.next is None else self.next)
            self.next = seq + 1
            self.frames += 1


class Changes:
    """Changes rates in a thread, and knows who is fast."""

    def __init__(self, destinations, flood, rate):
        self.destinations, self.flood, self.rate = destinations, flood, rate
        self.random = random.Random(1)
        self.slow, self.fast = set(NUMBERS[:2]), set(NUMBERS[2:])
        self.current = {}
        self.periods = []
        self.count = 0
        self.thread = self.up = None
        flood.arrived = self.arrived

    def arrived(self, number, seq, when):
        """A frame of a destination arrived."""
        if number in self.current:
            self.current[number].arrival(seq, when, self.flood.sent[number])

    def begin(self, number, now):
        """@number is fast."""
        self.current[number] = Period(now, self.flood.sent.get(number, 0))

    def end(self, number, now):
        """@number is not fast any more, as far as is known for sure."""
        period = self.current.pop(number)
        period.times.append(now)
        self.periods.append((number, period))

    def step(self, now):
        """One change, or its end."""
        if self.thread:
            return
        up, down = self.random.choice(sorted(self.slow)), self.random.choice(sorted(self.fast))
        self.end(down, now)
        self.slow ^= {up, down}
        self.fast ^= {up, down}
        self.thread = threading.Thread(target=self.destinations.change, args=({up: FAST, down: self.rate},))
        self.up = up
        self.count += 1
        self.thread.start()

    def poll(self, now):
        """Has the last change been made?"""
        if self.thread and not self.thread.is_alive():
            self.thread.join()
            self.thread = None
            self.begin(self.up, now)


def overlap(spans, start, end):
    """Seconds of @spans between @start and @end."""
    return sum(max(0, min(end, b) - max(start, a)) for a, b in spans)


class Waits:
    """When the daemon was ready to run and did not."""

    def __init__(self, pid):
        self.pid = pid
        self.readings = [(0, not_run(pid))]

    def read(self, now):
        """To be called often."""
        self.readings.append((now, not_run(self.pid)))

    def between(self, start, end):
        """Seconds in a time, or a little more."""
        before = [w for t, w in self.readings if t <= start]
        after = [w for t, w in self.readings if t >= end]
        return (after or [self.readings[-1][1]])[0] - before[-1]


def flip(engine, changes, pause=PAUSE, slow=SLOW, sndbuf="80000", options=()):
    """Changes rates so often; returns (Changes, seconds of the longest stall, drops)."""
    with LaneRig(engine, f",lanes=8,sndbuf={sndbuf}", options=options) as r, \
            Destinations(r, {n: slow if n < 3 else FAST for n in NUMBERS}) as d:
        flood = Flood(r, d)
        state, waits = Changes(d, flood, slow), Waits(r.daemon.pid)
        start = None
        for passed in flood.run(changes * pause + 0.3, dict.fromkeys(NUMBERS, OFFERED), LENGTHS, 8):
            now = flood.round
            waits.read(now)
            if start is None:
                start = now
                for number in state.fast:
                    state.begin(number, now)
            state.poll(now)
            if passed > (state.count + 1) * pause and state.count < changes:
                state.step(now)
        if state.thread:
            state.thread.join()
        now = flood.round
        for number in list(state.current):
            state.end(number, now)
        flood.arrived = lambda *_: None
        d.change(dict.fromkeys(NUMBERS, FAST))
        flood.drain()
        stall = (0, 0)
        for number, period in state.periods:
            for a, b in zip(period.times, period.times[1:]):
                # Nothing was sent, or the daemon could not.
                gap = b - a - overlap(flood.pauses, a, b)
                if gap > STALL:
                    gap -= waits.between(a, b)
                stall = max(stall, (gap, number))
        check(not flood.busy, "chains did not come back")
        check_accounted(r, flood)
        lanes = r.lanes()
        print(f"{state.count} changes, sent {flood.sent}, arrived {flood.got}, drops {r.drops()}, longest stall "
              f"{stall[0]:.3f} s of {stall[1]}, pauses of this program {sum(b - a for a, b in flood.pauses):.3f} s, "
              f"refusals {[lane['refusals'] for lane in lanes]}", flush=True)
        return state, stall[0], r.drops()


def test(engine, changes, sndbuf):
    print(f"sndbuf={sndbuf}", flush=True)
    for _ in range(ATTEMPTS):
        state, stall, drops = flip(engine, changes, sndbuf=sndbuf)
        check(state.count == changes or sanitizer(), f"only {state.count} changes")
        check(sum(drops.values()) > 0, "nothing was dropped: the slow ones were not slow")
        frames = sum(period.frames for _, period in state.periods)
        lost = [(number, period.lost) for number, period in state.periods if period.lost]
        settled = sum(period.settled is not None for _, period in state.periods)
        print(f"{len(state.periods)} periods, {settled} settled, {frames} frames in them, lost {lost}", flush=True)
        if sanitizer() or (stall < STALL and not lost):
            break
        print("again", flush=True)
    if not sanitizer():
        check(stall < STALL, f"a fast destination stalled for {stall:.3f} s")
        check(not lost, f"frames of fast destinations were dropped: {lost}")
        check(settled > changes / 2, f"{settled} of {len(state.periods)} periods settled: the test shows nothing")


def main():
    _, stall, _ = flip(None, 6, 2 * PAUSE, SLOWER, options=("--tx-full=block",))
    check(stall > STALL, f"without lanes nothing stalls either ({stall:.3f} s): the test shows nothing")
    # Found by probes; and by an express lane that is full.
    test(engines()[0], CHANGES, "auto")
    test(engines()[-1], CHANGES // 4, "80000")


run(main)
