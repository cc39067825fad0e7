#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Check the rules of the house that a compiler does not know.

Which module may include which, who may end the process, where memory-ordering
primitives live, and how long files and functions may be (CONTRIBUTING.md).
Prints one line per finding, "file:line: text"; exits with 1 if there is one.
"""

import re
import sys
from pathlib import Path

# Every module may include itself, stats and base (stats: base only).
MAY_INCLUDE = {
    'base': set(),
    'stats': set(),
    'virtio': set(),
    'vhost': {'virtio'},
    'lane': set(),
    'backend': {'lane'},
    'net': {'vhost', 'virtio', 'lane'},
    'daemon': {'net', 'vhost', 'virtio', 'lane', 'backend'},
}
MAX_FILE_LINES = 800
MAX_FUNCTION_LINES = 70

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
ENDS_PROCESS = re.compile(r'\b(exit|_exit|_Exit|quick_exit|abort)\s*\(')
ASSERT = re.compile(r'\bassert\s*\(')
# Counting references needs no name of its own; fences and plain accesses do.
ORDERING = re.compile(r'\b(__atomic_(thread_fence|signal_fence|load\w*|store\w*)'
                      r'|__sync_\w+|atomic_\w+|_mm_[lms]fence|stdatomic)\b')
UNFINISHED = re.compile(r'\b(TODO|FIXME|XXX)\b')
# Comments, strings and character constants, in one pass.
NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"'
                      r"|'(?:\\.|[^'\\\n])*'", re.DOTALL)


def blank(match):
    """Keep the line breaks of what is cut out."""
    return re.sub(r'[^\n]', ' ', match.group())


def check_includes(module, lines):
    """Yield findings about the direction of includes."""
    allowed = {module, 'base'} | MAY_INCLUDE[module]
    if module != 'base':
        allowed.add('stats')
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        target = match.group(1).split('/')[0]
        if '/' not in match.group(1):
            yield number, f'write "module/{match.group(1)}"'
        elif target not in allowed:
            yield number, f'{module} must not include {target}'


def check_words(module, path, code):
    """Yield findings about calls and primitives; @code has no comments."""
    for number, line in enumerate(code.splitlines(), 1):
        if module != 'daemon' and ENDS_PROCESS.search(line):
            yield number, 'only src/daemon may end the process'
        if ASSERT.search(line):
            yield number, 'no assert: handle it, or use _Static_assert'
        if path.parts[-2:] != ('base', 'barrier.h') and ORDERING.search(line):
            yield number, 'memory ordering belongs in base/barrier.h'


def check_lengths(lines):
    """Yield findings about files and functions that are too long."""
    if len(lines) > MAX_FILE_LINES:
        yield len(lines), f'file has {len(lines)} lines, ' \
                          f'at most {MAX_FILE_LINES}'
    start = None
    for number, line in enumerate(lines, 1):
        # clang-format puts both braces of a function in the first column.
        if line == '{':
            start = number
        elif line == '}' and start:
            if number - start - 1 > MAX_FUNCTION_LINES:
                yield start, f'function has {number - start - 1} lines, ' \
                             f'at most {MAX_FUNCTION_LINES}'
            start = None


def check_file(root, path):
    """Yield all findings about one file."""
    text = path.read_text(encoding='utf-8')
    lines = text.splitlines()
    parts = path.relative_to(root).parts
    if not lines or 'SPDX-License-Identifier: BSD-3-Clause' not in lines[0]:
        yield 1, 'the first line must be the SPDX identifier'
    for number, line in enumerate(lines, 1):
        if UNFINISHED.search(line):
            yield number, 'unfinished work belongs in an issue'
    yield from check_lengths(lines)
    if parts[0] != 'src':
        return
    if parts[1] not in MAY_INCLUDE:
        yield 1, f'unknown module {parts[1]}: add it to tools/check-layers.py'
        return
    yield from check_includes(parts[1], lines)
    yield from check_words(parts[1], path, NOT_CODE.sub(blank, text))


def main():
    """Check src and tools below the directory given (default: the clone)."""
    root = Path(sys.argv[1] if len(sys.argv) > 1
                else Path(__file__).parent.parent).resolve()
    findings = 0
    files = [p for d in ('src', 'tools') for p in sorted((root / d).rglob('*'))
             if p.suffix in ('.c', '.h')]
    if not files:
        sys.exit(f'{root}: no sources below src and tools')
    for path in files:
        for number, text in check_file(root, path):
            print(f'{path.relative_to(root)}:{number}: {text}')
            findings += 1
    print(f'{len(files)} files, {findings} findings')
    sys.exit(1 if findings else 0)


if __name__ == '__main__':
    main()
