# SPDX-License-Identifier: BSD-3-Clause
"""A kernel device that cannot be followed (fdb=) is refused with what to do, and one without a bridge is
followed with a warning."""

from vltest import Netns, Virtlane, check, check_equal, need_tun, run, wait_for

LOCAL = "192.0.2.1"
DEVICES = (
    "br0 type bridge",
    "fits type vxlan id 10 local 192.0.2.1 dstport 14789 nolearning",
    "other type vxlan id 11 local 192.0.2.1 dstport 14789 nolearning",
    "taken type vxlan id 10 local 192.0.2.1 dstport 4789 nolearning",
    "astray type vxlan id 10 local 192.0.2.9 dstport 14790 nolearning",
    "any type vxlan external dstport 14791",
)
# device: what is said about it
REFUSED = {
    "nothere": "no interface nothere",
    "br0": "no vxlan device but a bridge",
    "other": "give vni=11",
    "taken": "another dstport",
    "astray": "192.0.2.9",
    "any": "id of its own",
}


def daemon(netns, device, **more):
    """On this device, not started."""
    return Virtlane(backend=f"vxlan,vni=10,local={LOCAL},fdb={device}", netns=netns, **more)


def main():
    need_tun()
    with Netns() as netns:
        netns.ip("addr", "add", f"{LOCAL}/32", "dev", "lo")
        for device in DEVICES:
            netns.ip("link", "add", *device.split())
        for device, text in REFUSED.items():
            with daemon(netns, device, ready=False) as refused:
                check_equal(refused.wait(5), 1, f"exit status with fdb={device}")
                check(f"fdb={device}: " in refused.log() and text in refused.log(),
                      f"fdb={device}: {text!r} is not in:\n{refused.log()}")
        with daemon(netns, "fits") as follows:
            check("not a port of a bridge" in follows.log(), "no warning without a bridge")
        netns.ip("link", "set", "fits", "master", "br0")
        with daemon(netns, "fits") as follows:
            check("bridge" not in follows.log(), "a warning with a bridge")
            netns.ip("link", "del", "fits")
            wait_for(lambda: "was deleted" in follows.log(), 3, "a word about the end of the device")


run(main)
