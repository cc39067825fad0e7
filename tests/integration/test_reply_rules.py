# SPDX-License-Identifier: BSD-3-Clause
"""Each message gets exactly the replies it should: one of its own if it is a
question, one acknowledgement if it asks for one and REPLY_ACK was negotiated,
else none."""
import struct

from rig import Rig
from vhost_client import (
    ADD_MEM_REG, GET_CONFIG, GET_FEATURES, GET_MAX_MEM_SLOTS, GET_PROTOCOL_FEATURES,
    GET_QUEUE_NUM, GET_STATUS, GET_VRING_BASE, NEED_REPLY, NET_SET_MTU, NOFD, P_REPLY_ACK,
    REM_MEM_REG, REPLY, RESET_DEVICE, SET_FEATURES, SET_MEM_TABLE, SET_OWNER, SET_PROTOCOL_FEATURES,
    SET_STATUS, SET_VRING_ADDR, SET_VRING_BASE, SET_VRING_CALL, SET_VRING_ENABLE, SET_VRING_ERR,
    SET_VRING_KICK, SET_VRING_NUM, U64, UVA_BIAS, VERSION, Client, Driver, Memory, Region,
    Virtqueue, bits)
from vltest import check, check_equal, run


def messages(mem, q, extra, features, protocol):
    """(request, payload, fds, has a reply of its own) in a sane order."""
    def state(n):
        return struct.pack("<II", 1, n)
    addr = struct.pack("<IIQQQQ", 1, 0, q.desc + UVA_BIAS, q.used + UVA_BIAS,
                       q.avail + UVA_BIAS, 0)
    table = struct.pack("<II", 1, 0) + mem.regions[0].wire()
    return [
        (GET_FEATURES, b"", [], True),
        (SET_OWNER, b"", [], False),
        (GET_PROTOCOL_FEATURES, b"", [], True),
        (SET_PROTOCOL_FEATURES, U64.pack(protocol), [], False),
        (GET_QUEUE_NUM, b"", [], True),
        (GET_MAX_MEM_SLOTS, b"", [], True),
        (SET_FEATURES, U64.pack(features), [], False),
        (NET_SET_MTU, U64.pack(1500), [], False),
        (SET_MEM_TABLE, table, [mem.regions[0].fd], False),
        (ADD_MEM_REG, bytes(8) + extra.wire(), [extra.fd], False),
        (REM_MEM_REG, bytes(8) + extra.wire(), [], False),
        (SET_VRING_NUM, state(q.size), [], False),
        (SET_VRING_BASE, state(0), [], False),
        (SET_VRING_ADDR, addr, [], False),
        (SET_VRING_CALL, U64.pack(1), [q.call_fd], False),
        (SET_VRING_ERR, U64.pack(1), [q.err_fd], False),
        (SET_VRING_ERR, U64.pack(1 | NOFD), [], False),
        (SET_VRING_KICK, U64.pack(1), [q.kick_fd], False),
        (SET_VRING_ENABLE, state(1), [], False),
        (SET_STATUS, U64.pack(15), [], False),
        (GET_STATUS, b"", [], True),
        (GET_CONFIG, struct.pack("<III", 0, 8, 0) + bytes(8), [], True),
        (SET_VRING_ENABLE, state(0), [], False),
        (GET_VRING_BASE, state(0), [], True),
        (RESET_DEVICE, b"", [], False),
    ]


def main():
    with Rig(driver=False) as r:
        for ack in (False, True):
            for need in (False, True):
                c = Client(r.path)
                mem = Memory(1 << 20)
                extra = Region(0x4000_0000, 4096)
                q = Virtqueue(mem, 64)
                offered = c.sync()
                protocol = c.get_u64(GET_PROTOCOL_FEATURES)
                if not ack:
                    protocol &= ~bits(P_REPLY_ACK)
                todo = messages(mem, q, extra, Driver.FEATURES & offered, protocol)
                negotiated = False
                for request, payload, fds, own in todo:
                    what = f"request {request}, REPLY_ACK {ack}, NEED_REPLY {need}"
                    if request == SET_PROTOCOL_FEATURES:
                        negotiated = ack
                    want = 1 if own or need and negotiated else 0
                    # Also before and at the message that negotiates it.
                    c.send(request, payload, fds, VERSION | (NEED_REPLY if need else 0))
                    if request == SET_PROTOCOL_FEATURES and need and ack:
                        want = None  # either is a fair reading
                    got = []
                    c.send(GET_QUEUE_NUM)
                    while True:
                        reply = c.receive()
                        check(reply[1] & REPLY, f"{what}: flags of the reply")
                        if reply[0] == GET_QUEUE_NUM and (request != GET_QUEUE_NUM or
                                                          len(got) == 1):
                            break
                        got.append(reply)
                    for reply in got:
                        check_equal(reply[0], request, f"{what}: reply to another request")
                        if not own:
                            check_equal(reply[2], bytes(8), f"{what}: result")
                    if want is not None:
                        check_equal(len(got), want, f"{what}: replies")
                c.close()
                q.close()
                mem.close()
                extra.close()
        r.connect()
        r.alive()


run(main)
