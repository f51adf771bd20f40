#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client that disconnects during a reply leaves nothing allocated in the server: no request, memory, search context or attached session.

Each kind of reply that is written in several parts is requested repeatedly. Its connection breaks at write number 1, 2, 3 …
until all is written, and after some bytes (lib/send_shim.c). Also a client reads some parts and closes. After each case the
server's statistics are as before; at the end a build with sanitizers checks for leaks.

The same is done with each row of routes.def, with each of its methods. A reply with a length is handed to src/http as a whole
before its first write, and nothing of its handler runs between writes, so that the number of writes does not matter to the handler:
the long replies of ANSWERS stand for all. A handler that streams its reply must be in ANSWERS or ENDLESS.
"""
import http.client
import json
import os
import re
import socket
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import BUILD, Server  # noqa: E402
from waiting import until  # noqa: E402
from transaction_catalog_test import NEEDED, PARTS, WITHIN, routes  # noqa: E402

SHIM = os.environ.get("TIDELOCK_SEND_SHIM", os.path.join(BUILD, "tests", "e2e", "send_shim.so"))
LONG = bool(os.environ.get("TIDELOCK_TEST_LONG"))
ALL = 1 << 40
DOCUMENTS, BYTES = 60, 20000  # more than a socket takes at once
CUTS = 40 if LONG else 6      # places in an answer, by bytes
WRITES_MAX = 1000
PIECE = 4096
ENDLESS_WRITES = 12 if LONG else 5
FIGURES = ("tidelock_http_connections", "tidelock_http_requests_in_flight", "tidelock_http_streams", "tidelock_sessions", "tidelock_transactions")


def bulk(lines):
    return "".join(json.dumps(line) + "\n" for line in lines)


IDS = [str(i) for i in range(DOCUMENTS)]
# Method, path, body. `{scroll}` is one of a scroll that was just opened.
ANSWERS = {
    "a document": ("GET", "/big/_doc/whole", None),
    "a source": ("GET", "/big/_source/whole", None),
    "its head": ("HEAD", "/big/_doc/whole", None),
    "many documents": ("POST", "/big/_mget", {"ids": IDS}),
    "hits": ("POST", "/big/_search", {"size": DOCUMENTS}),
    "pretty hits": ("POST", "/big/_search?pretty&human", {"size": 5}),
    "YAML": ("POST", "/big/_search?format=yaml", {"size": 5}),
    "several searches": ("POST", "/_msearch", bulk([{"index": "big"}, {"size": DOCUMENTS}] * 2)),
    "a scroll": ("POST", "/big/_search?scroll=1m", {"size": 30}),
    "a page of a scroll": ("POST", "/_search/scroll", {"scroll": "1m", "scroll_id": "{scroll}"}),
    "a bulk": ("POST", "/_bulk", bulk([{"delete": {"_index": "none", "_id": "x" * 500 + str(i)}} for i in range(1000)])),
    "a bulk of errors": ("POST", "/_bulk", bulk([{"update": {"_index": "big", "_id": "missing" + str(i)}} if i % 2 == 0 else {"doc": {}} for i in range(2000)])),
    "changes": ("GET", "/_changes?since=0", None),
    "changes that are waited for": ("GET", "/_changes?since=0&wait=1s", None),
    "events, once": ("GET", "/_events?once", None),
    "the page": ("GET", "/_ui/", None),
    "locks": ("GET", "/_lock", None),
    "a table of locks": ("GET", "/_cat/locks?v", None),
    "a mapping": ("GET", "/wide/_mapping", None),
    "the state": ("GET", "/_cluster/state", None),
    "metrics": ("GET", "/_metrics", None),
    "an error": ("POST", "/big/_search", '{"query":{"%s":{}}}' % ("x" * 100000)),
}
# Streams that do not end by themselves.
ENDLESS = {
    "continuous changes": "/_changes?feed=continuous&since=0",
    "events": "/_events",
    "an attached session": "/_session/{session}/_attach",
}
# Bodies of handlers that leave something which a client that never learns its name cannot end: it ends soon by itself.
SHORT = {"session_open": {"ttl": "1s"}, "txn_begin": {"timeout": "1s"}}


def handler_of(method, path):
    """Returns: the handler of a request, by the row that has the most of its path literally."""
    asked = path.split("?")[0].strip("/").split("/")
    found = []
    for methods, row, handler in routes(parts=None):
        parts = row.strip("/").split("/")
        if method in methods and len(parts) == len(asked) and all(part.startswith("{") or part == here for part, here in zip(parts, asked)):
            found.append((sum(not part.startswith("{") for part in parts), handler))
    return max(found)[1]


class Chosen:
    """The connection whose writes are counted: one at a time."""

    def __init__(self):
        assert os.path.exists(SHIM), SHIM + " is not built"
        descriptor, self.name = tempfile.mkstemp(prefix="tidelock-sends-")
        os.write(descriptor, bytes(24))
        os.close(descriptor)

    def environment(self):
        return {"LD_PRELOAD": SHIM, "TIDELOCK_TEST_SENDS": self.name, "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}

    def choose(self, port, calls=ALL, bytes=ALL):
        with open(self.name, "r+b", buffering=0) as file:
            file.write(struct.pack("=Qqq", port, calls, bytes))


class ClientDisconnect(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.chosen = Chosen()
        cls.addClassCleanup(os.unlink, cls.chosen.name)
        cls.server = Server(environment=cls.chosen.environment()).start()
        cls.addClassCleanup(cls.server.close)
        cls.make_documents()
        holder = cls.server.must("POST", "/_session", {"ttl": "1h", "name": "x" * 100})["session"]
        cls.server.must("POST", "/_lock", {"session": holder, "locks": [{"mode": "exclusive", "index": "locked", "id": "%s-%d" % ("y" * 300, i)} for i in range(400)]})

    @classmethod
    def make_documents(cls):
        cls.server.must("DELETE", "/*?expand_wildcards=all")
        lines = []
        for i in IDS:
            lines += [{"index": {"_index": "big", "_id": i}}, {"n": int(i), "text": "x" * BYTES}]
        cls.server.must("PUT", "/big", {"mappings": {"dynamic": False}})
        cls.server.must("POST", "/_bulk", bulk(lines))
        cls.server.must("PUT", "/big/_doc/whole", {"text": "y" * DOCUMENTS * BYTES})
        cls.server.must("PUT", "/wide", {"mappings": {"properties": {"field-%d" % i: {"type": "keyword"} for i in range(900)}}})

    def setUp(self):
        self.streamed = False
        self.before = self.metrics()

    def metrics(self):
        """Returns: the server's current objects, without those of this request."""
        page = self.server.request("GET", "/_metrics").body.decode()
        found = {name: sum(float(value) for value in re.findall(r"^%s(?:\{.*\})? (\S+)" % name, page, re.M)) for name in FIGURES}
        node = next(iter(self.server.must("GET", "/_nodes/stats")["nodes"].values()))
        found["contexts"] = node["indices"]["search"]["open_contexts"]
        found["streams"] = node["breakers"]["streams"]["estimated_size_in_bytes"] if "streams" in node["breakers"] else 0
        found["tasks"] = len(next(iter(self.server.must("GET", "/_tasks")["nodes"].values()))["tasks"])
        return found

    def assert_nothing_left(self):
        self.server.ask("DELETE", "/_search/scroll/_all")
        until(lambda: self.metrics() == self.before, "the server's metrics are as before: %s" % self.before)

    def dial(self, **places):
        one = socket.socket()
        one.bind(("127.0.0.1", 0))
        self.chosen.choose(one.getsockname()[1], **places)
        one.connect(("127.0.0.1", self.server.port))
        return one

    def send(self, one, method, path, body):
        if isinstance(body, dict):
            body = json.dumps(body)
        if body and "{scroll}" in body:
            body = body.replace("{scroll}", self.server.must("POST", "/big/_search?scroll=1m", {"size": 30})["_scroll_id"])
        data = (body or "").encode()
        one.sendall(("%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (method, path, len(data))).encode() + data)

    def read(self, one, method):
        """Returns: the answer's body when it is whole, None when the connection broke before."""
        response = http.client.HTTPResponse(one, method=method)
        try:
            response.begin()
            self.streamed = response.chunked
            return response.read()
        except (http.client.HTTPException, ConnectionError):
            return None

    def ask(self, request, **places):
        with self.dial(**places) as one:
            self.send(one, *request)
            return self.read(one, request[0])

    def test_disconnect_at_each_write(self):
        for name, request in ANSWERS.items():
            with self.subTest(name):
                for calls in range(WRITES_MAX):
                    if self.ask(request, calls=calls) is not None:
                        break
                self.assertGreater(calls, 0, "the first write is not one of a reader that is there")
                self.assertLess(calls, WRITES_MAX - 1)
                self.assert_nothing_left()

    def prepare(self):
        """Makes what requests of the rows refer to, as far as an earlier one has removed it. Returns: the server's statistics."""
        if self.server.ask("HEAD", "/fs")[0] == 404:
            self.server.must("PUT", "/fs", {"mappings": {"properties": {"n": {"type": "long"}, "path": {"type": "path"}}}, "aliases": {PARTS["name"]: {}}})
        self.server.must("POST", "/fs/_open")
        self.server.must("PUT", "/fs/_doc/1", {"n": 1})
        self.server.must("PUT", "/_scripts/1", {"script": {"lang": "painless", "source": "1"}})
        return self.metrics()

    def test_disconnect_at_each_write_of_each_route(self):
        rows = {}
        for methods, path, handler in routes():
            rows.setdefault(handler, []).extend((method, path + "?" + NEEDED.get(handler, "")) for method in methods)
        many = {handler_of(method, path) for method, path, _ in ANSWERS.values()} | {handler_of("GET", path) for path in ENDLESS.values()}
        self.addCleanup(self.make_documents)
        for handler, requests in rows.items():
            with self.subTest(handler):
                self.before = self.prepare()
                for method, path in requests:
                    for calls in range(WRITES_MAX):
                        if self.ask((method, path, SHORT.get(handler, WITHIN[handler][1])), calls=calls) is not None:
                            break
                    self.assertGreater(calls, 0, (method, path))
                    self.assertLess(calls, WRITES_MAX - 1)
                    self.assertTrue(not self.streamed or handler in many, "[%s] streams its reply: ANSWERS has none of it" % handler)
                self.server.ask("DELETE", "/_search/point_in_time/_all")
                self.assert_nothing_left()

    def test_disconnect_after_some_bytes(self):
        for name, request in ANSWERS.items():
            with self.subTest(name):
                whole = self.ask(request)
                self.assertIsNotNone(whole)
                self.assertTrue(len(whole) > 5000 or request[0] == "HEAD", len(whole))
                for cut in range(1, CUTS + 1):
                    self.assertIsNone(self.ask(request, bytes=len(whole) * cut // (CUTS + 1) + 1) if whole else None)
                self.assert_nothing_left()

    def test_reader_closes_connection(self):
        """When it has read some pieces; each second one resets the connection."""
        for name, request in ANSWERS.items():
            whole = self.ask(request)
            for pieces in range(min(4, len(whole) // PIECE)):
                with self.subTest(name, pieces=pieces), socket.socket() as one:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PIECE)
                    one.connect(("127.0.0.1", self.server.port))
                    self.send(one, *request)
                    for _ in range(pieces):
                        one.recv(PIECE)
                    if pieces % 2 == 1:
                        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # it resets
            self.assert_nothing_left()

    def test_stream_disconnect_at_each_write(self):
        for name, path in ENDLESS.items():
            for calls in range(ENDLESS_WRITES):
                with self.subTest(name, calls=calls), self.dial(calls=calls) as one:
                    attached = self.server.must("POST", "/_session", {"ttl": "1s"})["session"] if "{session}" in path else None
                    self.send(one, "GET", path.replace("{session}", str(attached)), None)
                    if attached:  # its lines come by themselves, and no change of a document makes more
                        until(lambda: self.server.ask("GET", "/_session/" + attached)[0] == 404, "the session has ended with its line")
                    else:
                        self.write_until_broken(one)
            self.assert_nothing_left()

    def write_until_broken(self, one):
        """Has the server write to it, until it has noticed that its reader is gone."""
        one.setblocking(False)
        while True:
            self.server.must("PUT", "/big/_doc/0", {"n": 0})
            try:
                while one.recv(1 << 16):
                    pass
                return
            except BlockingIOError:
                pass
            except ConnectionError:
                return


if __name__ == "__main__":
    unittest.main(verbosity=2)
