#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Causes that end a request early: its timeout, the server's limit, another request, a broken connection, the end of the server.

Method: scripts of a billion steps, which take a server half a minute and more, within one document, so that only the account's
checks inside of a script end them. The reply names the cause. If there is no reply, since the client has disconnected, an equal
request that began before it is still executing when it has ended.
"""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import PROGRAM, Server  # noqa: E402
from waiting import until  # noqa: E402

STEPS = 1000000000
# Painless allows a call a million turns.
FUNCTION = "def f(int d) { int n = 0; for (int i = 0; i < 900000; i++) { n += i } return n } "
LOOPS = "int s = 0; " + "s += f(1); " * 900
ENDLESS = FUNCTION + LOOPS
SLOW = {"query": {"bool": {"filter": {"script": {"script": {"source": ENDLESS + "return s > 0"}}}}}}


def tasks(server, actions):
    nodes = server.must("GET", "/_tasks?actions=" + actions)["nodes"]
    return [dict(task, name=name) for node in nodes.values() for name, task in node["tasks"].items()]


def in_flight(server):
    """How many requests have arrived and are not answered, with the one that asks."""
    page = server.request("GET", "/_metrics").body.decode()
    return int(re.search(r"^tidelock_http_requests_in_flight (\d+)$", page, re.M).group(1))


def waiters(server):
    return sum(len(lock["waiters"]) for lock in server.must("GET", "/_lock")["locks"])


class Bounds(unittest.TestCase):
    OPTIONS = ("--script-steps", str(STEPS))
    REPLAY = True

    @classmethod
    def setUpClass(cls):
        cls.server = Server("--grace=1s", *cls.OPTIONS, replay=cls.REPLAY).start()
        cls.server.must("PUT", "/few", {"settings": {"number_of_shards": 1}})
        cls.server.must("PUT", "/few/_doc/1", {"n": 1})
        cls.server.must("PUT", "/few/_doc/2", {"n": 2})

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def aside(self, method, path, body):
        """Asks on a connection of its own. Returns: a function that waits for the reply and returns its status and body; its is_there() does not wait."""
        found = []
        connection = self.server.connect()

        def ask():
            response = self.server.request(method, path, body, connection=connection)
            found.append((response.status, json.loads(response.body)))
            connection.close()

        thread = threading.Thread(target=ask)
        thread.start()

        def reply():
            thread.join()
            return found[0]
        reply.is_there = lambda: not thread.is_alive()
        return reply

    def tasks(self, actions):
        return tasks(self.server, actions)

    def task(self, actions):
        """The one that is at work, once it is."""
        until(lambda: self.tasks(actions), "a task of %s is at work" % actions)
        return self.tasks(actions)[0]

    def until_none(self, actions):
        until(lambda: not self.tasks(actions), "no task of %s is at work" % actions)

    def leave(self, method, path, body, actions):
        """Asks twice, hangs up the second request when both are at work, waits until it has ended: the first, which began before it, has not.
        Then cancels the first."""
        self.until_none(actions)
        first = self.aside(method, path, body)
        name = self.task(actions)["name"]
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        with socket.create_connection(("127.0.0.1", self.server.port)) as s:
            s.sendall(b"%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" %
                      (method.encode(), path.encode(), len(data), data))
            until(lambda: len(self.tasks(actions)) > 1, "both are at work")
        until(lambda: len(self.tasks(actions)) <= 1, "one has ended")
        self.assertEqual([task["name"] for task in self.tasks(actions)], [name], "the request whose client stayed is at work")
        self.server.must("POST", "/_tasks/%s/_cancel" % name)
        status, said = first()
        self.assertEqual((status, said["error"]["root_cause"][0]["type"]), (500, "task_cancelled_exception"), said)


class Timeouts(Bounds):
    def test_request_timeout_returns_partial_hits(self):
        """Within one document: the reply has the hits found so far, and timed_out."""
        for path, body in (("/few/_search", dict(SLOW, timeout="50ms")), ("/few/_search?timeout=50ms", SLOW)):
            reply = self.server.must("POST", path, body)
            self.assertTrue(reply["timed_out"])
            self.assertEqual(reply["hits"]["total"]["value"], 0)
            self.assertEqual(reply["_shards"]["failed"], 0)

    def test_scroll_continues_after_a_page_that_timed_out(self):
        """Each page has the hits that it found; the next one continues after them."""
        source = FUNCTION + "if (doc['n'].value < 2) { return true } " + LOOPS + "return s > 0"
        slow_2 = {"query": {"bool": {"filter": {"script": {"script": {"source": source}}}}}}
        status, page = self.server.ask("POST", "/few/_search?scroll=1h", dict(slow_2, timeout="200ms"))
        seen = []
        for _ in range(3):
            self.assertEqual((status, page["timed_out"]), (200, True), page)
            seen += [hit["_id"] for hit in page["hits"]["hits"]]
            status, page = self.server.ask("POST", "/_search/scroll", {"scroll": "1h", "scroll_id": page["_scroll_id"]})
        self.assertEqual(seen, ["1"])
        self.server.must("DELETE", "/_search/scroll", {"scroll_id": page["_scroll_id"]})

    def test_request_timeout_during_aggregation(self):
        """Within one document, which the query alone would have found."""
        for size in (0, 10):
            reply = self.server.must("POST", "/few/_search", {"size": size, "timeout": "50ms", "aggs": {"a": {"filter": SLOW["query"]}}})
            self.assertTrue(reply["timed_out"], reply)
            self.assertEqual((reply["hits"]["total"]["value"], reply["aggregations"]), (0, {"a": {"doc_count": 0}}))

    def test_timeout_covers_query_phase_only(self):
        """The timeout has passed, and the hits that were found by then are shown whole."""
        body = {"timeout": "20ms", "script_fields": {"f": {"script": {"source":
                "int n = 0; for (int i = 0; i < 900000; i++) { n += 1 } return n"}}}}
        reply = self.server.must("POST", "/few/_search", body)
        for hit in reply["hits"]["hits"]:
            self.assertEqual(hit["fields"]["f"], [900000])

    def test_partial_results_disallowed(self):
        for body in (dict(SLOW, timeout="50ms"), ):
            status, reply = self.server.ask("POST", "/few/_search?allow_partial_search_results=false", body)
            self.assertEqual((status, reply["error"]["type"]), (500, "search_phase_execution_exception"))
            self.assertEqual(reply["error"]["root_cause"], [{"type": "query_phase_execution_exception", "reason": "Time exceeded"}])
        lines = '{"index":"few","allow_partial_search_results":false}\n%s\n' % json.dumps(dict(SLOW, timeout="50ms"))
        reply = self.server.must("POST", "/_msearch", lines, {"Content-Type": "application/x-ndjson"})
        self.assertEqual(reply["responses"][0]["status"], 500)

    def test_default_timeout(self):
        setting = {"transient": {"search.default_search_timeout": "40ms"}}
        self.server.must("PUT", "/_cluster/settings", setting)
        self.addCleanup(self.server.must, "PUT", "/_cluster/settings", {"transient": {"search.default_search_timeout": None}})
        self.assertTrue(self.server.must("POST", "/few/_search", SLOW)["timed_out"])
        lines = '{"index":"few"}\n%s\n' % json.dumps(SLOW)
        reply = self.server.must("POST", "/_msearch", lines, {"Content-Type": "application/x-ndjson"})
        self.assertTrue(reply["responses"][0]["timed_out"])
        some = {"query": {"script": {"script": {"source": "int n = 0; for (int i = 0; i < 900000; i++) { n += i } return n != 1"}}}}
        self.assertFalse(self.server.must("POST", "/few/_search?timeout=-1", some)["timed_out"])
        self.assertFalse(self.server.must("POST", "/few/_search?scroll=1m", some)["timed_out"], "as in Elasticsearch")
        self.assertEqual(self.server.must("POST", "/few/_count", some)["count"], 2, "never less than there are")

    def test_invalid_timeout_settings(self):
        for value in ("x", "10", 10):
            for body in ({"search.default_search_timeout": value}, {"search": {"default_search_timeout": value}}):
                status, reply = self.server.ask("PUT", "/_cluster/settings", {"transient": body})
                self.assertEqual(status, 400, (value, reply))
                self.assertEqual(reply["error"]["reason"], "failed to parse setting [search.default_search_timeout] with value [%s] "
                                 "as a time value: unit is missing or unrecognized" % value)
        for value in ("-1", "0", -1, "5s", None):
            self.server.must("PUT", "/_cluster/settings", {"transient": {"search.default_search_timeout": value}})
        self.server.must("PUT", "/_cluster/settings", {"transient": {"search.default_search_timeout": None}})

    def test_search_timeout_of_by_query(self):
        reply = self.server.must("POST", "/few/_delete_by_query?search_timeout=50ms", SLOW)
        self.assertEqual((reply["timed_out"], reply["deleted"]), (True, 0))
        reply = self.server.ask("POST", "/few/_delete_by_query?search_timeout=50ms&atomic=true", SLOW)[1]
        self.assertEqual((reply["timed_out"], reply["rolled_back"]), (True, True))
        self.assertEqual(self.server.must("GET", "/few/_count")["count"], 2)


class Cancelling(Bounds):
    CALLS = (
        ("indices:data/read/search", "POST", "/few/_search", SLOW),
        ("indices:data/read/search", "POST", "/few/_count", SLOW),
        ("indices:data/read/search", "POST", "/few/_search?scroll=1m", SLOW),
        ("indices:data/read/msearch", "POST", "/_msearch", '{"index":"few"}\n%s\n' % json.dumps(SLOW)),
        ("indices:data/read/search", "POST", "/few/_search", {"script_fields": {"f": {"script": {"source": ENDLESS + "return s"}}}}),
        ("indices:data/read/search", "POST", "/few/_search",
         {"sort": {"_script": {"type": "number", "script": {"source": ENDLESS + "return s"}}}}),
    )

    def test_searches(self):
        for action, method, path, body in self.CALLS:
            with self.subTest(path=path):
                self.until_none("*search*")
                reply = self.aside(method, path, body)
                task = self.task(action)
                self.assertTrue(task["cancellable"])
                self.assertEqual(task["action"], action)
                self.assertIn(task["name"], self.server.must("GET", "/_tasks/" + task["name"])["task"]["node"] + ":%d" % task["id"])
                self.server.must("POST", "/_tasks/%s/_cancel" % task["name"])
                status, said = reply()
                self.assertEqual(status, 500, said)
                self.assertEqual(said["error"]["root_cause"], [{"type": "task_cancelled_exception", "reason": "cancelled"}])
                if "msearch" not in action:
                    self.assertEqual(said["error"]["type"], "search_phase_execution_exception")
                self.assertEqual(self.server.ask("GET", "/_tasks/" + task["name"])[0], 404)

    def test_page_of_a_scroll_that_is_cleared(self):
        """The context ends with the page, which is refused: the refusal does not refer to it."""
        body = {"size": 1, "sort": ["n"], "script_fields": {"f": {"script": {"source": FUNCTION + "if (doc['n'].value < 2) { return 0 } " + LOOPS + "return s"}}}}
        status = 404
        while status == 404:  # the context was cleared before the page had found it: a task is listed before that
            status, page = self.server.ask("POST", "/few/_search?scroll=1h", body)
            self.assertEqual(status, 200, page)
            reply = self.aside("POST", "/_search/scroll", {"scroll": "1h", "scroll_id": page["_scroll_id"]})
            name = self.task("*scroll")["name"]
            self.server.must("DELETE", "/_search/scroll", {"scroll_id": page["_scroll_id"]})
            self.server.ask("POST", "/_tasks/%s/_cancel" % name)
            status, said = reply()
        self.assertEqual((status, said["error"]["root_cause"]), (500, [{"type": "task_cancelled_exception", "reason": "cancelled"}]), said)
        self.assertEqual(said["error"]["failed_shards"][0]["index"], "few")

    def test_cancel_by_action(self):
        replies = [self.aside("POST", "/few/_search", SLOW) for _ in range(3)]
        until(lambda: len(self.tasks("*search*")) == 3, "all are at work")
        self.server.must("POST", "/_tasks/_cancel?actions=*search")
        self.assertEqual([reply()[0] for reply in replies], [500] * 3)

    def test_by_query(self):
        for path, body in (("/few/_update_by_query", dict(SLOW, script={"source": "ctx._source.n += 1"})),
                           ("/few/_update_by_query", {"script": {"source": ENDLESS + "ctx._source.n = s"}}),
                           ("/few/_delete_by_query?atomic=true", SLOW)):
            self.until_none("*byquery")  # the previous task is listed for a short time after its reply
            reply = self.aside("POST", path, body)
            self.server.must("POST", "/_tasks/%s/_cancel" % self.task("*byquery")["name"])
            _, said = reply()
            self.assertEqual((said["canceled"], said["updated"] if "updated" in said else 0, said["deleted"]), ("by user request", 0, 0))
        self.assertEqual([hit["_source"] for hit in self.server.must("GET", "/few/_search")["hits"]["hits"]], [{"n": 1}, {"n": 2}])


    def test_by_query_that_waits_for_a_lock(self):
        session = self.server.must("POST", "/_session", {"ttl": "1h"})["session"]
        self.server.must("POST", "/_lock", {"session": session, "locks": [{"mode": "exclusive", "index": "few", "id": "2"}]})
        for path in ("/few/_update_by_query?timeout=1h", "/few/_update_by_query?timeout=1h&atomic=true", "/few/_delete_by_query?timeout=1h&scroll_size=1"):
            with self.subTest(path=path):
                self.until_none("*byquery")
                reply = self.aside("POST", path, {"query": {"ids": {"values": ["2"]}}})
                until(lambda: waiters(self.server) == 1, "it waits for the lock")
                self.server.must("POST", "/_tasks/%s/_cancel" % self.task("*byquery")["name"])
                _, said = reply()
                self.assertEqual((said["canceled"], said.get("updated", 0), said["deleted"], said["failures"]), ("by user request", 0, 0, []))
                self.assertEqual(waiters(self.server), 0)
        self.server.must("DELETE", "/_session/" + session)
        self.assertEqual([hit["_source"] for hit in self.server.must("GET", "/few/_search")["hits"]["hits"]], [{"n": 1}, {"n": 2}])


class ScriptPlaces(Bounds):
    """Calls by query run as many scripts at once as there are workers, here one: others wait until it has ended."""
    OPTIONS = ("--script-steps", str(STEPS), "--workers=1")
    RUNNING = (("/few/_delete_by_query", SLOW), ("/few/_update_by_query", {"script": {"source": ENDLESS + "ctx._source.n = s"}}))
    WAITING = (
        ("/others/_delete_by_query", {"query": {"script": {"script": {"source": "doc['n'].value > 9"}}}}),
        ("/others/_update_by_query", {"sort": [{"_script": {"type": "number", "script": {"source": "doc['n'].value"}}}]}),
        ("/others/_update_by_query", {"script": {"source": "ctx.op = 'noop'"}}),
    )

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server.must("PUT", "/others/_doc/1", {"n": 9})

    def setUp(self):
        self.until_none("*byquery")

    def run_one(self, path, body):
        """Begins a call whose script does not end. Returns: its reply and name."""
        reply = self.aside("POST", path, body)
        return reply, self.task("*byquery")["name"]

    def wait(self, runs, path, body):
        """Begins a call that waits for the script of the call `runs`. Returns: its reply and name."""
        found = []

        def waits():
            reply, seen = self.aside("POST", path, body), 0
            while seen < 100 and not reply.is_there():  # it ends meanwhile if the other call has not begun its script yet
                found[:] = [reply] + [task["name"] for task in self.tasks("*byquery") if task["name"] != runs]
                seen += len(found) > 1
            return not reply.is_there()
        until(waits, "a call waits for the script")
        self.assertIn(runs, [task["name"] for task in self.tasks("*byquery")])
        return found[:2]

    def end(self, reply, name):
        self.server.must("POST", "/_tasks/%s/_cancel" % name)
        _, said = reply()
        self.assertEqual(said["canceled"], "by user request", said)

    def test_cancelled_wait_ends(self):
        for running in self.RUNNING:
            for path, body in self.WAITING:
                with self.subTest(running=running[0], waiting=body):
                    self.until_none("*byquery")
                    first, runs = self.run_one(*running)
                    self.end(*self.wait(runs, path, body))
                    self.assertEqual([task["name"] for task in self.tasks("*byquery") if task["name"] == runs], [runs], "its script runs")
                    self.assertFalse(first.is_there())
                    self.end(first, runs)

    def test_wait_counts_towards_search_timeout(self):
        first, runs = self.run_one(*self.RUNNING[0])
        path, body = self.WAITING[0]
        self.wait(runs, path + "?search_timeout=1h", body)
        self.assertTrue(self.server.must("POST", "/others/_delete_by_query?search_timeout=50ms", body)["timed_out"])
        self.assertFalse(first.is_there())
        self.server.must("POST", "/_tasks/_cancel?actions=*byquery")
        self.assertEqual(first()[1]["canceled"], "by user request")

    def test_call_that_waits_for_a_lock_has_no_place(self):
        """Its query and its update have scripts, and its transaction has locks: others run theirs meanwhile."""
        session = self.server.must("POST", "/_session", {"ttl": "1h"})["session"]
        self.server.must("POST", "/_lock", {"session": session, "locks": [{"mode": "exclusive", "index": "few", "id": "2"}]})
        body = {"query": {"script": {"script": {"source": "doc['n'].value == 2"}}}, "script": {"source": "ctx._source.m = 1"}}
        reply = self.aside("POST", "/few/_update_by_query?timeout=1h", body)
        until(lambda: waiters(self.server) == 1, "it waits for the lock")
        for path, body in self.WAITING:
            self.server.must("POST", path, body)
        self.server.must("DELETE", "/_session/" + session)
        self.assertEqual(reply()[1]["updated"], 1)
        self.server.must("PUT", "/few/_doc/2", {"n": 2})


class Preparing(Bounds):
    """Work before documents are read: the query's terms are analyzed for each field, statistics are gathered, a plan is made."""
    OPTIONS = ("--memory", "8g")
    FIELDS, LONG_TEXTS, WORDS = 1000, 20, 20000
    ENTRIES, PER_DOCUMENT = 60000, 2000

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        fields = {"t%d" % i: {"type": "text"} for i in range(cls.FIELDS)}
        cls.server.must("PUT", "/wide", {"settings": {"index.mapping.total_fields.limit": 2000}, "mappings": {"properties": fields}})
        cls.server.must("PUT", "/wide/_doc/1", {"t1": "a"})
        for i in range(cls.LONG_TEXTS):
            cls.server.must("PUT", "/texts/_doc/%d" % i, {"t": "w " * cls.WORDS})
        cls.server.must("PUT", "/entries", {"mappings": {"properties": {"k": {"type": "keyword"}}}})
        for begin in range(0, cls.ENTRIES, cls.PER_DOCUMENT):
            values = ["a" * 200 + str(i) for i in range(begin, begin + cls.PER_DOCUMENT)]
            cls.server.must("PUT", "/entries/_doc/%d" % begin, {"k": values})

    # More than can be done in ten seconds, each.
    CALLS = (
        ("/wide/_search", {"query": {"multi_match": {"type": "cross_fields", "fields": ["t*"], "query": "ab " * 8000}}}),
        ("/wide/_search", {"query": {"dis_max": {"queries": [{"multi_match": {"fields": ["t*"], "query": "ab " * 900}}] * 40}}}),
        ("/texts/_search", {"query": {"dis_max": {"queries": [{"match": {"t": "a b c d e f g h"}}] * 2500}}}),
        ("/entries/_search", {"query": {"regexp": {"k": "(a?){200}b"}}}),
    )

    def cancelled(self, path, body):
        """Cancels a search that is at work. Returns: its status and reply; status 200 if it had ended before."""
        self.until_none("*search*")
        reply, found = self.aside("POST", path, body), []
        until(lambda: found or reply.is_there() or found.extend(self.tasks("*search")), "it is at work")
        for task in found:
            self.server.ask("POST", "/_tasks/%s/_cancel" % task["name"])
        return reply()

    def test_cancelled(self):
        """A call that had ended before it was cancelled is repeated."""
        for number, (path, body) in enumerate(self.CALLS):
            with self.subTest(number=number):
                status = 200
                while status == 200:
                    status, said = self.cancelled(path, body)
                self.assertEqual((status, said["error"]["root_cause"][0]["type"]), (500, "task_cancelled_exception"), said)

    def test_left(self):
        for number, (path, body) in enumerate(self.CALLS):
            with self.subTest(number=number):
                self.leave("POST", path, body, "*search*")

    def test_too_late(self):
        """Statistics and plans are of the finding, which the request's timeout bounds: nothing is found then."""
        for number, (path, body) in enumerate(self.CALLS[2:]):
            with self.subTest(number=number):
                reply = self.server.must("POST", path, dict(body, timeout="50ms"))
                self.assertTrue(reply["timed_out"], reply)
                self.assertEqual(reply["hits"]["total"]["value"], 0)


class Deep(Bounds):
    """Directories that a rename has put so deep that each takes milliseconds to be found: nothing of it shows in what the client sent."""
    OPTIONS = ("--request-time", "300ms", "--feed", "1h")
    REPLAY = False  # check looks at each document
    DOCUMENTS, DEEP = 4000, "/a" * 3500

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        paths = {"type": "keyword", "fields": {"tree": {"type": "text", "analyzer": "paths"}}}
        cls.server.must("PUT", "/deep", {"settings": {"analysis": {"analyzer": {"paths": {"tokenizer": "path_hierarchy"}}}},
                                         "mappings": {"properties": {"path": paths}}})
        for begin in range(0, cls.DOCUMENTS, 500):
            lines = "".join('{"index":{}}\n{"path":"/m/%d/f"}\n' % i for i in range(begin, begin + 500))
            cls.server.must("POST", "/deep/_bulk", lines, {"Content-Type": "application/x-ndjson"})
        cls.server.must("POST", "/deep/_rename", {"from": "/m", "to": cls.DEEP})

    def test_too_late(self):
        for method, path, body in (("GET", "/_changes?since=1&expand=true&source=false&limit=100000", None),
                                   ("GET", "/deep/_tree?size=10000&path=" + self.DEEP, None),
                                   ("POST", "/deep/_search", {"query": {"wildcard": {"path": "*x"}}})):
            status, reply = self.server.ask(method, path, body)
            self.assertEqual((status, reply["error"]["type"]), (500, "timeout_exception"), (path[:60], str(reply)[:500]))


class Phrases(Bounds):
    """A phrase as long as a request may have takes long within each document that it is in."""
    OPTIONS = ("--request-time", "300ms")
    REPLAY = False  # its only effects are the documents
    DOCUMENTS, WORDS, TIMES = 20, 8000, 4

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.phrase = " ".join("w%d" % i for i in range(cls.WORDS))
        cls.server.must("PUT", "/long", {"mappings": {"properties": {"t": {"type": "text"}}}})
        for i in range(cls.DOCUMENTS):
            cls.server.must("PUT", "/long/_doc/%d" % i, {"t": " ".join([cls.phrase] * cls.TIMES)})

    def test_too_late(self):
        for slop in (0, 2):
            with self.subTest(slop=slop):
                body = {"query": {"match_phrase": {"t": {"query": self.phrase, "slop": slop}}}}
                for path, limited in (("/long/_search", dict(body, timeout="20ms")), ("/long/_search?timeout=20ms", body)):
                    reply = self.server.must("POST", path, limited)
                    self.assertTrue(reply["timed_out"], reply["took"])
                    self.assertLess(reply["hits"]["total"]["value"], self.DOCUMENTS)
                status, reply = self.server.ask("POST", "/long/_search", body)
                self.assertEqual((status, reply["error"]["type"]), (500, "timeout_exception"), str(reply)[:500])


class Leaving(Bounds):
    def test_searches(self):
        for path, body in (("/few/_search", SLOW), ("/few/_count", SLOW), ("/few/_search?scroll=1m", SLOW)):
            with self.subTest(path=path):
                self.leave("POST", path, body, "*search*")

    def test_scripts(self):
        """Without a search: the scripts of clients that left end, although one that began before them still runs, and others are run."""
        body = json.dumps({"script": {"source": ENDLESS + "return s"}}).encode()
        request = (b"POST /_scripts/painless/_execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                   b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        with socket.create_connection(("127.0.0.1", self.server.port)) as first:
            first.sendall(request)
            until(lambda: in_flight(self.server) == 2, "it is at work")
            for _ in range(6):
                with socket.create_connection(("127.0.0.1", self.server.port)) as s:
                    s.sendall(request)
                    until(lambda: in_flight(self.server) > 2, "it is at work, too")
            until(lambda: in_flight(self.server) <= 2, "the others have ended")
            self.assertEqual(self.server.must("POST", "/_scripts/painless/_execute", {"script": {"source": "1 + 1"}})["result"], "2")
            first.setblocking(False)
            self.assertRaises(BlockingIOError, first.recv, 1)  # not answered yet


    def test_bulks(self):
        """Whenever the client of a bulk leaves, in one piece or in several: it waits for no lock afterwards, and ends."""
        session = self.server.must("POST", "/_session", {"ttl": "1h"})["session"]
        self.server.must("POST", "/_lock", {"session": session, "locks": [{"mode": "exclusive", "index": "few", "id": "1"}]})
        for size in (1000, 2200):
            line = b'{"index":{"_index":"few","_id":"1"}}\n{"n":1,"text":"%s"}\n' % (b"x" * 950)
            body = line * size
            request = (b"POST /_bulk?timeout=1h HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" %
                       len(body)) + body
            for step in range(30):
                with socket.create_connection(("127.0.0.1", self.server.port)) as s:
                    s.sendall(request)
                    time.sleep(step * 0.002)
        until(lambda: in_flight(self.server) == 1, "all have ended")
        self.assertEqual(waiters(self.server), 0)
        self.server.must("DELETE", "/_session/" + session)


class Beside(Bounds):
    """Short requests are executed while all workers for long work are busy."""

    def setUp(self):
        self.until_none("*search*")
        self.slow = [self.aside("POST", "/few/_search", SLOW) for _ in range(4)]
        until(lambda: len(self.tasks("*search*")) == 4, "all are at work")

    def tearDown(self):
        self.server.must("POST", "/_tasks/_cancel?actions=*search")
        self.assertEqual([reply()[0] for reply in self.slow], [500] * 4)

    def beside(self):
        """All of them are still at work: so nothing has waited for their end."""
        self.assertEqual(len(self.tasks("*search*")), 4)

    def test_large_bodies_and_answers(self):
        lines = "".join('{"index":{"_id":"%d"}}\n{"t":"%s"}\n' % (i, "x" * 1000) for i in range(1000))
        self.server.must("POST", "/many/_bulk?pretty", lines, {"Content-Type": "application/x-ndjson"})
        self.server.must("POST", "/many/_mget?pretty", {"ids": [str(i) for i in range(150)]})
        self.server.must("PUT", "/many/_doc/large", {"a": ["x" * 1000] * 1000, "b": 1})
        found = self.server.must("GET", "/many/_doc/large?_source_includes=b&pretty")
        self.assertEqual(found["_source"], {"b": 1})
        self.beside()

    def test_searches_that_are_not_as_long(self):
        body = {"query": {"script": {"script": {"source": "doc['n'].value == 2"}}}}
        self.assertEqual(self.server.must("POST", "/few/_search", body)["hits"]["total"]["value"], 1)
        self.beside()

    def test_requests_that_wait_for_a_task_take_no_worker(self):
        name = self.tasks("*search*")[0]["name"]
        waiting = [self.aside("GET", "/_tasks/%s?wait_for_completion=true&timeout=60s" % name, None) for _ in range(8)]
        until(lambda: in_flight(self.server) > 4 + 8, "all wait for the task")
        self.test_searches_that_are_not_as_long()
        self.assertFalse(self.server.must("GET", "/_tasks/%s?wait_for_completion=true&timeout=50ms" % name)["completed"])
        self.beside()
        self.server.must("POST", "/_tasks/%s/_cancel" % name)
        for reply in waiting:
            status, said = reply()
            self.assertEqual((status, said["completed"], said["task"]["action"]), (200, True, "indices:data/read/search"))


class Late(Bounds):
    OPTIONS = ("--script-steps", str(STEPS), "--request-time", "300ms")

    def test_reads(self):
        for path, body in (("/few/_search", SLOW), ("/few/_count", SLOW), ("/few/_search?scroll=1m", SLOW),
                           ("/_scripts/painless/_execute", {"script": {"source": ENDLESS + "return s"}}),
                           ("/few/_delete_by_query", SLOW)):
            status, reply = self.server.ask("POST", path, body)
            self.assertEqual((status, reply["error"]["type"]), (500, "timeout_exception"), (path, reply))
            self.assertIn("--request-time", reply["error"]["reason"])
        self.assertEqual(self.server.must("GET", "/few/_count")["count"], 2)

    def test_partly(self):
        """A timeout of the request's own is shorter."""
        self.assertTrue(self.server.must("POST", "/few/_search?timeout=30ms", SLOW)["timed_out"])

    def test_waits_do_not_count(self):
        holder = self.server.must("POST", "/_session", {"ttl": "1h"})["session"]
        self.server.must("POST", "/_lock", {"session": holder, "locks": [{"index": "few", "mode": "exclusive"}]})
        transaction = self.server.must("POST", "/_transaction")["transaction"]
        reply = self.aside("GET", "/few/_search?timeout=60s&transaction=" + transaction, None)
        until(lambda: any(lock["waiters"] for lock in self.server.must("GET", "/_lock")["locks"]), "the search waits")
        time.sleep(0.5)  # longer than a request may work
        self.server.must("DELETE", "/_session/" + holder)
        self.assertEqual(reply()[0], 200)
        self.server.must("POST", "/_transaction/%s/_commit" % transaction)


class Stopping(unittest.TestCase):
    def serve(self, *options, steps=STEPS):
        server = Server("--script-steps", str(steps), *options, replay=False).start()
        self.addCleanup(server.close)
        server.must("PUT", "/few/_doc/1", {"n": 1})
        return server

    def begin(self, server, path, body):
        body = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        s = socket.create_connection(("127.0.0.1", server.port))
        self.addCleanup(s.close)
        s.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" %
                  (path.encode(), len(body), body))

    def test_reads_at_work(self):
        server = self.serve("--grace=300ms")
        for path, body in (("/few/_search", SLOW), ("/few/_update_by_query", {"script": {"source": ENDLESS + "ctx._source.n = s"}}),
                           ("/_scripts/painless/_execute", {"script": {"source": ENDLESS + "return s"}})):
            self.begin(server, path, body)
        until(lambda: len(tasks(server, "indices:*")) == 2, "the search and the update by query are at work")
        self.assertEqual(server.stop(), 0, "in order")

    def test_calls_that_wait_to_run_a_script(self):
        server = self.serve("--grace=300ms", "--workers=1")
        for _ in range(3):
            for path, body in (("/few/_delete_by_query", SLOW), ("/few/_update_by_query", {"script": {"source": ENDLESS + "ctx._source.n = s"}})):
                self.begin(server, path, body)
        until(lambda: len(tasks(server, "*byquery")) == 6, "all are at work")
        self.assertEqual(server.stop(), 0, "in order")

    def test_a_script_of_the_writer(self):
        """Its only limit are steps, so the stop does not wait for it; acknowledged writes are kept. The next start executes what the log has of them."""
        server = self.serve("--grace=100ms", "--stop-time=1s", steps=STEPS // 4)
        lines = '{"update":{"_index":"few","_id":"1"}}\n%s\n' % json.dumps({"script": {"source": ENDLESS + "ctx._source.n = s"}})
        for _ in range(16):  # one after the other, and together they take far longer than --stop-time
            self.begin(server, "/_bulk", lines)
        until(lambda: in_flight(server) > 4, "most of them are at work")
        self.assertEqual(server.stop(), 1)
        self.assertIn("--stop-time", server.errors())
        server.options.remove("--stop-time=1s")  # its end, with nothing at work, may take longer on a busy machine
        server.start()
        self.assertEqual(server.must("GET", "/few/_doc/1")["_source"], {"n": 1})

    def test_values(self):
        for value in ("0", "100ms", "x"):
            run = subprocess.run([PROGRAM, "serve", "--data", tempfile.gettempdir() + "/none", "--stop-time", value], capture_output=True,
                                 text=True, check=False)
            self.assertEqual(run.returncode, 64, run.stderr)
            self.assertIn("--stop-time", run.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
