#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hosts refuse writes before etcd has reached its quota, and accept them again when the log has been trimmed; etcd never raises its alarm (docs/cluster.md, "Space in etcd").

Method: an etcd with a small quota; a host that is away, for which the log is retained, until it is removed. Skipped without etcd.
"""
import json
import os
import shutil
import sys
import unittest
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster_test import LEASE, Etcd, free_port  # noqa: E402
from server import Server  # noqa: E402
import skips  # noqa: E402
from waiting import until  # noqa: E402

MIB = 1 << 20
DOCUMENT = MIB // 16  # bytes
QUOTA = 32 * MIB  # the smallest one of --cluster-quota
SIZE_MARGIN = MIB  # no data is added whose file is closer to the quota (src/cmdlog/etcd/membership.c)


class SmallEtcd(Etcd):
    def options(self):
        return ["--quota-backend-bytes", str(QUOTA)]

    def ask(self, path, **body):
        """By etcd's JSON gateway."""
        with urllib.request.urlopen(urllib.request.Request(self.url + "/v3/" + path, json.dumps(body).encode())) as reply:
            return json.loads(reply.read())


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class Space(unittest.TestCase):
    def setUp(self):
        self.etcd = SmallEtcd()
        self.addCleanup(self.etcd.close)

    def host(self, name):
        host = Server("--cluster", self.etcd.url + "/tidelock", "--node-name", name, "--cluster-quota", str(QUOTA), *LEASE, port=free_port())
        self.addCleanup(host.close)
        return host.start()

    def write(self, host, number):
        """Returns: whether the write was accepted; it is refused only for lack of space in etcd."""
        status, reply = host.ask("PUT", "/w/_doc/%d?distribute_timestamps=fast" % (number % 8), {"text": "x" * DOCUMENT})
        if status in (200, 201):
            return True
        self.assertEqual((status, reply["error"]["type"]), (507, "disk_full_exception"), reply)
        self.assertIn("quota of [%d]" % QUOTA, reply["error"]["reason"])
        self.assertIn("DELETE /_cluster/hosts/{name}", reply["error"]["reason"])
        return False

    def write_again(self, host, number):
        """As write(), after a trim. etcd's file does not shrink by itself: if it came so close to the quota that no host adds data, it is defragmented, as docs/cluster.md says."""
        if int(self.etcd.ask("maintenance/status")["dbSize"]) + SIZE_MARGIN >= QUOTA:
            self.etcd.ask("maintenance/defragment")
        return self.write(host, number)

    def assert_alarm_is_noticed(self, host, stopped):
        """etcd has raised none, and the host was not asking for it, which would be an entry of etcd's own log each time; an operator's alarm is noticed."""
        with urllib.request.urlopen(self.etcd.url + "/metrics") as reply:
            calls = [line for line in reply.read().decode().splitlines() if line.startswith("grpc_server_started_total") and 'grpc_method="Alarm"' in line]
        self.assertEqual([line.split()[-1] for line in calls], ["0"])
        self.assertEqual(self.etcd.ask("maintenance/alarm", action="GET").get("alarms", []), [])
        alarm = {"memberID": 0, "alarm": "NOSPACE"}
        self.etcd.ask("maintenance/alarm", action="ACTIVATE", **alarm)
        until(lambda: host.ask("GET", "/_cluster/health")[1]["status"] == "red", "the alarm is noticed")
        with self.assertRaisesRegex(RuntimeError, "etcd, which has the log of the cluster, has reached its quota, so this host cannot join"):
            stopped.start()
        self.etcd.ask("maintenance/alarm", action="DEACTIVATE", **alarm)
        until(lambda: self.write(host, 0), "writes are accepted again")

    def test_writes_are_refused_until_log_is_trimmed(self):
        a, b = self.host("a"), self.host("b")
        self.write(a, 0)
        b.stop()
        count = 1
        while self.write(a, count):
            count += 1
            self.assertLess(count * DOCUMENT, QUOTA)
        self.assertEqual(a.ask("GET", "/_cluster/health")[1]["status"], "red")
        self.assertEqual(a.ask("GET", "/w/_doc/0")[0], 200)
        status, session = a.ask("POST", "/_session", {"ttl": "30s"})
        self.assertEqual(status, 507, session)
        until(lambda: not [one for one in a.ask("GET", "/_cluster/hosts")[1]["hosts"] if one["name"] == "b" and one["live"]], "host b is out")
        self.assertEqual(a.ask("DELETE", "/_cluster/hosts/b")[0], 200)
        until(lambda: self.write_again(a, 0), "writes are accepted again")
        for number in range(QUOTA // 2 // DOCUMENT):  # etcd frees the space of a trim in steps
            until(lambda number=number: self.write_again(a, number), "a write is accepted")
        self.assert_alarm_is_noticed(a, b)


if __name__ == "__main__":
    skips.main(verbosity=2)
