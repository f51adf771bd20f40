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
from cluster_test import LEASE, NAMES, Etcd, free_port  # noqa: E402
from server import PROGRAM, Server  # noqa: E402
import skips  # noqa: E402
from waiting import until  # noqa: E402


def encoded(text):
    return base64.b64encode(text.encode()).decode()


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class Check(unittest.TestCase):
    """All cases have the hosts a and b of one cluster: a case starts those that it needs."""

    @classmethod
    def setUpClass(cls):
        cls.etcd = Etcd()
        cls.addClassCleanup(cls.etcd.close)
        cls.cluster = cls.etcd.url + "/check"
        cls.hosts = [Server("--cluster", cls.cluster, "--node-name", name, *LEASE, port=free_port(), replay=False) for name in NAMES[:2]]
        for host in cls.hosts:
            cls.addClassCleanup(host.close)

    def running_hosts(self):
        for host in self.hosts:
            if host.process is None or host.process.poll() is not None:
                host.start()
        return self.hosts

    def must(self, host, method, path, body=None):
        status, reply = host.ask(method, path, body)
        self.assertIn(status, (200, 201), reply)
        return reply

    def check(self, data, *options, **environment):
        """Returns: (exit status, output)."""
        done = subprocess.run([PROGRAM, "check", "--data", data, *options], env=dict(os.environ, **environment), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertFalse(os.path.exists(data + ".replayed"))
        return done.returncode, done.stdout

    def etcd_post(self, path, **body):
        with urllib.request.urlopen(urllib.request.Request(self.etcd.url + path, json.dumps(body).encode())) as reply:
            return json.loads(reply.read())

    def keys(self):
        """Returns: all keys of etcd, and the revision of each."""
        read = self.etcd_post("/v3/kv/range", key="AA==", range_end="AA==")
        return [(pair["key"], pair["mod_revision"]) for pair in read["kvs"]]

    def check_until_compared(self, host, wanted):
        """Checks until the live hosts have reported their states. Returns: (exit status, output)."""
        found = []
        until(lambda: found.append(self.check(host.data, "--cluster", self.cluster)) or re.search(wanted, found[-1][1]), wanted)
        return found[-1]

    def test_directory_of_stopped_host_agrees(self):
        a, b = self.running_hosts()
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
        status, said = self.check(b.data, TIDELOCK_CLUSTER=self.cluster, TIDELOCK_CLUSTER_CA="/none")
        self.assertEqual((status, self.keys()), (0, before), said)
        self.assertIn("replayed: ", said)
        self.assert_directory_is_unchanged()

    def assert_directory_is_unchanged(self):
        a, b = self.running_hosts()
        until(lambda: self.must(a, "GET", "/_cluster/health")["status"] == "green", "both hosts are live")
        self.assertEqual(self.must(b, "GET", "/w/_doc/7?multi_version_concurrency_control=contemporaneous")["_source"], {"n": 8})

    def test_directory_that_differs(self):
        a, b = self.running_hosts()
        self.must(a, "PUT", "/w/_doc/text?distribute_timestamps=cluster", {"text": TEXT.decode()})
        try:
            self.assertGreater(flip(b.process.pid), 0)
        except PermissionError:
            self.skipTest("the memory of a child may not be written")
        b.stop()
        self.must(a, "POST", "/w/_update/text?distribute_timestamps=cluster", {"doc": {"n": 1}})
        status, said = self.check_until_compared(b, r"states of host a are equal, [0-9]+ differ, first after entry")
        self.assertEqual(status, 1, said)
        self.assertIn("start its host with an empty one, which copies a checkpoint", said)
        shutil.rmtree(b.data)

    def make_log(self, prefix, genesis):
        """Makes a log without entries. `genesis`: in base64. Returns: its --cluster."""
        self.etcd_post("/v3/kv/put", key=encoded(prefix + "/genesis"), value=genesis)
        return "%s/%s" % (self.etcd.url, prefix)

    def test_log_that_is_not_the_directorys(self):
        b = self.running_hosts()[1]
        own, = self.etcd_post("/v3/kv/range", key=encoded("check/genesis"))["kvs"]
        other = self.make_log("other", encoded("tidelock-cluster 1\ncluster %s\n" % ("0" * 32)))
        restored = self.make_log("restored", own["value"])
        b.stop()
        copied = b.data + ".copy"  # a check locks the directory; this one asks for two seconds
        self.addCleanup(shutil.rmtree, copied)
        shutil.copytree(b.data, copied)
        unreachable = subprocess.Popen([PROGRAM, "check", "--data", copied, "--cluster", "http://127.0.0.1:1/x"], stdout=subprocess.PIPE, text=True)
        for wanted, text, options in ((1, "the directory is of cluster ", ["--cluster", other]),
                                      (1, "etcd has lost entries", ["--cluster", restored]),
                                      (1, "and there is no cluster at ", ["--cluster", self.etcd.url + "/none"]),
                                      (1, "names no prefix", ["--cluster", self.etcd.url]),
                                      (1, "--cluster URL/PREFIX compares it with the log", ["--replay-all"]),
                                      (64, "exclude each other", ["--cluster", self.cluster, "--replay-all"]),
                                      (64, "need --cluster with https://", ["--cluster-ca", "x"]),
                                      (64, "need --cluster with https://", ["--cluster", self.cluster, "--cluster-ca", "x"])):
            status, said = self.check(b.data, *options)
            self.assertEqual((status, text in said), (wanted, True), said)
        for wanted, text, options in ((0, "is not read (--cluster)", []), (1, "--cluster URL/PREFIX compares it with the log", ["--replay-all"])):
            status, said = self.check(b.data, *options, TIDELOCK_CLUSTER=self.cluster if options else "", TIDELOCK_CLUSTER_CERT="x")
            self.assertEqual((status, text in said), (wanted, True), said)
        said = unreachable.communicate()[0]
        self.assertEqual((unreachable.returncode, "the log of the cluster cannot be reached" in said), (1, True), said)

    def test_log_without_entries(self):
        """The host that made the cluster ended before it had logged anything: that is no loss of entries."""
        founder = Server("--cluster", self.etcd.url + "/founded", "--node-name", "a", port=free_port())
        self.addCleanup(founder.close)
        founder.start().kill()
        self.etcd_post("/v3/kv/deleterange", key=encoded("founded/log/a"))
        status, said = self.check(founder.data, "--cluster", self.etcd.url + "/founded")
        self.assertEqual((status, "has no entry since the cluster was made" in said), (1, True), said)

    def test_log_trimmed_beyond_the_checkpoint(self):
        a, b = self.running_hosts()
        self.must(a, "PUT", "/w/_doc/1?distribute_timestamps=cluster", {"n": 1})
        b.stop()
        status, said = self.check(b.data)
        self.assertEqual((status, "is in etcd and is not read (--cluster)" in said), (0, True), said)
        self.must(a, "PUT", "/w/_doc/1", {"n": 2})
        revision = self.etcd_post("/v3/kv/range", key="AA==")["header"]["revision"]
        self.etcd_post("/v3/kv/compaction", revision=revision, physical=True)
        status, said = self.check(b.data, "--cluster", self.cluster)
        self.assertEqual((status, "was trimmed beyond entry" in said), (1, True), said)
        self.assertIn("stop it, and check again", said)


if __name__ == "__main__":
    skips.main(verbosity=2)
