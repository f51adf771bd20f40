#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads after writes (docs/cluster.md, "Time and reading"): on hosts of a cluster in each mode, and after a timestamp.

A host that is stopped with SIGSTOP has certainly not applied any write that is made meanwhile. A request that is sent to it waits in
its socket, and is handled when it continues, before or while it catches up. Skipped without etcd, except for a single host.
"""
import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from clock import Clock  # noqa: E402
import cluster_test  # noqa: E402
from server import ROOT, Server  # noqa: E402
from waiting import Waiting, stop_process, until  # noqa: E402

ROUNDS = 100
OUTLASTING = ("--host-lease", "10m")  # a host that has stopped for a while does not go out


def timestamp_of(host, method, path, body=None):
    """Returns: status and Tidelock-Timestamp of a request."""
    response = host.request(method, path, body)
    return response.status, int(response.getheader("Tidelock-Timestamp"))


class Alone(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.addClassCleanup(cls.server.close)

    def test_read_after_a_stable_timestamp_is_answered(self):
        _, ts = timestamp_of(self.server, "PUT", "/w/_doc/1", {"v": 1})
        for path in ("/w/_doc/1", "/w/_search", "/_timestamp"):
            response = self.server.request("GET", path, headers={"Tidelock-After": str(ts)})
            self.assertEqual(response.status, 200)
            self.assertGreaterEqual(int(response.getheader("Tidelock-Timestamp")), ts)

    def test_read_after_a_later_timestamp_waits_for_it(self):
        """No timestamp is used twice, so the next one is above that of the newest write."""
        _, ts = timestamp_of(self.server, "PUT", "/w/_doc/2", {"v": 1})
        replies = []

        def read():
            connection = self.server.connect()
            replies.append(self.server.request("GET", "/w/_doc/2?timeout=10m", headers={"Tidelock-After": str(ts + 1)}, connection=connection))
            connection.close()
        reader = threading.Thread(target=read)
        reader.start()
        self.server.must("PUT", "/w/_doc/2", {"v": 2})
        reader.join()
        self.assertEqual(replies[0].status, 200)
        self.assertGreater(int(replies[0].getheader("Tidelock-Timestamp")), ts)

    def test_unreached_timestamp_is_an_error(self):
        for method, path, body in (("GET", "/w/_doc/1?timeout=1ms", None), ("PUT", "/w/_doc/never?timeout=1ms", {"v": 1})):
            status, reply = self.server.ask(method, path, body, headers={"Tidelock-After": str(2 ** 53 - 1)})
            self.assertEqual((status, reply["error"]["type"]), (504, "timestamp_not_reached_exception"))
        self.assertEqual(self.server.ask("GET", "/w/_doc/never")[0], 404)
        status, reply = self.server.ask("GET", "/w/_doc/1?timestamp=%d" % (2 ** 53 - 1))
        self.assertEqual((status, reply["error"]["type"]), (400, "timestamp_in_future_exception"))

    def test_malformed_timestamp_is_refused(self):
        for text in ("", "x", "0", "-1", "1.5", str(2 ** 53), str(2 ** 64)):
            status, reply = self.server.ask("GET", "/_timestamp", headers={"Tidelock-After": text})
            self.assertEqual(status, 400, text)
            self.assertIn("[Tidelock-After] must be a timestamp", reply["error"]["reason"])

    def test_modes_of_a_cluster_are_refused(self):
        for method, path, body in (("PUT", "/w/_doc/3?distribute_timestamps=fast", {"v": 1}),
                                   ("GET", "/w/_doc/3?multi_version_concurrency_control=contemporaneous", None),
                                   ("PUT", "/_cluster/settings", {"persistent": {"tidelock.distribute_timestamps": "fast"}}),
                                   ("PUT", "/_cluster/settings", {"transient": {"tidelock": {"multi_version_concurrency_control": "nonblocking"}}})):
            status, reply = self.server.ask(method, path, body)
            self.assertEqual(status, 400, reply)
            self.assertIn("this server is in no cluster", reply["error"]["reason"])
        self.server.must("PUT", "/_cluster/settings", {"persistent": {"tidelock.distribute_timestamps": None}})


@unittest.skipUnless(cluster_test.shutil.which("etcd"), "there is no etcd")
class Reads(cluster_test.Hosts):
    def pair(self, *options):
        """Two hosts, each of which knows that the other one lives."""
        a, b = self.host("a", *options), self.host("b", *options)
        for host in (a, b):
            until(lambda host=host: all(self.listed(host)[name]["live"] for name in "ab"), "both hosts live")
        return a, b

    def set(self, host, name, value):
        self.must(host, "PUT", "/_cluster/settings", {"persistent": {"tidelock." + name: value}})

    def stopped_during(self, host, act):
        """Stops a host while `act` runs. Returns: what `act` returned."""
        stop_process(host.process)
        try:
            return act()
        finally:
            host.process.send_signal(signal.SIGCONT)

    def held_back(self, host, act):
        """Stops a host while act(attempt) runs, which returns a request whose answer is held back meanwhile: for 30 s, so it is all repeated if the
        machine needed longer. Returns: the request, which is answered now."""
        for attempt in itertools.count():
            held = self.stopped_during(host, lambda attempt=attempt: act(attempt))
            held.join()
            if held.status != 504:
                return held

    def test_strict_write_is_read_on_the_other_host(self):
        a, b = self.pair()
        for i in range(ROUNDS):
            writer, reader = (a, b) if i % 2 == 0 else (b, a)
            self.must(writer, "PUT", "/w/_doc/%d" % i, {"v": i})
            self.assertEqual(self.must(reader, "GET", "/w/_doc/%d" % i)["_source"], {"v": i})
        self.must(a, "POST", "/w/_update_by_query", {"query": {"match_all": {}}, "script": {"source": "ctx._source.v = -1"}})
        self.assertEqual(self.must(b, "GET", "/w/_count", {"query": {"term": {"v": -1}}})["count"], ROUNDS)
        transaction = self.must(a, "POST", "/_transaction", {"mode": "update"})["transaction"]
        self.must(b, "PUT", "/w/_doc/t?transaction=" + transaction, {"v": 1})
        self.must(a, "POST", "/_transaction/%s/_commit" % transaction)
        self.must(b, "GET", "/w/_doc/t")
        self.must(b, "PUT", "/other")
        self.must(a, "GET", "/other")

    def test_fast_write_is_read_after_its_timestamp(self):
        a, b = self.pair("--host-lease", "60s")
        _, ts = timestamp_of(a, "PUT", "/w/_doc/0", {"v": 0})
        for name, headers, query in (("header", True, ""), ("parameter", False, "?timestamp=%d"),
                                     ("newest", False, "?multi_version_concurrency_control=contemporaneous")):
            with self.subTest(name):
                path, replies = "/w/_doc/" + name, []

                def read(ts):
                    connection = b.connect()
                    replies.append(b.request("GET", path + (query % ts if "%d" in query else query), headers={"Tidelock-After": str(ts)} if headers else {},
                                             connection=connection))
                    connection.close()

                def write_and_read():
                    status, ts = timestamp_of(a, "PUT", path + "?distribute_timestamps=fast", {"v": 1})
                    self.assertEqual(status, 201)
                    reader = threading.Thread(target=read, args=(ts,))
                    reader.start()
                    return reader
                self.stopped_during(b, write_and_read).join()
                self.assertEqual(replies[0].status, 200, replies[0].body)

    def test_settings_are_defaults_of_the_parameters(self):
        a, b = self.pair()
        self.set(a, "multi_version_concurrency_control", "contemporaneous")
        self.set(a, "distribute_timestamps", "fast")
        for i in range(ROUNDS):
            self.must(a, "PUT", "/w/_doc/%d" % i, {"v": i})
            self.assertEqual(self.must(b, "GET", "/w/_doc/%d" % i)["_source"], {"v": i})
        self.set(a, "multi_version_concurrency_control", None)
        for i in range(ROUNDS):
            self.must(a, "PUT", "/w/_doc/again-%d?distribute_timestamps=cluster" % i, {"v": i})
            self.must(b, "GET", "/w/_doc/again-%d" % i)

    def test_stopped_host_delays_strict_until_it_is_out(self):
        a, b = self.pair()
        self.must(a, "PUT", "/w/_doc/0", {"v": 0})

        def write():
            self.must(a, "PUT", "/w/_doc/fast?distribute_timestamps=fast", {"v": 1})
            strict = Waiting(a, "PUT", "/w/_doc/strict", {"v": 1})
            strict.join()
            self.assertEqual(strict.status, 201, strict.reply)
            self.assertFalse(self.listed(a)["b"]["live"])
        self.stopped_during(b, write)
        while True:
            status, reply = b.ask("GET", "/w/_doc/strict")
            self.assertIn(status, (200, 503), reply)
            if status == 200:
                break
        until(lambda: self.listed(a)["b"]["live"], "the host is back")
        self.must(a, "PUT", "/w/_doc/strict", {"v": 2})
        self.assertEqual(self.must(b, "GET", "/w/_doc/strict")["_source"], {"v": 2})

    def test_live_host_that_lags_makes_health_yellow(self):
        a, b = self.pair("--host-lease", "60s")

        def health():
            reply = self.must(a, "GET", "/_cluster/health")
            self.assertEqual(reply["number_of_nodes"], 2)
            return reply["status"]
        until(lambda: health() == "green", "both hosts are within a second")

        def lag():
            until(lambda: health() == "yellow", "it lags by more than a second")
            listed = self.listed(a)["b"]
            self.assertTrue(listed["live"])
            self.assertGreater(listed["lag_ms"], 1000)
        self.stopped_during(b, lag)
        until(lambda: health() == "green", "it has caught up")

    def test_query_transaction_begins_in_the_mode_of_the_setting(self):
        """Its host lags by some thousand documents."""
        a, b = self.pair("--host-lease", "60s")
        self.set(a, "multi_version_concurrency_control", "contemporaneous")
        self.set(a, "distribute_timestamps", "fast")

        def write():
            self.must(a, "POST", "/other/_bulk", '{"index": {}}\n{"v": 0}\n' * 3000)
            self.must(a, "PUT", "/w/_doc/1", {"v": 1})
        self.stopped_during(b, write)
        transaction = self.must(b, "POST", "/_transaction", {"mode": "query"})["transaction"]
        self.assertEqual(self.must(b, "GET", "/w/_doc/1?transaction=" + transaction)["_source"], {"v": 1})

    def test_strict_lock_is_answered_when_all_hosts_have_it(self):
        """Its holder reads on any host, and finds what earlier holders wrote."""
        a, b = self.pair(*OUTLASTING)
        session = self.must(a, "POST", "/_session", {"ttl": "10m"})["session"]

        def lock(attempt):
            waiting = Waiting(a, "POST", "/_lock", {"session": session, "locks": [{"mode": "exclusive", "index": "w", "id": str(attempt)}]})
            until(lambda: len(self.must(a, "GET", "/_lock")["locks"]) > attempt, "the lock is granted")
            for i in range(ROUNDS):
                self.must(a, "PUT", "/w/_doc/other-%d?distribute_timestamps=fast" % i, {"v": 1})
            self.assertIn(waiting.status, (None, 504), waiting.reply)
            return waiting
        waiting = self.held_back(b, lock)
        self.assertEqual(waiting.status, 200, waiting.reply)

    def test_group_bounds_strict(self):
        """While a host of another group has stopped and is not out yet, strict writes are answered, and those of `cluster` are not."""
        a = self.host("a", *OUTLASTING)
        b = self.host("b", *OUTLASTING, "--group", "reports")
        until(lambda: all(self.listed(a)[name]["live"] for name in "ab"), "both hosts live")
        self.must(a, "PUT", "/w/_doc/0", {"v": 1})

        def write(attempt):
            wide = Waiting(a, "PUT", "/w/_doc/cluster-%d?distribute_timestamps=cluster" % attempt, {"v": 1})
            until(lambda: a.ask("GET", "/w/_doc/cluster-%d" % attempt)[0] == 200, "the write is committed")
            for i in range(ROUNDS):
                self.must(a, "PUT", "/w/_doc/%d" % i, {"v": 1})
            self.assertIn(wide.status, (None, 504), wide.reply)
            return wide
        wide = self.held_back(b, write)
        self.assertEqual(wide.status, 201, wide.reply)

    def test_server_that_stops_answers_what_it_held_back(self):
        """In time for its --grace, though the other host does not answer and is not out."""
        a, b = self.pair("--host-lease", "60s")
        self.must(a, "PUT", "/w/_doc/0", {"v": 1})

        def write_and_stop():
            held = Waiting(a, "PUT", "/w/_doc/1", {"v": 1})
            until(lambda: a.ask("GET", "/w/_doc/1")[0] == 200, "the write is committed")
            self.assertEqual(a.stop(), 0)
            return held
        held = self.stopped_during(b, write_and_stop)
        held.join()
        self.assertEqual(held.status, 504, held.reply)
        self.assertEqual(held.reply["error"]["type"], "timestamp_not_reached_exception")
        self.assertNotIn("some requests did not finish in time", a.errors())
        until(lambda: b.ask("GET", "/w/_doc/1")[0] == 200, "it was done")

    def test_only_current_reads_count_as_misses(self):
        """Reads wait for etcd after a document was not found, and not after one was not found at a timestamp, or something else than a document."""
        a, _ = self.pair("--host-lease", "60s")
        self.set(a, "distribute_timestamps", "fast")
        _, ts = timestamp_of(a, "PUT", "/w/_doc/0", {"v": 0})
        stop_process(self.etcd.process)
        try:
            for path in ("/w/_doc/none?timestamp=%d" % ts, "/_session/none", "/_search/scroll/none"):
                status, reply = a.ask("GET", path)
                self.assertIn(status, (400, 404), reply)
                self.must(a, "GET", "/w/_doc/0?timeout=0s")
            self.must(a, "GET", "/w/_doc/none", wanted=(404,))
            self.must(a, "GET", "/w/_doc/0?timeout=0s", wanted=(504,))
        finally:
            self.etcd.process.send_signal(signal.SIGCONT)

    def test_reads_at_a_timestamp_outlast_the_lease(self):
        """A host that cannot reach etcd answers no read of the present state when its lease is over, and those of a state that is final."""
        clock = Clock()
        self.addCleanup(clock.close)
        a = self.host("a", "--host-lease", "10m", environment=clock.environment())
        _, ts = timestamp_of(a, "PUT", "/w/_doc/1", {"v": 1})
        query = self.must(a, "POST", "/_transaction", {"mode": "query", "timeout": "1h"})["transaction"]
        pit = self.must(a, "POST", "/w/_pit?keep_alive=1h")["id"]
        scroll = self.must(a, "POST", "/w/_search?scroll=1h&size=1")["_scroll_id"]
        self.must(a, "PUT", "/w/_doc/1", {"v": 2})
        present = (("GET", "/w/_doc/1", None), ("POST", "/w/_search", {}), ("POST", "/w/_count", {}), ("POST", "/_mget", {"docs": [{"_index": "w", "_id": "1"}]}))
        stop_process(self.etcd.process)
        try:
            clock.jump(900)
            until(lambda: a.ask("GET", "/w/_doc/1")[0] == 503, "its lease is over")
            for method, path, body in present:
                self.assertEqual(self.must(a, method, path, body, wanted=(503,))["error"]["type"], "log_unavailable_exception")
                self.must(a, method, "%s?timestamp=%d" % (path, ts), body)
            for path in ("/w/_doc/1?timestamp=%d" % ts, "/w/_doc/1?transaction=" + query):
                self.assertEqual(self.must(a, "GET", path)["_source"], {"v": 1})
            self.assertEqual([hit["_source"] for hit in self.must(a, "POST", "/_search", {"pit": {"id": pit}})["hits"]["hits"]], [{"v": 1}])
            self.must(a, "POST", "/_search/scroll", {"scroll_id": scroll})
            self.must(a, "GET", "/w/_doc/none?timestamp=%d" % ts, wanted=(404,))
            late = self.must(a, "GET", "/w/_doc/1?timeout=1ms&timestamp=%d" % (2 ** 53 - 1), wanted=(504,))
            self.assertEqual(late["error"]["type"], "timestamp_not_reached_exception")
        finally:
            self.etcd.process.send_signal(signal.SIGCONT)
        until(lambda: a.ask("GET", "/w/_doc/1")[0] == 200, "it is back")

    def test_ten_cycles(self):
        a, b = self.pair()
        one = (r"-+ START OF INSERT / READ CYCLE \((\d+)\) -+\n"
               r"First host timestamp before document is inserted: \t+\d+\n"
               r"First host timestamp after document is inserted: \t+\d+\n"
               r"Second host timestamp before document is read: \t+\d+\n"
               r"(WARNING: Immediate read failed; performing an immediate retry\n"
               r"Second host timestamp for read retry: \t+\d+\n"
               r"Result Sequence below:\n\{\"ok\": true\}\n)?"
               r"-+ END OF INSERT / READ CYCLE \(\1\) -+\n")
        for mode in ("fast", "strict"):
            self.set(a, "distribute_timestamps", mode)
            run = subprocess.run([os.path.join(ROOT, "tools", "ten-cycles"), a.url, b.url, "--cycles", str(ROUNDS), "--index", "cycles"], capture_output=True, text=True,
                                 check=False)
            self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout[-1000:])
            self.assertTrue(re.fullmatch("(?:" + one.replace(r"\((\d+)\)", r"\(\d+\)").replace(r"\(\1\)", r"\(\d+\)") + ")+", run.stdout), run.stdout[-1000:])
            self.assertEqual(run.stdout.count("START OF"), ROUNDS)
            if mode == "strict":
                self.assertNotIn("WARNING", run.stdout)

    def test_read_after_a_miss_waits(self):
        """One retry is enough for any lag of the host: here, some thousand documents."""
        a, b = self.pair("--host-lease", "60s")
        self.set(a, "distribute_timestamps", "fast")
        many = '{"index": {}}\n{"v": 0}\n' * 3000
        for i, path in enumerate(("/w/_doc/%d", "/w/_source/%d", "/w/_search?q=_id:%d")):
            self.must(a, "PUT", "/w/_doc/x?distribute_timestamps=strict", {"v": 0})

            def write():
                self.must(a, "POST", "/other/_bulk", many)
                self.must(a, "PUT", "/w/_doc/%d" % i, {"v": i})
            self.stopped_during(b, write)
            replies = [b.request("GET", path % i) for _ in range(2)]
            found = [reply.status == 200 and b'"hits":[]' not in reply.body for reply in replies]
            self.assertTrue(found[1], replies[1].body)


if __name__ == "__main__":
    unittest.main()
