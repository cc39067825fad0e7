#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run one of the lint tools over the sources: lint.py TOOL SOURCE BUILD.

Exit status: that of the tool, or 77 (skipped) when it is not installed.
"""

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SKIPPED = 77
JOBS = 2


def sources(root, folders, suffixes=('.c', '.h')):
    """List the files of these folders."""
    return [str(p) for d in folders for p in sorted((root / d).rglob('*'))
            if p.suffix in suffixes]


def clang_format(root, _build):
    """Fail where clang-format would change a line."""
    files = sources(root, ('src', 'tools', 'tests', 'bench', 'include'))
    return subprocess.run(['clang-format', '--dry-run', '-Werror', *files],
                          check=False).returncode


def cppcheck(root, build):
    """Look for what cppcheck calls errors, warnings, slow or unportable."""
    cache = build / 'cppcheck'
    cache.mkdir(exist_ok=True)
    return subprocess.run(
        ['cppcheck', '--enable=warning,performance,portability',
         '--inline-suppr', '--error-exitcode=1', '--quiet', f'-j{JOBS}',
         '--std=c11', '-D__GNUC__=12', '-D__linux__',
         '-D__BYTE_ORDER__=1', '-D__ORDER_LITTLE_ENDIAN__=1',
         '-DVL_VERSION="lint"', f'--cppcheck-build-dir={cache}',
         '-I', str(root / 'src'), str(root / 'src'), str(root / 'tools')],
        check=False).returncode


def clang_tidy(root, build):
    """Run the checks of .clang-tidy over what the build compiles."""
    database = json.loads((build / 'compile_commands.json').read_text())
    wanted = {str(root / d) + '/' for d in ('src', 'tools')}
    files = sorted({path for entry in database
                    if (path := str((Path(entry['directory']) /
                                     entry['file']).resolve()))
                    .startswith(tuple(wanted))})

    def run(path):
        result = subprocess.run(
            ['clang-tidy', '--quiet', '-p', str(build),
             '--extra-arg=-Wno-unknown-warning-option', path],
            check=False, capture_output=True, text=True)
        # The number of suppressed warnings, on standard error, is no news.
        print(result.stdout, end='', flush=True)
        if result.returncode and not result.stdout:
            print(result.stderr, end='', flush=True)
        return result.returncode

    with ThreadPoolExecutor(JOBS) as pool:
        return max(pool.map(run, files), default=1)


TOOLS = {'clang-format': clang_format, 'cppcheck': cppcheck,
         'clang-tidy': clang_tidy}


def main():
    """Run the tool that is named."""
    name, root, build = sys.argv[1], *map(Path, sys.argv[2:4])
    if not shutil.which(name):
        print(f'{name} is not installed')
        sys.exit(SKIPPED)
    sys.exit(1 if TOOLS[name](root.resolve(), build.resolve()) else 0)


if __name__ == '__main__':
    main()
