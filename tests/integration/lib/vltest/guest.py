# SPDX-License-Identifier: BSD-3-Clause
"""Linux guests whose network card is the daemon under test.

A guest's console carries one command at a time (tests/guest/init has the
protocol), so a test can talk to a running guest: guest.run("ip link").
"""

import itertools
import os
import socket
import sys
import tempfile
import time
from pathlib import Path

from .harness import TestFailure, check, need_program, skip, wait_for
from .proc import Process

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "guest"))
import image  # pylint: disable=wrong-import-position,import-error

ADDRESS = "10.9.0.2"
MAC = "52:54:00:09:00:02"


def _images(kind):
    try:
        return str(image.kernel(kind)), str(image.ensure(kind))
    except image.Missing as why:
        skip(str(why))


class Guest(Process):
    """Common part of both kinds: boot, run commands, reboot, end. A context manager."""

    kind = ""
    boot_timeout = 90

    def __init__(self, argv, **options):
        self._tmp = tempfile.TemporaryDirectory(prefix="vlg.", dir="/tmp", ignore_cleanup_errors=True)
        self.dir = self._tmp.name
        super().__init__(argv, name=f"{self.kind} guest", interactive=True, **options)
        self._ids = itertools.count(1)
        self.booted_in = 0.0

    def boot(self, wait=True):
        """Start it and, if asked, wait until it takes commands."""
        super().start()
        if wait:
            try:
                self.wait_ready()
            except BaseException:
                self.kill()
                print(f"--- console\n{self.output()[-4000:]}\n---", flush=True)
                raise
        return self

    __enter__ = boot

    def __exit__(self, *exc):
        super().__exit__(*exc)
        self._tmp.cleanup()

    def wait_ready(self, since=0):
        """Wait until it takes commands."""
        start = time.monotonic()
        self.wait_output("^@@READY", self.boot_timeout, since)
        self.booted_in = time.monotonic() - start

    def run(self, command, timeout=30, status=0):
        """Run a shell command in the guest and return (status, output).

        Fails unless it ends with the given status (None: any).
        """
        check("\n" not in command and len(command) < 4000, "one line per command")
        number = next(self._ids)
        before = self.mark()
        self.send(f"{number} {command}\n")
        end = self.wait_output(rf"^@@END {number} (\d+)\n", timeout, before)
        text = self.output()[before:end.start()]
        text = text.split(f"@@BEGIN {number}\n", 1)[-1].removesuffix("\n")
        got = int(end.group(1))
        if status is not None and got != status:
            raise TestFailure(f"{self.name}: {command}: exit status {got}\n{text}")
        return got, text

    def out(self, command, timeout=30):
        """Output of a command that must succeed."""
        return self.run(command, timeout)[1].strip()

    def reboot(self):
        """The guest restarts itself; returns when it takes commands again."""
        before = self.mark()
        self.send("0 reboot -f\n")
        self.wait_ready(before)

    def carrier(self, interface="eth0"):
        """Whether the guest's interface has a link."""
        return self.out(f"cat /sys/class/net/{interface}/carrier") == "1"

    def wait_carrier(self, up, timeout=10):
        """Wait until the guest sees the link up or down."""
        wait_for(lambda: self.carrier() == up, timeout, f"carrier {'up' if up else 'down'} in the guest")

    def ping(self, address="10.9.0.1", count=3, size=56, interval="0.1"):
        """Ping from the guest; returns (received, text)."""
        text = self.run(f"ping -c {count} -i {interval} -s {size} -W 2 {address}", 60, None)[1]
        line = [x for x in text.split("\n") if "packets received" in x]
        return (int(line[0].split(",")[1].split()[0]) if line else 0), text


class UmlGuest(Guest):
    """Linux in user-mode-linux; always the client of the socket.

    It passes all queues to the back-end, the control queue too. mac and mtu are
    the back-end's to set.
    """

    kind = "uml"
    boot_timeout = 30

    def __init__(self, sock=None, *, netns=None, memory=128, address=f"{ADDRESS}/24", append=""):
        need_program("linux.uml")
        kernel, initrd = _images("uml")
        super().__init__([], netns=netns, env={**os.environ, "TMPDIR": "/dev/shm"})
        self.argv += [
            kernel, f"mem={memory}M", f"initrd={initrd}", f"uml_dir={self.dir}", "umid=g",
            "con=null", "con0=fd:0,fd:1", "ssl=null", "loglevel=4", "panic=-1",
        ]
        if sock:
            self.argv.append(f"virtio_uml.device={sock}:1")
        self.argv += [f"vl.ip={address}" if address else "vl.ip=", *append.split()]


class QemuGuest(Guest):
    """Debian's cloud kernel in QEMU without KVM, with a vhost-user network card.

    server: QEMU listens on the socket and waits for the back-end.
    reconnect: seconds after which QEMU connects again to a lost back-end.
    device: more virtio-net-pci properties, for example "mrg_rxbuf=off,csum=off".
    """

    kind = "qemu"

    def __init__(self, sock=None, *, netns=None, server=False, reconnect=None, queues=1, device="",
                 mac=MAC, memory=192, address=f"{ADDRESS}/24", append=""):
        need_program("qemu-system-x86_64")
        kernel, initrd = _images("qemu")
        super().__init__([], netns=netns)
        self.monitor = os.path.join(self.dir, "mon")
        self.argv += [
            "qemu-system-x86_64", "-M", "q35,memory-backend=mem,usb=off", "-accel", "tcg,thread=multi",
            "-cpu", "max", "-m", str(memory), "-smp", str(queues),
            "-object", f"memory-backend-memfd,id=mem,size={memory}M,share=on",
            "-nodefaults", "-no-user-config", "-display", "none", "-vga", "none",
            "-serial", "stdio", "-monitor", f"unix:{self.monitor},server=on,wait=off",
            "-kernel", kernel, "-initrd", initrd, "-append",
            f"console=ttyS0 loglevel=4 panic=-1 tsc=reliable mitigations=off random.trust_cpu=on "
            f"vl.ip={address or ''} {append}".strip(),
        ]
        if sock:
            chardev = f"socket,id=c,path={sock}"
            if server:
                chardev += ",server=on,wait=on"
            if reconnect:
                chardev += f",reconnect={reconnect}"
            # Without KVM, QEMU 7.2 crashes when a vhost-user card has MSI-X.
            properties = f"virtio-net-pci,netdev=n,mac={mac},romfile=,vectors=0"
            netdev = "vhost-user,id=n,chardev=c"
            if queues > 1:
                netdev += f",queues={queues}"
                properties += ",mq=on"
            if device:
                properties += "," + device
            self.argv += ["-chardev", chardev, "-netdev", netdev, "-device", properties]

    def monitor_command(self, line):
        """Send a command to QEMU's monitor; returns what it printed."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(10)
            s.connect(self.monitor)
            text = b""
            while not text.endswith(b"(qemu) "):
                text += s.recv(4096)
            s.sendall(line.encode() + b"\n")
            text = b""
            while not text.endswith(b"(qemu) "):
                data = s.recv(4096)
                if not data:
                    break
                text += data
            return text.decode("utf-8", "replace")

    def reset(self):
        """Push the machine's reset button; returns when it takes commands again."""
        before = self.mark()
        self.monitor_command("system_reset")
        self.wait_ready(before)


def make_guest(kind, *args, **kwargs):
    """A guest by name: "uml" or "qemu"."""
    return {"uml": UmlGuest, "qemu": QemuGuest}[kind](*args, **kwargs)
