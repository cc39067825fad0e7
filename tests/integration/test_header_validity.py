# SPDX-License-Identifier: BSD-3-Clause
"""Headers that ask for a checksum or for segmentation: the right ones give
right frames on the host, the wrong ones are dropped and counted, by the device
or by the tap's refusal, each once, and the next packet passes."""
import time

from frames import GSO_ECN, GSO_TCPV4, GSO_TCPV6, GSO_UDP, NEEDS_CSUM, VNET, frame, \
    l4_csum_ok, tcp4, udp4, vnet
from rig import Rig, each_engine
from vltest import check, check_equal, run, sanitizer


def drops(r):
    return sum(v for k, v in r.queue("tx").items() if k.startswith("drop_"))


def test(engine):
    with Rig(engine, vnet=True) as r:
        d, q = r.driver, r.driver.tx[0]

        def send(head, body):
            # num_buffers is the device's to ignore here
            q.add([d.packet(body, head + b"\xaa\xaa")])
            check_equal(q.wait(1)[0][1], 0, "used length")

        # Right ones.
        partial = udp4(bytes(101), partial=True)
        send(vnet(NEEDS_CSUM, start=34, offset=6), partial)
        got = r.host.get(2)
        check(got is not None, "a frame with a partial checksum was lost")
        flags, _, _, _, start, offset = VNET.unpack(got[:10])
        check(flags & NEEDS_CSUM and (start, offset) == (34, 6) or l4_csum_ok(got[10:]),
              "the checksum is neither complete nor still to be completed")
        big = tcp4(bytes(range(250)) * 16, partial=True)
        send(vnet(NEEDS_CSUM, GSO_TCPV4, 54, 1000, 34, 16), big)
        got = r.host.get(2)
        check(got is not None, "a TSO frame was lost")
        check_equal(VNET.unpack(got[:10])[1:4:2], (GSO_TCPV4, 1000), "GSO type and size")
        check_equal(got[64:], big[54:], "TSO payload")
        check_equal(drops(r), 0, "drops of valid headers")

        # Wrong ones.
        small = frame(1, 100)
        tcp = tcp4(bytes(3000), partial=True)
        wrong = [
            (vnet(NEEDS_CSUM, start=99, offset=0), small),
            (vnet(NEEDS_CSUM, start=34, offset=65), small),
            (vnet(NEEDS_CSUM, start=0xffff, offset=0xffff), small),
            (vnet(NEEDS_CSUM, start=0xfffe, offset=2), small),
            (vnet(NEEDS_CSUM, start=1, offset=0xffff), small),
            (vnet(NEEDS_CSUM, start=100, offset=0), small),
            (vnet(NEEDS_CSUM, GSO_TCPV4, 54, 0, 34, 16), tcp),
            (vnet(NEEDS_CSUM, 77, 54, 1000, 34, 16), tcp),
            (vnet(NEEDS_CSUM, GSO_ECN, 54, 1000, 34, 16), tcp),
            (vnet(NEEDS_CSUM, GSO_UDP, 42, 1000, 34, 6), udp4(bytes(3000), partial=True)),
            (vnet(0, GSO_TCPV4, 54, 1000, 0, 0), tcp),
            (vnet(NEEDS_CSUM, GSO_TCPV4, 54, 1000, 34, 16), frame(1, 54)[:20]),
        ]
        for n, (head, body) in enumerate(wrong):
            send(head, body)
            check_equal(drops(r), n + 1, f"drops after wrong header {n}")
            got = r.host.flush(0.005)
            check_equal(got, 0, f"frames of wrong header {n}")
        stat = r.queue("tx")
        check_equal(stat["drop_header"] + stat["drop_refused"], len(wrong), "the reasons")

        # A type that does not match the frame: passed on as it is or dropped.
        for n, (head, body) in enumerate((
                (vnet(NEEDS_CSUM, GSO_TCPV4, 54, 1000, 34, 16), small),
                (vnet(NEEDS_CSUM, GSO_TCPV6, 54, 1000, 34, 16), tcp),
                (vnet(NEEDS_CSUM, GSO_TCPV4, 54, 1000, 34, 16), frame(1, 3000)))):
            before = r.queue("tx")["packets"] + drops(r)
            send(head, body)
            check_equal(r.queue("tx")["packets"] + drops(r), before + 1, f"counted once, {n}")
            r.host.flush(0.01)

        # hdr_len is a hint that must not be trusted.
        for hint in (0, 1, 0xffff, 13):
            send(vnet(NEEDS_CSUM, GSO_TCPV4, hint, 1000, 34, 16), big)
            got = r.host.get(2)
            check(got is not None, f"lost with hdr_len {hint}")
            check_equal(got[64:], big[54:], f"payload with hdr_len {hint}")
        cpu = r.daemon.cpu_seconds()
        time.sleep(0.3)
        if not sanitizer():
            check(r.daemon.cpu_seconds() - cpu <= 0.02, "a refused packet keeps the CPU busy")
        r.alive()


run(lambda: each_engine(test))
