# SPDX-License-Identifier: BSD-3-Clause
"""Child processes: output in memory, ended by pid whatever happens, /proc readings."""

import os
import re
import signal
import subprocess
import threading
import time

from .harness import TestFailure

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


def descendants(pid):
    """All processes below pid, children first."""
    found, todo = [], [pid]
    while todo:
        parent = todo.pop()
        try:
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children", encoding="ascii") as f:
                    below = [int(p) for p in f.read().split()]
                found += below
                todo += below
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def kill_tree(pid):
    """SIGKILL to pid and everything below it."""
    for victim in [pid] + descendants(pid):
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Process:
    """A child whose output is collected by a thread; use as a context manager.

    With interactive=True its stdin is a pipe (see send()), otherwise /dev/null.
    Leaving the context kills it and everything it started.
    """

    def __init__(self, argv, *, name=None, netns=None, interactive=False, **popen):
        self.name = name or os.path.basename(argv[0])
        # The child ends with this process, however that ends.
        self.argv = ["setpriv", "--pdeathsig", "KILL"] + (netns.prefix if netns else []) + list(argv)
        self.interactive = interactive
        self.popen_args = popen
        self.popen = None
        self._text = ""
        self._cond = threading.Condition()
        self._reader = None

    def start(self):
        """Start the process; its output is empty again."""
        self._text = ""
        self.popen = subprocess.Popen(
            self.argv,
            stdin=subprocess.PIPE if self.interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # Ctrl-C is for this process, which ends its children in order.
            start_new_session=True,
            **self.popen_args,
        )
        self._reader = threading.Thread(target=self._collect, args=(self.popen.stdout,), daemon=True)
        self._reader.start()
        return self

    def _collect(self, pipe):
        while data := os.read(pipe.fileno(), 65536):
            with self._cond:
                self._text += data.decode("utf-8", "replace").replace("\r", "")
                self._cond.notify_all()
        with self._cond:
            self._cond.notify_all()

    __enter__ = start

    def __exit__(self, *exc):
        self.kill()
        if exc[0] and not issubclass(exc[0], SystemExit):
            print(f"--- end of the output of {self.name}\n{self.output()[-4000:]}\n---", flush=True)

    @property
    def pid(self):
        """The process's id (the words in front of it use exec, so it is the program's own)."""
        return self.popen.pid

    def alive(self):
        """Whether it still runs."""
        return self.popen is not None and self.popen.poll() is None

    def output(self):
        """What it has written up to now."""
        with self._cond:
            return self._text

    def mark(self):
        """The current length of the output, for wait_output(since=)."""
        with self._cond:
            return len(self._text)

    def send(self, text):
        """Write to its stdin."""
        os.write(self.popen.stdin.fileno(), text.encode())

    def wait_output(self, pattern, timeout, since=0):
        """The match of a regular expression in the output behind position `since`."""
        regex = re.compile(pattern, re.M)
        end = time.monotonic() + timeout
        with self._cond:
            while True:
                match = regex.search(self._text, since)
                if match:
                    return match
                left = end - time.monotonic()
                if left <= 0:
                    raise TestFailure(f"{self.name}: no {pattern!r} within {timeout} s")
                if self.popen.poll() is not None and not self._reader.is_alive():
                    raise TestFailure(f"{self.name} ended ({self.popen.returncode}) without {pattern!r}")
                self._cond.wait(min(left, 0.2))

    def wait(self, timeout):
        """Wait for its end and return the exit status."""
        try:
            status = self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TestFailure(f"{self.name} did not end within {timeout} s") from None
        self._reader.join(5)
        return status

    def signal(self, number):
        """Send it a signal if it still runs."""
        if self.alive():
            self.popen.send_signal(number)

    def kill(self):
        """SIGKILL to it and everything below, and reap it."""
        if self.popen is None:
            return
        if self.popen.poll() is None:
            kill_tree(self.popen.pid)
        self.popen.wait()
        self._reader.join(5)
        if self.popen.stdin:
            self.popen.stdin.close()

    def _status(self, field):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as f:
            for line in f:
                if line.startswith(field + ":"):
                    return int(line.split()[1])
        return 0

    def cpu_seconds(self):
        """CPU time used up to now, all threads, user and system."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS

    def fds(self):
        """Number of open file descriptors."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def maps(self):
        """Number of memory mappings."""
        with open(f"/proc/{self.pid}/maps", encoding="ascii") as f:
            return sum(1 for _ in f)

    def rss_kib(self):
        """Resident memory in KiB without shared memory (that is the guest's)."""
        return self._status("RssAnon") + self._status("RssFile")

    def wakeups(self):
        """Context switches of all threads: how often it has run."""
        total = 0
        for task in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{task}/status", encoding="ascii") as f:
                total += sum(int(line.split()[1]) for line in f if "ctxt_switches" in line)
        return total
