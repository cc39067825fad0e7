# SPDX-License-Identifier: BSD-3-Clause
"""What guests talk to, and front-ends that are no guests: sockets, iperf3, DPDK's testpmd."""

import hashlib
import itertools
import json
import os
import re
import socket
import threading
import time

from .harness import TestFailure, check, need_program, wait_for
from .proc import Process

HOST = "10.9.0.1"


class TcpSink(threading.Thread):
    """Accepts one connection in a namespace and takes everything: .size and .digest after join()."""

    def __init__(self, netns, port, timeout=60):
        super().__init__(daemon=True)
        with netns.entered():
            self.server = socket.create_server(("", port))
        self.server.settimeout(timeout)
        self.timeout = timeout
        self.size = 0
        self.digest = None
        self.start()

    def run(self):
        """Thread body."""
        sha = hashlib.sha256()
        with self.server, self.server.accept()[0] as peer:
            peer.settimeout(self.timeout)
            while data := peer.recv(262144):
                sha.update(data)
                self.size += len(data)
        self.digest = sha.hexdigest()


class TcpSource(threading.Thread):
    """Accepts one connection in a namespace and sends `size` random bytes: .digest."""

    def __init__(self, netns, port, size, timeout=60):
        super().__init__(daemon=True)
        with netns.entered():
            self.server = socket.create_server(("", port))
        self.server.settimeout(timeout)
        self.timeout = timeout
        self.data = os.urandom(size)
        self.digest = hashlib.sha256(self.data).hexdigest()
        self.start()

    def run(self):
        """Thread body."""
        with self.server, self.server.accept()[0] as peer:
            peer.settimeout(self.timeout)
            peer.sendall(self.data)


def check_tcp(netns, guest, mib=16, port=7000):
    """Move random data both ways between guest and host and compare the checksums."""
    sink = TcpSink(netns, port)
    _, text = guest.run(
        f"dd if=/dev/urandom of=/tmp/out bs=1M count={mib} 2>/dev/null; sha256sum </tmp/out; "
        f"nc {HOST} {port} </tmp/out; rm /tmp/out", 90)
    sink.join(60)
    check(sink.size == mib << 20, f"guest to host: {sink.size} bytes arrived of {mib} MiB")
    check(sink.digest == text.split()[0], "guest to host: the data has changed")
    source = TcpSource(netns, port + 1, mib << 20)
    _, text = guest.run(f"nc {HOST} {port + 1} </dev/null | sha256sum", 90)
    source.join(60)
    check(source.digest == text.split()[0], "host to guest: the data has changed or is incomplete")


def check_ping(netns, guest, address="10.9.0.2"):
    """Ping in both directions, also with fragments and with the smallest packets."""
    for size in (0, 56, 1472, 8000):
        received, text = guest.ping(count=3, size=size)
        check(received == 3, f"ping from the guest, {size} bytes:\n{text}")
    received, text = netns.ping(address, count=5)
    check(received == 5, f"ping from the host:\n{text}")


class Iperf3Server(Process):
    """iperf3 -s in a namespace."""

    def __init__(self, netns, port=5201):
        need_program("iperf3")
        super().__init__(["iperf3", "-s", "-p", str(port), "--forceflush"], netns=netns)

    def start(self):
        """Start and wait until it listens."""
        super().start()
        self.wait_output("Server listening", 10)
        return self

    __enter__ = start


def iperf3(guest, *options, seconds=2, port=5201, parallel=1):
    """Run the iperf3 client in a guest; returns the "end" part of its JSON."""
    command = f"iperf3 -c {HOST} -p {port} -t {seconds} -P {parallel} -J {' '.join(options)}"
    status, text = guest.run(command, seconds + 30, None)
    start = text.find("{")
    if status or start < 0:
        raise TestFailure(f"{command}: status {status}\n{text[-1500:]}")
    return json.loads(text[start:])["end"]


def _receive_buffer_errors(snmp):
    """UDP datagrams that a receiving program was too slow for, from /proc/net/snmp."""
    names, values = [line.split() for line in snmp.splitlines() if line.startswith("Udp:")]
    return int(values[names.index("RcvbufErrors")])


def check_udp(netns, guest, rate="20M"):
    """Datagrams at a modest rate arrive both ways, all of them.

    On a busy machine the receiving iperf3 may not get the processor in time;
    what its socket had no room for has arrived all the same.
    """

    def late():
        return (_receive_buffer_errors(netns.run("cat", "/proc/net/snmp").stdout)
                + _receive_buffer_errors(guest.out("cat /proc/net/snmp")))

    with Iperf3Server(netns):
        for direction in ((), ("-R",)):
            before = late()
            end = iperf3(guest, "-u", "-b", rate, "-l", "1200", *direction)["sum"]
            lost = end["lost_packets"] - (late() - before)
            check(end["packets"] > 1000, f"only {end['packets']} datagrams were sent")
            check(lost <= 0, f"{' '.join(direction)}: {lost} of {end['packets']} datagrams lost on the way")


def check_traffic(netns, guest, mib=8):
    """The essentials: ARP and ping, TCP both ways with a checksum of the data."""
    check_ping(netns, guest)
    check_tcp(netns, guest, mib)


def send_frames(netns, interface, count, size=200, pause_every=32):
    """Send numbered test frames from an interface to whatever is behind it, gently."""
    with netns.entered():
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    with sock:
        sock.bind((interface, 0))
        head = bytes.fromhex("525400090002 020000000001 88b5")
        for number in range(count):
            sock.send((head + number.to_bytes(4, "big")).ljust(size, b"\x5a"))
            if number % pause_every == pause_every - 1:
                time.sleep(0.001)


_prefixes = itertools.count()


class Testpmd(Process):
    """DPDK's testpmd in interactive mode. devices: --vdev arguments; options: its own."""

    __test__ = False
    # It is written letter by letter, and messages of other threads come between.
    PROMPT = r"> \Z"

    def __init__(self, *devices, netns=None, options=(), memory=256):
        need_program("dpdk-testpmd")
        cpus = ",".join(str(c) for c in sorted(os.sched_getaffinity(0)))
        # stdbuf: what a command prints must come before the next prompt.
        argv = ["stdbuf", "-oL", "dpdk-testpmd", "--lcores", f"0@({cpus}),1@({cpus})", "--no-huge",
                "-m", str(memory), "--no-pci", "--no-telemetry",
                f"--file-prefix=vl{os.getpid()}_{next(_prefixes)}"]
        for device in devices:
            argv += ["--vdev", device]
        argv += ["--", "--interactive", "--total-num-mbufs=16384", "--no-flush-rx", *options]
        super().__init__(argv, netns=netns, name="testpmd", interactive=True)

    def start(self, wait=True):
        """Start and wait for the prompt."""
        super().start()
        if wait:
            self.wait_output(self.PROMPT, 30)
        return self

    __enter__ = start

    def command(self, line, timeout=10):
        """Run a command; returns what it prints."""
        before = self.mark()
        self.send(line + "\n")
        for _ in range(timeout):
            try:
                end = self.wait_output(self.PROMPT, 1, before + 1)
                return self.output()[before:end.start()]
            except TestFailure:
                if not self.alive():
                    raise
                self.send("\n")  # a message behind the prompt hides it
        raise TestFailure(f"testpmd does not end the command {line}")

    def forward(self, mode):
        """Stop, and start forwarding in another mode (txonly, rxonly, io, macswap, icmpecho)."""
        self.command("stop")
        self.command(f"set fwd {mode}")
        self.command("start")

    def stats(self, port=0):
        """{"rx": packets, "tx": packets, ...} of a port."""
        text = self.command(f"show port stats {port}")
        found = re.findall(r"(RX-packets|TX-packets|RX-missed|RX-bytes|TX-bytes): *(\d+)", text)
        check(found, f"testpmd printed no statistics:\n{text}")
        return {name.lower().replace("-packets", "").replace("-", "_"): int(value) for name, value in found}

    def link_up(self, port=0):
        """Whether a port has a link."""
        return "Link status: up" in self.command(f"show port info {port}")

    def wait_link(self, up=True, timeout=15, port=0):
        """Wait until the port's link is up or down."""
        wait_for(lambda: self.link_up(port) == up, timeout, "testpmd's link to change", 0.2)


class VirtioUser(Testpmd):
    """testpmd with one virtio-user port, a vhost-user front-end without a guest."""

    def __init__(self, sock, *, queues=1, mac="52:54:00:09:00:02", server=False, device="", options=(), **more):
        vdev = f"net_virtio_user0,path={sock},queues={queues},mac={mac}"
        if server:
            vdev += ",server=1"
        if device:
            vdev += "," + device
        super().__init__(vdev, options=(f"--rxq={queues}", f"--txq={queues}", *options), **more)


class VhostPacket(Testpmd):
    """testpmd as a vhost-user back-end on packet sockets."""

    def __init__(self, sock, ifname, netns=None):
        super().__init__(f"net_vhost0,iface={sock}", f"net_af_packet0,iface={ifname}", netns=netns,
                         options=("--forward-mode=io", "--auto-start"))


class VhostTap(Testpmd):
    """testpmd as a vhost-user back-end on a tap: what the daemon is compared with."""

    def __init__(self, sock, *, tap="tap0", netns=None):
        super().__init__(f"net_vhost0,iface={sock}", f"net_tap0,iface={tap}", netns=netns,
                         options=("--forward-mode=io", "--auto-start"))
