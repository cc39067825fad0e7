# SPDX-License-Identifier: BSD-3-Clause
"""What the daemon and virtlanectl say to people: a tap that was made or is
down, a start that fails, a socket that has to stay, a wrong path or argument."""
import os
import pwd
import socket
import subprocess

from vltest import Netns, Virtlane, Workdir, check, check_equal, need_tun, run, skip

MADE = "info: tap0: did not exist, made it; it goes away when virtlane ends"
DOWN = "warning: tap0: link is down; set it up: ip link set tap0 up"


def ctl(*args):
    """Runs virtlanectl, which must print nothing but an error: (status, error)."""
    done = subprocess.run([os.environ["VIRTLANECTL"], *args], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=30, check=False)
    check_equal(done.stdout, "", "output of virtlanectl")
    return done.returncode, done.stderr


def test_tap(ns):
    with Virtlane(netns=ns) as daemon:
        check(MADE in daemon.log(), f"a new tap goes unnoticed:\n{daemon.log()}")
        check(DOWN not in daemon.log(), "a new tap is called down")
        check("offered MAC " in daemon.log(), "the MAC address has no name")
        # The place for front-ends answers nothing that virtlanectl asks.
        status, error = ctl("stat", daemon.socket)
        check_equal(status, 1, "exit status")
        check("or this is its --socket-path; give the path of --stats" in error, error)
        page = subprocess.run([os.environ["VIRTLANECTL"], "stat", daemon.stats],
                              capture_output=True, text=True, check=True).stdout
        check("offered MAC " in page, page)
    ns.ip("tuntap", "add", "tap0", "mode", "tap")
    with Virtlane(netns=ns) as daemon:
        check(MADE not in daemon.log(), "an old tap is called new")
        check(DOWN in daemon.log(), f"a tap that is down goes unnoticed:\n{daemon.log()}")
    ns.ip("link", "set", "tap0", "up")
    with Virtlane(netns=ns) as daemon:
        check(DOWN not in daemon.log(), "a tap that is up is called down")


def test_failed_start(ns, work):
    ns.ip("link", "add", "br0", "type", "bridge")
    with Virtlane(netns=ns, backend="tap,name=br0", ready=False) as daemon:
        check_equal(daemon.wait(10), 1, "exit status")
        last = daemon.log().splitlines()[-1]
        check("br0: exists, but is not a tap" in last, f"the last line of the log: {last}")
    with Virtlane(netns=ns, socket_path=work / "no/vu", ready=False) as daemon:
        check_equal(daemon.wait(10), 1, "exit status")
        last = daemon.log().splitlines()[-1]
        check("its directory does not exist" in last, f"the last line of the log: {last}")


def test_socket_stays(ns, work):
    """Root without capabilities may not change the directory of somebody else."""
    place = work / "other"
    os.mkdir(place, 0o755)
    os.chown(place, pwd.getpwnam("nobody").pw_uid, -1)
    path = os.path.join(place, "vu")
    for _ in range(2):  # the second one replaces it
        with Virtlane(netns=ns, socket_path=path) as daemon:
            daemon.stop()
            check(f"{path}: the socket cannot be removed: Permission denied" in daemon.log(),
                  f"nothing is said of a socket left behind:\n{daemon.log()}")
        check(os.path.exists(path), "the socket is gone")


def test_virtlanectl(work):
    with open(work / "file", "w", encoding="ascii"):
        pass
    status, error = ctl("stat", work / "file")
    check_equal(status, 1, "exit status")
    check("is no socket" in error, error)
    status, error = ctl()
    check_equal((status, error), (2, "virtlanectl: no command given; try: virtlanectl stat SOCKET\n"),
                "without a command")
    status, error = ctl("stat", work / "file", "--watch", "1")
    check_equal((status, error), (2, "virtlanectl: for an interval write --watch=1\n"), "--watch 1")


def test_hang_up(work):
    """A daemon that drops an idle client says so before it hangs up."""
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(work / "stats")
        s.listen()
        with subprocess.Popen([os.environ["VIRTLANECTL"], "stat", work / "stats"],
                              stderr=subprocess.PIPE, text=True) as asking:
            client, _ = s.accept()
            client.sendall(b'{"error":"dropped: idle"}\n')
            client.close()
            error = asking.stderr.read()
        check("dropped: idle" in error, error)


def main():
    need_tun()
    if "VIRTLANECTL" not in os.environ:
        skip("needs virtlanectl")
    with Workdir() as work:
        os.chmod(work.path, 0o755)
        with Netns() as ns:
            test_tap(ns)
            test_failed_start(ns, work)
            test_socket_stays(ns, work)
        test_virtlanectl(work)
        test_hang_up(work)


run(main)
