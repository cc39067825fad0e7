# SPDX-License-Identifier: BSD-3-Clause
"""With the defaults nothing is ever full: a slow destination is found by probes, long
before it would be by a limited send buffer, and with a queue that is too short for
any to fill. How many lanes and probes there are with few queues."""
import os
import re
import time

from lanes import Destinations, FdLaneRig, Flood, LaneRig, OtherTapRig, check_accounted, mac
from rig import each_engine
from vltest import Netns, Virtlane, check, check_equal, run, sanitizer

FAST, SLOW = 1, 2
RATES = {SLOW: "10mbit"}  # the fast one is not shaped
OFFERED = {FAST: 500, SLOW: 3750}  # frames of 1000 bytes: 30 Mbit/s
FOUND = 0.3
BACKLOG = 40  # frames; a side lane holds 14 of them
ATTEMPTS = 3
QUEUES_MAX = 256  # of a tap


def leaf(d):
    """(frames waiting, dropped up to now) in the queue of the slow destination."""
    text = d.ns.run("tc", "-s", "qdisc", "show", "dev", "out0", "parent", f"1:{SLOW + 16:x}").stdout
    return int(re.search(r"backlog \S+ (\d+)p", text)[1]), int(re.search(r"dropped (\d+)", text)[1])


def side_lanes(r):
    """Destinations that are on a side lane now."""
    return {dest["mac"] for lane in r.lanes()[1:] for dest in lane["busiest"]}


def flood_slow(r, d, flood):
    """Floods the slow destination; what there is to know."""
    start, found, backlog, drops = time.monotonic(), None, [], []
    slow = mac(SLOW).hex(":")
    due = 0.0
    for now in flood.run(2.5, OFFERED):
        if now < due:
            continue
        if found is None and slow in side_lanes(r):
            found = time.monotonic() - start
        due = now + 0.02
        # What piled up until it was found has drained by then.
        if found is not None and now > 1.0:
            due = now + 0.1
            waiting, dropped = leaf(d)
            backlog.append(waiting)
            drops.append(dropped)
    return found, max(backlog, default=None), drops


def find(engine, limit):
    """One attempt, with so many frames in the queue of the slow destination at most;
    returns the reasons not to like it."""
    with LaneRig(engine, ",sndbuf=auto") as r, Destinations(r, RATES) as d:
        d.ns.run("tc", "qdisc", "replace", "dev", "out0", "parent", f"1:{SLOW + 16:x}", "pfifo", "limit", str(limit))
        flood = Flood(r, d)
        for _ in flood.run(0.3, {FAST: 500}):
            pass
        check_equal(set(r.lane_states()), {"express", "idle"}, "lanes before")
        check(r.lanes()[0]["probes"] > 10, "no probes are sent")
        found, backlog, drops = flood_slow(r, d, flood)
        express = r.lanes()[0]
        check_equal(express["refusals"], 0, "refusals on the express lane")
        check(mac(FAST).hex(":") not in side_lanes(r), "the fast destination is on a side lane")
        d.change(dict.fromkeys(RATES, "1gbit"))
        flood.drain()
        check(not flood.busy, "chains did not come back")
        missing = sum(flood.sent.values()) - sum(flood.got.values()) - sum(r.drops().values())
        check_equal(missing, leaf(d)[1], "frames that are missing, and those that its queue dropped")
        lost = flood.sent[FAST] - flood.got[FAST]
        print(f"pfifo of {limit}: found after {found and round(found, 3)} s, then at most {backlog} of its frames wait there, "
              f"dropped {drops[:1]} up to {drops[-1:]}; {lost} of {flood.sent[FAST]} for the fast one lost; "
              f"{express['probes']} probes, {express['found_slow']} found, drops {r.drops()}", flush=True)
        wrong = [] if express["found_slow"] else ["no probe found it"]
        if found is None or found > FOUND:
            wrong.append(f"it is found after {found} s")
        if backlog is None or backlog > BACKLOG:
            wrong.append(f"{backlog} frames wait in its queue")
        if lost:
            wrong.append(f"{lost} frames for the fast destination were lost")
        if not drops or drops[-1] > drops[0]:
            wrong.append(f"its queue drops all the time: {drops}")
        if limit > 50 and drops and drops[-1]:
            wrong.append(f"its queue drops {drops[-1]} frames")
        return wrong


def unlimited_is_enough(engine):
    """What else runs on the machine can only make it look worse."""
    for limit in 1000, 50:
        for _ in range(ATTEMPTS):
            wrong = find(engine, limit)
            if not wrong or sanitizer():
                break
        else:
            check(False, f"pfifo of {limit}: {'; '.join(wrong)}")


class OthersRig(OtherTapRig):
    """Another program has @taken queues of tap0."""

    def __init__(self, engine, taken):
        super().__init__(engine)
        self.taken = taken

    def start_daemon(self, stack):
        self.ns = stack.enter_context(Netns())
        self.ns.add_tap("tap0", None, queues=2)
        for _ in range(self.taken):
            stack.callback(os.close, self.ns.open_tap(multi_queue=True))
        return stack.enter_context(Virtlane(backend=self.backend, engine=self.engine, netns=self.ns))


def check_lanes(r, queues):
    """What virtlane(1) says of so many queues for each pair."""
    probes = {1: 0, 2: 0, 3: 1}.get(queues, 2)
    for pair in range(r.pairs):
        check_equal(len(r.lanes(pair)), queues - probes, f"lanes of {queues} queues")
    with Destinations(r, {}) as d:
        flood = Flood(r, d)
        # Nobody but the queue of pair 0 has anything to send.
        for _ in flood.run(0.2, {2 * r.pairs: 500}):
            pass
        flood.drain(1)
        check_accounted(r, flood)
        check_equal(r.lanes()[0]["probes"] > 0, probes > 0, f"whether {queues} queues have probes")
        check_equal(sum(r.drops().values()), 0, "drops")


def fewer_queues(engine):
    for pairs, queues in (1, 1), (1, 2), (1, 3), (1, 4), (2, 3), (2, 5):
        with FdLaneRig(engine, pairs, queues) as r:
            check_lanes(r, queues)
    # 256 queues for 60 pairs.
    with LaneRig(engine, pairs=60) as r:
        check_lanes(r, 4)
        check("2 of 8 lanes" in r.daemon.log(), "it is not said that there are two lanes only")
    # Somebody else has all queues but @left.
    for left, lanes in (1, 1), (2, 2), (3, 2), (9, 7):
        with OthersRig(engine, QUEUES_MAX - left) as r:
            check_lanes(r, left)
            check(f"{lanes} of 8 lanes" in r.daemon.log(), f"it is not said that there are {lanes} lanes only")
    for lanes, queues in (1, 1), (2, 4), (16, 18):
        with LaneRig(engine, f",lanes={lanes}") as r:
            check_lanes(r, queues)
            check(" lanes: " not in r.daemon.log(), "it is said that there are fewer lanes than wanted")


def main():
    each_engine(unlimited_is_enough)
    each_engine(fewer_queues)


run(main)
