#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tidelock check --cluster` finds whether a host's directory agrees with the cluster's log and with the other hosts (docs/cluster.md, "Checking a directory").

Method: a host is stopped, others continue, and its directory is checked. For one that differs a bit of a document is changed in the host's memory before it stops, as in cluster_bit_flip_test.py.
"""
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import unittest
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster_bit_flip_test import TEXT, flip  # noqa: E402
from cluster_test import NAMES, Etcd, free_port  # noqa: E402
from server import PROGRAM, Server  # noqa: E402
from waiting import until  # noqa: E402


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class Check(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.etcd = Etcd()
        cls.addClassCleanup(cls.etcd.close)

    def setUp(self):
        self.cluster = "%s/%s" % (self.etcd.url, self._testMethodName)

    def start(self, names, cluster=None):
        hosts = [Server("--cluster", cluster or self.cluster, "--node-name", name, port=free_port()) for name in names]
        for host in hosts:
            self.addCleanup(host.close)
            host.start()
        return hosts

    def must(self, host, method, path, body=None):
        status, reply = host.ask(method, path, body)
        self.assertIn(status, (200, 201), reply)
        return reply

    def check(self, host, *options):
        done = subprocess.run([PROGRAM, "check", "--data", host.data, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertFalse(os.path.exists(host.data + ".replayed"))
        return done.returncode, done.stdout

    def etcd_post(self, path, body):
        with urllib.request.urlopen(urllib.request.Request(self.etcd.url + path, body)) as reply:
            return reply.read()

    def keys(self):
        """Returns: all keys of etcd with their values, and the revision of each, but for those that a live host puts."""
        read = json.loads(self.etcd_post("/v3/kv/range", json.dumps({"key": base64.b64encode(self._testMethodName.encode()).decode(), "range_end": base64.b64encode(b"\xff").decode()}).encode()))
        return [(pair["key"], pair["mod_revision"]) for pair in read["kvs"]]

    def check_until_compared(self, host, wanted):
        """Checks until the live hosts have reported their states. Returns: (exit status, output)."""
        found = []
        until(lambda: found.append(self.check(host, "--cluster", self.cluster)) or re.search(wanted, found[-1][1]), wanted)
        return found[-1]

    def test_directory_of_stopped_host_agrees(self):
        a, b = self.start(NAMES[:2])
        for number in range(20):
            self.must(a, "PUT", "/w/_doc/%d?distribute_timestamps=cluster" % number, {"n": number})
        b.stop()
        for number in range(20):
            self.must(a, "POST", "/w/_update/%d" % number, {"script": {"source": "ctx._source.n += 1"}})
        self.must(a, "POST", "/_transaction", {})
        status, said = self.check_until_compared(b, r"states of host a are equal")
        self.assertEqual(status, 0, said)
        self.assertRegex(said, r"replayed: [0-9]+ entries of the cluster's log after the checkpoint, up to entry [0-9]+; states compared up to entry [0-9]+\n")
        self.assertIn("sound\n", said)
        self.assertNotIn("differ", said)
        a.stop()
        before = self.keys()
        status, said = self.check(b, "--cluster", self.cluster)
        self.assertEqual((status, self.keys()), (0, before), said)
        self.start_again_and_compare(a, b)

    def start_again_and_compare(self, a, b):
        """The check has left the directory as it was."""
        a.start()
        b.start()
        until(lambda: self.must(a, "GET", "/_cluster/health")["status"] == "green", "both hosts are live")
        self.assertEqual(self.must(b, "GET", "/w/_doc/7?multi_version_concurrency_control=contemporaneous")["_source"], {"n": 8})

    def test_directory_that_differs(self):
        a, b, c = self.start(NAMES)
        self.must(a, "PUT", "/w/_doc/1?distribute_timestamps=cluster", {"text": TEXT.decode()})
        try:
            self.assertGreater(flip(c.process.pid), 0)
        except PermissionError:
            self.skipTest("the memory of a child may not be written")
        c.stop()
        self.must(a, "POST", "/w/_update/1?distribute_timestamps=cluster", {"doc": {"n": 1}})
        b.stop()
        status, said = self.check_until_compared(c, r"states of host a are equal, [0-9]+ differ, first after entry")
        self.assertEqual(status, 1, said)
        self.assertIn("start its host with an empty one, which copies a checkpoint", said)
        status, said = self.check_until_compared(b, r"states of host a are equal\n")
        self.assertEqual(status, 0, said)

    def test_log_that_is_not_the_directorys(self):
        (a,) = self.start(NAMES[:1])
        self.must(a, "PUT", "/w/_doc/1", {"n": 1})
        self.start(NAMES[:1], self.cluster + "-2")
        a.stop()
        for options, expected in ((["--cluster", self.cluster + "-2"], "the directory is of cluster "),
                                  (["--cluster", self.cluster + "-3"], "and there is none at "),
                                  (["--cluster", "http://127.0.0.1:1/x"], "the log of the cluster cannot be reached"),
                                  (["--cluster", self.etcd.url], "names no prefix"),
                                  (["--replay-all"], "--cluster URL/PREFIX compares it with the log")):
            status, said = self.check(a, *options)
            self.assertEqual((status, expected in said), (1, True), said)
        for options, expected in ((["--cluster", self.cluster, "--replay-all"], "exclude each other"),
                                  (["--cluster-ca", "x"], "need --cluster with https://"),
                                  (["--cluster", self.cluster, "--cluster-ca", "x"], "need --cluster with https://")):
            status, said = self.check(a, *options)
            self.assertEqual((status, expected in said), (64, True), said)

    def test_log_trimmed_beyond_the_checkpoint(self):
        a, b = self.start(NAMES[:2])
        self.must(a, "PUT", "/w/_doc/1?distribute_timestamps=cluster", {"n": 1})
        b.stop()
        status, said = self.check(b)
        self.assertEqual((status, "is in etcd and is not read (--cluster)" in said), (0, True), said)
        self.must(a, "PUT", "/w/_doc/1", {"n": 2})
        revision = json.loads(self.etcd_post("/v3/kv/range", b'{"key":"AA=="}'))["header"]["revision"]
        self.etcd_post("/v3/kv/compaction", json.dumps({"revision": revision, "physical": True}).encode())
        status, said = self.check(b, "--cluster", self.cluster)
        self.assertEqual((status, "was trimmed beyond entry" in said), (1, True), said)
        self.assertIn("stop it, and check again", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
