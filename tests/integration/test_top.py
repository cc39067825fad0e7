# SPDX-License-Identifier: BSD-3-Clause
"""virtlanectl shows who is slow: stat lists the lanes once they are in use, and top, in a terminal of
80x24, has the slow destination in its first line. top leaves the terminal as it was."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from hol import Network
from vltest import check, check_equal, run, wait_for

CTL = os.environ["VIRTLANECTL"]
ROWS, COLS = 24, 80
SECONDS = 10


class Screen:
    """A terminal, as far as virtlanectl uses one: .lines is what a person sees."""

    def __init__(self, rows=ROWS, cols=COLS):
        self.lines, self.row, self.col, self.seen = {}, 0, 0, ""
        self.size = rows, cols
        self.done, self.left = 0, False
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        self.before = termios.tcgetattr(self.slave)

    def start(self, *words):
        """Run virtlanectl in it."""
        return subprocess.Popen([CTL, *words], stdin=self.slave, stdout=self.slave, stderr=self.slave)

    def read(self, seconds):
        """Take what is written in so long a time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.master], [], [], left)[0]:
                self.seen += os.read(self.master, 65536).decode()
        for part in re.findall(r"\x1b\[[0-9;?]*[a-zA-Z]|\r|\n|[^\x1b\r\n]+", self.seen[self.done:]):
            self.left |= part == "\x1b[?1049l"
            if not self.left:
                self.show(part)
        self.done = len(self.seen)

    def show(self, part):
        """Do what a piece of output says."""
        if part == "\x1b[H":
            self.row = self.col = 0
        elif part == "\r":
            self.col = 0
        elif part == "\n":
            self.row += 1
            check(self.row < self.size[0], "it scrolls")
        elif part == "\x1b[K":
            self.lines[self.row] = self.lines.get(self.row, "")[:self.col]
        elif not part.startswith("\x1b"):
            self.lines[self.row] = self.lines.get(self.row, "")[:self.col] + part
            self.col += len(part)
            check(self.col <= self.size[1], f"too wide: {part!r}")

    def text(self):
        """All lines."""
        return "\n".join(self.lines[row] for row in sorted(self.lines))

    def restored(self):
        """Whether the terminal is as it was before."""
        return (termios.tcgetattr(self.slave) == self.before
                and self.seen.rindex("\x1b[?1049l") > self.seen.rindex("\x1b[?1049h")
                and self.seen.rindex("\x1b[?25h") > self.seen.rindex("\x1b[?25l"))

    def close(self):
        """Let go of the terminal."""
        os.close(self.master)
        os.close(self.slave)


def ctl(net, *words):
    """What virtlanectl stat prints."""
    return subprocess.run([CTL, "stat", net.daemon.stats, *words], check=True, text=True,
                          stdout=subprocess.PIPE, timeout=SECONDS).stdout


def slow_names(net):
    """Destinations in lanes that are proven slow."""
    lanes = json.loads(ctl(net, "--json"))["queue_pairs"][0]["lanes"]
    return [dest["ip"] for lane in lanes if lane["state"] == "slow" for dest in lane["busiest"]]


def check_stat(net):
    """The slow destination is named by stat, with what waits for it."""
    wait_for(lambda: net.slow.address in slow_names(net), SECONDS, "the slow destination in a slow lane")
    held = json.loads(ctl(net, "--json"))["queue_pairs"][0]["held"]
    check(held["descriptors"] <= held["descriptors_max"] and held["pool_bytes"] <= held["pool_bytes_max"], str(held))
    text = ctl(net)
    check(re.search(rf"tx0/\d +slow .*{re.escape(net.slow.address)}", text), text)
    check(re.search(r"waiting packets hold \d+ of \d+ descriptors", text), text)


def check_top(net, rows, cols):
    """The first lane of the screen is the slow one."""
    screen = Screen(rows, cols)
    top = screen.start("top", net.daemon.stats, "--watch=0.3")
    for _ in range(10):
        screen.read(0.5)
        first = next((line for line in screen.text().splitlines() if line.startswith("tx0/")), "")
        if re.match(rf"tx0/\d +slow +{re.escape(net.slow.address)} .*ms #", first):
            break
    else:
        check(False, screen.text())
    print(screen.text(), flush=True)
    check(top.poll() is None, "top has ended")
    return screen, top


def end(screen, top, status):
    """It ends by itself, and the terminal is as before."""
    check_equal(top.wait(SECONDS), status, "exit status of top")
    screen.read(0.1)
    check(screen.restored(), "the terminal is not as before")
    screen.close()


def main():
    with Network("lanes=8") as net:
        check("destinations" not in ctl(net), "lanes are shown that nobody used")
        with net.flows([(net.fast, "tcp"), (net.slow, "udp")]):
            check_stat(net)
            screen, top = check_top(net, ROWS, COLS)
            os.write(screen.master, b"q")
            end(screen, top, 0)
            screen, top = check_top(net, 9, 132)
            top.send_signal(signal.SIGINT)
            end(screen, top, 0)
            screen, top = check_top(net, ROWS, COLS)
        net.daemon.popen.terminate()
        check_equal(net.daemon.wait(SECONDS), 0, "exit status of the daemon")
        end(screen, top, 1)
        check("no answer" in screen.seen[screen.seen.rindex("\x1b[?1049l"):], "it does not say why it ended")
    check_equal(subprocess.run([CTL, "top", "/nonexistent"], stderr=subprocess.PIPE).returncode, 1, "no socket")


run(main)
