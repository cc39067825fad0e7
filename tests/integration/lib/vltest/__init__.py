# SPDX-License-Identifier: BSD-3-Clause
"""Helpers of the integration tests: namespaces, the daemon, real guests and peers."""

from .daemon import Virtlane, virtlane_binary
from .harness import (SKIP, TestFailure, Workdir, check, check_equal, need_program, need_root,
                      need_tun, run, sanitizer, skip, wait_for)
from .netns import Netns
from .proc import Process

__all__ = [
    "SKIP", "Netns", "Process", "TestFailure", "Virtlane", "Workdir", "check", "check_equal",
    "need_program", "need_root", "need_tun", "run", "sanitizer", "skip", "virtlane_binary",
    "wait_for",
]
