#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Connections of a cluster's hosts by TLS, to etcd and to each other, and checkpoints for hosts that are new or lack log (docs/cluster.md).

Certificates are made by `tidelock cert`. Skipped where there is no etcd.
"""
import base64
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import cluster_test  # noqa: E402
from server import PROGRAM, Server  # noqa: E402
import skips  # noqa: E402
from waiting import until  # noqa: E402


class TlsEtcd(cluster_test.Etcd):
    """An etcd that requires client certificates of the CA in `folder`."""

    def __init__(self, folder):
        self.folder = folder
        self.context = ssl.create_default_context(cafile=os.path.join(folder, "ca.pem"))
        self.context.load_cert_chain(os.path.join(folder, "client.pem"), os.path.join(folder, "client-key.pem"))
        super().__init__()

    def options(self):
        def file(name):
            return os.path.join(self.folder, name + ".pem")
        return ["--cert-file", file("server"), "--key-file", file("server-key"), "--client-cert-auth", "--trusted-ca-file", file("ca")]


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class Transport(unittest.TestCase):
    """The cases that need no TLS to etcd have one etcd, and each case a cluster of its own in it."""

    @classmethod
    def setUpClass(cls):
        cls.etcd = cluster_test.Etcd()
        cls.addClassCleanup(cls.etcd.close)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tidelock-transport-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.hosts = []

    def certificates(self, which):
        folder = os.path.join(self.folder, which)
        subprocess.run([PROGRAM, "cert", "--dir", folder], capture_output=True, check=True)
        return folder

    def run_etcd(self, folder):
        etcd = TlsEtcd(folder)
        self.addCleanup(etcd.close)
        return etcd

    def host(self, etcd, name, *options, tls=None):
        host = Server("--cluster", "%s/%s" % (etcd.url, self._testMethodName), "--node-name", name, *(() if "--host-lease" in options else cluster_test.LEASE), *options,
                      port=cluster_test.free_port(), tls=tls)
        self.addCleanup(host.close)
        self.hosts.append(host)
        return host

    def must(self, host, method, path, body=None):
        status, reply = host.ask(method, path, body)
        self.assertIn(status, (200, 201), reply)
        return reply

    def test_hosts_and_etcd_speak_tls(self):
        """A second host copies a checkpoint by https, with certificates in both directions."""
        own = self.certificates("own")
        etcd = self.run_etcd(own)

        def file(name):
            return os.path.join(own, name + ".pem")
        options = ["--cluster-ca", file("ca"), "--cluster-cert", file("client"), "--cluster-key", file("client-key"),
                   "--tls-cert", file("server"), "--tls-key", file("server-key"), "--tls-ca", file("ca")]
        first = self.host(etcd, "a", *options, tls=etcd.context)
        first.start()
        self.must(first, "PUT", "/w/_doc/1", {"v": 1})
        second = self.host(etcd, "b", *options, tls=etcd.context)
        second.start()
        self.assertEqual(self.must(second, "GET", "/w/_doc/1")["_source"], {"v": 1})

    def test_questions_to_hosts_have_no_form_of_the_client(self):
        """A list of all hosts is complete in any form; a host that does not answer is named in it, and in the table."""
        a, b = [self.host(self.etcd, name, "--host-lease", "60s") for name in "ab"]
        for host in (a, b):
            host.start()
        txn = self.must(b, "POST", "/_transaction", {"mode": "query"})["transaction"]
        for path, wanted in (("/_transaction", a.transaction_number(txn)), ("/_tasks", "nodes:"), ("/_nodes/stats", "total: 2")):
            text = a.request("GET", path, headers={"Accept": "application/yaml"}).body.decode()
            self.assertIn(str(wanted), text)
            self.assertNotIn("failed_node_exception", text)
        rows = self.must(a, "GET", "/_cat/transactions?format=json")
        self.assertEqual([(row["state"], row["host"]) for row in rows], [("active", "b")], rows)
        b.kill()
        self.assertIn("node_failures", self.must(a, "GET", "/_transaction"))
        rows = self.must(a, "GET", "/_cat/transactions?format=json")
        self.assertEqual([(row["state"], row["host"]) for row in rows], [("unknown", "b")], rows)

    def tls_options(self, folder):
        """Those of a host that shows certificates of the CA in a folder, and trusts that CA only."""
        def file(name):
            return os.path.join(folder, name + ".pem")
        return ["--tls-cert", file("server"), "--tls-key", file("server-key"), "--cluster-ca", file("ca")]

    def questions(self, host):
        """How many questions of other hosts for its timestamp a host has answered."""
        page = host.request("GET", "/_metrics").body.decode()
        return sum(int(float(line.rsplit(" ", 1)[1])) for line in page.splitlines()
                   if line.startswith("tidelock_http_requests_total") and "/_timestamp" in line and 'code="200"' in line)

    def test_hosts_ask_and_forward_by_tls(self):
        """Under `cluster` a write is answered by what the other hosts say, by https; a scroll and a query transaction are used on any host. A host that shows a
        certificate of another CA is refused, and the reason names the option."""
        own, foreign = self.certificates("own"), self.certificates("foreign")
        context = ssl.create_default_context(cafile=os.path.join(own, "ca.pem"))
        a, b, c = [self.host(self.etcd, name, *self.tls_options(own), tls=context) for name in "abc"]
        for host in (a, b, c):
            host.start()
        for i in range(20):
            self.must(a, "PUT", "/w/_doc/%d?distribute_timestamps=cluster" % i, {"v": i})
            for host in (b, c):
                self.assertEqual(self.must(host, "GET", "/w/_doc/%d" % i)["_source"], {"v": i})
        self.assertNotIn("does not report the position", a.errors())
        self.assertGreater(self.questions(b) + self.questions(c), 0)
        scroll = self.must(c, "POST", "/w/_search?scroll=10m", {"size": 15})["_scroll_id"]
        self.assertEqual(len(self.must(a, "POST", "/_search/scroll", {"scroll_id": scroll})["hits"]["hits"]), 5)
        txn = self.must(c, "POST", "/_transaction", {"mode": "query"})["transaction"]
        self.must(b, "PUT", "/w/_doc/1", {"v": 100})
        self.assertEqual(self.must(a, "GET", "/w/_doc/1?transaction=" + txn)["_source"], {"v": 1})

        c.stop()
        c.options[-6:] = self.tls_options(foreign)
        c.tls = ssl.create_default_context(cafile=os.path.join(foreign, "ca.pem"))
        c.start()
        txn = self.must(c, "POST", "/_transaction", {"mode": "query"})["transaction"]
        until(lambda: a.ask("GET", "/w/_doc/1?transaction=" + txn)[0] == 503, "the host is back, and cannot be reached")
        status, reply = a.ask("GET", "/w/_doc/1?transaction=" + txn)
        self.assertEqual(status, 503, reply)
        self.assertIn("--cluster-ca names the file", reply["error"]["reason"])

        def is_reported():  # a write for which the host's heartbeat comes first asks it nothing
            self.must(a, "PUT", "/w/_doc/1?distribute_timestamps=cluster", {"v": 2})
            return "does not report the position up to which it has applied the log" in a.errors()
        until(is_reported, "the log reports it")
        self.assertEqual(self.must(c, "GET", "/w/_doc/1")["_source"], {"v": 2})

    def test_host_without_tls_verifies_hosts_with_tls(self):
        """In a cluster of both kinds. A certificate that SIGHUP finds, and that other hosts could not verify, does not replace the one in use."""
        own, foreign, mixed = self.certificates("own"), self.certificates("foreign"), os.path.join(self.folder, "mixed")
        shutil.copytree(own, mixed)
        a = self.host(self.etcd, "a", *self.tls_options(mixed), tls=ssl.create_default_context(cafile=os.path.join(own, "ca.pem")))
        a.start()
        self.must(a, "PUT", "/w/_doc/1", {"v": 1})
        b = self.host(self.etcd, "b", "--cluster-ca", os.path.join(own, "ca.pem"))
        b.start()  # copies a checkpoint by https
        self.assertEqual(self.must(b, "GET", "/w/_doc/1")["_source"], {"v": 1})
        for name in ("server", "server-key"):
            shutil.copy(os.path.join(foreign, name + ".pem"), os.path.join(mixed, name + ".pem"))
        a.process.send_signal(signal.SIGHUP)
        until(lambda: "SIGHUP: the TLS files are unchanged: --tls-cert" in a.errors(), "the certificate is refused")
        for reader, owner in ((a, b), (b, a)):
            txn = self.must(owner, "POST", "/_transaction", {"mode": "query"})["transaction"]
            self.assertEqual(self.must(reader, "GET", "/w/_doc/1?transaction=" + txn)["_source"], {"v": 1})
        self.assertNotIn("does not report the position", a.errors() + b.errors())

    def test_certificate_that_other_hosts_cannot_verify_is_refused(self):
        """Before anything is read or written: one of another CA than --cluster-ca, of a CA of its own without that, and for another name."""
        own, foreign = self.certificates("own"), self.certificates("foreign")
        tls, ca = self.tls_options(own)[:4], os.path.join(own, "ca.pem")
        for options, reason in ((["--cluster-ca", os.path.join(foreign, "ca.pem")], "is not signed, for use by a server, by a CA in --cluster-ca"),
                                ([], "name the CA of the hosts' certificates by --cluster-ca"),
                                (["--cluster-ca", ca, "--advertise", "other.example:9200"], "is not for [other.example]"),
                                (["--cluster-ca", ca, "--advertise", "[fe80::2]:9200"], "is not for [fe80::2]")):
            run = subprocess.run([PROGRAM, "serve", "--data", os.path.join(self.folder, "none"), "--cluster", "http://127.0.0.1:1/t", *tls, *options],
                                 capture_output=True, text=True, check=False)
            self.assertNotEqual(run.returncode, 0)
            self.assertIn(reason, run.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "none", "cluster")))

    def test_checkpoint_of_unknown_ca_is_refused(self):
        """The copying host says which option names the CA, and copies once it is right."""
        own, foreign = self.certificates("own"), self.certificates("foreign")
        context = ssl.create_default_context(cafile=os.path.join(own, "ca.pem"))
        first = self.host(self.etcd, "a", *self.tls_options(own), tls=context)
        first.start()
        self.must(first, "PUT", "/w/_doc/1", {"v": 1})
        second = self.host(self.etcd, "b", *self.tls_options(foreign), tls=context)
        process = subprocess.Popen([PROGRAM, "serve", "--data", second.data, "--listen", "127.0.0.1:%d" % cluster_test.free_port(), *second.options], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        try:
            for line in process.stderr:
                if "--cluster-ca names the file" in line:
                    break
            else:
                self.fail("it ended without the reason")
        finally:
            process.kill()
            process.wait()
            process.stderr.close()
        second.options[-6:] = self.tls_options(own)
        second.start()
        self.assertEqual(self.must(second, "GET", "/w/_doc/1")["_source"], {"v": 1})

    def test_checkpoints_are_for_hosts_of_the_cluster(self):
        """Without the secret that etcd has, all three requests are refused, and nothing is made or read."""
        first = self.host(self.etcd, "a")
        first.start()
        for method, path in (("POST", ""), ("GET", "/x?file=FORMAT&from=0"), ("DELETE", "/x")):
            for headers in (None, {"Tidelock-Cluster-Secret": ""}, {"Tidelock-Cluster-Secret": "0" * 64}):
                status, reply = first.ask(method, "/_cluster/_checkpoint" + path, headers=headers)
                self.assertEqual(status, 403, reply)
                self.assertEqual(reply["error"]["type"], "security_exception")
        self.assertFalse(os.path.exists(os.path.join(first.data, "copies")))

    def test_checkpoint_that_no_host_reads_is_deleted(self):
        """Its host died after the reply. One that is read stays. Neither depends on the wall clock."""
        first = self.host(self.etcd, "a")
        first.start()
        genesis = base64.b64decode(self.etcd.key(self._testMethodName + "/genesis")["value"]).decode()
        headers = {"Tidelock-Cluster-Secret": re.search("secret (.*)", genesis).group(1)}
        folders = []
        for _ in range(2):
            status, reply = first.ask("POST", "/_cluster/_checkpoint", headers=headers)
            self.assertEqual(status, 200, reply)
            folders.append(os.path.join(first.data, "copies", reply["checkpoint"]))
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        for folder in folders: # of the clock that is never set
            self.assertLess(abs(os.stat(folder).st_mtime - now), 300)
            os.utime(folder, (now - 60, now - 60))
        self.assertEqual(first.request("GET", "/_cluster/_checkpoint/%s?file=FORMAT&from=0" % os.path.basename(folders[1]), headers=headers).status, 200)
        self.assertGreater(os.stat(folders[1]).st_mtime, now - 30)
        os.utime(folders[0], (now - 1000, now - 1000))
        until(lambda: not os.path.exists(folders[0]), "the unused checkpoint is deleted")
        self.assertTrue(os.path.exists(folders[1]))

    def test_host_copies_a_checkpoint_when_log_is_trimmed(self):
        """A host that is away while more than --catch-up is written copies a checkpoint at its next start, and keeps its number."""
        a, b, c = [self.host(self.etcd, name, "--catch-up", "64k") for name in "abc"]
        for host in (a, b, c):
            host.start()
        self.must(c, "PUT", "/w/_doc/from-c", {"v": 1})

        def number():
            return [one["number"] for one in self.must(a, "GET", "/_cluster/hosts")["hosts"] if one["name"] == "c"]
        before = number()
        c.stop()
        for i in range(20):
            self.must(a, "PUT", "/w/_doc/%d" % i, {"text": "x" * 20000})
        until(lambda: self.must(b, "GET", "/w/_count")["count"] == 21, "all documents on the second host")
        for host in (a, b):
            self.must(host, "POST", "/_forcemerge")
        c.start()
        self.assertIn("copying a checkpoint of another host", c.errors())
        until(lambda: self.must(c, "GET", "/w/_count")["count"] == 21, "all documents")
        self.must(c, "PUT", "/w/_doc/again", {"v": 2})
        self.assertEqual(number(), before)
        c.stop()
        c.start()
        self.assertEqual(c.errors().count("copying a checkpoint of another host"), 1)

    def test_log_is_retained_within_catch_up(self):
        """A host that is away for less than --catch-up continues from its own checkpoint."""
        a, b, c = [self.host(self.etcd, name) for name in "abc"]
        for host in (a, b, c):
            host.start()
        c.stop()
        for i in range(20):
            self.must(a, "PUT", "/w/_doc/%d" % i, {"text": "x" * 20000})
        until(lambda: b.ask("GET", "/w/_count")[1].get("count") == 20, "all documents on the second host")
        for host in (a, b):
            self.must(host, "POST", "/_forcemerge")
        c.start()
        self.assertNotIn("copying a checkpoint of another host", c.errors())
        until(lambda: self.must(c, "GET", "/w/_count")["count"] == 20, "all documents")

    def test_options_without_effect_are_refused(self):
        for options, reason in ((("--cluster-ca", "x"), "needs --cluster"),
                                (("--cluster", "http://127.0.0.1:1/t", "--cluster-ca", "x"), "--cluster-ca x: "),
                                (("--cluster", "http://127.0.0.1:1/t", "--cluster-cert", "x", "--cluster-key", "y"), "--cluster-cert x, --cluster-key y: "),
                                (("--cluster", "https://127.0.0.1:1/t", "--cluster-cert", "x"), "need each other")):
            run = subprocess.run([PROGRAM, "serve", "--data", os.path.join(self.folder, "none"), *options], capture_output=True, text=True, check=False)
            self.assertNotEqual(run.returncode, 0)
            self.assertIn(reason, run.stderr)


if __name__ == "__main__":
    skips.main()
