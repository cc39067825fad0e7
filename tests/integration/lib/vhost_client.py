# SPDX-License-Identifier: BSD-3-Clause
"""A scripted vhost-user front-end.

It owns memfds as guest memory, builds split virtqueues by hand, and says on
the socket exactly what a test tells it to say, right or wrong. Nothing here
checks that a caller behaves: misbehaving is the purpose.

  Memory     guest memory: regions over one memfd each, an allocator with
             canaries around every buffer
  Virtqueue  one split ring, its eventfds, and the driver's bookkeeping
  Client     the socket: messages, descriptors, raw bytes
  Driver     all of these together: a session whose rings run
  HostSide   the other end: what the host sees on the tap

All addresses are guest-physical. Ring and region addresses on the wire are
front-end virtual ones; they differ by UVA_BIAS, so that a back-end which
confuses the two is found out.
"""
import array
import errno
import mmap
import os
import select
import socket
import struct
import threading
import time

UVA_BIAS = 0x7000_0000_0000
PAGE = 4096

# Device features (bit numbers).
F_CSUM, F_GUEST_CSUM, F_CTRL_GUEST_OFFLOADS, F_MTU, F_MAC = 0, 1, 2, 3, 5
F_GUEST_TSO4, F_GUEST_TSO6, F_GUEST_ECN, F_GUEST_UFO = 7, 8, 9, 10
F_HOST_TSO4, F_HOST_TSO6, F_HOST_ECN, F_HOST_UFO = 11, 12, 13, 14
F_MRG_RXBUF, F_STATUS, F_CTRL_VQ, F_CTRL_RX = 15, 16, 17, 18
F_CTRL_RX_EXTRA, F_GUEST_ANNOUNCE, F_MQ, F_CTRL_MAC_ADDR = 20, 21, 22, 23
F_LOG_ALL, F_ANY_LAYOUT, F_INDIRECT, F_EVENT_IDX = 26, 27, 28, 29
F_PROTOCOL, F_VERSION_1 = 30, 32
F_GUEST_USO4, F_GUEST_USO6, F_HOST_USO = 54, 55, 56

# Protocol features (bit numbers).
P_MQ, P_LOG_SHMFD, P_REPLY_ACK, P_MTU, P_BACKEND_REQ = 0, 1, 3, 4, 5
P_CONFIG, P_INFLIGHT, P_RESET_DEVICE = 9, 12, 13
P_MEM_SLOTS, P_STATUS = 15, 16

# Requests.
(GET_FEATURES, SET_FEATURES, SET_OWNER, RESET_OWNER, SET_MEM_TABLE,
 SET_LOG_BASE, SET_LOG_FD, SET_VRING_NUM, SET_VRING_ADDR, SET_VRING_BASE,
 GET_VRING_BASE, SET_VRING_KICK, SET_VRING_CALL, SET_VRING_ERR,
 GET_PROTOCOL_FEATURES, SET_PROTOCOL_FEATURES, GET_QUEUE_NUM,
 SET_VRING_ENABLE, SEND_RARP, NET_SET_MTU, SET_BACKEND_REQ_FD) = range(1, 22)
GET_CONFIG, SET_CONFIG = 24, 25
GET_INFLIGHT_FD, SET_INFLIGHT_FD, RESET_DEVICE = 31, 32, 34
GET_MAX_MEM_SLOTS, ADD_MEM_REG, REM_MEM_REG = 36, 37, 38
SET_STATUS, GET_STATUS = 39, 40

VERSION, REPLY, NEED_REPLY = 1, 4, 8
NOFD = 0x100
DRIVER_OK = 0xf  # device status of a driver that is up
NEXT, WRITE, INDIRECT = 1, 2, 4
NO_INTERRUPT, NO_NOTIFY = 1, 1

DESC = struct.Struct("QIHH")
U16, U32, U64 = struct.Struct("H"), struct.Struct("I"), struct.Struct("Q")
HEADER = struct.Struct("<III")
HDR_LEGACY, HDR_MRG = 10, 12
CANARY = 0xA5
GUARD = 64

_fence_lock = threading.Lock()


def fence():
    """A full barrier: taking a lock is an atomic read-modify-write."""
    with _fence_lock:
        pass


def bits(*numbers):
    """The mask of some bit numbers."""
    mask = 0
    for n in numbers:
        mask |= 1 << n
    return mask


def eventfd():
    """A non-blocking eventfd."""
    return os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)


def drain(fd):
    """Counter of an eventfd, 0 when it was not signalled."""
    try:
        return U64.unpack(os.read(fd, 8))[0]
    except BlockingIOError:
        return 0


def poll(check, timeout=2.0, pause=0.001):
    """Polls check() until it is true; its last value."""
    end = time.monotonic() + timeout
    while True:
        value = check()
        if value or time.monotonic() >= end:
            return value
        time.sleep(pause)


class Region:
    """A piece of guest memory over its own memfd."""

    def __init__(self, gpa, size, offset=0, uva=None, file_size=None):
        self.gpa, self.size, self.offset = gpa, size, offset
        self.uva = gpa + UVA_BIAS if uva is None else uva
        self.fd = os.memfd_create("guest", os.MFD_CLOEXEC)
        os.ftruncate(self.fd, offset + size if file_size is None
                     else file_size)
        end = (offset + size + PAGE - 1) // PAGE * PAGE
        whole = os.fstat(self.fd).st_size
        self.map = mmap.mmap(self.fd, min(end, whole)) if whole else None

    def wire(self):
        """As in SET_MEM_TABLE and ADD_MEM_REG."""
        return struct.pack("<QQQQ", self.gpa, self.size, self.uva,
                           self.offset)

    def close(self):
        if self.fd >= 0:
            if self.map is not None:
                self.map.close()
            os.close(self.fd)
            self.fd = -1


class Memory:
    """Guest memory. The default is one region, sparse, away from 0."""

    def __init__(self, size=64 << 20, gpa=0x10_0000, regions=None):
        self.regions = [Region(gpa, size)] if regions is None else regions
        self._next = self.regions[0].gpa + PAGE
        self._guarded = []

    def close(self):
        for r in self.regions:
            r.close()

    def find(self, gpa):
        for r in self.regions:
            if r.gpa <= gpa < r.gpa + r.size:
                return r, r.offset + gpa - r.gpa
        raise ValueError(f"{gpa:#x} is not guest memory")

    def read(self, gpa, length):
        r, at = self.find(gpa)
        return bytes(r.map[at:at + length])

    def write(self, gpa, data):
        r, at = self.find(gpa)
        r.map[at:at + len(data)] = data

    def get(self, fmt, gpa):
        r, at = self.find(gpa)
        return fmt.unpack_from(r.map, at)[0]

    def put(self, fmt, gpa, *values):
        """One store for a 2, 4 or 8 byte value: struct.pack_into() would
        let the device see a 0 in between."""
        r, at = self.find(gpa)
        r.map[at:at + fmt.size] = fmt.pack(*values)

    def alloc(self, size, align=16):
        """Memory of the first region, zero, never given back."""
        gpa = (self._next + align - 1) // align * align
        self._next = gpa + size
        end = self.regions[0].gpa + self.regions[0].size
        if self._next > end:
            raise MemoryError("guest memory of this test is used up")
        return gpa

    def mark(self):
        """Where alloc() is; release() goes back there."""
        return self._next, len(self._guarded)

    def release(self, mark):
        self._next, count = mark
        del self._guarded[count:]

    def buffer(self, size, fill=None, data=b""):
        """A buffer with a canary on either side, any alignment."""
        gpa = self.alloc(size + 2 * GUARD) + GUARD
        self.write(gpa - GUARD, bytes([CANARY]) * GUARD)
        self.write(gpa + size, bytes([CANARY]) * GUARD)
        if fill is not None:
            self.write(gpa, bytes([fill]) * size)
        if data:
            self.write(gpa, data)
        self._guarded.append((gpa, size))
        return gpa

    def check_canaries(self):
        """Fails when anything was written beside a buffer."""
        want = bytes([CANARY]) * GUARD
        for gpa, size in self._guarded:
            assert self.read(gpa - GUARD, GUARD) == want, \
                f"written before the buffer at {gpa:#x}"
            assert self.read(gpa + size, GUARD) == want, \
                f"written past the {size} bytes at {gpa:#x}"

    def snapshot(self):
        """All of guest memory that was ever used, to compare."""
        r = self.regions[0]
        return bytes(r.map[r.offset:r.offset + self._next - r.gpa])


class Virtqueue:
    """One split virtqueue as a driver sees it, in memory @mem."""

    def __init__(self, mem, size=256, event_idx=False, place=None):
        self.mem, self.size, self.event_idx = mem, size, event_idx
        if place:
            self.desc, self.avail, self.used = place
        else:
            self.desc = mem.alloc(16 * size, 16)
            self.avail = mem.alloc(6 + 2 * size, 2)
            self.used = mem.alloc(6 + 8 * size, 4)
        self.kick_fd, self.call_fd, self.err_fd = \
            eventfd(), eventfd(), eventfd()
        self.avail_idx = self.used_seen = self.kicked_at = 0
        self.kicks = 0
        self.free = list(range(size - 1, -1, -1))
        self.chains = {}  # head -> descriptors of the ring it uses

    def close(self):
        for name in ("kick_fd", "call_fd", "err_fd"):
            fd = getattr(self, name)
            if fd >= 0:
                os.close(fd)
                setattr(self, name, -1)

    def restart(self, idx=0):
        """Forgets everything, as a driver that reinitialises its ring, or
        one that goes on at @idx."""
        self.avail_idx = self.used_seen = self.kicked_at = idx & 0xffff
        self.mem.write(self.avail, bytes(6 + 2 * self.size))
        self.mem.write(self.used, bytes(6 + 8 * self.size))
        self.mem.put(U16, self.avail + 2, idx & 0xffff)
        self.mem.put(U16, self.used + 2, idx & 0xffff)
        self.free = list(range(self.size - 1, -1, -1))
        self.chains = {}

    # Raw access.

    def set_desc(self, i, gpa, length, flags=0, next_=0, table=None):
        self.mem.put(DESC, (self.desc if table is None else table) + 16 * i,
                     gpa, length, flags, next_)

    def set_entry(self, slot, head):
        self.mem.put(U16, self.avail + 4 + 2 * (slot % self.size), head)

    def set_avail_idx(self, idx):
        self.avail_idx = idx & 0xffff
        fence()
        self.mem.put(U16, self.avail + 2, self.avail_idx)

    def set_avail_flags(self, flags):
        self.mem.put(U16, self.avail, flags)

    def set_used_event(self, idx):
        self.mem.put(U16, self.avail + 4 + 2 * self.size, idx & 0xffff)

    def used_flags(self):
        return self.mem.get(U16, self.used)

    def used_idx(self):
        return self.mem.get(U16, self.used + 2)

    def avail_event(self):
        return self.mem.get(U16, self.used + 4 + 8 * self.size)

    # Chains.

    def table(self, segs):
        """An indirect table of (gpa, length, flags) in guest memory."""
        at = self.mem.alloc(16 * len(segs), 16)
        for i, (gpa, length, flags) in enumerate(segs):
            last = i == len(segs) - 1
            self.set_desc(i, gpa, length, flags | (0 if last else NEXT),
                          i + 1, at)
        return at

    def chain(self, segs):
        """Descriptors for (gpa, length, flags) segments; the head.

        The last segment may carry INDIRECT itself."""
        ids = [self.free.pop() for _ in segs]
        for i, (gpa, length, flags) in enumerate(segs):
            last = i == len(segs) - 1
            self.set_desc(ids[i], gpa, length, flags | (0 if last else NEXT),
                          0 if last else ids[i + 1])
        self.chains[ids[0]] = ids
        return ids[0]

    def own(self, n):
        """Takes @n free descriptors to write by hand; counted to the first
        one's chain, so that they come back when it is used."""
        ids = [self.free.pop() for _ in range(n)]
        self.chains[ids[0]] = ids
        return ids

    def queue(self, head):
        """Puts @head in the available ring, not yet visible."""
        self.set_entry(self.avail_idx, head)
        self.avail_idx = (self.avail_idx + 1) & 0xffff

    def publish(self):
        fence()
        self.mem.put(U16, self.avail + 2, self.avail_idx)

    def kick(self, force=False):
        """Notifies the device if it wants to be; whether it did."""
        fence()
        new, old = self.avail_idx, self.kicked_at
        self.kicked_at = new
        if self.event_idx:
            event = self.avail_event()
            wanted = (new - event - 1) & 0xffff < (new - old) & 0xffff
        else:
            wanted = not self.used_flags() & NO_NOTIFY
        if wanted or force:
            self.kicks += 1
            os.write(self.kick_fd, U64.pack(1))
        return wanted

    def add(self, *chains, kick=True):
        """Makes each list of segments available in one publish; the heads."""
        heads = [self.chain(c) for c in chains]
        for head in heads:
            self.queue(head)
        self.publish()
        if kick:
            self.kick()
        return heads

    def reap(self):
        """Used entries since the last call: [(id, len)]."""
        out, end = [], self.used_idx()
        fence()
        while self.used_seen != end:
            at = self.used + 4 + 8 * (self.used_seen % self.size)
            r, off = self.mem.find(at)
            out.append(struct.unpack_from("II", r.map, off))
            self.used_seen = (self.used_seen + 1) & 0xffff
            self.free += self.chains.pop(out[-1][0], [])
        return out

    def wait(self, count=1, timeout=3.0):
        """At least @count used entries, or fails."""
        got = []

        def enough():
            got.extend(self.reap())
            return len(got) >= count
        poll(enough, timeout)
        assert len(got) >= count, \
            f"{len(got)} of {count} chains came back in {timeout} s"
        return got

    def called(self, timeout=0.0):
        """Notifications received; waits for one up to @timeout."""
        if timeout:
            select.select([self.call_fd], [], [], timeout)
        return drain(self.call_fd)


class Closed(ConnectionError):
    """The back-end ended the session."""


class Client:
    """The front-end's end of one session."""

    def __init__(self, path=None, sock=None, timeout=5.0):
        if sock is None:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.settimeout(timeout)
            end = time.monotonic() + timeout
            while True:
                try:
                    sock.connect(path)
                    break
                except (FileNotFoundError, ConnectionRefusedError,
                        BlockingIOError):
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.01)
        sock.settimeout(timeout)
        self.sock = sock
        self.protocol = 0   # negotiated protocol features
        self.features = 0

    def close(self):
        self.sock.close()

    # Bytes.

    def raw(self, data, fds=()):
        """Writes bytes, with descriptors on the first one."""
        try:
            if fds:
                anc = [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                        array.array("i", fds))]
                n = self.sock.sendmsg([data], anc)
                data = data[n:]
            if data:
                self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as e:
            raise Closed("sending") from e

    def send(self, request, payload=b"", fds=(), flags=VERSION, size=None):
        """One message; @size overrides the true payload size."""
        self.raw(HEADER.pack(request, flags,
                             len(payload) if size is None else size) +
                 payload, fds)

    def _read(self, n):
        data = b""
        while len(data) < n:
            try:
                part = self.sock.recv(n - len(data))
            except ConnectionResetError as e:
                raise Closed("receiving") from e
            if not part:
                raise Closed("receiving")
            data += part
        return data

    def receive(self):
        """(request, flags, payload) of the next message."""
        request, flags, size = HEADER.unpack(self._read(12))
        return request, flags, self._read(size)

    def silent(self, seconds=0.05):
        """Whether nothing comes for so long (a close is not silence)."""
        return not select.select([self.sock], [], [], seconds)[0]

    def ended(self, timeout=2.0):
        """Whether the back-end closed the session; discards messages."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if not select.select([self.sock], [], [], 0.05)[0]:
                continue
            try:
                if not self.sock.recv(65536):
                    return True
            except (ConnectionResetError, BrokenPipeError):
                return True
        return False

    # Messages.

    def call(self, request, payload=b"", fds=(), flags=VERSION):
        """A request that is always answered; the answer's payload."""
        self.send(request, payload, fds, flags)
        got, rflags, data = self.receive()
        assert got == request, f"reply {got} to request {request}"
        assert rflags & 7 == VERSION | REPLY, f"reply flags {rflags:#x}"
        return data

    def ack(self, request, payload=b"", fds=()):
        """A request without an answer of its own. With REPLY_ACK it asks
        for the result (0: success) and returns it, else returns None."""
        if not self.protocol & bits(P_REPLY_ACK):
            self.send(request, payload, fds)
            return None
        self.send(request, payload, fds, VERSION | NEED_REPLY)
        got, rflags, data = self.receive()
        assert (got, len(data)) == (request, 8), \
            f"answer {got} of {len(data)} bytes to request {request}"
        assert rflags & 7 == VERSION | REPLY
        return U64.unpack(data)[0]

    def get_u64(self, request):
        data = self.call(request)
        assert len(data) == 8
        return U64.unpack(data)[0]

    def state(self, request, index, num=0):
        return self.ack(request, struct.pack("<II", index, num))

    def start_session(self, protocol=None, features_first=True):
        """Owner and protocol features; returns the offered features.

        @protocol: mask to take of what is offered, None: everything."""
        offered = self.get_u64(GET_FEATURES) if features_first else 0
        self.send(SET_OWNER)
        if protocol == 0:
            return offered
        if offered & bits(F_PROTOCOL):
            have = self.get_u64(GET_PROTOCOL_FEATURES)
            take = have if protocol is None else have & protocol
            self.send(SET_PROTOCOL_FEATURES, U64.pack(take))
            self.protocol = take
        return offered

    def set_features(self, features):
        self.features = features
        return self.ack(SET_FEATURES, U64.pack(features))

    def set_mem_table(self, regions):
        payload = struct.pack("<II", len(regions), 0)
        payload += b"".join(r.wire() for r in regions)
        return self.ack(SET_MEM_TABLE, payload, [r.fd for r in regions])

    def add_mem(self, region):
        return self.ack(ADD_MEM_REG, bytes(8) + region.wire(), [region.fd])

    def rem_mem(self, region, with_fd=False):
        return self.ack(REM_MEM_REG, bytes(8) + region.wire(),
                        [region.fd] if with_fd else [])

    def vring_addr(self, index, vq, flags=0):
        return self.ack(SET_VRING_ADDR, struct.pack(
            "<IIQQQQ", index, flags, vq.desc + UVA_BIAS, vq.used + UVA_BIAS,
            vq.avail + UVA_BIAS, 0))

    def vring_fd(self, request, index, fd):
        """SET_VRING_KICK, _CALL or _ERR; fd -1: the NOFD bit."""
        if fd < 0:
            return self.ack(request, U64.pack(index | NOFD))
        return self.ack(request, U64.pack(index), [fd])

    def setup_vring(self, index, vq, base=0, enable=True):
        """Everything a ring needs; runs it."""
        self.state(SET_VRING_NUM, index, vq.size)
        self.state(SET_VRING_BASE, index, base)
        self.vring_addr(index, vq)
        self.vring_fd(SET_VRING_CALL, index, vq.call_fd)
        self.vring_fd(SET_VRING_ERR, index, vq.err_fd)
        self.vring_fd(SET_VRING_KICK, index, vq.kick_fd)
        if enable and self.features & bits(F_PROTOCOL):
            self.state(SET_VRING_ENABLE, index, 1)

    def get_vring_base(self, index):
        """Stops the ring; its next available index."""
        data = self.call(GET_VRING_BASE, struct.pack("<II", index, 0))
        got, base = struct.unpack("<II", data)
        assert got == index
        return base

    def sync(self):
        """Returns when everything sent before was handled."""
        return self.get_u64(GET_FEATURES)


class Driver:
    """A connected, negotiated front-end with queue pairs that run.

    rx[n] and tx[n] are the queues of pair n, ctrl the control queue if
    asked for; its index is 2 * @max_pairs, the pairs that the back-end has.
    Buffers are used once: a test is short."""

    FEATURES = bits(F_MRG_RXBUF, F_EVENT_IDX, F_INDIRECT, F_PROTOCOL,
                    F_VERSION_1, F_CSUM, F_HOST_TSO4, F_HOST_TSO6,
                    F_GUEST_CSUM, F_GUEST_TSO4, F_GUEST_TSO6, F_MQ,
                    F_CTRL_VQ, F_STATUS, F_MAC)

    def __init__(self, path, pairs=2, features=FEATURES, protocol=None,
                 size=256, ctrl=False, start=True, mem=None, sock=None,
                 max_pairs=None):
        self.mem = mem or Memory()
        self.client = Client(path, sock)
        self.offered = self.client.start_session(protocol)
        self.features = features & self.offered
        self.client.set_features(self.features)
        self.client.set_mem_table(self.mem.regions)
        self.event_idx = bool(self.features & bits(F_EVENT_IDX))
        self.hdr_len = HDR_MRG if self.features & bits(
            F_MRG_RXBUF, F_VERSION_1) else HDR_LEGACY
        new = [Virtqueue(self.mem, size, self.event_idx)
               for _ in range(2 * pairs)]
        self.rx, self.tx = new[0::2], new[1::2]
        self.queues = dict(enumerate(new))
        self.posted = [{} for _ in self.rx]  # head -> segments
        self.reaped = [[] for _ in self.rx]  # contents not yet looked at
        self.ctrl = None
        if ctrl:
            self.ctrl = Virtqueue(self.mem, 64, self.event_idx)
            self.queues[2 * (max_pairs or pairs)] = self.ctrl
        if start:
            self.start()

    def start(self, indices=None, base=0):
        for i in self.queues if indices is None else indices:
            self.client.setup_vring(i, self.queues[i], base)
        if self.client.protocol & bits(P_STATUS):
            self.client.ack(SET_STATUS, U64.pack(DRIVER_OK))
        self.client.sync()
        if self.ctrl and indices is None and self.features & bits(F_MQ):
            # A driver with a control queue has one pair until it asks.
            assert self.command(4, 0, struct.pack("<H", len(self.tx))) == 0, \
                "VQ_PAIRS_SET was refused"

    def close(self):
        """Leaves as a killed front-end does: the socket just closes."""
        self.client.close()
        for q in self.queues.values():
            q.close()
        self.mem.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def command(self, class_, cmd, data=b""):
        """Runs a control command; its acknowledgement (0: done)."""
        body = bytes([class_, cmd]) + data
        status = self.mem.buffer(1, 0xff)
        self.ctrl.add([(self.mem.buffer(len(body), data=body), len(body), 0),
                       (status, 1, WRITE)])
        assert self.ctrl.wait(1)[0][1] == 1, "used length of a command"
        return self.mem.read(status, 1)[0]

    def packet(self, frame, hdr=None):
        """A guest buffer with virtio header and frame: (gpa, length, 0)."""
        data = (bytes(self.hdr_len) if hdr is None else hdr) + frame
        return self.mem.buffer(len(data), data=data), len(data), 0

    def send(self, *frames, pair=0, kick=True):
        """Makes frames available for transmission, one descriptor each."""
        return self.tx[pair].add(*[[self.packet(f)] for f in frames],
                                 kick=kick)

    def post(self, *lengths, pair=0, count=1, fill=0xff, kick=True):
        """Posts @count receive buffers, each a chain of descriptors of
        @lengths bytes (default: one of 1526); their heads."""
        heads = []
        for _ in range(count):
            segs = [(self.mem.buffer(n, fill), n, WRITE)
                    for n in lengths or (1526,)]
            heads.append(self.rx[pair].chain(segs))
            self.posted[pair][heads[-1]] = segs
            self.rx[pair].queue(heads[-1])
        self.rx[pair].publish()
        if kick:
            self.rx[pair].kick()
        return heads

    def content(self, pair, head, length):
        """The first @length bytes of the posted chain @head."""
        out = b""
        for gpa, size, _ in self.posted[pair].pop(head):
            out += self.mem.read(gpa, min(size, length - len(out)))
        return out

    def recv(self, pair=0, timeout=2.0):
        """The next packet (virtio header and frame); None: none came.

        Follows num_buffers when mergeable buffers are negotiated."""
        def more():
            # Read at once: a descriptor that came back may be posted again.
            self.reaped[pair] += [self.content(pair, head, length)
                                  for head, length in self.rx[pair].reap()]
            return self.reaped[pair]
        data, left = b"", 1
        while left:
            if not poll(more, timeout):
                assert not data, "a packet stopped half-way"
                return None
            part = self.reaped[pair].pop(0)
            if not data and self.features & bits(F_MRG_RXBUF) and \
                    len(part) >= HDR_MRG:
                left = U16.unpack_from(part, 10)[0]
                assert left, "num_buffers is 0"
            data += part
            left -= 1
        return data


SOL_PACKET, PACKET_AUXDATA, PACKET_VNET_HDR = 263, 8, 15
PACKET_IGNORE_OUTGOING, ETH_P_ALL = 23, 3
SO_RCVBUFFORCE, SO_SNDBUFFORCE = 33, 32


class HostSide:
    """The host's view of a tap: an AF_PACKET socket in its namespace.

    Frames the guest sent are received here, what is sent here the guest
    receives. With @vnet each frame has a 10-byte virtio-net header in front,
    in both directions, so partial checksums and GSO frames can be seen and
    made."""

    def __init__(self, netns, ifname="tap0", protocol=ETH_P_ALL, vnet=False):
        with netns.entered():
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        s.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        s.setsockopt(SOL_PACKET, PACKET_VNET_HDR, int(vnet))
        s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        s.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 64 << 20)
        s.bind((ifname, protocol))
        self.sock = s
        self.status = 0  # TP_STATUS_* of the last frame

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def inject(self, *frames):
        """Sends frames to the guest."""
        for f in frames:
            self.sock.send(f)

    def get(self, timeout=2.0):
        """The next frame, None when none comes in time."""
        self.sock.settimeout(max(timeout, 0.0001))
        while True:
            try:
                data, anc, _, _ = self.sock.recvmsg(1 << 17, 256)
                break
            except (TimeoutError, BlockingIOError):
                return None
            except OSError as e:
                # Said once, then the socket goes on.
                if e.errno != errno.ENETDOWN:
                    raise
        for level, kind, body in anc:
            if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
                self.status = U32.unpack_from(body)[0]
        return data

    def take(self, count, timeout=3.0):
        """@count frames, fewer if they do not come within @timeout."""
        out, end = [], time.monotonic() + timeout
        while len(out) < count:
            f = self.get(end - time.monotonic())
            if f is None and time.monotonic() >= end:
                break
            if f is not None:
                out.append(f)
        return out

    def flush(self, quiet=0.02):
        """Discards what is there; how many."""
        n = 0
        while self.get(quiet) is not None:
            n += 1
        return n
