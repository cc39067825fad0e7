# SPDX-License-Identifier: BSD-3-Clause
"""Front-ends differ in the order of their messages; a ring runs as soon as
everything is there, whatever came first. A probe connection does no harm."""
import random
import struct

from frames import frame
from rig import Rig, each_engine
from vhost_client import GET_QUEUE_NUM, GET_PROTOCOL_FEATURES, P_REPLY_ACK, SET_FEATURES, \
    SET_PROTOCOL_FEATURES, SET_VRING_ADDR, SET_VRING_BASE, SET_VRING_CALL, SET_VRING_ENABLE, \
    SET_VRING_ERR, SET_VRING_KICK, SET_VRING_NUM, SET_OWNER, SET_MEM_TABLE, U64, Client, \
    Driver, bits
from vltest import check, check_equal, run


def steps(d, index):
    """The messages of one ring, by request."""
    c, q = d.client, d.queues[index]
    return {
        SET_VRING_NUM: lambda: c.state(SET_VRING_NUM, index, q.size),
        SET_VRING_BASE: lambda: c.state(SET_VRING_BASE, index, 0),
        SET_VRING_ADDR: lambda: c.vring_addr(index, q),
        SET_VRING_CALL: lambda: c.vring_fd(SET_VRING_CALL, index, q.call_fd),
        SET_VRING_ERR: lambda: c.vring_fd(SET_VRING_ERR, index, q.err_fd),
        SET_VRING_KICK: lambda: c.vring_fd(SET_VRING_KICK, index, q.kick_fd),
        SET_VRING_ENABLE: lambda: c.state(SET_VRING_ENABLE, index, 1),
    }


# Orders in which real front-ends were seen to set a ring up, and others.
NUM, BASE, ADDR, CALL, ERR, KICK, ENABLE = (
    SET_VRING_NUM, SET_VRING_BASE, SET_VRING_ADDR, SET_VRING_CALL, SET_VRING_ERR,
    SET_VRING_KICK, SET_VRING_ENABLE)
ORDERS = [
    [CALL, NUM, BASE, ADDR, KICK, CALL, ENABLE],
    [CALL, ENABLE, NUM, BASE, ADDR, KICK, CALL],
    [ENABLE, NUM, BASE, ADDR, CALL, KICK],
    [CALL, NUM, BASE, ADDR, KICK, ENABLE],
    [NUM, ADDR, BASE, CALL, ERR, KICK, ENABLE],
    [KICK, CALL, ENABLE, NUM, BASE, ADDR],
    [NUM, BASE, ADDR, ENABLE, KICK],
]


def session(r, order, late=()):
    """A session with rings set up in @order; @late: "memory" or "features"
    come only after the rings."""
    r.disconnect()
    d = r.driver = Driver.__new__(Driver)
    d.__dict__.update(vars(Bare(r.path)))
    c = d.client
    mask = bits(P_REPLY_ACK)
    d.offered = c.start_session(~mask)
    d.features = Driver.FEATURES & d.offered
    parts = {"features": lambda: c.set_features(d.features),
             "memory": lambda: c.set_mem_table(d.mem.regions)}
    c.features = d.features
    for name, part in parts.items():
        if name not in late:
            part()
    # A buffer is there already: what comes late must not be guessed.
    want = frame(len(late), 200)
    d.send(want, kick=False)
    todo = [steps(d, i) for i in d.queues]
    for request in order:
        for ring in todo:
            ring[request]()
    for name in late:
        parts[name]()
    c.sync()
    check_equal(r.host.get(2), want, f"frame that was queued before {late} came")
    d.tx[0].wait(1)
    r.busy_fds = r.daemon.fds()


class Bare(Driver):
    """A driver that has connected and nothing else."""

    def __init__(self, path):
        from vhost_client import Memory, Virtqueue
        self.mem = Memory(8 << 20)
        self.client = Client(path)
        self.event_idx, self.hdr_len, self.ctrl = True, 12, None
        new = [Virtqueue(self.mem, 128, True) for _ in range(4)]
        self.rx, self.tx = new[0::2], new[1::2]
        self.queues = dict(enumerate(new))
        self.posted, self.reaped = [{}, {}], [[], []]


def probe(path):
    """A front-end that only asks, and leaves in the middle."""
    for count in range(4):
        c = Client(path)
        todo = [c.sync, lambda: c.get_u64(GET_PROTOCOL_FEATURES),
                lambda: c.get_u64(GET_QUEUE_NUM), lambda: c.send(SET_OWNER)]
        for act in todo[:count + 1]:
            if act is todo[2]:
                c.send(SET_PROTOCOL_FEATURES, U64.pack(1))
            act()
        c.close()


def test(engine):
    rng = random.Random(11)
    with Rig(engine, driver=False) as r:
        probe(r.path)
        # Protocol features and ring messages without asking first.
        c = Client(r.path)
        c.send(SET_OWNER)
        c.send(SET_PROTOCOL_FEATURES, U64.pack(1))
        c.sync()
        c.close()
        for order in ORDERS:
            session(r, order)
            r.alive()
        session(r, ORDERS[0], late=["memory"])
        r.alive()
        session(r, ORDERS[0], late=["features"])
        r.alive()
        session(r, ORDERS[5], late=["memory", "features"])
        r.alive()
        for _ in range(10):
            order = [NUM, BASE, ADDR, CALL, ERR, KICK, ENABLE]
            rng.shuffle(order)
            late = [x for x in ("memory", "features") if rng.random() < 0.3]
            print([*map(str, order)], late)
            session(r, order, late)
            r.alive()

        # ENABLE for rings that do not exist is refused, nothing else.
        c = r.connect().client
        for index in (5, 4 + 2, 255, 256, 0xffffffff):
            check(c.state(SET_VRING_ENABLE, index, 1) != 0, f"ENABLE of ring {index} accepted")
            check(c.state(SET_VRING_NUM, index, 64) != 0, f"NUM of ring {index} accepted")
        check(c.ack(SET_FEATURES, U64.pack(1 << 63 | r.driver.features)) != 0,
              "a feature that was not offered is accepted")
        r.connect()
        check_equal(r.driver.client.ack(SET_MEM_TABLE, struct.pack("<II", 0, 0)) != 0, True,
                    "an empty memory table is refused")
        r.connect()
        r.alive()


run(lambda: each_engine(test))
