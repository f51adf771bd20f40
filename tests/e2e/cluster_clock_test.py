#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A host whose clock is a year ahead of the others', or a year slow, moves no timestamp of the cluster (--clock-skew).

Method: the clock of one host of three is that of clock_shim.c; timestamps of writes by each host are compared with the machine's clock. Skipped where there is no etcd.
"""
import os
import shutil
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from clock import Clock  # noqa: E402
from cluster_test import Etcd, free_port  # noqa: E402
from server import Server  # noqa: E402
import skips  # noqa: E402
from waiting import until  # noqa: E402

YEAR = 365 * 86400  # seconds
DAY = 86400 * 10**6  # microseconds


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class ClusterClock(unittest.TestCase):
    def setUp(self):
        self.etcd = Etcd()
        self.addCleanup(self.etcd.close)
        self.clock = Clock()
        self.addCleanup(os.unlink, self.clock.name)

    def host(self, name, environment=None):
        host = Server("--cluster", self.etcd.url + "/tidelock", "--node-name", name, port=free_port(), environment=environment)
        self.addCleanup(host.close)
        return host.start()

    def write(self, host):
        """Returns: the timestamp of a write."""
        reply = host.request("PUT", "/w/_doc/1?distribute_timestamps=fast", {"v": 1})
        self.assertIn(reply.status, (200, 201), reply.body)
        return int(reply.headers["Tidelock-Timestamp"])

    def right(self, hosts):
        """Each host writes, in turn: timestamps rise and are the machine's."""
        times = [self.write(host) for _ in range(3) for host in hosts]
        self.assertEqual(times, sorted(times))
        for ts in times:
            self.assertLess(abs(ts - time.time() * 1e6), DAY)

    def offset_ms(self, host, name):
        return next(one["clock_offset_ms"] for one in host.ask("GET", "/_cluster/hosts")[1]["hosts"] if one["name"] == name)

    def test_clock_of_one_host_moves_no_timestamp(self):
        a, b = self.host("a"), self.host("b")
        self.right([a, b])
        self.clock.step(YEAR)
        c = self.host("c", self.clock.environment())
        self.right([c, a, b, c])  # before and after c has compared its clock
        until(lambda: "ms above the median of the live hosts' clocks" in c.errors(), "it says that its clock is ahead")
        self.right([c, a, b])
        self.assertGreater(self.offset_ms(a, "c"), YEAR / 2 * 1000)
        self.clock.step(-2 * YEAR)
        until(lambda: self.offset_ms(a, "c") < -YEAR / 2 * 1000, "its clock is known to be behind")
        self.right([c, a, b])
        self.clock.step(YEAR)
        until(lambda: "close to the median of the live hosts' clocks again" in c.errors(), "it says that its clock is right")
        self.right([c, a, b])


if __name__ == "__main__":
    skips.main(verbosity=2)
