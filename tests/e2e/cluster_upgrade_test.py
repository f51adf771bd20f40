#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The upgrade of a cluster, as docs/cluster.md describes it: host by host within a build; with a stop of all hosts to another build, which is refused while one of the old build lives. Skipped without etcd.

Method: the other build is a copy of the program with another text in place of its build.
"""
import os
import re
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import server  # noqa: E402
from cluster_test import NAMES, Hosts  # noqa: E402
import skips  # noqa: E402

BUILD = re.compile(rb"(\d+\.\d+\.\d+-cor)e(\d+\0)")


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class Upgrade(Hosts):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.mkdtemp(prefix="tidelock-test-")
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.other = os.path.join(folder, "tidelock")
        with open(server.PROGRAM, "rb") as program:
            changed, count = BUILD.subn(rb"\1x\2", program.read())
        assert count > 0, "the program has no build"
        with open(cls.other, "wb") as program:
            program.write(changed)
        shutil.copymode(server.PROGRAM, cls.other)

    def start_other(self, host):
        """Starts a host with the program of the other build."""
        own, server.PROGRAM = server.PROGRAM, self.other
        try:
            return host.start()
        finally:
            server.PROGRAM = own

    def await_green(self, host):
        health = self.must(host, "GET", "/_cluster/health?wait_for_nodes=3&wait_for_status=green&timeout=5m")
        self.assertFalse(health["timed_out"], health)

    def assert_state(self, hosts, session):
        """The document, the session and its lock are on all hosts."""
        for host in hosts:
            self.assertEqual(self.must(host, "GET", "/w/_doc/1")["_source"], {"v": 1})
            self.must(host, "POST", "/_session/%s/_keepalive" % session)
            status, reply = host.ask("POST", "/_lock", {"session": self.must(host, "POST", "/_session", {"ttl": "10m"})["session"], "wait": "0s", "locks": [{"mode": "exclusive", "index": "w", "id": "1"}]})
            self.assertEqual(status, 409, reply)

    def test_upgrade(self):
        hosts = [self.host(name) for name in NAMES]
        session = self.must(hosts[0], "POST", "/_session", {"ttl": "10m"})["session"]
        self.must(hosts[0], "PUT", "/w/_doc/1", {"v": 1})
        self.must(hosts[0], "POST", "/_lock", {"session": session, "locks": [{"mode": "exclusive", "index": "w", "id": "1"}]})

        for host in hosts:  # the same build
            host.stop()
            host.start()
            self.await_green(hosts[0])
        self.assert_state(hosts, session)

        hosts[2].stop()  # another build
        with self.assertRaisesRegex(RuntimeError, "the cluster refuses this host: the live hosts run another build"):
            self.start_other(hosts[2])
        hosts[2].log = open(hosts[2].data + ".log", "ab")
        hosts[2].start()
        self.await_green(hosts[0])

        for host in hosts:
            host.stop()
        for host in reversed(hosts):
            self.start_other(host)
        self.await_green(hosts[0])
        self.assertEqual({one["build"].rsplit("-", 1)[1][:4] for one in self.listed(hosts[0]).values()}, {"corx"})
        self.assert_state(hosts, session)
        hosts[1].stop()
        with self.assertRaisesRegex(RuntimeError, "the cluster refuses this host: the live hosts run another build"):
            hosts[1].start()


if __name__ == "__main__":
    skips.main()
