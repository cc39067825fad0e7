# SPDX-License-Identifier: BSD-3-Clause
"""What every test needs: skipping, failing, waiting, running."""

import os
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback

SKIP = 77


class TestFailure(Exception):
    """The behaviour under test is not what it must be."""


def skip(why):
    """End the test as skipped: what it needs is not there."""
    print(f"SKIP: {why}", flush=True)
    raise SystemExit(SKIP)


def need_root():
    """Skip unless this is root: network namespaces are made."""
    if os.geteuid() != 0:
        skip("needs root, to make network namespaces")


def need_tun():
    """Skip unless root can open tap interfaces."""
    need_root()
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        skip("needs /dev/net/tun")


def need_program(*names):
    """Skip unless all these programs are installed."""
    for name in names:
        if not shutil.which(name):
            skip(f"needs the program {name}")


def check(condition, message):
    """Fail the test with this message unless the condition holds."""
    if not condition:
        raise TestFailure(message)


def check_equal(got, want, what):
    """Fail the test unless both values are the same."""
    check(got == want, f"{what}: got {got!r}, want {want!r}")


def wait_for(condition, timeout, what, interval=0.05):
    """Poll until condition() is true and return its value; fail after timeout seconds."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TestFailure(f"not within {timeout} s: {what}")
        time.sleep(interval)


def engines():
    """The engines to test here; io_uring is blind to taps before Linux 6.4."""
    release = tuple(int(x) for x in re.findall(r"\d+", os.uname().release)[:2])
    return ("uring", "sync") if release >= (6, 4) else ("sync",)


def sanitizer():
    """The sanitizers virtlane is built with ("" for none): timing and memory bars are off then."""
    value = os.environ.get("VIRTLANE_SANITIZE", "none")
    return "" if value == "none" else value


class Workdir:
    """A directory for sockets and logs; its path is short enough for a UNIX socket."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="vlt.", dir="/tmp")
        return self

    def __exit__(self, *exc):
        shutil.rmtree(self.path, ignore_errors=True)

    def __truediv__(self, name):
        return os.path.join(self.path, name)


def run(main):
    """Run main() as a whole test program: exit 0, 77 (skipped), or 1 with a traceback.

    A terminating signal unwinds like an exception, so that whatever was
    started ends and every namespace goes away.
    """

    def on_signal(number, _frame):
        signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt(signal.Signals(number).name)

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, on_signal)
    try:
        main()
    except Exception:  # pylint: disable=broad-except
        traceback.print_exc()
        sys.stderr.flush()
        raise SystemExit(1) from None
    except KeyboardInterrupt as stop:
        print(f"interrupted: {stop}", file=sys.stderr)
        raise SystemExit(1) from None
    raise SystemExit(0)
