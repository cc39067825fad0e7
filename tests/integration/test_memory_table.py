# SPDX-License-Identifier: BSD-3-Clause
"""Memory tables: what cannot be is refused, buffers and rings may lie in any
region, a hole is not memory, and a file that the front-end shrinks afterwards
does not end the daemon."""
import os
import struct
import time

from frames import frame, seq_of
from rig import Rig, each_engine
from vhost_client import INDIRECT, SET_MEM_TABLE, SET_VRING_KICK, WRITE, Client, Closed, Driver, \
    Memory, Region, Virtqueue
from vltest import check, check_equal, run, sanitizer

MB = 1 << 20


def refused(r, what, regions, raw=None):
    """The table is refused; the session may end over it."""
    c = Client(r.path)
    c.start_session()
    try:
        if raw is None:
            answer = c.set_mem_table(regions)
        else:
            answer = c.ack(SET_MEM_TABLE, struct.pack("<II", 1, 0) + raw, [regions[0].fd])
        check(answer != 0, f"accepted: {what}")
    except Closed:
        pass
    c.close()
    for region in regions:
        region.close()


def bad_tables(r):
    refused(r, "overlapping regions", [Region(MB, MB), Region(MB + 4096, MB)])
    refused(r, "the same region twice", [Region(MB, MB), Region(MB, MB)])
    refused(r, "overlap by front-end address", [Region(MB, MB), Region(4 * MB, MB,
                                                                      uva=MB + 0x700000000800)])
    for raw in ((MB, 0, MB, 0), (MB, 2**64 - 1, MB, 0), (2**64 - 4096, 8192, MB, 0),
                (MB, 8192, 2**64 - 4096, 0), (MB, MB, MB, 2**64 - 4096), (MB, MB, MB, 2**63),
                (MB, 2 * MB, MB, 0), (MB, MB, MB, MB), (MB, MB, MB, 4096)):
        c = Region(MB, MB)
        refused(r, f"region {raw}", [c], struct.pack("<QQQQ", *raw))
    null = Region(MB, MB)
    os.dup2(os.open("/dev/null", os.O_RDWR), null.fd)
    refused(r, "a descriptor that cannot be mapped", [null])
    nine = [Region((1 + n) * MB, MB) for n in range(9)]
    refused(r, "nine regions in one message", nine)


def good_tables(r):
    """Eight regions, with offsets, one of them not page aligned; a buffer
    over two adjacent regions; a ring in the last one."""
    regions = [Region(MB + n * MB, MB, offset=n * 4096) for n in range(7)]
    regions.append(Region(64 * MB, MB, offset=512))
    r.disconnect()
    d = r.driver = Driver(r.path, mem=Memory(regions=regions), start=False)
    d.mem._next = regions[7].gpa  # rings and buffers in the odd one
    where = d.mem.regions
    d.mem.regions = [regions[7]] + regions[:7]
    for i in d.queues:
        d.queues[i].close()
        d.queues[i] = Virtqueue(d.mem, 64, d.event_idx)
    d.rx, d.tx = list(d.queues.values())[0::2], list(d.queues.values())[1::2]
    d.start()
    r.busy_fds = r.daemon.fds()
    r.alive()
    # Data from each region.
    want = frame(5, 400)
    for region in where:
        at = region.gpa + region.size - 412
        d.mem.write(at, bytes(12) + want)
        d.tx[0].add([(at, 412, 0)])
        check_equal(r.host.get(1), want, f"frame from the end of region {region.gpa:#x}")
    d.tx[0].wait(8)
    # Over two adjacent regions: one guest buffer, two mappings.
    edge = regions[1].gpa
    data = bytes(12) + want
    d.mem.write(edge - 100, data[:100])
    d.mem.write(edge, data[100:])
    d.tx[0].add([(edge - 100, 412, 0)])
    check_equal(r.host.get(1), want, "frame over two adjacent regions")
    d.tx[0].wait(1)
    # Past the end, into a hole.
    for at, n in ((regions[6].gpa + MB - 100, 412), (regions[7].gpa + MB - 8, 412),
                  (MB - 100, 412), (0, 412), (2**64 - 100, 412), (2**63, 412)):
        d.tx[0].add([(at, n, 0)])
        check_equal(d.tx[0].wait(1)[0][1], 0, "used length of a buffer in a hole")
    check_equal(r.host.flush(), 0, "frames from a hole")
    check_equal(r.queue("tx")["drop_chain"], 6, "drop_chain")
    r.alive()


def rings_in_holes(r):
    """A ring that is not wholly mapped does not run; nothing else happens."""
    for part in range(3):
        d = r.connect(start=False)
        q = d.tx[0]
        place = [q.desc, q.avail, q.used]
        end = d.mem.regions[0].gpa + d.mem.regions[0].size
        place[part] = end - 16
        bad = Virtqueue(d.mem, 256, d.event_idx, place=place)
        try:
            d.client.setup_vring(1, bad)
            d.client.sync()
            check(not r.queue("tx")["running"], "a ring outside of memory runs")
            os.write(bad.kick_fd, struct.pack("Q", 1))
            d.client.vring_fd(SET_VRING_KICK, 1, bad.kick_fd)
            d.client.sync()
        except Closed:
            pass
        bad.close()
    # Misaligned rings.
    for part, off in ((0, 8), (1, 1), (2, 2)):
        d = r.connect(start=False)
        q = d.tx[0]
        place = [q.desc, q.avail, q.used]
        place[part] += off
        bad = Virtqueue(d.mem, 128, d.event_idx, place=place)
        try:
            d.client.setup_vring(1, bad)
            d.client.sync()
        except Closed:
            pass
        bad.close()


def shrunk(r):
    """Buffers, a table, then a ring vanish under the device."""
    for round_ in range(2):
        regions = [Region(MB, 8 * MB), Region(64 * MB, 8 * MB)]
        r.disconnect()
        d = r.driver = Driver(r.path, mem=Memory(regions=regions), start=False)
        lost = regions[1]
        at = lost.gpa + MB
        d.mem.write(at, bytes(12) + frame(1, 200))
        other = Virtqueue(d.mem, 64, d.event_idx,
                          place=(lost.gpa, lost.gpa + 0x10000, lost.gpa + 0x20000))
        d.tx[1].close()
        d.tx[1] = d.queues[3] = other
        d.start()
        r.busy_fds = r.daemon.fds()
        r.alive()
        d.post(count=4)
        heads = d.rx[0].add(*[[(at + 8192 * n, 1600, WRITE)] for n in range(4)])
        d.posted[0].update((h, [(d.mem.buffer(16), 0, WRITE)]) for h in heads)
        table = at + 65536
        d.mem.write(table, struct.pack("<QIHH", at, 212, 0, 0))
        os.ftruncate(lost.fd, 0)
        chains = [[(at, 212, 0)], [(at + 4096, 12, 0), (at + 8192, 200, 0)],
                  [d.packet(frame(1))[:2] + (0,), (at, 100, 0)], [(table, 16, INDIRECT)],
                  [(at, 12, 0), (d.mem.buffer(100), 100, 0)]]
        for chain in chains:
            d.tx[0].add(chain)
        for _ in range(8):
            r.host.inject(frame(2, 100))
        time.sleep(0.05)
        check(r.daemon.alive(), "lost buffers ended the daemon")
        if round_ == 0:
            # The ring of transmitq 1 is gone as well: only that one breaks.
            os.write(other.kick_fd, struct.pack("Q", 1))
            r.daemon.wait_stat(lambda s: s["queue_pairs"][1]["tx"]["broken"], "queue broken", 2)
        d.client.sync()
        check(r.daemon.alive(), "a lost ring ended the daemon")
        for i in d.queues:
            d.client.get_vring_base(i)
        r.disconnect()
        r.fds_settle(r.idle_fds)
        r.connect()
        r.alive()


def file_shrinks_under_rx(r):
    """Header bytes too: many small buffers in memory that is gone."""
    regions = [Region(MB, 8 * MB), Region(64 * MB, 8 * MB)]
    r.disconnect()
    d = r.driver = Driver(r.path, mem=Memory(regions=regions), pairs=1)
    at = regions[1].gpa
    d.rx[0].add(*[[(at + 64 * n, 20, WRITE)] for n in range(200)])
    os.ftruncate(regions[1].fd, 0)
    r.host.inject(*[frame(n, 1000) for n in range(4)])
    time.sleep(0.05)
    cpu = r.daemon.cpu_seconds()
    time.sleep(0.3)
    if not sanitizer():
        check(r.daemon.cpu_seconds() - cpu <= 0.02, "lost receive buffers keep the CPU busy")
    d.client.sync()
    d.send(frame(77))
    check(77 in [seq_of(f) for f in r.host.take(1)], "transmit after lost receive buffers")


def test(engine):
    with Rig(engine, driver=False) as r:
        for part in (bad_tables, good_tables, rings_in_holes, shrunk, file_shrinks_under_rx):
            print(part.__name__, flush=True)
            part(r)
            r.disconnect()
            r.fds_settle(r.idle_fds)
            check(r.daemon.alive(), f"{part.__name__} ended the daemon")
        r.connect()
        r.alive()


run(lambda: each_engine(test))
