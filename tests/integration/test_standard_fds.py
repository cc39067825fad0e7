# SPDX-License-Identifier: BSD-3-Clause
"""Standard error is not the daemon's to rely on. When nobody reads the pipe it
goes to, lines are lost and nothing waits; when it is closed from the start,
its number is not given to what is opened next, which would get the log lines:
the host network."""
import os
import resource
import subprocess
import time

from rig import engines
from vhost_client import Client, HostSide
from vltest import Netns, Workdir, check, check_equal, need_tun, run, wait_for
from vltest.daemon import virtlane_binary


def start(ns, work, shell, **popen):
    return subprocess.Popen(
        [*ns.prefix, "sh", "-c", f'exec "$@" {shell}', "sh", virtlane_binary(),
         "--backend=tap,name=tap0", f"--socket-path={work / 'vu'}", "--log-level=debug",
         f"--engine={engines()[0]}"], **popen)


def test_closed():
    with Netns() as ns, Workdir() as work:
        ns.add_tap("tap0", None)
        with HostSide(ns) as host, start(ns, work, "<&- >&- 2>&-") as daemon:
            try:
                for _ in range(5):
                    client = Client(work / "vu")
                    client.sync()
                    client.close()
                for fd in range(3):
                    check_equal(os.readlink(f"/proc/{daemon.pid}/fd/{fd}"), "/dev/null",
                                f"descriptor {fd}")
                check_equal(host.get(0.1), None, "frame on the tap")
            finally:
                daemon.terminate()
            check_equal(daemon.wait(5), 0, "exit status")


def test_full():
    with Netns() as ns, Workdir() as work:
        ns.add_tap("tap0", None)
        ours, theirs = os.pipe()
        os.set_blocking(theirs, False)
        try:
            while True:
                os.write(theirs, bytes(4096))
        except BlockingIOError:
            os.set_blocking(theirs, True)
        with start(ns, work, "", stderr=theirs) as daemon:
            try:
                wait_for(lambda: os.path.exists(work / "vu"), 5, "the socket")
                begin = time.monotonic()
                for _ in range(20):
                    client = Client(work / "vu")
                    client.sync()
                    client.close()
                check(time.monotonic() - begin < 3, "sessions wait for the log")
            finally:
                daemon.terminate()
                try:
                    check_equal(daemon.wait(5), 0, "exit status")
                finally:
                    daemon.kill()
        os.close(ours)
        os.close(theirs)


def test_limited():
    """A log file that may not grow."""
    with Netns() as ns, Workdir() as work, open(work / "log", "wb") as log:
        ns.add_tap("tap0", None)
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, limit[1]))
        try:
            daemon = start(ns, work, "", stderr=log)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        with daemon:
            try:
                client = Client(work / "vu")
                client.sync()
                client.close()
            finally:
                daemon.terminate()
            check_equal(daemon.wait(5), 0, "exit status")


def main():
    need_tun()
    test_limited()
    test_closed()
    test_full()


run(main)
