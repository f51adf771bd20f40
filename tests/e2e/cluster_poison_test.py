#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An entry that ends every host of a cluster: each host refuses its third start, --skip-entry on one host leaves it out on all, and hosts that join later leave it out, too.

Method: the preloaded library of poison_test.py ends a host that applies a document with the word. It is loaded into the hosts that the test chooses. Skipped where there is no etcd.
"""
import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster_test import LEASE, NAMES, Etcd, free_port  # noqa: E402
from server import BUILD, PROGRAM, Server, check, has_shared_rocksdb  # noqa: E402
import skips  # noqa: E402
from waiting import until  # noqa: E402

SHIM = os.path.join(BUILD, "tests", "e2e", "poison_shim.so")
REFUSED = 1  # exit status


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class ClusterPoison(unittest.TestCase):
    def setUp(self):
        if not has_shared_rocksdb():
            self.skipTest("the program has no RocksDB as a shared library")
        assert os.path.exists(SHIM), SHIM + " is not built"  # else no host would end, and the test would wait for it
        descriptor, self.switch = tempfile.mkstemp(prefix="tidelock-poison-")
        os.close(descriptor)
        self.addCleanup(os.unlink, self.switch)
        self.etcd = Etcd()
        self.addCleanup(self.etcd.close)

    def host(self, name, poisonable=True):
        environment = {"LD_PRELOAD": SHIM, "TIDELOCK_TEST_POISON": self.switch,
                       "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")} if poisonable else {}
        host = Server("--cluster", self.etcd.url + "/tidelock", "--node-name", name, *LEASE, port=free_port(), environment=environment, replay=False)
        self.addCleanup(host.close)
        return host.start()

    def must(self, host, method, path, body=None, wanted=(200, 201)):
        status, reply = host.ask(method, path, body)
        self.assertIn(status, wanted, reply)
        return reply

    def make_poisonous(self):
        with open(self.switch, "w", encoding="ascii") as switch:
            switch.write("abort")

    def wait(self, host):
        """Waits until the host has ended by itself. Returns: its exit status; of a signal, negative."""
        status = host.process.wait()
        host.process.stdout.close()
        host.hang_up()
        return status

    def start(self, host, *options):
        """Starts a host that ends before it serves. Returns: its exit status and its log."""
        begin = len(host.errors())
        host.process = subprocess.Popen([PROGRAM, "serve", "--data", host.data, "--listen", "127.0.0.1:%d" % host.port, *host.options, *options],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=host.log, env=host.environment, text=True)
        self.assertEqual(host.process.stdout.readline(), "", "it serves")
        return self.wait(host), host.errors()[begin:]

    def start_with(self, host, *options):
        """Starts a host with further options that serves. Returns: its log."""
        begin, own = len(host.errors()), host.options
        host.options = own + list(options)
        host.start()
        host.options = own
        return host.errors()[begin:]

    def refused(self, host, *options):
        """Returns: the position that a refused start names, and the refusal."""
        status, log = self.start(host, *options)
        self.assertEqual(status, REFUSED, log)
        found = re.search(r"applied entry (\d+) of the log of the cluster|--skip-entry (\d+): not left out", log)
        self.assertIsNotNone(found, log)
        return int(found.group(1) or found.group(2)), log

    def put_poison(self, host, ended):
        with self.assertRaises((OSError, http.client.HTTPException)):
            host.request("PUT", "/w/_doc/bad", {"word": "poison"})
        for one in ended:
            self.assertEqual(self.wait(one), -signal.SIGABRT)
            status, log = self.start(one)
            self.assertEqual(status, -signal.SIGABRT, log)
            self.assertIn("and applies it again now", log)

    def equal(self, hosts):
        """Waits until all hosts are live and have applied the log up to the same position. Checks that their chains are equal."""
        def own_rows():
            rows = [[one for one in self.must(host, "GET", "/_cluster/hosts")["hosts"]] for host in hosts]
            live = [sum(one["live"] for one in listed) for listed in rows]
            own = [next(one for one in listed if one["self"]) for listed in rows]
            return own if set(live) == {len(hosts)} and len({one["applied_position"] for one in own}) == 1 else None
        found = []
        until(lambda: found.append(own_rows()) or found[-1], "all hosts have applied the same")
        self.assertEqual(len({one["chain"] for one in found[-1]}), 1, found[-1])

    def test_entry_that_ends_all_hosts_is_skipped_by_all(self):
        hosts = a, b, c = [self.host(name) for name in NAMES]
        for i, host in enumerate(hosts):
            self.must(host, "PUT", "/w/_doc/%d" % i, {"v": i})
        session = self.must(a, "POST", "/_session", {"ttl": "10m"})["session"]
        self.must(a, "POST", "/_lock", {"session": session, "locks": [{"mode": "exclusive", "index": "w", "id": "1"}]})
        self.make_poisonous()
        self.put_poison(b, hosts)

        entry, log = self.refused(a)
        for remedy in ("--skip-entry %d on one host leaves it out permanently on all" % entry, "--retry-entry %d" % entry, "write (index) [w/bad]"):
            self.assertIn(remedy, log)
        log = self.refused(a, "--skip-entry", str(entry))[1]
        self.assertIn("may have applied it, or may apply it: b c . Start each of them", log)
        self.assertEqual([self.refused(host)[0] for host in (b, c)], [entry, entry])

        log = self.start_with(c, "--skip-entry", str(entry))
        self.assertIn("entry %d of the log is left out by all hosts from now on" % entry, log)
        self.start_with(a)
        self.assertIn("the option can go", self.start_with(b, "--skip-entry", str(entry)))
        self.equal(hosts)
        new = self.host("d")
        self.equal([*hosts, new])
        for host in [*hosts, new]:
            self.assertEqual([self.must(host, "GET", "/w/_doc/%d" % i)["_source"] for i in range(3)], [{"v": i} for i in range(3)])
            self.assertEqual(host.ask("GET", "/w/_doc/bad")[0], 404)
            self.assertEqual([held["id"] for held in self.must(host, "GET", "/_lock")["locks"]], ["1"])
        self.must(new, "PUT", "/w/_doc/next?distribute_timestamps=cluster", {"v": 9})
        a.kill()
        a.start()  # it applies the log from its checkpoint on, which precedes the entry
        self.equal([*hosts, new])
        self.assertEqual(self.must(a, "GET", "/w/_doc/next")["_source"], {"v": 9})
        for host in (a, new):  # the cluster was made of the directory of the first, with a log of its own; the other has copied
            self.assertEqual(host.stop(), 0)
            status, report = check(host.data)
            self.assertEqual(status, 0, report)
            self.assertIn("the cluster's log, which is in etcd and is not read (--cluster)", report)
        run = subprocess.run([PROGRAM, "check", "--data", new.data, "--replay-all"], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn("--cluster URL/PREFIX compares it with the log", run.stdout)

    def test_entry_that_a_host_has_applied_is_not_skipped(self):
        a, b = self.host("a", poisonable=False), self.host("b")
        self.make_poisonous()
        self.must(a, "PUT", "/w/_doc/bad?distribute_timestamps=fast", {"word": "poison"})
        self.assertEqual(self.wait(b), -signal.SIGABRT)
        self.assertEqual(self.start(b)[0], -signal.SIGABRT)
        until(lambda: self.must(a, "GET", "/_cluster/health")["number_of_nodes"] == 1, "it is out")
        entry, log = self.refused(b)
        log = self.refused(b, "--skip-entry", str(entry))[1]
        self.assertRegex(log, "Host a has applied it|have applied it: a |may apply it: a ")
        with open(self.switch, "w", encoding="ascii"):
            pass
        self.start_with(b, "--retry-entry", str(entry))
        self.equal([a, b])
        self.assertEqual(self.must(b, "GET", "/w/_doc/bad")["_source"], {"word": "poison"})


if __name__ == "__main__":
    skips.main(verbosity=2)
