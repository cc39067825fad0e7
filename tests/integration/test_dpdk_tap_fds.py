# SPDX-License-Identifier: BSD-3-Clause
"""fds= takes open tap queues: blocking or not, and from a namespace the daemon is not in."""

import os

from vltest import Netns, VirtioUser, Virtlane, check, engines, need_tun, run


def main():
    need_tun()
    for engine in engines():
        for blocking, pairs in ((True, 1), (False, 1), (True, 2)):
            what = f"{engine}, {'blocking' if blocking else 'non-blocking'}, {pairs} queue pairs"
            print(what, flush=True)
            with Netns("tap") as netns, Netns("empty") as empty:
                fds = [netns.open_tap(multi_queue=pairs > 1, blocking=blocking) for _ in range(pairs)]
                netns.configure("tap0")
                backend = "tap,fds=" + ":".join(str(fd) for fd in fds)
                with Virtlane(backend=backend, pairs=pairs, netns=empty, engine=engine, pass_fds=fds) as daemon:
                    for fd in fds:
                        os.close(fd)
                    with VirtioUser(daemon.socket, queues=pairs) as testpmd:
                        testpmd.wait_link()
                        testpmd.forward("icmpecho")
                        received, text = netns.ping("10.9.0.77", count=5)
                        check(received == 5, f"{what}: {text}")


run(main)
