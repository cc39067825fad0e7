# SPDX-License-Identifier: BSD-3-Clause
"""Hosts that FRR joins: each a network namespace with zebra and bgpd of its own.

         br0                   br0                   br0
          |                     |                     |
       vxlan10               vxlan10               vxlan10
     192.0.2.1             192.0.2.2             192.0.2.3
          \\____________________|_____________________/
                   a bridge in one more namespace

What makes a host is taken from docs/evpn.md, as a reader would.
"""

import contextlib
import os
import re
import shutil
from pathlib import Path

from vltest import Netns, UmlGuest, Virtlane, Workdir, check, need_program, need_tun, skip, wait_for

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "evpn.md"
DAEMONS = Path("/usr/lib/frr")
FIRST = "192.0.2.1"
VXLAN, MTU = "vxlan10", 1450
# Headings of docs/evpn.md: hosts whose kernel is the end of the tunnels, and virtlane is.
KERNEL, VIRTLANE = "The network of a host", "virtlane as the end of the tunnels"
GUEST = {KERNEL: "The guest", VIRTLANE: "The guest without a tap"}
EVERYBODY = "00:00:00:00:00:00"

# Both daemons in a process namespace, which ends with its first process, and that with this test:
# they change their user, and so would outlive it. Their crash logs have no other place than /var/tmp;
# what `ip netns exec` runs has mounts of its own.
START = """
mount -t tmpfs none /var/tmp
{d}/zebra -f {w}/zebra.conf -i {w}/zebra.pid -z {w}/zserv --vty_socket {w} -P 0 --log stdout &
{d}/bgpd -f {w}/bgpd.conf -i {w}/bgpd.pid -z {w}/zserv --vty_socket {w} -P 0 --log stdout &
wait
"""


def need_frr():
    """Skip where a host cannot be made."""
    need_tun()
    need_program("ip", "bridge", "unshare")
    if not shutil.which("vtysh") or not all((DAEMONS / name).exists() for name in ("zebra", "bgpd")):
        skip("needs the Debian package frr")


def document(heading):
    """The first block of commands below a heading of docs/evpn.md."""
    text = DOCUMENT.read_text(encoding="utf-8")
    found = re.search(rf"^##+ {re.escape(heading)}\n.*?^```\w+\n(.*?)^```$", text, re.M | re.S)
    check(found, f"{DOCUMENT.name} has no commands below {heading!r}")
    return found.group(1)


def guest_mac(number):
    """The MAC address of a guest."""
    return f"52:54:00:0a:00:{number:02x}"


def guest_address(number):
    """Its IP address."""
    return f"10.9.0.{number}"


class Host:
    """One host, up as a context manager. number: 1, 2 or 3; kind: KERNEL or VIRTLANE."""

    def __init__(self, number, underlay, kind):
        self.number = number
        self.address = f"192.0.2.{number}"
        self.underlay = underlay
        self.kind = kind
        self.netns = Netns(f"h{number}")
        self.stack = contextlib.ExitStack()
        self.dir = None

    def own(self, text):
        """The text of the first host, for this one."""
        swap = {FIRST: self.address, self.address: FIRST}
        return re.sub(r"192\.0\.2\.\d+", lambda found: swap.get(found.group(), found.group()), text)

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.netns)
            self.dir = stack.enter_context(Workdir()).path
            port = f"host{self.number}"
            self.underlay.ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", self.netns.name)
            self.underlay.ip("link", "set", port, "master", "br0", "up")
            self.netns.configure("eth0", f"{self.address}/24")
            self.netns.run("sh", "-ec", self.own(document(self.kind)))
            stack.enter_context(self.frr())
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *exc):
        return self.stack.__exit__(*exc)

    def frr(self):
        """zebra and bgpd, not started."""
        for name, text in (("zebra", ""), ("bgpd", self.own(document("FRR")))):
            Path(self.dir, name + ".conf").write_text(text, encoding="ascii")
        shutil.chown(self.dir, "frr", "frr")
        return self.netns.popen("unshare", "--pid", "--fork", "--kill-child", "sh", "-c",
                                START.format(d=DAEMONS, w=self.dir), name=f"FRR of host {self.number}")

    def vtysh(self, command):
        """What FRR answers."""
        return self.netns.run("vtysh", "--vty_socket", self.dir, "-c", command, check=False).stdout

    def fdb(self, mac, device=VXLAN):
        """Hosts to which the kernel's VXLAN device sends what is for this address."""
        text = self.netns.run("bridge", "fdb", "show", "dev", device).stdout
        return set(re.findall(rf"^{mac} dst (\S+) ", text, re.M))

    def port(self, mac):
        """The port of the bridge behind which an address is, None if it is not known."""
        text = self.netns.run("bridge", "fdb", "show", "br", "br0").stdout
        found = re.search(rf"^{mac} dev (\S+) .*master br0", text, re.M)
        return found.group(1) if found else None

    def place(self, mac):
        """Where this host takes a guest to be: the address of a host, None if it does not know."""
        port = self.port(mac)
        if port != VXLAN:
            return self.address if port else None
        there = self.fdb(mac)
        return there.pop() if len(there) == 1 else None


class Fabric:
    """Some hosts and what joins them; up when each knows all others. A context manager.

    kinds: KERNEL or VIRTLANE for each host."""

    def __init__(self, *kinds):
        need_frr()
        self.underlay = Netns("u")
        self.hosts = [Host(number, self.underlay, kind) for number, kind in enumerate(kinds, 1)]
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.underlay)
            self.underlay.ip("link", "add", "br0", "type", "bridge", "forward_delay", "0", "mcast_snooping", "0")
            self.underlay.ip("link", "set", "br0", "up")
            for host in self.hosts:
                stack.enter_context(host)
            for host in self.hosts:
                wait_for(lambda h=host: h.fdb(EVERYBODY) == self.others(h), 30,
                         f"host {host.number} to hear of the others")
            self.stack = stack.pop_all()
        return self.hosts

    def __exit__(self, *exc):
        return self.stack.__exit__(*exc)

    def others(self, host):
        """Addresses of all other hosts."""
        return {h.address for h in self.hosts} - {host.address}


def daemon(host, number):
    """The daemon of a guest on a host, started as the document says, not started yet."""
    options = re.findall(r"--(?!socket-path|stats)\S+", host.own(document(GUEST[host.kind])))
    backend = [o.removeprefix("--backend=") for o in options if o.startswith("--backend=")]
    others = [o for o in options if not o.startswith(("--backend=", "--mac="))]
    return Virtlane(f"--mac={guest_mac(number)}", *others, backend=backend[0], netns=host.netns)


def guest(vhost, number):
    """A guest that uses this daemon, not started."""
    return UmlGuest(vhost.socket, address=f"{guest_address(number)}/24")


def check_reach(one, other, address):
    """Ping, also with the largest packets and with fragments, and TCP."""
    wait_for(lambda: one.ping(address, 1)[0], 5, f"ping to {address}")
    for size in (56, MTU - 28, 4000):
        received, text = one.ping(address, 3, size)
        check(received == 3, f"ping with {size} bytes:\n{text}")
    check_transfer(one, other, address)


def check_follow(hosts, watcher, number, now, seconds=3):
    """The guest that moved to host `now` is reached by another guest, without a word from it, and all
    hosts know where it is."""
    wait_for(lambda: watcher.ping(guest_address(number), 1)[0], seconds, f"the guest at host {now.number}")
    for host in hosts:
        wait_for(lambda h=host: h.place(guest_mac(number)) == now.address, seconds,
                 f"host {host.number} to know that the guest is at {now.address}")


def check_transfer(sender, receiver, address, mib=8, port=7000):
    """TCP from one guest to another: the data arrives as it was sent."""
    receiver.run(f"(nc -l -p {port} -e dd of=/tmp/in bs=64k; touch /tmp/got) >/dev/null 2>&1 & sleep 0.2")
    sent = sender.out(f"dd if=/dev/urandom of=/tmp/out bs=1M count={mib} 2>/dev/null; sha256sum </tmp/out; "
                      f"nc {address} {port} </tmp/out; rm /tmp/out", 60)
    got = receiver.out("until [ -e /tmp/got ]; do usleep 50000; done; sha256sum </tmp/in; rm /tmp/in /tmp/got", 60)
    check(got.split()[0] == sent.split()[0], f"{mib} MiB by TCP: the data has changed or is incomplete")
