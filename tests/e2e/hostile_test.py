#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hostile clients: pages of other sites, ambiguous requests, too many connections, bytes that control terminals.

Method: each test writes, byte by byte, what a browser, a proxy or a person with a socket would send. Each case checks the reply,
that the data is unchanged, and that the server answers other clients meanwhile.
"""
import ctypes
import http.client
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import PROGRAM, Server  # noqa: E402
from waiting import until  # noqa: E402


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
        return Reply(self.server.raw(head_of(method, path, ["Connection: close", *headers], body, host), timeout=None))

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

    def test_requests_of_other_sites_are_refused(self):
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

    def test_dns_rebinding_is_refused(self):
        for host in ("evil.example", "evil.example:%d" % self.server.port, "localhost.evil.example", "127.0.0.1.evil.example", "127.1",
                     "store.example.evil"):
            for method, path, body in self.WRITES:
                self.refused(self.ask(method, path, ["Content-Type: application/json"], body, host), 403, "security_exception", "--host-name")
            for method, path in self.BARE:
                self.refused(self.ask(method, path, (), b"", host), 403, "security_exception", "--host-name")
        reply = Reply(self.server.raw(b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", timeout=None))
        self.refused(reply, 403, "security_exception", "--host-name")

    def test_bodies_with_unsupported_content_type_are_refused(self):
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

    def test_own_pages_and_names_are_accepted(self):
        for host in ("localhost", "LOCALHOST:%d" % self.server.port, "127.0.0.1", "10.1.2.3:80", "[::1]:9200", "store.example", "Other.Example.:80"):
            self.assertEqual(self.ask("GET", "/victim/file/1", (), b"", host).status, 200, host)
            self.assertEqual(self.ask("GET", "/victim/file/1", ["Origin: http://" + host, "Sec-Fetch-Site: same-origin"], b"", host).status, 200)
        self.assertEqual(self.ask("GET", "/", ["Sec-Fetch-Site: none"]).status, 200)
        self.assertEqual(Reply(self.server.raw(b"GET / HTTP/1.0\r\n\r\n", timeout=None)).status, 200)


class Old(Hostile):
    def test_clients_of_5_6_on_this_host(self):
        for kind in (["Content-Type: application/x-www-form-urlencoded"], []):
            self.assertEqual(self.ask("POST", "/old/file", kind, b'{"a":1}').status, 201)
            self.assertEqual(self.ask("PUT", "/old/file/1", kind, b'{"a":1}').status // 100, 2)
            self.assertEqual(self.ask("POST", "/_session", kind, b'{"ttl":"2s"}').status, 201)
            self.assertEqual(self.ask("POST", "/new/_doc", kind, b'{"a":1}').status, 406)
        self.assertEqual(self.ask("PUT", "/old/file/1", ["Content-Type: text/plain"], b'{"a":1}').status, 200)


# libmicrohttpd 1.x refuses most of these itself, in its own words; 0.9 leaves them to us.
LIBRARY = ctypes.CDLL("libmicrohttpd.so.12")
LIBRARY.MHD_get_version.restype = ctypes.c_char_p
LIBRARY_REFUSES = not LIBRARY.MHD_get_version().startswith(b"0.")


class Ambiguous(Hostile):
    """Requests that a proxy may interpret differently: 400, and the rest of the connection's input is discarded."""

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
                answer = self.server.raw(data + self.NEXT, timeout=None)
                if answer == b"" and name == "NUL in the path" and LIBRARY_REFUSES:
                    continue
                self.assertTrue(answer.startswith(b"HTTP/1.1 400 "), answer)
                if name in self.NO_HTTP or (LIBRARY_REFUSES and b"<html>" in answer):
                    self.assertEqual(answer.count(b"Content-Length:"), 1, answer)
                    continue
                self.assertEqual(answer.count(b'"status"'), 1, answer)
                self.refused(Reply(answer), 400, "illegal_argument_exception", "malformed HTTP request")
                self.assertIn(b"connection: close", Reply(answer).head)
        self.assertEqual(self.server.ask("HEAD", "/smuggled")[0], 404)
        self.alive()

    def test_in_pieces(self):
        """The same requests, sent byte by byte."""
        for name, data in self.CASES.items():
            with self.subTest(name), socket.create_connection(("127.0.0.1", self.server.port)) as s:
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


class Bursts(unittest.TestCase):
    """Connections that ask nothing: they make room for others that do."""

    def dial(self, server, source="127.0.0.1"):
        return socket.create_connection(("127.0.0.1", server.port), source_address=(source, 0))

    def answered(self, server, source="127.0.0.1"):
        with self.dial(server, source) as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return Reply(s.recv(65536)).status

    def is_open(self, s):
        s.setblocking(False)
        try:
            return s.recv(1) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def open_among(self, connections):
        return sum(map(self.is_open, connections))

    def test_idle_connections_are_evicted(self):
        with Server("--max-connections", "200") as server:
            session = server.must("POST", "/_session", {"ttl": "1h", "name": "attached"})["session"]
            line = self.dial(server)
            line.sendall(b"GET /_session/%s/_attach HTTP/1.1\r\nHost: localhost\r\n\r\n" % session.encode())
            self.assertIn(b" 200 ", line.recv(65536))
            connections = [self.dial(server) for _ in range(400)]
            for _ in range(20):
                self.assertEqual(self.answered(server), 200)
            until(lambda: self.open_among(connections) <= 200, "no more connections than slots")
            self.assertTrue(self.is_open(line), "an attached session keeps its place")
            server.hang_up()  # which was the idlest of all, and is gone
            self.assertEqual(server.ask("GET", "/_session/" + session)[0], 200)
            for s in connections:
                s.close()
            line.close()

    def test_connection_limit_of_one_address(self):
        with Server("--max-connections", "200", "--max-connections-per-address", "20") as server:
            others = [self.dial(server, "127.0.0.2") for _ in range(10)]
            connections = [self.dial(server) for _ in range(100)]
            self.assertEqual(self.answered(server), 200)
            until(lambda: self.open_among(connections) <= 20, "no more connections than one address may have")
            self.assertEqual(self.open_among(others), 10, "the limit is each address's own")
            for s in connections + others:
                s.close()

    def test_busy_connections_are_not_evicted(self):
        """No connection that waits for an answer is ended; one too many is refused.

        The test's own requests use one connection from another address, which takes none of the first address's slots."""
        with Server("--max-connections", "200", "--max-connections-per-address", "5") as server:
            server.connection = http.client.HTTPConnection("127.0.0.1", server.port, source_address=("127.0.0.3", 0))
            holder = server.must("POST", "/_session", {"ttl": "1h"})["session"]
            server.must("POST", "/_lock", {"session": holder, "locks": [{"mode": "exclusive", "index": "i"}]})
            waiting = []
            for _ in range(5):  # one after the other: a connection that has a place and has not been read yet is idle, and would give it away
                s = self.dial(server)
                s.sendall(head_of("PUT", "/i/_doc/1?timeout=10m", ["Content-Type: application/json"], b"{}"))
                waiting.append(s)
                until(lambda: sum(len(lock["waiters"]) for lock in server.must("GET", "/_lock")["locks"]) == len(waiting), "all wait for the lock")
            with self.dial(server) as s:
                answer = b""
                while part := s.recv(65536):
                    answer += part
            reply = Reply(answer)
            self.assertEqual(reply.status, 429, answer)
            self.assertIn("--max-connections-per-address", reply.json()["error"]["reason"])
            self.assertEqual(self.open_among(waiting), 5)
            server.must("POST", "/_unlock", {"session": holder})
            for s in waiting:
                s.setblocking(True)
                self.assertIn(Reply(s.recv(65536)).status, (200, 201))
                s.close()


class Files(unittest.TestCase):
    def setUp(self):
        self.data = tempfile.mkdtemp(prefix="tidelock-hostile-")
        os.chmod(self.data, 0o755)

    def tearDown(self):
        shutil.rmtree(self.data, ignore_errors=True)
        for path in (self.data + ".log", self.data + "-new.log"):
            if os.path.exists(path):
                os.unlink(path)
        shutil.rmtree(self.data + "-new", ignore_errors=True)

    def modes(self, top):
        found = {stat.S_IMODE(os.stat(top).st_mode): [top]}
        for folder, folders, files in os.walk(top):
            for name in folders + files:
                path = os.path.join(folder, name)
                found.setdefault(stat.S_IMODE(os.stat(path).st_mode), []).append(path)
        return found

    def test_data_files_are_private(self):
        old = os.umask(0)
        try:
            with Server(data=self.data + "-new") as server:
                server.must("PUT", "/i/_doc/1", {"a": 1})
                self.assertEqual(set(self.modes(server.data)), {0o700, 0o600})
        finally:
            os.umask(old)

    def test_inherited_descriptors_are_closed(self):
        with Server(data=self.data) as server:
            server.must("PUT", "/i/_doc/1", {"a": 1})
        for mode, paths in self.modes(self.data).items():
            for path in paths:
                os.chmod(path, 0o755 if mode & 0o100 else 0o644)
        with Server(data=self.data) as server:
            self.assertEqual(set(self.modes(self.data)), {0o700, 0o600})
            self.assertIn("is its owner's alone now", server.errors())
            self.assertEqual(server.ask("GET", "/i/_doc/1")[0], 200)

    def test_non_regular_script_files_are_skipped(self):
        """A FIFO, a folder, a device, a socket with the name of a script: passed over; the others are there."""
        scripts = os.path.join(self.data, "scripts")
        os.mkdir(scripts)
        os.mkfifo(os.path.join(scripts, "fifo.groovy"))
        os.mkdir(os.path.join(scripts, "folder.groovy"))
        os.symlink("/dev/zero", os.path.join(scripts, "zero.painless"))
        os.symlink(os.path.join(scripts, "fifo.groovy"), os.path.join(scripts, "link.groovy"))
        with open(os.path.join(scripts, "good.groovy"), "w", encoding="utf-8") as file:
            file.write("ctx._source.a = 7")
        with Server(data=self.data) as server:
            server.must("PUT", "/i/t/1", {"a": 1})
            server.must("POST", "/i/t/1/_update", {"script": {"lang": "groovy", "file": "good"}})
            self.assertEqual(server.must("GET", "/i/t/1")["_source"]["a"], 7)
            self.assertIn("fifo.groovy cannot be read", server.errors())

    def test_fifos_in_data_directory(self):
        os.mkfifo(os.path.join(self.data, "FORMAT"))
        run = subprocess.run([PROGRAM, "serve", "--data", self.data, "--listen", "127.0.0.1:0"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("FORMAT", run.stderr)


class Options(unittest.TestCase):
    """Every number and size an option may have is in its range, or refused with the range; none ends the program."""

    NUMBERS = ("max-connections", "max-connections-per-address", "max-sessions", "script-steps", "script-depth", "threads", "workers")
    SIZES = ("cache", "write-buffer", "reserve", "max-body", "script-memory")
    TIMES = ("history", "idle-timeout", "grace", "request-time", "stop-time")

    def serve(self, option, value):
        data = tempfile.mkdtemp(prefix="tidelock-hostile-")
        try:
            run = subprocess.Popen([PROGRAM, "serve", "--data", data, "--listen", "127.0.0.1:0", "--%s=%s" % (option, value)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            line = run.stdout.readline()
            if line:
                run.terminate()
            _, errors = run.communicate()
            return bool(line), run.returncode, errors
        finally:
            shutil.rmtree(data, ignore_errors=True)

    def test_refused(self):
        for values, options in ((("-1", "0", "1x", "1e3", "NaN", "99999999999999999999", "4294967297"), self.NUMBERS),
                                (("-1", "1x", "NaN", "16777216t", "99999999999999999999"), self.SIZES),
                                (("-1s", "1e3", "1e3s", "NaN", "213503982334601d", "36501d"), self.TIMES)):
            for option in options:
                for value in values:
                    with self.subTest(option=option, value=value):
                        ready, status, errors = self.serve(option, value)
                        self.assertFalse(ready)
                        self.assertEqual(status, 64, errors)
                        self.assertIn("--" + option, errors)

    def test_extremes(self):
        for option, value in (("workers", "65"), ("workers", "256"), ("threads", "256"), ("max-connections", "1"), ("max-body", "1k"),
                              ("cache", "0"), ("write-buffer", "1"), ("history", "0"), ("history", "36500d"), ("idle-timeout", "36500d"),
                              ("script-depth", "1000"), ("max-connections-per-address", "1000000")):
            with self.subTest(option=option, value=value):
                ready, status, errors = self.serve(option, value)
                self.assertTrue(ready, errors)
                self.assertEqual(status, 0, errors)


class Numbers(Hostile):
    def test_malformed_numbers(self):
        self.server.must("PUT", "/n/_doc/1", {"a": 1, "d": "2020-01-01"})
        for word in ("NaN", "nan", "Infinity", "-inf", "0x10", "1e999", "", " 5"):
            for body in ({"size": word}, {"from": word}, {"min_score": word}, {"terminate_after": word},
                         {"query": {"match_all": {"boost": word}}}, {"query": {"bool": {"boost": word, "must": []}}},
                         {"query": {"function_score": {"weight": word}}}, {"query": {"term": {"a": word}}},
                         {"sort": [{"a": {"missing": word}}]}, {"aggs": {"t": {"terms": {"field": "a", "size": word}}}}):
                if word == "" and "term" in body.get("query", {}):
                    continue
                if word == " 5":
                    continue  # a number of a body may have blanks around it, as in 7.10
                status, reply = self.server.ask("POST", "/n/_search", body)
                self.assertEqual(status, 400, (body, reply))
            for query in ("size", "from"):
                status, reply = self.server.ask("GET", "/n/_search?%s=%s" % (query, word.replace(" ", "%20")))
                self.assertEqual(status, 400, (query, word, reply))
        self.alive()

    def test_dates_of_many_digits(self):
        """Each component, as often as a format may have it, with as many digits."""
        for i, letter in enumerate("yuMdDHhkKmsS"):
            for count in (3, 10, 19, 25, 60):
                name = "/dates-%d-%d" % (i, count)
                mapping = {"mappings": {"properties": {"d": {"type": "date", "format": letter * count}}}}
                status, reply = self.server.ask("PUT", name, mapping)
                if status == 400:
                    continue
                self.assertEqual(status, 200, reply)
                for digit in "19":
                    status, reply = self.server.ask("PUT", name + "/_doc/1", {"d": digit * count})
                    self.assertIn(status, (200, 201, 400), reply)
                self.server.ask("POST", name + "/_search", {"query": {"range": {"d": {"gte": "9" * count + "||+999999y"}}}})
                self.server.must("DELETE", name)
        self.alive()


class Terminals(Hostile):
    """Names that a terminal would obey: ESC, a CSI of C1, marks that turn the direction of writing, line breaks."""

    EVIL = "e\x1b[2Jv\x9bil\u202etxt\u2066\n\u200b\\"
    SHOWN = r"e\033[2Jv\302\233il\342\200\256txt\342\201\246\n\342\200\213\\"

    def tool(self, *arguments):
        run = subprocess.run([PROGRAM, *arguments], capture_output=True, env=dict(os.environ, TIDELOCK_URL=self.server.url))
        return run.returncode, (run.stdout + run.stderr).decode("utf-8")

    def harmless(self, text):
        self.assertEqual([c for c in text if (ord(c) < 32 and c != "\n") or 0x7f <= ord(c) < 0xa0 or c in "\u202e\u2066\u200b"], [], text)
        return text

    def test_all_commands(self):
        self.server.must("PUT", "/tree", {"mappings": {"properties": {"path": {"type": "path"}}}})
        self.server.must("PUT", "/tree/_doc/1", {"path": "/" + self.EVIL, "name": self.EVIL, "owner": self.EVIL, "mode": self.EVIL, "type": "file"})
        session = self.server.must("POST", "/_session", {"ttl": "1h", "name": self.EVIL})["session"]
        self.server.must("POST", "/_lock", {"session": session, "locks": [{"mode": "exclusive", "index": "tree", "path": "/" + self.EVIL}]})
        self.addCleanup(self.server.ask, "DELETE", "/_session/" + session)
        for arguments in (("ls", "tree"), ("ls", "--full", "tree:/"), ("locks",), ("status",)):
            status, text = self.tool(*arguments)
            self.harmless(text)
            if status == 0:
                self.assertIn(self.SHOWN, text, arguments)
        status, text = self.tool("lock", "tree", "--wait", "0s", "--", "true")
        self.assertEqual(status, 75, text)
        self.assertIn("held by " + self.SHOWN, self.harmless(text))
        for arguments in (("ls", self.EVIL), ("lock", self.EVIL, "--", "true"), ("ls", "tree:/nothing" + self.EVIL), (self.EVIL,)):
            status, text = self.tool(*arguments)
            self.harmless(text)
        for path in ("/_cat/locks?v", "/_cat/sessions?v"):
            response = self.server.request("GET", path)
            self.harmless(response.body.decode("utf-8"))
        self.server.must("DELETE", "/_session/%s?force=true" % session)
        self.harmless(self.server.errors())


if __name__ == "__main__":
    unittest.main()
