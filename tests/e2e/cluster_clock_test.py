#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A host whose clock is a year ahead of the others', or a year slow, moves no timestamp of the cluster (--clock-skew). Time in which etcd orders nothing counts against no lease, wait or idle transaction.

Method: the clock of one host of three, or of both of two, is that of clock_shim.c; timestamps of writes by each host are compared with the machine's clock. Skipped where there is no etcd.
"""
import os
import shutil
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from clock import Clock  # noqa: E402
from cluster_test import LEASE, Etcd, free_port  # noqa: E402
from server import Server  # noqa: E402
import skips  # noqa: E402
from waiting import Waiting, stop_process, until  # noqa: E402

YEAR = 365 * 86400  # seconds
DAY = 86400 * 10**6  # microseconds
EXPIRES = 400  # seconds: a lease, the time of a wait, and that of an idle transaction; longer than the time limit of this test
COUNTED = 1.5  # seconds between two entries, all of which count (journal/times.h, CLUSTER_CLOCK_STALL_US)


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class ClusterClock(unittest.TestCase):
    def setUp(self):
        self.etcd = Etcd()
        self.addCleanup(self.etcd.close)
        self.clock = Clock()
        self.addCleanup(os.unlink, self.clock.name)

    def host(self, name, *options, environment=None):
        host = Server("--cluster", self.etcd.url + "/tidelock", "--node-name", name, *(() if "--host-lease" in options else LEASE), *options, port=free_port(), environment=environment)
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

    def listed(self, host, name):
        return next(one for one in host.ask("GET", "/_cluster/hosts")[1]["hosts"] if one["name"] == name)

    def offset_ms(self, host, name):
        return self.listed(host, name)["clock_offset_ms"]

    def test_clock_of_one_host_moves_no_timestamp(self):
        a, b = self.host("a"), self.host("b")
        self.right([a, b])
        self.clock.step(YEAR)
        c = self.host("c", environment=self.clock.environment())
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

    def test_time_without_etcd_counts_against_nothing(self):
        """Three times as long as all of them may last. With entries, the same time ends a session. The hosts' lease is longer: a host that is out ends the requests that wait there."""
        a, b = (self.host(name, "--host-lease", "1h", environment=self.clock.environment()) for name in "ab")
        lock = {"locks": [{"mode": "exclusive", "index": "w", "id": "locked"}]}
        holder, other = (a.must("POST", "/_session", {"ttl": "%ds" % EXPIRES})["session"] for _ in range(2))
        b.must("POST", "/_lock", {"session": holder, **lock})
        waiting = Waiting(b, "POST", "/_lock", {"session": other, "wait": "%ds" % EXPIRES, **lock})
        transaction = a.must("POST", "/_transaction", {"mode": "update", "timeout": "%ds" % EXPIRES})["transaction"]
        a.must("PUT", "/w/_doc/t?transaction=" + transaction, {"v": 1})
        until(lambda: any(one["waiters"] for one in a.must("GET", "/_lock")["locks"]), "a request waits")
        for host, peer in ((a, "b"), (b, "a")):
            until(lambda host=host, peer=peer: self.listed(host, peer)["applied_position"] > 0, "it has had a heartbeat of the other one")
        stop_process(self.etcd.process)
        try:
            self.clock.jump(3 * EXPIRES)
            for host, peer in ((a, "b"), (b, "a")):
                until(lambda host=host, peer=peer: self.listed(host, peer)["lag_ms"] > 2 * EXPIRES * 1000, "the time has passed for the host")
        finally:
            self.etcd.process.send_signal(signal.SIGCONT)
        self.write(a)
        self.assertIsNone(waiting.status, waiting.reply)
        a.must("POST", "/_transaction/%s/_commit" % transaction)
        a.must("DELETE", "/_session/" + holder)
        waiting.join()
        self.assertEqual(waiting.status, 200, waiting.reply)
        # The cluster's time, which each host reports when its threads have looked for input, follows that of the entries.
        for _ in range(int(1.5 * EXPIRES / COUNTED)):
            self.clock.jump(COUNTED)
            self.write(b)
        until(lambda: b.ask("GET", "/_session/" + other)[0] != 200, "the session ends")


if __name__ == "__main__":
    skips.main(verbosity=2)
