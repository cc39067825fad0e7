#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Build the initramfs of a test guest from Debian packages installed on this machine.

usage: image.py uml|qemu OUTPUT

The user land is busybox with iperf3, sockperf, ethtool, ip and tc; the modules are
those that virtio-net needs under user-mode-linux or Debian's cloud kernel.
"""

import fcntl
import glob
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = ("iperf3", "sockperf", "ethtool", "ip", "tc")
MODULES = {
    "uml": ("virtio_net",),
    "qemu": ("virtio_pci", "virtio_net"),
}


class Missing(Exception):
    """A Debian package is not installed."""


def kernel(kind):
    """Path of the kernel of a kind of guest."""
    if kind == "uml":
        path = shutil.which("linux.uml")
        package = "user-mode-linux"
    else:
        path = max(glob.glob("/boot/vmlinuz-*-cloud-amd64"), default=None)
        package = "linux-image-cloud-amd64"
    if not path:
        raise Missing(f"needs the Debian package {package}")
    return Path(path)


def module_dir(kind):
    """The modules that belong to kernel()."""
    if kind == "uml":
        return Path(max(glob.glob("/usr/lib/uml/modules/*"), default="/nonexistent"))
    return Path("/lib/modules") / kernel(kind).name.removeprefix("vmlinuz-")


def module_files(kind):
    """Files of the modules in the order they must be loaded."""
    top = module_dir(kind)
    needs = {}
    for line in (top / "modules.dep").read_text().splitlines():
        path, _, deps = line.partition(":")
        name = Path(path).name.split(".")[0].replace("-", "_")
        # modules.dep lists what a module needs with the deepest one last.
        needs[name] = [path] + deps.split()
    order = []
    for name in MODULES[kind]:
        if name not in needs:
            raise Missing(f"{top} has no module {name}")
        order += [p for p in reversed(needs[name]) if p not in order]
    return [top / p for p in order]


def libraries(program):
    """Shared libraries of a program, with the dynamic loader."""
    text = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    return re.findall(r"(?:=> |^\t)(/\S+)", text, re.M)


class Archive:
    """Writes a cpio archive in the format that the kernel unpacks ("newc")."""

    def __init__(self, out):
        self.out = out
        self.inode = 0
        self.names = set()

    def _entry(self, name, mode, data=b"", device=(0, 0)):
        self.inode += 1
        fields = (self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
        self.out.write(b"070701" + b"".join(b"%08X" % f for f in fields))
        self._padded(name.encode() + b"\0", 110)
        self._padded(data, 0)

    def _padded(self, data, before):
        self.out.write(data + b"\0" * (-(before + len(data)) % 4))

    def directory(self, path):
        """Add a directory and those above it."""
        if str(path) in (".", "", "/") or str(path) in self.names:
            return
        self.directory(Path(path).parent)
        self.names.add(str(path))
        self._entry(str(path), stat.S_IFDIR | 0o755)

    def file(self, path, data, mode=0o755):
        """Add a file once."""
        path = str(path).lstrip("/")
        if path in self.names:
            return
        self.directory(Path(path).parent)
        self.names.add(path)
        self._entry(path, stat.S_IFREG | mode, data)

    def link(self, path, target):
        """Add a symbolic link once."""
        if path not in self.names:
            self.names.add(path)
            self._entry(path, stat.S_IFLNK | 0o777, target.encode())

    def device(self, path, major, minor):
        """Add a character device."""
        self._entry(path, stat.S_IFCHR | 0o600, device=(major, minor))

    def close(self):
        """Write the end mark."""
        self._entry("TRAILER!!!", 0)


def programs():
    """Paths of the programs to pack."""
    found = {}
    for name in ("busybox",) + PROGRAMS:
        path = shutil.which(name)
        if not path:
            raise Missing(f"needs the program {name} (see ./dev setup)")
        found[name] = path
    return found


def inputs(kind):
    """Everything an image is made of."""
    files = [HERE / "init", Path(__file__).resolve(), kernel(kind)]
    return files + module_files(kind) + [Path(p) for p in programs().values()]


def digest(kind):
    """Changes whenever an image must be built again."""
    sha = hashlib.sha256()
    for path in inputs(kind):
        info = os.stat(path)
        sha.update(f"{path} {info.st_size} {info.st_mtime_ns}\n".encode())
    return sha.hexdigest()


def write(kind, out):
    """Write the archive to an open file."""
    archive = Archive(out)
    for name in ("bin", "sbin", "dev", "proc", "sys", "tmp", "run", "etc", "usr/bin", "usr/sbin"):
        archive.directory(name)
    archive.device("dev/console", 5, 1)
    archive.device("dev/null", 1, 3)
    archive.file("init", (HERE / "init").read_bytes())
    archive.file("etc/passwd", b"root:x:0:0:root:/:/bin/sh\n", 0o644)
    archive.file("etc/hosts", b"127.0.0.1 localhost\n", 0o644)
    order = b""
    for path in module_files(kind):
        archive.file(f"lib/modules/{path.name}", path.read_bytes(), 0o644)
        order += f"/lib/modules/{path.name}\n".encode()
    archive.file("modules.list", order, 0o644)
    found = programs()
    for name in PROGRAMS:
        archive.file(f"usr/bin/{name}", Path(found[name]).read_bytes())
        for library in libraries(found[name]):
            archive.file(library, Path(library).read_bytes())
    archive.file("bin/busybox", Path(found["busybox"]).read_bytes())
    applets = subprocess.run([found["busybox"], "--list"], stdout=subprocess.PIPE, text=True, check=True)
    for applet in applets.stdout.split():
        if applet not in PROGRAMS and applet != "busybox":
            archive.link(f"bin/{applet}", "/bin/busybox")
    archive.close()


def cache_dir():
    """Where images are kept: beside the build, or in the user's cache."""
    path = os.environ.get("VIRTLANE_GUEST_CACHE")
    if not path:
        path = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "virtlane")
    os.makedirs(path, exist_ok=True)
    return Path(path)


def ensure(kind):
    """Path of an image that is up to date; built now if need be. Raises Missing."""
    path = cache_dir() / f"{kind}-{digest(kind)[:16]}.cpio"
    with open(cache_dir() / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            for old in cache_dir().glob(f"{kind}-*.cpio"):
                old.unlink()
            build(kind, path)
    return path


def build(kind, path):
    """Build an image; the file appears only when it is complete."""
    part = Path(f"{path}.part")
    with open(part, "wb") as out:
        write(kind, out)
    part.rename(path)


def main():
    """Command line: image.py KIND OUTPUT."""
    if len(sys.argv) != 3 or sys.argv[1] not in MODULES:
        sys.exit(__doc__)
    try:
        build(sys.argv[1], Path(sys.argv[2]))
    except Missing as why:
        sys.exit(f"image.py: {why}")


if __name__ == "__main__":
    main()
