# SPDX-License-Identifier: BSD-3-Clause
"""Each protocol feature that is offered works when it is the only one taken,
and what is not implemented is not offered."""
import socket
import struct

from frames import frame
from rig import Rig
from vhost_client import ADD_MEM_REG, F_PROTOCOL, GET_CONFIG, GET_MAX_MEM_SLOTS, GET_QUEUE_NUM, \
    GET_STATUS, HEADER, NET_SET_MTU, P_BACKEND_REQ, P_CONFIG, P_MEM_SLOTS, P_MQ, P_MTU, \
    P_REPLY_ACK, P_RESET_DEVICE, P_STATUS, RESET_DEVICE, SET_BACKEND_REQ_FD, SET_FEATURES, \
    SET_STATUS, U64, Region, bits
from vltest import check, check_equal, run

WANT = bits(P_MQ, P_REPLY_ACK, P_MTU, P_BACKEND_REQ, P_CONFIG, P_RESET_DEVICE, P_MEM_SLOTS,
            P_STATUS)


def mq(r, c):
    check_equal(c.get_u64(GET_QUEUE_NUM), 2, "queue pairs")


def reply_ack(r, c):
    check_equal(c.ack(SET_FEATURES, U64.pack(c.features)), 0, "ack")


def mtu(r, c):
    c.ack(NET_SET_MTU, U64.pack(1500))


def backend_req(r, c):
    """The link going down is announced on the back-end channel."""
    ours, theirs = socket.socketpair()
    c.ack(SET_BACKEND_REQ_FD, b"", [theirs.fileno()])
    theirs.close()
    c.sync()
    r.ns.ip("link", "set", "tap0", "down")
    r.ns.ip("link", "set", "tap0", "up")
    ours.settimeout(2)
    if c.protocol & bits(P_CONFIG):
        request, _, size = HEADER.unpack(ours.recv(12))
        check_equal((request, size <= 268), (2, True), "CONFIG_CHANGE")
    ours.close()
    c.sync()


def config(r, c):
    data = c.call(GET_CONFIG, struct.pack("<III", 0, 6, 0) + bytes(6))
    check_equal(len(data), 18, "answer")


def start_again(r, c):
    """After a reset: what the two ends agreed upon stays, the rest is new."""
    d = r.driver
    for i, q in d.queues.items():
        q.restart()
    d.posted, d.reaped = [{}, {}], [[], []]
    c.set_features(d.features)
    c.set_mem_table(d.mem.regions)
    d.start()


def reset_device(r, c):
    c.ack(RESET_DEVICE)
    start_again(r, c)


def mem_slots(r, c):
    check(c.get_u64(GET_MAX_MEM_SLOTS) >= 256, "slots")
    region = Region(0x1_0000_0000, 4096)
    region.map[0:112] = bytes(12) + frame(9, 100)
    c.send(ADD_MEM_REG, bytes(8) + region.wire(), [region.fd])
    # The region's new base is sent back only in postcopy mode.
    c.sync()
    r.driver.tx[0].add([(region.gpa, 112, 0)])
    check_equal(r.host.get(2), frame(9, 100), "frame from the new region")
    r.driver.tx[0].wait(1)
    c.rem_mem(region)
    c.sync()
    region.close()


def status(r, c):
    check_equal(c.get_u64(GET_STATUS), 15, "status")
    c.ack(SET_STATUS, U64.pack(0))
    start_again(r, c)
    for value in (1, 3, 11, 15):
        c.ack(SET_STATUS, U64.pack(value))
        check_equal(c.get_u64(GET_STATUS), value, "status")


CHECKS = {P_MQ: mq, P_REPLY_ACK: reply_ack, P_MTU: mtu, P_BACKEND_REQ: backend_req,
          P_CONFIG: config, P_RESET_DEVICE: reset_device, P_MEM_SLOTS: mem_slots,
          P_STATUS: status}


def main():
    with Rig() as r:
        check(r.driver.offered & bits(F_PROTOCOL), "protocol features are not offered")
        have = r.driver.client.protocol
        check_equal(have & WANT, WANT, "protocol features wanted")
        check_equal(have & ~WANT, 0, "protocol features without a test")
        masks = [[bit] for bit in CHECKS] + [[P_BACKEND_REQ, P_CONFIG], list(CHECKS)]
        for mask in masks:
            print("protocol features", mask, flush=True)
            # Without MQ a front-end knows one pair only.
            pairs = 2 if P_MQ in mask else 1
            r.connect(protocol=bits(*mask), pairs=pairs)
            for bit in mask:
                if bit != P_STATUS:
                    CHECKS[bit](r, r.driver.client)
            if P_STATUS in mask:
                status(r, r.driver.client)
            r.alive(pairs=range(pairs), fds=False)


run(main)
