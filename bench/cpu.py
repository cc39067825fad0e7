# SPDX-License-Identifier: BSD-3-Clause
"""CPU time of processes, and which CPU they run on."""

import contextlib
import os

# With one CPU there is no choice.
_ALL = sorted(os.sched_getaffinity(0))
BACK_END, LOAD = _ALL[0], _ALL[-1]


def cpu_seconds(*pids):
    """CPU time of all threads of these processes, user and system."""
    total = 0
    for pid in pids:
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as f:
                    total += int(f.read().split()[0])
    return total / 1e9


def move(pid, cpu):
    """All threads of a process run on this CPU from now on."""
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(task), {cpu})


@contextlib.contextmanager
def on_cpu(cpu):
    """What is started meanwhile runs on this CPU only."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def tsc_hz():
    """Frequency of the time stamp counter: the kernel's bogomips are twice its MHz."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        for line in f:
            if line.lower().startswith("bogomips"):
                return float(line.split(":")[1]) * 1e6 / 2
    return 1e9
