#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Repeated writes with `Tidelock-Request: ID` (docs/http-api.md): executed once, on one host across kill -9, and on any host of a cluster."""
import http.client
import json
import os
import shutil
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import cluster_test  # noqa: E402
from server import Server  # noqa: E402
from waiting import until  # noqa: E402

COUNTING = {"script": {"source": "ctx._source.n += 1"}, "upsert": {"n": 1}}


def lines(*objects):
    return "".join(json.dumps(line) + "\n" for line in objects).encode()


class Case(unittest.TestCase):
    def send(self, host, name, method, path, body=None):
        """Returns: status and reply of a request with an ID."""
        headers = {"Tidelock-Request": name, "Content-Type": "application/x-ndjson" if isinstance(body, bytes) else "application/json"}
        response = host.request(method, path, body, headers)
        reply = json.loads(response.body)
        reply.pop("took", None)
        return response.status, reply


class OneHost(Case):
    def setUp(self):
        self.server = Server.of_class(self)

    def assert_refused(self, answer, *words):
        status, reply = answer
        self.assertEqual(status, 400, reply)
        for word in words:
            self.assertIn(word, reply["error"]["reason"])

    def requests(self):
        """Writes of each kind, each of which has another outcome when it is executed twice."""
        return [("POST", "/w/_update/1?_source=true", COUNTING), ("POST", "/w/_doc", {"v": 1}), ("PUT", "/w/_create/2", {"v": 1}),
                ("PUT", "/w/_doc/3", {"v": 1}), ("DELETE", "/w/_doc/4", None),
                ("POST", "/_bulk", lines({"index": {"_index": "w", "_id": "5"}}, {"v": 1}, {"create": {"_index": "w"}}, {"v": 2},
                                         {"create": {"_index": "w", "_id": "6"}}, {"v": 3})),
                ("POST", "/_bulk?atomic=true", lines({"index": {"_index": "w", "_id": "7"}}, {"v": 1}, {"delete": {"_index": "w", "_id": "5"}}))]

    def test_repetition_has_first_reply_after_kill(self):
        self.server.must("PUT", "/w/_doc/4", {})
        first = [self.send(self.server, "r%d" % i, *each) for i, each in enumerate(self.requests())]
        for status, reply in first:
            self.assertIn(status, (200, 201), reply)
        count = self.server.must("GET", "/w/_count")
        for _ in range(2):
            self.assertEqual([self.send(self.server, "r%d" % i, *each) for i, each in enumerate(self.requests())], first)
            self.server.kill()
            self.server.start()
        self.assertEqual(self.server.must("GET", "/w/_count"), count)
        self.assertEqual(self.server.must("GET", "/w/_doc/1")["_source"], {"n": 1})
        self.assertEqual(self.server.must("GET", "/w/_doc/3")["_version"], 1)

    def test_bulk_in_pieces(self):
        """A bulk of several commands; some of its items fail, and fail when it is repeated."""
        self.server.must("PUT", "/w/_create/7", {})
        body = self.creates(5000)
        first = self.send(self.server, "bulk", "POST", "/_bulk", body)
        self.assertEqual(self.statuses(first).count(409), 1)
        self.server.must("DELETE", "/w/_doc/7")
        self.assertEqual(self.send(self.server, "bulk", "POST", "/_bulk", body), first)
        self.assertEqual(self.server.ask("GET", "/w/_doc/7")[0], 404)

    def creates(self, count):
        """Returns: the body of a bulk that creates so many documents."""
        return lines(*(line for i in range(count) for line in ({"create": {"_index": "w", "_id": str(i)}}, {"v": i})))

    def statuses(self, answer):
        return [item["create"]["status"] for item in answer[1]["items"]]

    def test_bulk_whose_first_piece_has_no_effect(self):
        """All items of the first command fail, and do so when the bulk is repeated, though they would succeed; also after the end of its session."""
        self.assertEqual(set(self.statuses(self.send(self.server, "made-first", "POST", "/_bulk", self.creates(2000)))), {201})
        session = self.server.must("POST", "/_session", {"ttl": "10m"})["session"]
        path, body = "/_bulk?session=" + session, self.creates(3000)
        first = self.send(self.server, "first", "POST", path, body)
        self.assertEqual(self.statuses(first), [409] * 2000 + [201] * 1000)
        self.server.must("DELETE", "/w/_doc/7")
        self.server.must("DELETE", "/_session/" + session)
        for _ in range(2):
            self.assertEqual(self.send(self.server, "first", "POST", path, body), first)
            self.server.kill()
            self.server.start()
        self.assertEqual(self.server.ask("GET", "/w/_doc/7")[0], 404)

    def test_bulk_in_pieces_that_has_no_effect(self):
        """It is executed when it is sent again, and has the outcome of that time then."""
        body = self.creates(2500)
        self.assertEqual(set(self.statuses(self.send(self.server, "made-whole", "POST", "/_bulk", body))), {201})
        self.assertEqual(set(self.statuses(self.send(self.server, "whole", "POST", "/_bulk", body))), {409})
        for number in 7, 2400:
            self.server.must("DELETE", "/w/_doc/%d" % number)
        second = self.send(self.server, "whole", "POST", "/_bulk", body)
        self.assertEqual([i for i, status in enumerate(self.statuses(second)) if status == 201], [7, 2400])
        self.server.must("DELETE", "/w/_doc/7")
        self.assertEqual(self.send(self.server, "whole", "POST", "/_bulk", body), second)
        self.assertEqual(self.server.ask("GET", "/w/_doc/7")[0], 404)

    def test_bulk_that_is_divided_by_a_long_script(self):
        """Items postponed for a long script, which failed, run once, also if the script is short when the bulk is repeated."""
        self.server.must("PUT", "/w/_doc/1", {"endless": True})
        self.server.must("PUT", "/w/_doc/2", {"n": 0})
        body = lines({"update": {"_index": "w", "_id": "1"}}, {"script": {"source": "while (ctx._source.endless) { }"}},
                     {"update": {"_index": "w", "_id": "2"}}, {"script": {"source": "ctx._source.n += 1"}})
        first = self.send(self.server, "divided", "POST", "/_bulk", body)
        self.assertEqual([item["update"]["status"] for item in first[1]["items"]], [400, 200])
        self.server.must("PUT", "/w/_doc/1", {"endless": False})
        self.assertEqual(self.send(self.server, "divided", "POST", "/_bulk", body), first)
        self.assertEqual(self.server.must("GET", "/w/_doc/2")["_source"], {"n": 1})

    def test_bulk_with_long_scripts(self):
        """More than 50,000 steps, which run elsewhere in other requests, and a million, which is the limit for an item of a named one."""
        script = "for (int i = 0; i < params.n; i++) { ctx._source.i = i } if (ctx._source.n > 0) { ctx._source.missing.x = 1 } ctx._source.n += 1"
        for path, turns, expected in (("/_bulk", 50000, (200, 200, 200)), ("/_bulk", 300000, (200, 400, 200)), ("/_bulk?atomic=true", 300000, (200, 200, 200))):
            for i in range(3):
                self.server.must("PUT", "/w/_doc/%d" % i, {"n": 0})
            body = lines(*(line for i, n in enumerate((1, turns, 1)) for line in (
                {"update": {"_index": "w", "_id": str(i)}}, {"script": {"source": script, "params": {"n": n}}})))
            name = "long-%s-%d" % (path, turns)
            first = self.send(self.server, name, "POST", path, body)
            self.assertEqual(tuple(item["update"]["status"] for item in first[1]["items"]), expected, first)
            if 400 in expected:
                self.assertIn("[atomic=true]", first[1]["items"][1]["update"]["error"]["reason"])
            self.server.must("PUT", "/w/_doc/1", {"n": 1})
            self.assertEqual(self.send(self.server, name, "POST", path, body), first)
            self.assertEqual(self.server.must("GET", "/w/_doc/0")["_source"], {"n": 1, "i": 0})

    def send_until_killed(self, name, body, condition):
        """Sends a named bulk, and kills the server as soon as the condition holds. The reply is lost, unless the bulk was done before."""
        def send():
            connection = self.server.connect()
            try:
                self.server.request("POST", "/_bulk", body, {"Tidelock-Request": name, "Content-Type": "application/x-ndjson"}, connection)
            except (OSError, http.client.HTTPException):
                pass
            finally:
                connection.close()
        thread = threading.Thread(target=send)
        thread.start()
        until(condition, "an item is executed")
        self.server.kill()
        thread.join()
        self.server.start()

    def test_bulk_that_is_divided_by_the_documents_that_it_replaces(self):
        """Each item removes 3,000 entries, so that a command has a part of them. Kills between any two commands."""
        text = " ".join("w%d" % i for i in range(3000))
        count = 40
        for i in range(count):
            self.server.must("PUT", "/w/_doc/%d" % i, {"text": text, "n": 0})
        update = {"script": {"source": "ctx._source.n += 1; ctx._source.text = 'x'"}}
        body = lines(*(line for i in range(count) for line in ({"update": {"_index": "w", "_id": str(i)}}, update)))
        for i in 0, 15, 30:
            self.send_until_killed("by-work", body, lambda i=i: self.server.must("GET", "/w/_doc/%d" % i)["_source"]["n"] == 1)
        first = self.send(self.server, "by-work", "POST", "/_bulk", body)
        self.assertEqual([item["update"]["status"] for item in first[1]["items"]], [200] * count)
        self.assertEqual(self.send(self.server, "by-work", "POST", "/_bulk", body), first)
        self.assertEqual({self.server.must("GET", "/w/_doc/%d" % i)["_source"]["n"] for i in range(count)}, {1})

    def test_bulk_whose_refused_items_differ(self):
        """An item that was refused before it could run, and is accepted later, is not answered as the one that ran."""
        self.server.must("PUT", "/b", {"settings": {"number_of_replicas": 0}})
        body = lines({"index": {"_index": "a", "_id": "1"}}, {"v": 1}, {"index": {"_index": "b", "_id": "2"}}, {"v": 2})
        first = self.send(self.server, "refused", "POST", "/_bulk?wait_for_active_shards=all", body)
        self.assertEqual([item["index"]["status"] for item in first[1]["items"]], [503, 201])
        self.server.must("PUT", "/a", {"settings": {"number_of_replicas": 0}})
        self.server.must("PUT", "/b/_settings", {"number_of_replicas": 1})
        self.assert_refused(self.send(self.server, "refused", "POST", "/_bulk?wait_for_active_shards=all", body), "an ID of its own")

    def test_refusals_name_the_remedy(self):
        self.send(self.server, "r", "PUT", "/w/_doc/1", {"v": 1})
        self.assert_refused(self.send(self.server, "r", "PUT", "/w/_doc/1", {"v": 2}), "[Tidelock-Request: r]", "an ID of its own")
        self.assert_refused(self.send(self.server, "r", "PUT", "/w/_doc/2", {"v": 1}), "an ID of its own")
        self.assert_refused(self.send(self.server, "r", "GET", "/w/_doc/1"), "leave the header out")
        self.assert_refused(self.send(self.server, "r", "POST", "/w/_search", {}), "leave the header out")
        self.assert_refused(self.send(self.server, "x" * 129, "PUT", "/w/_doc/1", {"v": 2}), "1 to 128")
        self.assert_refused(self.send(self.server, "a b", "PUT", "/w/_doc/1", {"v": 2}), "without spaces")
        transaction = self.server.must("POST", "/_transaction", {})["transaction"]
        self.assert_refused(self.send(self.server, "t", "PUT", "/w/_doc/1?transaction=" + transaction, {"v": 2}), "a commit may be repeated")
        self.assertEqual(self.server.must("GET", "/w/_doc/1")["_source"], {"v": 1})


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class Hosts(Case):
    def test_any_host_has_the_outcome(self):
        """The host that executed the request is killed; the repetition goes to another, and to the first one when it is back."""
        etcd = cluster_test.Etcd()
        self.addCleanup(etcd.close)
        hosts = []
        for name in "ab":
            host = Server("--cluster", etcd.url + "/c", "--node-name", name, *cluster_test.LEASE, port=cluster_test.free_port())
            self.addCleanup(host.close)
            hosts.append(host.start())
        first = self.send(hosts[0], "r", "POST", "/w/_update/1?_source=true&distribute_timestamps=fast", COUNTING)
        self.assertEqual(first[0], 201)
        hosts[0].kill()
        self.assertEqual(self.send(hosts[1], "r", "POST", "/w/_update/1?_source=true&distribute_timestamps=fast", COUNTING), first)
        hosts[1].must("POST", "/w/_update/1", COUNTING)
        hosts[0].start()
        for host in hosts:
            self.assertEqual(self.send(host, "r", "POST", "/w/_update/1?_source=true&distribute_timestamps=fast", COUNTING), first)
            self.assertEqual(host.must("GET", "/w/_doc/1")["_source"], {"n": 2})


if __name__ == "__main__":
    unittest.main()
