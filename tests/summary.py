#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Add up the results of `meson test` in several build directories.

usage: summary.py [--failed NAME]... BUILDDIR...

Prints each failed test with the end of its output, each skipped one with the
reason, and as the last line "N passed, N failed, N skipped". --failed counts
something that failed outside of meson, such as a build. The exit status is 1
if anything failed or nothing passed.
"""

import argparse
import json
from pathlib import Path

TAIL_LINES = 40
PASSED = ("OK", "EXPECTEDFAIL")


def results(build):
    """All test results of a build directory."""
    log = Path(build) / "meson-logs" / "testlog.json"
    if log.exists():
        with open(log, encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)


def tail(test):
    """The end of a test's output."""
    text = (test.get("stdout") or "") + (test.get("stderr") or "")
    return "\n".join("    " + line for line in text.splitlines()[-TAIL_LINES:])


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--failed", action="append", default=[], metavar="NAME")
    parser.add_argument("builds", nargs="+", metavar="BUILDDIR")
    args = parser.parse_args()
    passed = skipped = 0
    failed = len(args.failed)
    for build in args.builds:
        for test in results(build):
            where = f"{build}: {test['name']}"
            if test["result"] in PASSED:
                passed += 1
            elif test["result"] == "SKIP":
                skipped += 1
                why = [x for x in (test.get("stdout") or "").splitlines() if x.startswith("SKIP")]
                print(f"skipped  {where}  {why[0] if why else ''}")
            else:
                failed += 1
                print(f"FAILED   {where} ({test['result']}, {test['duration']:.1f} s)\n{tail(test)}")
    for name in args.failed:
        print(f"FAILED   {name}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    raise SystemExit(main())
