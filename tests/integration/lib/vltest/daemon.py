# SPDX-License-Identifier: BSD-3-Clause
"""Starting and watching the virtlane daemon."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import tempfile

from .guest import MAC
from .harness import TestFailure, check, need_tun, skip, wait_for
from .netns import Netns
from .proc import Process

READY = r"(?i)\bready\b"
# What a sanitizer writes when it found something.
REPORTS = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:")


def virtlane_binary():
    """Path of the daemon under test; the build sets $VIRTLANE."""
    path = os.environ.get("VIRTLANE") or shutil.which("virtlane")
    if not path:
        skip("set VIRTLANE to the daemon's path")
    return path


class Virtlane(Process):
    """The daemon, as a context manager.

    Options: more command line arguments. socket= path of the vhost-user socket
    (one in a temporary directory unless given), mode= "server" or "client",
    backend=, pairs=, engine= (default: $VIRTLANE_ENGINE or auto), netns= to run
    in, prefix= words in front of the command, for example setpriv.
    ready=False does not wait for the start.
    """

    def __init__(self, *options, socket_path=None, mode="server", backend="tap,name=tap0", pairs=1,
                 engine=None, netns=None, prefix=(), log_level="info", ready=True, **popen):
        self._tmp = tempfile.TemporaryDirectory(prefix="vld.", dir="/tmp", ignore_cleanup_errors=True)
        self.dir = self._tmp.name
        os.chmod(self.dir, 0o777)
        self.socket = socket_path or os.path.join(self.dir, "vu.sock")
        self.stats = os.path.join(self.dir, "stats.sock")
        self.wait_ready = ready
        self._ended = False
        argv = [*prefix, virtlane_binary(), f"--backend={backend}", f"--queue-pairs={pairs}",
                f"--engine={engine or os.environ.get('VIRTLANE_ENGINE', 'auto')}",
                f"--stats={self.stats}", f"--log-level={log_level}"]
        if not any(o.startswith("--fd=") for o in options):
            argv.append(f"--socket-path={self.socket}")
        if mode != "server":
            argv.append(f"--socket-mode={mode}")
        super().__init__(argv + list(options), name="virtlane", netns=netns, **popen)

    def start(self):
        """Start (again), and wait until it is ready."""
        super().start()
        self._ended = False
        if self.wait_ready:
            try:
                self.wait_output(READY, 20)
            except BaseException:
                self.kill()
                print(f"--- virtlane\n{self.output()}\n---", flush=True)
                raise
        return self

    __enter__ = start

    def __exit__(self, *exc):
        try:
            if exc[0] is None and not self._ended:
                check(self.alive(), f"virtlane ended by itself, status {self.popen.returncode}")
                self.stop()
        finally:
            super().__exit__(*exc)
            self._tmp.cleanup()
        if exc[0] is None:
            self.check_reports()

    def wait(self, timeout):
        """Wait for its end, which is expected, and return the exit status."""
        self._ended = True
        return super().wait(timeout)

    def log(self):
        """What it has logged up to now."""
        return self.output()

    def check_reports(self):
        """Fail if a sanitizer reported something."""
        found = REPORTS.search(self.output())
        if found:
            raise TestFailure(f"sanitizer report:\n{self.output()[found.start():][:8000]}")

    def command(self, line, timeout=5):
        """Send a line to the --stats socket and return the line it answers."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(timeout)
            s.connect(self.stats)
            s.sendall(line.encode() + b"\n")
            with s.makefile("r", encoding="utf-8") as f:
                return f.readline()

    def stat(self):
        """The daemon's counters, parsed from its JSON."""
        return json.loads(self.command("stat"))

    def wait_stat(self, condition, what, timeout=10):
        """Wait until condition(stat()) holds; returns that stat."""

        def attempt():
            stat = self.stat()
            return stat if condition(stat) else None

        return wait_for(attempt, timeout, what)

    def stop(self, timeout=10):
        """SIGTERM; fails unless it ends by itself with status 0 and no sanitizer report."""
        self.signal(signal.SIGTERM)
        status = self.wait(timeout)
        self.check_reports()
        check(status == 0, f"virtlane: exit status {status} after SIGTERM")

    def kill9(self):
        """SIGKILL, as a crash would be."""
        self._ended = True
        self.kill()


@contextlib.contextmanager
def virtlane_on_tap(*options, pairs=1, mtu=None, **more):
    """A namespace with a persistent tap0 and the daemon on it: yields (netns, virtlane)."""
    need_tun()
    with Netns() as netns:
        netns.add_tap(queues=pairs, mtu=mtu)
        with Virtlane(f"--mac={MAC}", *options, pairs=pairs, netns=netns, **more) as daemon:
            yield netns, daemon
