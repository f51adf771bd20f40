#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cluster as clients of Elasticsearch see it (docs/cluster.md): its hosts as nodes, its health, and what lives on one host asked for on another. Skipped where there is no
etcd.
"""
import os
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster_test import NAMES, Etcd, free_port  # noqa: E402
from server import PROGRAM, Server  # noqa: E402
from waiting import until  # noqa: E402

NODE_ID_BYTES = 22


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class Nodes(unittest.TestCase):
    def setUp(self):
        self.etcd = Etcd()
        self.addCleanup(self.etcd.close)
        self.hosts = []
        for name in NAMES:
            host = Server("--cluster", self.etcd.url + "/tidelock", "--node-name", name, port=free_port())
            self.addCleanup(host.close)
            self.hosts.append(host.start())
        until(lambda: all(self.health(host) == ("green", len(NAMES)) for host in self.hosts), "all hosts see all hosts")

    def must(self, host, method, path, body=None, wanted=(200, 201)):
        status, reply = host.ask(method, path, body)
        self.assertIn(status, wanted, reply)
        return reply

    def health(self, host):
        reply = self.must(host, "GET", "/_cluster/health")
        self.assertEqual(reply["number_of_data_nodes"], reply["number_of_nodes"])
        return reply["status"], reply["number_of_nodes"]

    def command(self, host, *options):
        return subprocess.run([PROGRAM, "hosts", "--url", host.url, *options], capture_output=True, text=True, check=False)

    def sniffed(self, host, path="/_nodes/_all/http"):
        """What clients read when they sniff. Returns: node ids by address."""
        reply = self.must(host, "GET", path)
        self.assertEqual(reply["_nodes"], {"total": len(reply["nodes"]), "successful": len(reply["nodes"]), "failed": 0})
        return {node["http"]["publish_address"]: id for id, node in reply["nodes"].items()}

    def test_every_host_names_all(self):
        a, b, _ = self.hosts
        addresses = ["127.0.0.1:%d" % host.port for host in self.hosts]
        ids = self.sniffed(a)
        self.assertEqual(sorted(ids), sorted(addresses))
        self.assertEqual([len(id) for id in set(ids.values())], [NODE_ID_BYTES] * 3)
        for host in self.hosts:
            self.assertEqual(self.sniffed(host), ids)
            self.assertEqual(self.sniffed(host, "/_nodes/http"), ids)
            own = {"127.0.0.1:%d" % host.port: ids["127.0.0.1:%d" % host.port]}
            self.assertEqual(self.sniffed(host, "/_nodes/_local"), own)
            self.assertEqual(list(self.sniffed(host, "/_nodes/b").values()), [ids["127.0.0.1:%d" % b.port]])
            self.assertEqual(self.sniffed(host, "/_nodes/" + ids["127.0.0.1:%d" % b.port]), self.sniffed(host, "/_nodes/b"))
            self.assertEqual(self.sniffed(host, "/_nodes/nothing"), {})
            self.assertEqual(self.sniffed(host, "/_nodes/_all,data:false,_master"), self.sniffed(host, "/_nodes/_master"))
            master, = self.must(host, "GET", "/_cat/master?format=json")
            nodes = self.must(host, "GET", "/_cat/nodes?format=json&full_id=true&h=id,name,ip,master")
            self.assertEqual([(node["name"], node["master"]) for node in nodes], [("a", "*"), ("b", "-"), ("c", "-")])
            self.assertEqual([node["id"] for node in nodes], [ids[address] for address in addresses])
            self.assertEqual((master["id"], master["node"]), (ids[addresses[0]], "a"))
            state = self.must(host, "GET", "/_cluster/state")
            self.assertEqual({node["transport_address"]: id for id, node in state["nodes"].items()}, ids)
            self.assertEqual(state["master_node"], master["id"])
            self.assertEqual(self.must(host, "GET", "/_cluster/stats")["nodes"]["count"]["total"], 3)
        b.restart()
        until(lambda: self.sniffed(a) == ids, "the ids are the same after a restart")

    def test_health_and_hosts_tell_what_is_missing(self):
        a, b, c = self.hosts
        whole = self.command(a)
        self.assertEqual(whole.returncode, 0, whole.stderr)
        self.assertEqual(whole.stdout.split("\n")[0].split(), "name group address live lag.ms lag.entries clock.ms applied chain build".split())
        c.kill()
        until(lambda: self.health(a) == ("yellow", 2), "a host is missing")
        self.assertNotIn("127.0.0.1:%d" % c.port, self.sniffed(b))
        missing = self.command(a)
        self.assertEqual(missing.returncode, 1)
        self.assertEqual([line.split()[3] for line in missing.stdout.strip().split("\n")[1:]], ["*", "+", "-"])
        c.start()
        until(lambda: self.health(a) == ("green", 3), "it is back")
        for host in self.must(a, "GET", "/_cluster/hosts")["hosts"]:
            self.assertLess(abs(host["clock_offset_ms"]), 60000, "they have one clock")

    def test_a_host_that_cannot_reach_the_log_is_red(self):
        a = self.hosts[0]
        self.etcd.process.send_signal(signal.SIGSTOP)
        try:
            until(lambda: self.health(a)[0] == "red", "the log is out of reach")
            lost = self.command(a)
            self.assertEqual(lost.returncode, 1)
            self.assertIn("cannot reach the log", lost.stdout)
        finally:
            self.etcd.process.send_signal(signal.SIGCONT)
        until(lambda: self.health(a) == ("green", 3), "the log is back")


if __name__ == "__main__":
    unittest.main()
