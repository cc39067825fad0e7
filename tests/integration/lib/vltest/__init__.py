# SPDX-License-Identifier: BSD-3-Clause
"""Helpers of the integration tests: namespaces, the daemon, real guests and peers."""

from .daemon import Virtlane, virtlane_binary, virtlane_on_tap
from .guest import ADDRESS, MAC, QemuGuest, UmlGuest, make_guest
from .harness import (SKIP, TestFailure, Workdir, check, check_equal, engines, need_program, need_root,
                      need_tun, run, sanitizer, skip, wait_for)
from .netns import Netns
from .peers import (HOST, Iperf3Server, TcpSink, TcpSource, Testpmd, VhostPacket, VhostTap, VirtioUser,
                    check_ping, check_tcp, check_traffic, check_udp, iperf3, send_frames)
from .proc import Process

__all__ = [
    "ADDRESS", "HOST", "MAC", "SKIP", "Iperf3Server", "Netns", "Process", "QemuGuest",
    "TcpSink", "TcpSource", "TestFailure", "Testpmd", "UmlGuest", "VhostPacket", "VhostTap", "VirtioUser",
    "Virtlane", "Workdir", "check", "check_equal", "check_ping", "check_tcp", "check_traffic",
    "check_udp", "engines", "iperf3", "make_guest", "need_program", "need_root", "need_tun",
    "run", "sanitizer", "send_frames", "skip", "virtlane_binary",
    "virtlane_on_tap", "wait_for",
]
