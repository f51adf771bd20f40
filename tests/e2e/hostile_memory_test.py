#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that try to make the server hold more memory than permitted.

One server runs under --memory 64m. Each case requests far more than that, in a way by which servers run out of memory.
Meanwhile another client, a separate process, reads GET / and puts a document: each of its requests must succeed, if necessary
when it is repeated, and with TIDELOCK_TEST_LONG within half a second (tests/lib/neighbour.py). Afterwards the peak memory of the
process is within the budget and its other needs, no other client's data has changed, and the server is as usable as before.
"""
import concurrent.futures
import json
import os
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import PROGRAM, Server  # noqa: E402
from waiting import Waiting, until  # noqa: E402
from neighbour import MEASURING, Neighbour  # noqa: E402

MEGABYTE = 1 << 20
BUDGET = 64 * MEGABYTE
# Memory outside of the budget: the store's caches and memory tables, code, stacks, connections, and
# free memory that the allocator retains. With sixteen threads that allocate and free, this may be
# as much as the budget again.
UNBUDGETED = 160 * MEGABYTE
RETAINED = BUDGET // 4  # more than a server has in use that is idle; a buffer of a large request that is kept would exceed it
PATIENCE = 10.0  # seconds that an answer to the bystander may take, with TIDELOCK_TEST_LONG


def sanitized():
    with open(PROGRAM, "rb") as program:
        return b"__tsan_init" in (bytes_ := program.read()) or b"__asan_init" in bytes_


SANITIZED = sanitized()
SLOWNESS = 10 if SANITIZED else 1
SANITIZER_TIMES = 8 if SANITIZED else 1  # shadow memory and freed memory that is held back: enough to end a test whose limit is broken


class Case(unittest.TestCase):
    besides = UNBUDGETED

    @classmethod
    def setUpClass(cls):
        cls.server = Server("--memory", "64m", "--cache", "8m", "--write-buffer", "16m").start()
        cls.server.must("PUT", "/others/_doc/kept", {"a": [1, 2, 3]})

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def status(self, name):
        with open("/proc/%d/status" % self.server.process.pid, encoding="ascii") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith(name + ":"))

    def setUp(self):
        self.sockets = []
        with open("/proc/%d/clear_refs" % self.server.process.pid, "w", encoding="ascii") as refs:
            refs.write("5")  # the peak is counted from here on
        # With many small requests in flight the reserve may be in use: then the neighbour is
        # refused and repeats its request.
        self.bystander = Neighbour(self.server, "/others/_doc/put", SLOWNESS, again=True)

    def tearDown(self):
        self.bystander.stop()
        for one in self.sockets:
            one.close()
        print(self.bystander.report(), flush=True)
        self.bystander.judge(PATIENCE * SLOWNESS)
        if not SANITIZED:
            peak = self.status("VmHWM")
            print("%s: %d MB at most, of %d and %d" % (self.id(), peak >> 20, BUDGET >> 20, self.besides >> 20), flush=True)
            self.assertLess(peak, BUDGET + self.besides, "it held more than it may")
        self.assertEqual(self.in_the_end("GET", "/others/_doc/kept")["_source"], {"a": [1, 2, 3]})
        self.server.end_owners()
        self.server.ask("DELETE", "/_search/scroll/_all")
        until(lambda: self.retained() < RETAINED, "an idle server retains less than %d MB of the budget" % (RETAINED >> 20))

    def retained(self):
        """Returns: the bytes of the budget in use, but for compiled scripts, which are kept on purpose."""
        breakers = self.breakers()
        return breakers["parent"]["estimated_size_in_bytes"] - breakers["scripts"]["estimated_size_in_bytes"]

    def in_the_end(self, method, path, body=None):
        """The server works off the requests that were let go before their memory is free: until then it may answer 429. Returns: the JSON."""
        status, reply = self.server.ask(method, path, body)
        while status == 429:
            time.sleep(0.02)
            status, reply = self.server.ask(method, path, body)
        self.assertIn(status, (200, 201), str(reply)[:500])
        return reply

    def breakers(self):
        return next(iter(self.server.must("GET", "/_nodes/stats/breaker")["nodes"].values()))["breakers"]

    def refused(self, reply, says=None):
        """Asserts that a reply is the breaker's. Returns: the error."""
        status, body = reply
        self.assertEqual(status, 429, str(body)[:500])
        error = body["error"]
        self.assertEqual(error["type"], "circuit_breaking_exception", error)
        self.assertEqual(error["root_cause"][0]["type"], "circuit_breaking_exception")
        self.assertGreater(error["bytes_wanted"], error["bytes_limit"])
        self.assertIn(error["durability"], ("TRANSIENT", "PERMANENT"))
        if says:
            self.assertIn(says, error["reason"])
        return error

    def ask_many(self, requests, threads=8):
        """Asks on several connections at once. Returns: the replies as (status, first bytes)."""
        local = threading.local()
        connections = []

        def one(request):
            if not hasattr(local, "connection"):
                local.connection = self.server.connect()
                connections.append(local.connection)
            response = self.server.request(*request, connection=local.connection)
            return response.status, response.body[:1000]

        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(one, requests))
        for connection in connections:
            connection.close()
        return found


class Bodies(Case):
    """What comes in."""

    def test_dates_in_names(self):
        """Each of 320,000 dates once took 800 bytes, which no check saw."""
        name = "<" + "{now}" * 3200 + ">"
        status, reply = self.server.ask("POST", "/_mget", {"docs": [{"_index": name, "_id": "1"}] * 100})
        self.assertIn(status, (200, 429), str(reply)[:500])

    def test_numbers(self):
        """A body of numbers takes twelve times its length as a tree."""
        body = '{"a":[' + "1," * (10 * MEGABYTE) + "1]}"
        self.refused(self.server.ask("PUT", "/fs/_doc/numbers", body), "PUT /fs/_doc/numbers")
        self.refused(self.server.ask("POST", "/fs/_search", '{"query":{"terms":{"a":[' + "1," * (10 * MEGABYTE) + "1]}}}"))
        self.refused(self.server.ask("POST", "/_bulk", '{"index":{"_index":"fs"}}\n' + body + "\n"))
        self.assertEqual(self.server.ask("GET", "/fs/_doc/numbers")[0], 404)

    def test_many_requests_at_once(self):
        body = b'{"a":["' + b"x" * (12 * MEGABYTE) + b'"]}'
        found = self.ask_many([("POST", "/absent/_validate/query", body)] * 24, 24)
        self.assertEqual({status for status, _ in found} - {400, 429, 404}, set(), found[:3])

    def test_errors_of_many_items(self):
        """Each item has an error of its own, in one reply."""
        for path, body in (("/_mget", '{"docs":[' + "{}," * 60000 + "{}]}"),
                           ("/_bulk", '{"index":{}}\n{}\n' * 60000)):
            status, reply = self.server.ask("POST", path, body)
            self.assertIn(status, (400, 429), reply)
            self.assertLess(len(json.dumps(reply)), 30 * MEGABYTE)

    def test_many_names(self):
        names = ["name-%d" % i for i in range(60000)]
        status, reply = self.server.ask("POST", "/_reindex", {"source": {"index": names}, "dest": {"index": "x"}})
        self.assertIn(status, (400, 404, 429), reply)
        actions = [{"remove": {"indices": names, "aliases": names[:10]}}]
        status, reply = self.server.ask("POST", "/_aliases", {"actions": actions})
        self.assertIn(status, (400, 404, 429), reply)


class Replies(Case):
    """What goes out."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for i in range(8):
            cls.server.must("PUT", "/big/_doc/%d" % i, {"text": "x" * MEGABYTE})

    def test_mget(self):
        error = self.refused(self.server.ask("POST", "/big/_mget", {"ids": ["1"] * 20000}), "_mget")
        while error["durability"] == "TRANSIENT":  # while others hold memory, their share is the limit that it meets first
            error = self.refused(self.server.ask("POST", "/big/_mget", {"ids": ["1"] * 20000}), "_mget")
        self.assertEqual(error["durability"], "PERMANENT", "no use in trying again")

    def test_search(self):
        multi = "".join('{"index":"big"}\n{"size":8}\n' for _ in range(100))
        self.refused(self.server.ask("POST", "/_msearch", multi), "_msearch")

    def test_pretty(self):
        self.server.must("PUT", "/deep/_doc/1", '{"a":' + "[" * 900 + ",".join(["1"] * 60000) + "]" * 900 + "}")
        self.refused(self.server.ask("GET", "/deep/_doc/1?pretty"), "GET /deep/_doc/1")
        self.assertEqual(self.server.ask("GET", "/deep/_doc/1?filter_path=_id")[1], {"_id": "1"})

    def test_bulk_results(self):
        """Items of some bytes with results of 60 KB and more: those that would make the reply too large are not begun."""
        self.server.must("PUT", "/some/_doc/1", {"a": 1})
        self.server.must("PUT", "/_scripts/long", {"script": {"lang": "painless", "source": "ctx._source.b = ['%s'].get(1 + ctx._source.a)" % ("y" * 60000)}})
        for index, item in (("some", '{"update":{"_id":"1"}}\n{"script":{"id":"long"}}\n'),
                            ("big", '{"update":{"_id":"1","_source":true}}\n{"doc":{"a":1}}\n')):
            response = self.server.request("POST", "/%s/_bulk" % index, (item * 5000).encode(), {"Content-Type": "application/x-ndjson"})
            self.assertEqual(response.status, 200, response.body[:500])
            self.assertLess(len(response.body), BUDGET, index)
            items = [entry for item in json.loads(response.body)["items"] for entry in item.values()]
            self.assertEqual(len(items), 5000)
            refused = [entry["error"]["type"] for entry in items if entry["status"] == 429]
            self.assertGreater(len(refused), 2000, index)
            self.assertEqual(set(refused), {"circuit_breaking_exception"})

    def bulk(self, path, item, count, **headers):
        return self.server.request("POST", path, (item * count).encode(), {"Content-Type": "application/x-ndjson", **headers})

    def test_bulk_results_of_atomic(self):
        """All of them or none: what cannot be held is refused as a whole."""
        self.server.must("PUT", "/some/_doc/1", {"a": 1})
        self.server.must("PUT", "/_scripts/long", {"script": {"lang": "painless", "source": "ctx._source.b = ['%s'].get(1 + ctx._source.a)" % ("y" * 60000)}})
        before = self.in_the_end("GET", "/big/_doc/1")["_version"]
        for index, item in (("big", '{"update":{"_id":"1","_source":true}}\n{"doc":{"a":%d}}\n' % before),
                            ("some", '{"update":{"_id":"1"}}\n{"script":{"id":"long"}}\n')):
            response = self.bulk("/%s/_bulk?atomic=true" % index, item, 800)
            self.assertEqual(response.status, 429, response.body[:500])
            self.assertEqual(json.loads(response.body)["error"]["type"], "limit_exceeded_exception")
            self.assertLess(len(response.body), 10000)
        self.assertEqual(self.in_the_end("GET", "/big/_doc/1")["_version"], before)
        self.in_the_end("POST", "/big/_bulk?atomic=true", '{"update":{"_id":"1","_source":true}}\n{"doc":{"a":0}}\n' * 10)

    def test_bulk_results_in_transaction(self):
        """Items after those whose results are as large as one command's may be are run by the next one, if there is memory."""
        self.server.must("PUT", "/some/_doc/1", {"a": 1})
        self.server.must("PUT", "/_scripts/long", {"script": {"lang": "painless", "source": "ctx._source.b = ['%s'].get(1 + ctx._source.a)" % ("y" * 60000)}})
        for index, item in (("big", '{"update":{"_id":"1","_source":true}}\n{"doc":{"a":1}}\n'),
                            ("some", '{"update":{"_id":"1"}}\n{"script":{"id":"long"}}\n')):
            transaction = self.server.must("POST", "/_transaction")["transaction"]
            response = self.bulk("/%s/_bulk" % index, item, 800, **{"Tidelock-Transaction": transaction})
            self.assertEqual(response.status, 200, response.body[:500])
            self.assertLess(len(response.body), BUDGET, index)
            refused = [item for item in json.loads(response.body)["items"] if item["update"]["status"] == 429]
            self.assertGreater(len(refused), 300, index)
            self.assertEqual({item["update"]["error"]["type"] for item in refused}, {"circuit_breaking_exception"})
            self.server.must("POST", "/_transaction/%s/_rollback" % transaction)

    def test_explained_queries(self):
        """A path of 16,000 levels, many times in a query, which is explained."""
        self.server.must("PUT", "/paths", {
            "settings": {"analysis": {"analyzer": {"p": {"tokenizer": "path_hierarchy"}}}},
            "mappings": {"properties": {"path": {"type": "text", "analyzer": "p"}}}})
        query = {"bool": {"should": [{"match": {"path": "/1" + "/d" * 16000}}] * 50}}
        self.refused(self.server.ask("POST", "/paths/_validate/query?explain&rewrite=true", {"query": query}), "_validate/query")
        actions = [{"add": {"index": "paths", "alias": "filtered", "filter": query}}]
        self.refused(self.server.ask("POST", "/_aliases", {"actions": actions}), "_aliases")
        self.assertLess(self.status("VmHWM"), (BUDGET + UNBUDGETED) * SANITIZER_TIMES, "it held more than it may")

    def test_clients_that_do_not_read(self):
        request = b"POST /big/_mget HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
        body = json.dumps({"ids": ["%d" % i for i in range(8)]}).encode()  # more than a socket takes

        def one_more():
            one = socket.create_connection(("127.0.0.1", self.server.port))
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.sendall(request % (len(body), body))
            self.sockets.append(one)
        for _ in range(60):
            one_more()
        reply = self.server.ask("POST", "/big/_mget", body)
        while reply[0] == 200:
            self.assertLess(self.status("VmRSS"), (BUDGET + UNBUDGETED) * SANITIZER_TIMES, "it holds more than it may")
            one_more()  # those that were refused while two replies were made at once have left room for one
            reply = self.server.ask("POST", "/big/_mget", body)
        self.refused(reply, "_mget")
        self.in_the_end("GET", "/_cluster/health")

    def test_searches_at_once(self):
        found = self.ask_many([("GET", "/big/_search?size=8", None)] * 24, 24)
        self.assertEqual({status for status, _ in found} - {200, 429}, set(), found[:3])

    def test_keys_of_aggregations(self):
        """Each document has a key for each filter that it matches: twelve million, of which those of one document are needed at once."""
        lines = '{"index":{"_index":"counted"}}\n{"a":1}\n' * 1000
        for _ in range(max(4 // SLOWNESS, 1)):
            self.server.must("POST", "/_bulk", lines)
        filters = {"filters": {"filters": [{"match_all": {}}] * 3000}}
        found = self.in_the_end("POST", "/counted/_search", {"size": 0, "aggs": {"a": filters}})
        self.assertEqual(len(found["aggregations"]["a"]["buckets"]), 3000)

    def test_scripts_of_searches(self):
        """A script takes 10 MB while it runs. The text by which it sorts, or that it shows, stays until the next document, and is charged."""
        self.server.must("PUT", "/scripted/_doc/1", {"a": 1})
        script = {"source": "String s = params.s; for (int i = 0; i < 19; i++) s += s; %s", "params": {"s": "x" * 8}}

        def scripts(last):
            return [{"source": script["source"] % last.replace("N", str(i)), "params": script["params"]} for i in range(60)]
        queries = [{"script": {"script": one}} for one in scripts("s.length() < N")]
        found = self.in_the_end("POST", "/scripted/_search", {"query": {"bool": {"should": queries}}})
        self.assertEqual(found["hits"]["hits"], [])
        sort = [{"_script": {"type": "string", "script": one}} for one in scripts("s + 'N'")]
        self.refused(self.server.ask("POST", "/scripted/_search", {"sort": sort}), "POST /scripted/_search")
        fields = {"f%d" % i: {"script": one} for i, one in enumerate(scripts("s + 'N'")[:32])}
        self.refused(self.server.ask("POST", "/scripted/_search", {"script_fields": fields}), "POST /scripted/_search")

    def test_searches_of_many_indices(self):
        """Each index keeps nothing of its documents when the next one is searched."""
        count = 1200 // SLOWNESS
        self.server.must("PUT", "/_template/many", {"index_patterns": ["many-*"], "mappings": {"dynamic": False, "properties": {"a": {"type": "keyword"}}}})
        for first in range(0, count, 60):
            lines = "".join('{"index":{"_index":"many-%d","_id":"1"}}\n{"a":"x","b":"%s"}\n' % (i, "y" * 200000) for i in range(first, first + 60))
            self.assertFalse(self.in_the_end("POST", "/_bulk", lines)["errors"])
        query = {"bool": {"must_not": [{"term": {"a": "z"}}]}}
        for body in ({"query": query, "aggs": {"a": {"terms": {"field": "a"}}}}, {"query": query, "sort": ["a"], "size": count}):
            found = self.server.must("POST", "/many-*/_search?filter_path=hits.total.value", dict(body, _source=False))
            self.assertEqual(found["hits"]["total"]["value"], count)
        self.server.must("DELETE", "/many-*")

    def test_plans_of_searches(self):
        """A plan has a key for each id and type, if that is fewer than the documents; and no copy of the ids for each level of the query."""
        for i in range(300):
            self.server.must("PUT", "/typed/t%d/1" % i, {"a": 1})
        ids = {"ids": {"values": ["%d" % i for i in range(40000)]}}
        found = self.in_the_end("POST", "/typed/_count", {"query": ids})
        self.assertEqual(found["count"], 300)
        self.server.must("PUT", "/typeless/_doc/1", {"a": 1})
        begin = '{"bool":{"should":[{"term":{"a":2}},'
        found = self.in_the_end("POST", "/typeless/_count", '{"query":%s%s%s}' % (begin * 190, json.dumps(ids), "]}}" * 190))
        self.assertEqual(found["count"], 1)

    def test_shards(self):
        """A million and a half of rows."""
        for i in range(40):
            self.server.must("PUT", "/shards-%d" % i, {"settings": {"number_of_shards": 1024, "number_of_replicas": 36}})
        self.refused(self.server.ask("GET", "/_cat/shards?v"), "GET /_cat/shards")
        paths = ["/_cat/shards?v&format=json", "/_cat/shards/shards-1?v", "/_stats?level=shards", "/_cluster/state"]
        for status, reply in self.ask_many([("GET", path) for path in paths]):
            self.assertIn(status, (200, 429), reply)
        self.server.must("DELETE", "/shards-*")

    def test_streams(self):
        """A client that requests all changes and does not read the reply."""
        for _ in range(12):
            one = socket.create_connection(("127.0.0.1", self.server.port))
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.sendall(b"GET /_changes?feed=continuous&since=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.sockets.append(one)
        for i in range(24):
            self.in_the_end("PUT", "/big/_doc/%d" % (i % 8), {"text": "y" * MEGABYTE})
        self.in_the_end("GET", "/_cluster/health")


class Kept(Case):
    """What stays when the request is over."""

    def test_transactions(self):
        transactions, refused = [], 0
        document = json.dumps({"text": "x" * (2 * MEGABYTE)})
        for _ in range(10):
            transactions.append(self.server.must("POST", "/_transaction")["transaction"])
            transaction = transactions[-1]
            for i in range(6):
                reply = self.server.ask("PUT", "/fs/_doc/%d-%d?transaction=%s" % (len(transactions), i, transaction), document)
                if reply[0] == 429:
                    self.refused(reply)
                    refused += 1
                    break
            if refused:
                break
        self.assertGreater(refused, 0)
        # A full server is relieved by the clients that filled it.
        for transaction in set(transactions[1:]):
            self.server.must("POST", "/_transaction/%s/_rollback" % transaction)
        self.server.must("POST", "/_transaction/%s/_commit" % transactions[0])
        self.in_the_end("PUT", "/fs/_doc/0", document)

    def test_lock_paths(self):
        self.server.ask("PUT", "/tree", {"mappings": {"properties": {"path": {"type": "path"}}}})
        sessions, found = [], []
        for i in range(300):
            if i % 5 == 0:  # one owner takes a quarter of the memory at most
                sessions.append(self.server.must("POST", "/_session", {"ttl": "1h"})["session"])
            path = "/%d" % i + "/d" * 4000
            found.append(self.server.ask("POST", "/_lock", {"session": sessions[-1], "locks": [{"index": "tree", "path": path, "mode": "exclusive"}]}))
            if found[-1][0] == 429:
                break
        self.refused(found[-1], "POST /_lock")
        self.assertGreater(len(found), 10, "a few are fine")
        self.server.must("POST", "/_session/%s/_keepalive" % sessions[0])
        self.server.must("POST", "/_unlock", {"session": sessions[0], "locks": [{"index": "tree", "path": "/0" + "/d" * 4000}]})
        for session in sessions:
            self.server.must("DELETE", "/_session/" + session)
        self.server.must("POST", "/_lock", {"session": self.server.must("POST", "/_session", {"ttl": "1h"})["session"],
                                            "locks": [{"index": "tree", "path": "/a", "mode": "exclusive"}]})

    def test_one_owner_takes_a_quarter(self):
        self.server.ask("PUT", "/tree", {"mappings": {"properties": {"path": {"type": "path"}}}})
        session = self.server.must("POST", "/_session", {"ttl": "1h"})["session"]
        for i in range(20):
            path = "/one/%d" % i + "/d" * 4000
            status, reply = self.server.ask("POST", "/_lock", {"session": session, "locks": [{"index": "tree", "path": path, "mode": "exclusive"}]})
            if status != 200:
                break
        self.assertEqual((status, reply["error"]["type"]), (429, "limit_exceeded_exception"), str(reply)[:500])
        self.assertIn("[%d]" % (BUDGET // 4), reply["error"]["reason"])
        self.assertEqual(i, BUDGET // 4 // (4000 * 448))
        self.server.must("DELETE", "/_session/" + session)
        transaction = self.server.must("POST", "/_transaction")["transaction"]
        for i in range(20):
            status, reply = self.server.ask("PUT", "/fs/_doc/one-%d?transaction=%s" % (i, transaction), {"text": "x" * MEGABYTE})
            if status != 201:
                break
        self.assertEqual((status, reply["error"]["type"]), (413, "transaction_too_large_exception"), str(reply)[:500])
        self.assertIn("[%d] with their entries and locks" % (BUDGET // 4), reply["error"]["reason"])
        self.server.must("POST", "/_transaction/%s/_rollback" % transaction)

    def test_lock_paths_at_once(self):
        """A level takes a hundred times the two bytes that name it."""
        self.server.ask("PUT", "/tree", {"mappings": {"properties": {"path": {"type": "path"}}}})
        session = self.server.must("POST", "/_session", {"ttl": "1h"})["session"]
        paths = ["/%d" % i + "/d" * 4000 for i in range(100)]
        locks = [{"index": "tree", "path": path, "mode": "exclusive"} for path in paths]
        self.refused(self.server.ask("POST", "/_lock", {"session": session, "locks": locks}), "POST /_lock")
        bulk = "".join('{"index":{}}\n{"path":"%s/f"}\n' % path for path in paths)
        transaction = self.server.must("POST", "/_transaction")["transaction"]
        self.refused(self.server.ask("POST", "/tree/_bulk?transaction=" + transaction, bulk), "_bulk")
        self.refused(self.server.ask("POST", "/tree/_bulk?atomic=true", bulk), "_bulk")
        for escape in "\\u002f", "\\u002F":
            spelled = json.dumps({"session": session, "locks": locks}).replace("/", escape)
            self.refused(self.server.ask("POST", "/_lock", spelled), "POST /_lock")
            self.refused(self.server.ask("POST", "/tree/_bulk?atomic=true", bulk.replace("/", escape)), "_bulk")
        self.server.must("POST", "/_lock", {"session": session, "locks": locks[:3]})

    def test_sorted_hits(self):
        """The best hits wait with their sort values: 60 MB of them."""
        self.server.must("PUT", "/sorted", {"mappings": {"properties": {"k": {"type": "keyword"}}}})
        for part in range(12):
            lines = "".join('{"index":{}}\n{"k":"%s"}\n' % (("%05d" % (part * 250 + i)) * 4000) for i in range(250))
            self.in_the_end("POST", "/sorted/_bulk", lines)
        body = {"size": 3000, "_source": False, "docvalue_fields": [], "sort": [{"k": "desc"}]}
        self.refused(self.server.ask("POST", "/sorted/_search", body), "POST /sorted/_search")
        self.refused(self.server.ask("POST", "/sorted/_search?scroll=1m", dict(body, size=1)), "POST /sorted/_search")
        self.assertEqual(len(self.in_the_end("POST", "/sorted/_search", dict(body, size=300))["hits"]["hits"]), 300)

    def test_scrolls(self):
        self.server.must("PUT", "/some/_doc/1", {"a": 1})
        self.server.must("PUT", "/some/_doc/2", {"a": 1})
        body = json.dumps({"size": 1, "query": {"terms": {"b": ["x" * 100] * 20000}}})
        found = []
        while len(found) < 60 and (not found or found[-1][0] == 200):
            found.append(self.server.ask("POST", "/some/_search?scroll=1h", body))
        self.refused(found[-1])
        for status, reply in found:
            if status == 200:
                self.server.must("DELETE", "/_search/scroll", {"scroll_id": reply["_scroll_id"]})
        self.assertEqual(self.server.ask("POST", "/some/_search?scroll=1m", body)[0], 200)

    def test_actions(self):
        actions = [{"index": {"_index": "fs", "_id": "a"}}, {"text": "x" * 1000000}]
        for _ in range(100):
            reply = self.server.ask("POST", "/_session", {"ttl": "10m", "on_expire": actions})
            if reply[0] != 201:
                break
        self.refused(reply, "POST /_session")

    def test_waiting_writes(self):
        """Each of them small, and all of them kept."""
        session = self.server.must("POST", "/_session", {"ttl": "1h"})["session"]
        self.server.must("POST", "/_lock", {"session": session, "locks": [{"index": "fs", "mode": "exclusive"}]})
        body = b'{"a":"' + b"x" * (900 * 1024) + b'"}'
        for i in range(120):
            one = socket.create_connection(("127.0.0.1", self.server.port))
            self.sockets.append(one)
            try:
                one.sendall(b"PUT /fs/_doc/%d?timeout=60s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                            b"Content-Length: %d\r\n\r\n%s" % (i, len(body), body))
            except OSError:  # refused before it was sent
                pass
        self.server.must("DELETE", "/_session/" + session)
        self.in_the_end("PUT", "/fs/_doc/free", {"a": 1})

    def test_numbers_of_scripts(self):
        """Numbers of many digits, whose refusal is caught."""
        self.server.must("PUT", "/some/_doc/1", {"a": 1})
        source = "for (int i = 0; i < 300; i++) { try { new BigDecimal(params.t) } catch (Exception e) { } }"
        for digits in ("7" * (4 * MEGABYTE), "7" * MEGABYTE + "x"):
            status, reply = self.server.ask("POST", "/some/_update/1", {"script": {"lang": "painless", "source": source, "params": {"t": digits}}})
            self.assertIn(status, (200, 400, 429), reply)

    def test_scripts(self):
        """Compiled scripts are kept; a class of many ranges is large."""
        self.server.must("PUT", "/some/_doc/1", {"a": 1})
        line = "a += 1; "
        ranges = "".join("%s-%s" % (chr(0x4000 + 2 * k), chr(0x4001 + 2 * k)) for k in range(20000))
        for i in range(8):
            status, reply = self.server.ask("POST", "/some/_update/1", {"script": {
                "lang": "painless", "source": "ctx._source.m = /[%s]%d/.matcher('x').matches()" % (ranges, i)}})
            self.assertIn(status, (200, 400, 429), reply)
        for i in range(60):
            status, reply = self.server.ask("POST", "/some/_update/1", {"script": {
                "lang": "groovy", "source": "int a = %d; " % i + line * 7000}})
            self.assertIn(status, (200, 400, 429), reply)
        self.assertLess(self.breakers()["scripts"]["estimated_size_in_bytes"], 20 * MEGABYTE)

    def test_by_query(self):
        """One batch of all would take twice the memory there is."""
        for i in range(24):
            self.server.must("PUT", "/source/_doc/%d" % i, {"text": "%03d" % i + "x" * (2 * MEGABYTE)})
        reply = self.server.must("POST", "/_reindex", {"source": {"index": "source"}, "dest": {"index": "copy"}})
        self.assertEqual((reply["created"], reply["failures"]), (24, []))
        reply = self.server.must("POST", "/source/_update_by_query?scroll_size=1000", {})
        self.assertEqual((reply["updated"], reply["failures"]), (24, []))
        reply = self.server.must("POST", "/source/_delete_by_query?scroll_size=1000", {"query": {"match_all": {}}})
        self.assertEqual((reply["deleted"], reply["failures"]), (24, []))
        self.server.must("DELETE", "/source,copy")

    def test_path_hierarchy(self):
        self.server.must("PUT", "/long", {
            "settings": {"analysis": {"analyzer": {"p": {"tokenizer": "p"}}, "tokenizer": {"p": {
                "type": "path_hierarchy", "reverse": True, "replacement": "-"}}}},
            "mappings": {"properties": {"path": {"type": "text", "analyzer": "p"}}}})
        status, reply = self.server.ask("PUT", "/long/_doc/1", {"path": "/d" * MEGABYTE})
        self.assertIn(status, (201, 400, 429), reply)
        status, reply = self.server.ask("POST", "/long/_search", {"query": {"match": {"path": "/d/d"}}})
        self.assertIn(status, (200, 400, 429), reply)


class Catalog(Case):
    """What indices keep: their fields."""

    def test_fields_of_many_indices(self):
        """One body of 30 KB for hundreds of indices, each of which keeps all fields: it is refused when the rest would be too much."""
        count = 300
        self.in_the_end("POST", "/_bulk?filter_path=errors", "".join('{"create":{"_index":"wide-%d","_id":"1"}}\n{}\n' % i for i in range(count)))
        fields = {"properties": {"field-%d" % i: {"type": "keyword"} for i in range(900)}}
        self.refused(self.server.ask("PUT", "/wide-*/_mapping", fields), "PUT /wide-*/_mapping")
        self.assertLess(self.status("VmHWM"), (BUDGET + UNBUDGETED) * SANITIZER_TIMES, "it held more than it may")
        found = [self.in_the_end("GET", "/wide-%d/_mapping?filter_path=*.mappings.properties.field-0" % i) for i in (0, 99)]
        self.assertEqual([len(one) for one in found], [1, 0], "the first one has the fields, the last one has not")
        self.in_the_end("DELETE", "/wide-*")
        self.in_the_end("PUT", "/wide-0", {"mappings": fields})
        self.in_the_end("DELETE", "/wide-0")

    def aside(self):
        """Returns: the numbers of the actions that are put aside, as far as they are listed, with their indices."""
        return {one["number"]: one["index"] for one in self.server.must("GET", "/_session")["deferred"] if one.get("aside")}

    def test_cleanup_actions(self):
        """Sessions that end add indices of many fields, which no request asked for: beyond the budget their actions are put aside."""
        try:
            self.end_sessions_with_actions({"field-%d" % i: 1 for i in range(300)})
        finally:
            self.server.must("DELETE", "/left-*")
            while self.aside():
                for number in self.aside():
                    self.server.must("DELETE", "/_session/_deferred/%d" % number)

    def end_sessions_with_actions(self, document):
        sessions = []
        for i in range(5):
            actions = [part for j in range(40) for part in ({"index": {"_index": "left-%d-%d" % (i, j), "_id": "1"}}, document)]
            sessions.append(self.server.must("POST", "/_session", {"ttl": "10m", "on_expire": actions})["session"])
        for session in sessions:
            self.server.must("DELETE", "/_session/%s?force=true" % session)
        self.assertLess(self.breakers()["parent"]["estimated_size_in_bytes"], BUDGET)
        created = len(self.server.must("GET", "/_cat/indices/left-*?format=json"))
        self.assertGreater(created, 20)
        number = max(self.aside())
        self.assertIn("[--memory]; it is put aside as number %d" % number, json.dumps(self.server.must("GET", "/_lock/_events")))
        for number, index in sorted(self.aside().items(), reverse=True):  # the first ones may find some memory that was in use then
            self.server.must("POST", "/_session/_deferred/%d/_retry" % number)
            if number in self.aside():
                break
        self.assertIn(number, self.aside(), "there is not the memory for all of them")
        self.server.must("DELETE", "/left-*")

        def is_done():
            self.server.ask("POST", "/_session/_deferred/%d/_retry" % number)
            return number not in self.aside()

        until(is_done, "it is executed when the memory of the others is free")
        self.assertEqual(self.server.must("GET", "/%s/_doc/1" % index)["_source"], document)


    def test_fields_of_requests_at_once(self):
        """Each creates an index of 300 fields, and all are sent before the first one is executed: those are accepted that fit together."""
        fields = json.dumps({"field-%d" % i: i for i in range(300)}).encode()
        for i in range(300):
            one = socket.create_connection(("127.0.0.1", self.server.port))
            one.sendall(b"PUT /burst-%d/_doc/1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        b"Content-Length: %d\r\n\r\n%s" % (i, len(fields), fields[:-1]))
            self.sockets.append(one)
        for one in self.sockets:
            one.sendall(fields[-1:])
        statuses = [int(one.makefile("rb").readline().split()[1]) for one in self.sockets]
        self.assertEqual(set(statuses), {201, 429})
        self.assertLess(self.retained(), BUDGET * 3 // 4 + MEGABYTE, "indices of requests at once take more than there is for them")
        for one in self.sockets:
            one.close()
        self.in_the_end("DELETE", "/burst-*")
        self.in_the_end("PUT", "/burst-0/_doc/1", fields)
        self.in_the_end("DELETE", "/burst-0")

    def test_names_of_many_fields(self):
        """Each field has its whole path: 900 below a name of 1 MB would be gigabytes, with a dynamic or a given mapping."""
        name = "n" * MEGABYTE
        for method, path, body in (
                ("PUT", "/names/_doc/1", {name: {"field-%d" % i: i for i in range(900)}}),
                ("PUT", "/names-given", {"mappings": {"properties": {name: {"properties": {"field-%d" % i: {"type": "long"} for i in range(900)}}}}}),
        ):
            status, reply = self.server.ask(method, path, body)
            self.assertEqual(status, 400, str(reply)[:500])
            self.assertEqual(reply["error"]["reason"], "Limit of [1048576] bytes of the paths and parameters of all fields has been exceeded: "
                                                       "use shorter names")
            self.assertLess(self.status("VmHWM"), (BUDGET + UNBUDGETED) * SANITIZER_TIMES, "it held more than it may")
        self.server.ask("DELETE", "/names")  # its index is there, as in Elasticsearch


class LongScripts(Case):
    """Requests of many stored scripts on documents of a megabyte, some at once."""
    DOCUMENTS = 8
    ITEM = '{"update":{"_index":"large","_id":"%d"}}\n{"script":{"id":"count"}}\n'

    def bulk(self, count, first=0):
        return "".join(self.ITEM % ((first + i) % self.DOCUMENTS) for i in range(count))

    def runs(self):
        docs = self.in_the_end("POST", "/large/_mget?_source=runs", {"ids": [str(i) for i in range(self.DOCUMENTS)]})["docs"]
        return sum(doc["_source"]["runs"] for doc in docs)

    def test_scripts_of_calls_by_query_at_once(self):
        """Each call has its thread, and a script may take 64 MB."""
        self.server.must("PUT", "/one/_doc/1", {"a": 1})
        script = "List l = new ArrayList(); for (int i = 0; i < 1900000; i++) l.add(i * 1000L); ctx._source.x = l.size()"
        body = {"source": {"index": "one"}, "dest": {"index": "two"}, "script": {"source": script}}
        found = self.ask_many([("POST", "/_reindex", body)] * 16, 16)
        self.assertEqual({status for status, _ in found} - {200, 400, 429}, set(), found[:3])

    def test_scripts_of_queries_of_calls_at_once(self):
        """So have those whose query or sort is a script; the texts by which it sorts are charged."""
        for i in range(30):
            self.server.must("PUT", "/one/_doc/%d" % i, {"a": i})
        script = "List l = new ArrayList(); for (int i = 0; i < 1900000; i++) l.add(i * 1000L); l.size() < 3"
        body = {"query": {"bool": {"filter": [{"ids": {"values": ["1"]}}, {"script": {"script": {"source": script}}}]}}}
        found = self.ask_many([("POST", "/one/_delete_by_query", body)] * 16, 16)
        self.assertEqual({status for status, _ in found} - {200, 400, 429}, set(), found[:3])
        script = {"source": "String s = params.s; for (int i = 0; i < 18; i++) s += s; s + doc['a'].value", "params": {"s": "x" * 8}}
        found = self.ask_many([("POST", "/one/_delete_by_query", {
            "query": {"match_all": {}}, "sort": [{"_script": {"type": "string", "script": script}}], "max_docs": 1})] * 16, 16)
        self.assertEqual({status for status, _ in found} - {200, 409, 429}, set(), found[:3])
        self.server.must("DELETE", "/one")

    def test_scripts_on_large_documents(self):
        """Each item that was answered with 200 has run once, no other one has, and all actions of ended sessions have."""
        source = "for (int i = 0; i < 3000; i++) { ctx._source.n = i } ctx._source.runs += 1"
        self.server.must("PUT", "/_scripts/count", {"script": {"lang": "painless", "source": source}})
        self.server.must("PUT", "/large", {"mappings": {"properties": {"text": {"type": "object", "enabled": False}}}})
        for i in range(self.DOCUMENTS):
            self.in_the_end("PUT", "/large/_doc/%d" % i, {"text": "x" * MEGABYTE, "runs": 0})
        wanted = 0
        for status, body in self.ask_many([("POST", "/_bulk?filter_path=items.*.status", self.bulk(24, i)) for i in range(4)], 4):
            self.assertIn(status, (200, 429), body)
            wanted += body.count(b'"status":200')
        self.assertEqual(self.runs(), wanted)
        for status, body in self.ask_many([("POST", "/_bulk?atomic=true&filter_path=errors,error.type", self.bulk(24, i)) for i in range(2)], 2):
            self.assertIn(status, (200, 429), body)
            wanted += 24 if status == 200 else 0
        self.assertEqual(self.runs(), wanted)
        actions = [json.loads(line) for line in self.bulk(24).splitlines()]
        for _ in range(2):
            session = self.in_the_end("POST", "/_session", {"ttl": "1h", "on_expire": actions})["session"]
            self.in_the_end("DELETE", "/_session/%s?force=true" % session)
        until(lambda: self.runs() == wanted + 48, "all actions are done")
        self.assertEqual(self.in_the_end("GET", "/_session")["deferred"], [])
        self.in_the_end("DELETE", "/large")


@unittest.skipUnless(MEASURING, "measured by make test-long")
class Rows(Case):
    """What once grew to many times the budget, asked for again and again: the process stays within the budget and 100 MB."""
    besides = 100 * MEGABYTE
    LONG_NAME = "ä" * 6000  # 12,000 bytes

    def setUp(self):
        super().setUp()
        self.server.end_owners()  # of a test that has failed
        self.server.ask("DELETE", "/tree")
        self.server.must("PUT", "/tree", {"mappings": {"properties": {"path": {"type": "path"}}}})

    def session(self):
        return self.server.must("POST", "/_session", {"ttl": "1h"})["session"]

    def lock(self, session, path, **more):
        return {"session": session, "locks": [{"index": "tree", "path": path, "mode": "exclusive"}], **more}

    def test_escaped_paths(self):
        """700 locks of 4,000 levels each, whose slashes are spelled in another way; and as many documents there."""
        session, paths = self.session(), ["/%d" % i + "/a" * 4000 for i in range(700)]
        for escape in "/", "\\u002f", "\\u002F", "\\/":
            locks = json.dumps({"session": session, "locks": [{"index": "tree", "path": path, "mode": "exclusive"} for path in paths]})
            self.refused(self.server.ask("POST", "/_lock", locks.replace("/", escape)), "POST /_lock")
            documents = "".join('{"index":{}}\n{"path":"%s/f"}\n' % path for path in paths).replace("/", escape)
            self.assertIn(self.server.ask("POST", "/tree/_bulk?atomic=true", documents)[0], (400, 429))
            self.assertIn(self.server.ask("POST", "/tree/_bulk", documents)[0], (200, 429))

    def test_explanations_of_bulk_items(self):
        """A bulk of 5,000 deletes below a locked directory with a long name, none of which waits."""
        lines = []
        for number in range(5000):
            lines += ['{"index":{"_index":"tree","_id":"%d"}}' % number, '{"path":"/d/%d"}' % number]
        self.assertFalse(self.server.must("POST", "/_bulk", "\n".join(lines) + "\n")["errors"])
        self.server.must("POST", "/tree/_rename", {"from": "/d", "to": "/" + self.LONG_NAME})
        self.server.must("POST", "/_lock", self.lock(self.session(), "/" + self.LONG_NAME))
        body = "".join('{"delete":{"_index":"tree","_id":"%d"}}\n' % number for number in range(5000))
        found = self.ask_many([("POST", "/_bulk?timeout=0s", body)] * 8, 1)
        self.assertEqual({status for status, _ in found} - {200, 429}, set(), found[:3])

    def test_requests_of_ended_session(self):
        """What they have made before they are refused goes with them, however often."""
        for i in range(20):
            self.server.must("PUT", "/some/_doc/%d" % i, {"n": i})
        calls = [("POST", "/some/_update_by_query", {}), ("POST", "/some/_delete_by_query", {"query": {"match_all": {}}}),
                 ("POST", "/some/_search?scroll=1m", {"size": 1}), ("POST", "/some/_pit?keep_alive=1m", None),
                 ("POST", "/_reindex", {"source": {"index": "some"}, "dest": {"index": "other"}})]
        requests = []
        for method, path, body in calls:
            body = {"query": {"bool": {"should": [{"terms": {"n": list(range(20000))}}]}}, **body} if path.startswith("/some/_search") else body
            requests.append((method, path + ("&" if "?" in path else "?") + "session=gone", body))
        for _ in range(300):
            for status, _ in self.ask_many(requests, 1):
                self.assertEqual(status, 404)
        stats = next(iter(self.server.must("GET", "/_nodes/stats")["nodes"].values()))
        self.assertEqual(stats["indices"]["search"]["open_contexts"], 0)
        tasks = next(iter(self.server.must("GET", "/_tasks")["nodes"].values()))["tasks"].values()
        self.assertEqual([task["action"] for task in tasks if "byquery" in task["action"] or "reindex" in task["action"]], [])
        self.assertEqual(len(self.server.must("GET", "/some/_search")["hits"]["hits"]), 10)

    def test_deadlock_events(self):
        """100 are kept, of names of 12,000 bytes; and all of them are saved at the end."""
        for number in range(130):
            a, b = self.session(), self.session()
            paths = ["/%d%s" % (number, self.LONG_NAME), "/%d%sb" % (number, self.LONG_NAME)]
            self.server.must("POST", "/_lock", self.lock(a, paths[0]))
            self.server.must("POST", "/_lock", self.lock(b, paths[1]))
            waiting = Waiting(self.server, "POST", "/_lock", self.lock(a, paths[1], wait="1h"))
            until(lambda: any(lock["waiters"] for lock in self.server.must("GET", "/_lock")["locks"]), "the first session waits")
            self.assertEqual(self.server.ask("POST", "/_lock", self.lock(b, paths[0], wait="1h"))[0], 409)
            for session in b, a:
                self.server.must("DELETE", "/_session/%s?force=true" % session)
            waiting.join()
        self.assertEqual(len(self.server.must("GET", "/_lock/_events")["events"]), 100)

    def test_renames_into_long_names(self):
        """A path cannot grow beyond its limit, by however many renames."""
        self.server.must("PUT", "/tree/_doc/1", {"path": "/0/f"})
        name, refused = "/0", 0
        for number in range(1, 300):
            other = "/%d%s" % (number, "x" * 5000)
            status, reply = self.server.ask("POST", "/tree/_rename", {"from": name, "to": other + name})
            self.assertIn(status, (200, 400), reply)
            refused += status == 400
            if status == 200:
                name = other
        self.assertGreater(refused, 290)
        self.assertLess(len(self.server.must("GET", "/tree/_doc/1")["_source"]["path"]), 16385)
        found = self.ask_many([("GET", "/tree/_doc/1", None), ("POST", "/tree/_search", {"query": {"prefix": {"path": name}}})] * 200)
        self.assertEqual({status for status, _ in found}, {200})


class Seen(Case):
    """The budget is shown to operators."""

    def test_breakers(self):
        found = self.breakers()
        parent = found["parent"]
        self.assertEqual(parent["limit_size_in_bytes"], BUDGET)
        self.assertEqual(parent["limit_size"], "64mb")
        self.assertGreater(parent["estimated_size_in_bytes"], 0)
        for name, breaker in found.items():
            self.assertEqual(set(breaker), {"limit_size_in_bytes", "limit_size", "estimated_size_in_bytes", "estimated_size",
                                            "overhead", "tripped"}, name)
        transaction = self.server.must("POST", "/_transaction")["transaction"]
        self.server.must("PUT", "/fs/_doc/1?transaction=" + transaction, {"text": "x" * MEGABYTE})
        found = self.breakers()
        self.assertGreater(found["transactions"]["estimated_size_in_bytes"], MEGABYTE)
        tripped = found["parent"]["tripped"]
        self.refused(self.server.ask("PUT", "/fs/_doc/numbers", '{"a":[' + "1," * (10 * MEGABYTE) + "1]}"))
        found = self.breakers()
        self.assertGreater(found["parent"]["tripped"], tripped)


if __name__ == "__main__":
    unittest.main(verbosity=2)
