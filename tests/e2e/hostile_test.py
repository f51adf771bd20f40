#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hostile clients: pages of other sites, ambiguous requests, crowds of connections, bytes that terminals obey.

Method: what a browser, a proxy or a person with a socket would send is written out byte by byte. Each case shows what is
answered, that nobody's data has changed, and that the server answers others meanwhile.
"""
import json
import os
import socket
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402


def head_of(method, path, headers=(), body=b"", host="localhost"):
    lines = ["%s %s HTTP/1.1" % (method, path), "Host: %s" % host, *headers]
    if body or method in ("POST", "PUT"):
        lines.append("Content-Length: %d" % len(body))
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Reply:
    def __init__(self, data):
        head, _, self.body = data.partition(b"\r\n\r\n")
        words = head.split(b" ", 2)
        self.status = int(words[1]) if len(words) > 1 else 0
        self.head = head.lower()

    def json(self):
        return json.loads(self.body)


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--host-name", "store.example,other.example").start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def ask(self, method, path, headers=(), body=b"", host="localhost"):
        return Reply(self.server.raw(head_of(method, path, ["Connection: close", *headers], body, host)))

    def refused(self, reply, status, kind, says):
        """In Elasticsearch's envelope, with a reason."""
        self.assertEqual(reply.status, status, reply.body)
        error = reply.json()
        self.assertEqual(error["status"], status)
        self.assertEqual(error["error"]["type"], kind)
        self.assertEqual(error["error"]["root_cause"][0]["type"], kind)
        self.assertIn(says, error["error"]["reason"])

    def alive(self):
        self.assertEqual(self.server.ask("GET", "/")[0], 200)


class Pages(Hostile):
    """What a page may have a browser send: anything that needs no preflight, with any host name that leads here."""

    WRITES = (
        ("POST", "/victim/file", b'{"a":1}'),
        ("POST", "/victim/file/1/_create", b'{"a":1}'),
        ("POST", "/victim/_doc", b'{"a":1}'),
        ("POST", "/_bulk", b'{"index":{"_index":"victim","_type":"file","_id":"2"}}\n{"a":1}\n'),
        ("POST", "/victim/file/1/_update", b'{"doc":{"a":2}}'),
        ("POST", "/victim/_update/1", b'{"doc":{"a":2}}'),
        ("POST", "/victim/_delete_by_query", b'{"query":{"match_all":{}}}'),
        ("POST", "/victim/file/_delete_by_query", b'{"query":{"match_all":{}}}'),
        ("POST", "/_session", b'{"ttl":"1h","on_expire":[{"delete":{"_index":"victim","_type":"file","_id":"1"}}]}'),
        ("POST", "/_transaction", b'{"mode":"update"}'),
        ("POST", "/_scripts/mine", b'{"script":{"lang":"painless","source":"1"}}'),
        ("POST", "/_reindex", b'{"source":{"index":"victim"},"dest":{"index":"other"}}'),
    )
    BARE = (("POST", "/_close"), ("POST", "/victim/_close"), ("POST", "/_forcemerge"), ("POST", "/_refresh"),
            ("POST", "/_session"), ("POST", "/_transaction"), ("DELETE", "/victim"), ("GET", "/_search"), ("GET", "/victim/file/1"))
    SIMPLE = ("text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b", None)

    def setUp(self):
        self.server.must("PUT", "/victim/file/1", {"a": 0})
        self.before = self.state()

    def state(self):
        return [self.server.must("GET", path) for path in ("/victim/_search", "/victim", "/_session", "/_transaction", "/_cluster/state/metadata")]

    def tearDown(self):
        now = self.state()
        self.assertEqual([x for x in self.before[0]["hits"]["hits"]], [x for x in now[0]["hits"]["hits"]])
        self.assertEqual(self.before[1], now[1])
        self.assertEqual(len(self.before[2]["sessions"]), len(now[2]["sessions"]))
        self.assertEqual(len(self.before[3]["transactions"]), len(now[3]["transactions"]))
        self.assertEqual(self.server.ask("GET", "/_scripts/mine")[0], 404)
        self.assertEqual(self.server.ask("HEAD", "/other")[0], 404)

    def test_other_sites(self):
        for marks in (["Origin: http://evil.example"], ["Origin: null"], ["Sec-Fetch-Site: cross-site"], ["Sec-Fetch-Site: same-site"],
                      ["Origin: http://localhost:3000", "Sec-Fetch-Site: same-site"],
                      ["Origin: http://localhost:%d.evil.example" % self.server.port]):
            for method, path, body in self.WRITES:
                for kind in (*self.SIMPLE, "application/json"):
                    headers = marks + (["Content-Type: " + kind] if kind else [])
                    self.refused(self.ask(method, path, headers, body, "localhost:%d" % self.server.port), 403, "security_exception", "other sites")
            for method, path in self.BARE:
                self.refused(self.ask(method, path, marks), 403, "security_exception", "other sites")
            self.refused(self.ask("OPTIONS", "/victim/file/1", marks + ["Access-Control-Request-Method: PUT"]), 403, "security_exception", "other sites")

    def test_names_that_rebind(self):
        for host in ("evil.example", "evil.example:%d" % self.server.port, "localhost.evil.example", "127.0.0.1.evil.example", "127.1",
                     "store.example.evil"):
            for method, path, body in self.WRITES:
                self.refused(self.ask(method, path, ["Content-Type: application/json"], body, host), 403, "security_exception", "--host-name")
            for method, path in self.BARE:
                self.refused(self.ask(method, path, (), b"", host), 403, "security_exception", "--host-name")
        reply = Reply(self.server.raw(b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
        self.refused(reply, 403, "security_exception", "--host-name")

    def test_bodies_that_do_not_say_what_they_are(self):
        for method, path, body in self.WRITES:
            for kind in ("text/plain", "text/plain;charset=UTF-8", "multipart/form-data; boundary=b", "application/smile", "application/cbor"):
                reply = self.ask(method, path, ["Content-Type: " + kind], body)
                self.assertEqual(reply.status, 406, (path, kind, reply.body))
                self.assertEqual(reply.json(), {"error": "Content-Type header [%s] is not supported" % kind, "status": 406})
            # What a program on this host may leave out, one behind a proxy or in a browser may not.
            for mark in ("X-Forwarded-For: 10.0.0.1", "Forwarded: for=10.0.0.1", "Via: 1.1 proxy", "Sec-Fetch-Site: same-origin",
                         "Origin: http://localhost"):
                for kind in (None, "application/x-www-form-urlencoded"):
                    reply = self.ask(method, path, [mark] + (["Content-Type: " + kind] if kind else []), body)
                    self.assertEqual(reply.status, 406, (path, kind, mark, reply.body))

    def test_own_pages_and_names_pass(self):
        for host in ("localhost", "LOCALHOST:%d" % self.server.port, "127.0.0.1", "10.1.2.3:80", "[::1]:9200", "store.example", "Other.Example.:80"):
            self.assertEqual(self.ask("GET", "/victim/file/1", (), b"", host).status, 200, host)
            self.assertEqual(self.ask("GET", "/victim/file/1", ["Origin: http://" + host, "Sec-Fetch-Site: same-origin"], b"", host).status, 200)
        self.assertEqual(self.ask("GET", "/", ["Sec-Fetch-Site: none"]).status, 200)
        self.assertEqual(Reply(self.server.raw(b"GET / HTTP/1.0\r\n\r\n")).status, 200)


class Old(Hostile):
    def test_clients_of_5_6_on_this_host(self):
        for kind in (["Content-Type: application/x-www-form-urlencoded"], []):
            self.assertEqual(self.ask("POST", "/old/file", kind, b'{"a":1}').status, 201)
            self.assertEqual(self.ask("PUT", "/old/file/1", kind, b'{"a":1}').status // 100, 2)
            self.assertEqual(self.ask("POST", "/_session", kind, b'{"ttl":"2s"}').status, 201)
            self.assertEqual(self.ask("POST", "/new/_doc", kind, b'{"a":1}').status, 406)
        self.assertEqual(self.ask("PUT", "/old/file/1", ["Content-Type: text/plain"], b'{"a":1}').status, 200)


class Ambiguous(Hostile):
    """Requests that a proxy in front may understand in another way: 400, and nothing behind them is believed."""

    NEXT = b"PUT /smuggled/_doc/1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    CASES = {
        "both lengths": b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "two lengths": b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
        "the same length twice": b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        "a space before the colon": b"POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "a coding that is not known": b"POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "NUL in the path": b"GET /x\0y HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "NUL in a header": b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n",
        "NUL in a header's name": b"GET / HTTP/1.1\r\nHost: localhost\r\nX\0Y: a\r\n\r\n",
        "no Host": b"GET / HTTP/1.1\r\n\r\n",
        "two Hosts": b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        "1.9": b"GET / HTTP/1.9\r\nHost: localhost\r\n\r\n",
        "a folded line": b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n",
        "a folded length": b"POST /x HTTP/1.1\r\nHost: localhost\r\nX: a\r\n Content-Length: 2\r\n\r\n{}",
        "LF alone": b"GET / HTTP/1.1\r\nHost: localhost\nX: a\r\n\r\n",
        "LF alone after the first line": b"GET / HTTP/1.1\nHost: localhost\r\n\r\n",
        "LF alone at the end": b"GET / HTTP/1.1\r\nHost: localhost\r\n\n",
        "CR alone": b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\rY: b\r\n\r\n",
    }

    NO_HTTP = ("NUL in a header's name",)  # a line without a colon, to libmicrohttpd, which answers that itself

    def test_refused_and_closed(self):
        for name, data in self.CASES.items():
            with self.subTest(name):
                answer = self.server.raw(data + self.NEXT)
                self.assertTrue(answer.startswith(b"HTTP/1.1 400 "), answer)
                if name in self.NO_HTTP:
                    continue
                self.assertEqual(answer.count(b'"status"'), 1, answer)
                self.refused(Reply(answer), 400, "illegal_argument_exception", "malformed HTTP request")
                self.assertIn(b"connection: close", Reply(answer).head)
        self.assertEqual(self.server.ask("HEAD", "/smuggled")[0], 404)
        self.alive()

    def test_in_pieces(self):
        """The same, byte by byte: what has come in is not all there is."""
        for name, data in self.CASES.items():
            with self.subTest(name), socket.create_connection(("127.0.0.1", self.server.port), 10) as s:
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                answer = b""
                try:
                    for i in range(len(data)):
                        s.sendall(data[i:i + 1])
                    s.sendall(self.NEXT)
                    while part := s.recv(65536):
                        answer += part
                except (BrokenPipeError, ConnectionResetError):
                    pass
                self.assertTrue(answer == b"" or answer.startswith(b"HTTP/1.1 400 "), answer)
        self.assertEqual(self.server.ask("HEAD", "/smuggled")[0], 404)


if __name__ == "__main__":
    unittest.main()
