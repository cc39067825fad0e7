# SPDX-License-Identifier: BSD-3-Clause
"""Memory regions come and go one by one, hundreds of them, with or without a
descriptor in the removal, while rings run: nothing leaks, data in a region
that is there works, one that is gone is not memory any more."""
from frames import frame
from rig import Rig, each_engine
from vhost_client import GET_MAX_MEM_SLOTS, Region, REM_MEM_REG
from vltest import check, check_equal, run

ROUNDS = 500


def test(engine):
    with Rig(engine) as r:
        d, c = r.driver, r.driver.client
        slots = c.get_u64(GET_MAX_MEM_SLOTS)
        check(slots >= 256, f"{slots} memory slots")
        want = bytes(12) + frame(3, 100)

        def from_region(region):
            region.map[region.offset:region.offset + len(want)] = want
            d.tx[0].add([(region.gpa, len(want), 0)])
            d.tx[0].wait(1)
            return r.host.get(0.2)

        # All of them at once.
        regions = [Region(0x1_0000_0000 + n * 8192, 4096) for n in range(slots - 1)]
        for region in regions:
            check_equal(c.add_mem(region), 0, "ADD_MEM_REG")
        more = Region(0x8_0000_0000, 4096)
        check(c.add_mem(more) != 0, "one region more than GET_MAX_MEM_SLOTS")
        for region in regions[::60]:
            check_equal(from_region(region), want[12:], "frame from an added region")
        r.alive(fds=False)
        for n, region in enumerate(regions):
            check_equal(c.rem_mem(region, n % 2), 0, "REM_MEM_REG")
        d.tx[0].add([(regions[0].gpa, len(want), 0)])
        d.tx[0].wait(1)
        check_equal(r.host.get(0.05), None, "frame from a region that was removed")
        r.alive()

        # Over and over.
        fds, maps = r.daemon.fds(), r.daemon.maps()
        for n in range(ROUNDS):
            check_equal(c.add_mem(more), 0, "ADD_MEM_REG")
            if n % 100 == 0:
                check_equal(from_region(more), want[12:], "frame")
            check_equal(c.rem_mem(more, n % 2), 0, "REM_MEM_REG")
        check_equal(r.daemon.fds(), fds, "open descriptors")
        check(abs(r.daemon.maps() - maps) <= 2, f"{r.daemon.maps() - maps} mappings left over")

        # What is not there cannot be removed. What was added twice (QEMU does so
        # for each queue pair) is there until it was removed twice.
        check(c.rem_mem(more) != 0, "removed a region that is not there")
        check_equal(c.add_mem(more), 0, "ADD_MEM_REG")
        check_equal(c.add_mem(more), 0, "ADD_MEM_REG of the same region")
        check_equal(c.rem_mem(more), 0, "REM_MEM_REG")
        check_equal(from_region(more), want[12:], "frame from a region that was added twice")
        check(c.ack(REM_MEM_REG, bytes(8) + more.wire(), [more.fd] * 2) != 0,
              "removal with two descriptors")
        c = r.connect().client
        r.alive()
        for region in regions + [more]:
            region.close()


run(lambda: each_engine(test))
