#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A cluster as clients of Elasticsearch see it (docs/cluster.md): its hosts as nodes, its health, and what lives on one host asked for on another. Skipped where there is no
etcd.
"""
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster_test import LEASE, NAMES, Etcd, free_port  # noqa: E402
from server import PROGRAM, Server  # noqa: E402
import skips  # noqa: E402
from waiting import Waiting, stop_process, until  # noqa: E402

NODE_ID_BYTES = 22


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class Nodes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.etcd = Etcd()
        cls.addClassCleanup(cls.etcd.close)
        cls.hosts = []
        for name in NAMES:
            host = Server("--cluster", cls.etcd.url + "/tidelock", "--node-name", name, *LEASE, port=free_port())
            cls.addClassCleanup(host.close)
            cls.hosts.append(host.start())

    def setUp(self):
        """A test may end a host: all are there when the next one begins."""
        for host in self.hosts:
            if host.process.poll() is not None:
                host.start()
        self.must(self.hosts[0], "DELETE", "/_search/scroll/_all", wanted=(200, 404))
        self.must(self.hosts[0], "DELETE", "/w?ignore_unavailable=true")
        until(lambda: all(host.ask("GET", "/w")[0] == 404 for host in self.hosts), "it is gone on all hosts")
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

    @contextlib.contextmanager
    def watched(self, host):
        """Runs `tidelock hosts --watch`. Yields: a function that waits until it shows a value in column `live` of a host."""
        with subprocess.Popen([PROGRAM, "hosts", "--url", host.url, "--watch", "--interval", "100ms"], stdout=subprocess.PIPE, text=True) as watch:
            def await_shown(name, live):
                for line in watch.stdout:
                    if line.split()[:1] == [name] and line.split()[3] == live:
                        return
                self.fail("it ended with status %d" % watch.wait())
            try:
                yield await_shown
                self.assertIsNone(watch.poll())
            finally:
                watch.terminate()

    def sniffed(self, host, path="/_nodes/_all/http"):
        """What clients read when they sniff. Returns: node ids by address."""
        reply = self.must(host, "GET", path)
        self.assertEqual(reply["_nodes"], {"total": len(reply["nodes"]), "successful": len(reply["nodes"]), "failed": 0})
        return {node["http"]["publish_address"]: id for id, node in reply["nodes"].items()}

    def applied_timestamps(self, host):
        """Returns: by name."""
        return {row["name"]: row["applied_timestamp"] for row in self.must(host, "GET", "/_cluster/hosts")["hosts"]}

    def ephemeral_ids(self, host):
        """Returns: by name."""
        return {node["name"]: node["ephemeral_id"] for node in self.must(host, "GET", "/_cluster/state/nodes")["nodes"].values()}

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
            nodes = self.must(host, "GET", "/_cat/nodes?format=json&h=po,http")
            self.assertEqual([(node["po"], node["http"]) for node in nodes], [(address.rsplit(":", 1)[1], address) for address in addresses])
            state = self.must(host, "GET", "/_cluster/state")
            self.assertEqual({node["transport_address"]: id for id, node in state["nodes"].items()}, ids)
            self.assertEqual(state["master_node"], master["id"])
            self.assertEqual(self.must(host, "GET", "/_cluster/stats")["nodes"]["count"]["total"], 3)
        started = self.ephemeral_ids(a)
        self.assertEqual([self.ephemeral_ids(host) for host in self.hosts], [started] * 3)
        self.assertEqual(len(set(started.values())), 3)
        b.restart()
        until(lambda: self.sniffed(a) == ids, "the ids are the same after a restart")
        until(lambda: {name for name, id in self.ephemeral_ids(a).items() if id != started[name]} == {"b"}, "but for the ephemeral one")
        self.assertEqual(self.ephemeral_ids(b), self.ephemeral_ids(a))

    def test_health_and_hosts_report_missing_hosts(self):
        a, b, c = self.hosts
        whole = self.command(a)
        self.assertEqual(whole.returncode, 0, whole.stderr)
        self.assertEqual(whole.stdout.split("\n")[0].split(), "name group address live lag.ms lag.entries clock.ms applied applied.timestamp chain build".split())
        before = self.applied_timestamps(a)
        rows = {row["name"]: int(row["applied.timestamp"]) for row in self.must(a, "GET", "/_cat/hosts?format=json")}
        after = self.applied_timestamps(a)
        for name in NAMES:
            self.assertTrue(0 < before[name] <= rows[name] <= after[name], (name, before, rows, after))
        fewer = Waiting(a, "GET", "/_cluster/health?wait_for_nodes=%3C3&timeout=1h")
        with self.watched(a) as await_shown:
            await_shown("c", "+")
            c.kill()
            await_shown("c", "-")
        until(lambda: self.health(a) == ("yellow", 2), "a host is missing")
        fewer.join()
        self.assertEqual((fewer.status, fewer.reply["timed_out"], fewer.reply["number_of_nodes"]), (200, False, 2))
        self.assertNotIn("127.0.0.1:%d" % c.port, self.sniffed(b))
        missing = self.command(a)
        self.assertEqual(missing.returncode, 1)
        self.assertEqual([line.split()[3] for line in missing.stdout.strip().split("\n")[1:]], ["*", "+", "-"])
        status, reply = a.ask("GET", "/_cluster/health?wait_for_nodes=3&timeout=50ms")
        self.assertEqual((status, reply["timed_out"], reply["status"], reply["number_of_nodes"]), (408, True, "yellow", 2))
        waiting = [Waiting(host, "GET", "/_cluster/health?timeout=1h&" + query)
                   for host in (a, b) for query in ("wait_for_nodes=ge(3)", "wait_for_status=green")]
        c.start()
        for one in waiting:
            one.join()
            self.assertEqual((one.status, one.reply["timed_out"], one.reply["number_of_nodes"]), (200, False, 3))
        until(lambda: self.health(a) == ("green", 3), "it is back")
        for host in self.must(a, "GET", "/_cluster/hosts")["hosts"]:
            self.assertLess(abs(host["clock_offset_ms"]), 60000, "they have one clock")
            self.assertGreaterEqual(host["reported_ms_ago"], 0)

    def test_removed_host_is_unknown_until_it_returns(self):
        a, b, c = self.hosts
        reply = self.must(a, "DELETE", "/_cluster/hosts/c", wanted=(400,))
        self.assertIn("stop it first", reply["error"]["reason"])
        self.must(b, "DELETE", "/_cluster/hosts/none", wanted=(404,))
        self.must(a, "PUT", "/w/_doc/1", {"v": 1})
        c.kill()
        until(lambda: self.health(b) == ("yellow", 2), "a host is missing")
        self.must(b, "DELETE", "/_cluster/hosts/c")
        for host in (a, b):
            until(lambda host=host: [one["name"] for one in self.must(host, "GET", "/_cluster/hosts")["hosts"]] == ["a", "b"], "it is removed")
            until(lambda host=host: self.health(host) == ("green", 2), "it is not missed")
        self.must(b, "DELETE", "/_cluster/hosts/c", wanted=(404,))
        c.start()
        until(lambda: self.health(a) == ("green", 3), "it is back")
        self.assertEqual(self.must(c, "GET", "/w/_doc/1")["_source"], {"v": 1})

    def test_a_host_that_cannot_reach_the_log_is_red(self):
        a = self.hosts[0]
        stop_process(self.etcd.process)
        try:
            until(lambda: self.health(a)[0] == "red", "the log is out of reach")
            lost = self.command(a)
            self.assertEqual(lost.returncode, 1)
            self.assertIn("cannot reach the log", lost.stdout)
        finally:
            self.etcd.process.send_signal(signal.SIGCONT)
        until(lambda: self.health(a) == ("green", 3), "the log is back")

    def test_every_host_has_a_copy(self):
        a = self.hosts[0]
        self.must(a, "PUT", "/w", {"settings": {"number_of_shards": 2, "number_of_replicas": 2}})
        self.assertEqual(self.health(a), ("green", 3))
        rows = self.must(a, "GET", "/_cat/shards/w?format=json")
        self.assertEqual(sorted((row["shard"], row["prirep"], row["state"], row["node"]) for row in rows),
                         sorted((shard, "p" if name == "a" else "r", "STARTED", name) for shard in "01" for name in NAMES))
        ids = {node["name"]: id for id, node in self.must(a, "GET", "/_cluster/state/nodes")["nodes"].items()}
        for row in self.must(a, "GET", "/_cat/shards/w?format=json&h=node,id"):
            self.assertEqual(row["id"], ids[row["node"]])
        self.must(a, "PUT", "/w/_settings", {"number_of_replicas": 3})
        self.assertEqual(self.health(a), ("yellow", 3))
        health = self.must(a, "GET", "/_cluster/health/w")
        self.assertEqual((health["active_primary_shards"], health["active_shards"], health["unassigned_shards"]), (2, 6, 2))

    # --- Contexts and tasks of one host, used on another ---

    def fill(self, count):
        lines = "".join('{"index":{"_id":"%d"}}\n{"v":%d}\n' % (i, i) for i in range(count))
        status, reply = self.hosts[0].ask("POST", "/w/_bulk?refresh=true", lines.encode())
        self.assertEqual((status, reply["errors"]), (200, False))
        until(lambda: all(host.ask("GET", "/w/_count")[1].get("count") == count for host in self.hosts), "all hosts have them")

    def page(self, host, scroll):
        return [hit["_id"] for hit in self.must(host, "POST", "/_search/scroll", {"scroll_id": scroll, "scroll": "1m"})["hits"]["hits"]]

    def test_a_scroll_is_continued_on_any_host(self):
        a, b, c = self.hosts
        self.fill(25)
        begun = self.must(a, "POST", "/w/_search?scroll=1m", {"size": 10, "sort": ["v"]})
        scroll = begun["_scroll_id"]
        self.assertEqual(self.page(b, scroll), [str(i) for i in range(10, 20)])
        last = self.must(c, "GET", "/_search/scroll?scroll=1m&pretty&scroll_id=" + scroll)
        self.assertEqual((last["_scroll_id"], [hit["_id"] for hit in last["hits"]["hits"]]), (scroll, [str(i) for i in range(20, 25)]))
        own = self.must(b, "POST", "/w/_search?scroll=1m", {"size": 10})["_scroll_id"]
        cleared = self.must(c, "DELETE", "/_search/scroll", {"scroll_id": [scroll, own]})
        self.assertEqual(cleared, {"succeeded": True, "num_freed": 2})
        here, there = (host.ask("POST", "/_search/scroll", {"scroll_id": scroll, "scroll": "1m"}) for host in (a, b))
        self.assertEqual(here[0], 404)
        self.assertEqual(there, here, "to the letter")
        for host in self.hosts:
            self.must(host, "POST", "/w/_search?scroll=1m", {"size": 10})
        self.assertEqual(self.must(b, "DELETE", "/_search/scroll/_all"), {"succeeded": True, "num_freed": 3})

    def test_a_point_in_time_is_searched_on_any_host(self):
        a, b, c = self.hosts
        self.fill(5)
        pit = self.must(a, "POST", "/w/_pit?keep_alive=1m")["id"]
        self.must(a, "PUT", "/w/_doc/late", {"v": 9})
        for host in self.hosts:
            found = self.must(host, "POST", "/_search", {"pit": {"id": pit, "keep_alive": "1m"}})
            self.assertEqual((found["hits"]["total"]["value"], found["pit_id"]), (5, pit))
        self.must(b, "DELETE", "/_pit", {"id": pit})
        self.assertEqual(c.ask("POST", "/_search", {"pit": {"id": pit}})[0], 404)
        pits = [self.must(host, "POST", "/w/_search/point_in_time?keep_alive=1m")["pit_id"] for host in self.hosts]
        closed = self.must(b, "DELETE", "/_search/point_in_time", {"pit_id": pits})["pits"]
        self.assertEqual(sorted((pit["pit_id"], pit["successful"]) for pit in closed), sorted((pit, True) for pit in pits))

    def test_a_task_is_seen_and_ended_on_any_host(self):
        a, b, c = self.hosts
        self.fill(50)
        task = self.must(a, "POST", "/w/_delete_by_query?wait_for_completion=false&requests_per_second=0.01&scroll_size=1", {"query": {"match_all": {}}})["task"]
        node, _ = task.split(":")
        self.assertEqual(node, list(self.sniffed(a, "/_nodes/_local").values())[0])
        self.assertEqual(self.must(b, "GET", "/_tasks/" + task)["completed"], False)
        for host in self.hosts:
            listed = self.must(host, "GET", "/_tasks?actions=*byquery")["nodes"]
            self.assertEqual({id: list(one["tasks"]) for id, one in listed.items()}, {node: [task]})
            flat = self.must(host, "GET", "/_tasks?actions=*byquery&group_by=none")["tasks"]
            self.assertEqual(["%s:%d" % (one["node"], one["id"]) for one in flat], [task])
            self.assertEqual(self.must(host, "GET", "/_tasks?actions=*byquery&nodes=b")["nodes"], {})
        changed = self.must(b, "POST", "/_delete_by_query/%s/_rethrottle?requests_per_second=0.02" % task)
        self.assertEqual(list(changed["nodes"][node]["tasks"]), [task])
        cancelled = self.must(c, "POST", "/_tasks/%s/_cancel" % task)
        self.assertEqual(cancelled["nodes"][node]["tasks"][task]["cancelled"], True)
        ended = self.must(b, "GET", "/_tasks/%s?wait_for_completion=true&timeout=5m" % task)
        self.assertEqual(ended["completed"], True)
        again = self.must(a, "POST", "/w/_delete_by_query?wait_for_completion=false&requests_per_second=0.01&scroll_size=1", {"query": {"match_all": {}}})["task"]
        self.assertEqual(list(self.must(c, "POST", "/_tasks/_cancel?actions=*byquery")["nodes"][node]["tasks"]), [again])

    def test_stats_are_of_all_hosts(self):
        a, b, c = self.hosts
        ids = sorted(self.sniffed(a).values())
        for path, wanted in (("/_nodes/stats/process", ids), ("/_nodes/_all/stats/process", ids), ("/_nodes/c/stats", list(self.sniffed(a, "/_nodes/c").values()))):
            stats = self.must(b, "GET", path)
            self.assertEqual(stats["_nodes"], {"total": len(wanted), "successful": len(wanted), "failed": 0})
            self.assertEqual(sorted(stats["nodes"]), wanted)
        c.kill()
        lost, = self.sniffed(a, "/_nodes/c").values() or [None]
        stats = self.must(b, "GET", "/_nodes/stats/process")
        if stats["_nodes"]["total"] == 3:  # else it is out already
            self.assertEqual((stats["_nodes"]["successful"], stats["_nodes"]["failed"]), (2, 1))
            failure, = stats["_nodes"]["failures"]
            self.assertEqual((failure["type"], failure["node_id"]), ("failed_node_exception", lost))

    def test_a_query_transaction_is_used_on_any_host(self):
        a, b, c = self.hosts
        self.fill(5)
        txn = self.must(a, "POST", "/_transaction", {"mode": "query"})["transaction"]
        self.must(b, "PUT", "/w/_doc/1", {"v": 100})
        self.must(b, "DELETE", "/w/_doc/2")
        for host in self.hosts:
            status, reply = host.ask("GET", "/w/_doc/1", headers={"Tidelock-Transaction": txn})
            self.assertEqual((status, reply["_source"]), (200, {"v": 1}))
            self.assertEqual(self.must(host, "GET", "/w/_count?transaction=" + txn)["count"], 5)
            whole, head = (host.request(method, "/w/_doc/1?transaction=" + txn) for method in ("GET", "HEAD"))
            self.assertEqual((head.status, head.body, head.getheader("Content-Length")), (200, b"", str(len(whole.body))))
            self.assertEqual(self.must(host, "GET", "/_transaction/" + txn)["mode"], "query")
        update = self.must(b, "POST", "/_transaction", {})["transaction"]
        for host in self.hosts:
            until(lambda host=host: self.must(host, "GET", "/_transaction/" + update, wanted=(200, 404)).get("mode") == "update", "it has applied the begin")
            listed = self.must(host, "GET", "/_transaction")
            self.assertEqual(sorted((one["mode"], one.get("host")) for one in listed["transactions"]), [("query", "a"), ("update", None)], listed)
            self.assertNotIn("node_failures", listed)
            self.assertEqual(len(self.must(host, "GET", "/_cat/transactions?format=json")), 2)
        self.must(c, "POST", "/_transaction/%s/_rollback" % update)
        lock = {"transaction": txn, "locks": [{"mode": "shared", "index": "w", "id": "1"}]}
        for path in ("/_lock", "/_unlock"):
            self.assertEqual(self.must(b, "POST", path, lock, (400,)), self.must(a, "POST", path, lock, (400,)))
        refused = self.must(c, "PUT", "/w/_doc/1?transaction=" + txn, {"v": 0}, (400,))
        self.assertEqual(refused["error"]["type"], "transaction_read_only_exception")
        self.assertEqual(self.must(c, "POST", "/_transaction/%s/_commit" % txn)["committed"], True)
        self.assertEqual(self.must(b, "GET", "/w/_doc/1?transaction=" + txn, wanted=(404,)), self.must(a, "GET", "/w/_doc/1?transaction=" + txn, wanted=(404,)))
        other = self.must(c, "POST", "/_transaction", {"mode": "query"})["transaction"]
        self.assertEqual(self.must(b, "POST", "/_transaction/%s/_rollback" % other), {"rolled_back": True})
        status, reply = b.ask("GET", "/w/_doc/1?transaction=" + txn, headers={"Tidelock-Forwarded": "x"})
        self.assertEqual(status, 400, reply)
        self.assertIn("Tidelock-Forwarded", reply["error"]["reason"])

    def test_dead_and_stopped_hosts(self):
        a, b, c = self.hosts
        self.fill(25)
        query = self.must(a, "POST", "/_transaction", {"mode": "query"})["transaction"]
        lost, held = (self.must(host, "POST", "/w/_search?scroll=10m", {"size": 10})["_scroll_id"] for host in (a, c))
        a.kill()

        def ended():
            status, reply = b.ask("POST", "/_search/scroll", {"scroll_id": lost, "scroll": "1m"})
            self.assertIn(status, (404, 503), reply)
            self.assertIn("cannot be reached" if status == 503 else "out of the cluster", str(reply))
            return status == 404
        until(ended, "it is an ended scroll")
        for method, path in (("GET", "/w/_doc/1?transaction=" + query), ("GET", "/_transaction/" + query), ("POST", "/_transaction/%s/_commit" % query)):
            reply = self.must(b, method, path, wanted=(404,))
            self.assertEqual(reply["error"]["type"], "transaction_missing_exception")
            self.assertIn("the host that had this query transaction is out of the cluster", reply["error"]["reason"])
        stop_process(c.process)
        try:  # the wait ends with the host's lease
            status, reply = b.ask("POST", "/_search/scroll", {"scroll_id": held, "scroll": "1m"})
            self.assertIn(status, (404, 503), reply)
        finally:
            c.process.send_signal(signal.SIGCONT)
        until(lambda: b.ask("POST", "/_search/scroll", {"scroll_id": held, "scroll": "1m"})[0] == 200, "it is back, and so is its scroll")

    def test_forwarded_request_is_not_forwarded_again(self):
        a, b, _ = self.hosts
        self.fill(25)
        scroll = self.must(a, "POST", "/w/_search?scroll=1m", {"size": 10})["_scroll_id"]
        status, reply = b.ask("POST", "/_search/scroll", {"scroll_id": scroll, "scroll": "1m"}, headers={"Tidelock-Forwarded": "x"})
        self.assertEqual(status, 400, reply)
        self.assertIn("Tidelock-Forwarded", reply["error"]["reason"])


if __name__ == "__main__":
    skips.main()
