#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Invalid input: each case gets the right status, Elasticsearch's envelope and a reason that names the remedy; no data is lost
and the server continues.

After every case a document written at the start must still be readable, so a case that damages the server is found at once.
"""
import itertools
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import PROGRAM, Server  # noqa: E402
from small_disk import SmallDisk  # noqa: E402
from waiting import until  # noqa: E402
from neighbour import MEASURING  # noqa: E402

MAX_BODY = 1 << 20
# Batches after which the disk is filled: about where a checkpoint is written.
WRITTEN = (190, 194, 198) if MEASURING else (194,)


class BadInput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(40000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),
                                                    resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        cls.server = Server("--max-body", "1m").start()
        cls.server.must("PUT", "/kept/_doc/1", {"a": 1})

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def tearDown(self):
        status, reply = self.server.ask("GET", "/kept/_doc/1")
        self.assertEqual((status, reply["_source"]), (200, {"a": 1}), "the server was hurt")

    def refused(self, status, method, path, body=None, headers=None, says=None):
        """Asserts the status, the shape of the envelope and a word of the reason. Returns: the error."""
        response = self.server.request(method, path, body, headers)
        self.assertEqual(response.status, status, "%s %s: %s" % (method, path, response.body[:500]))
        reply = json.loads(response.body)
        self.assertEqual(reply["status"], status)
        error = reply["error"]
        self.assertTrue(error["type"] and error["reason"], error)
        self.assertTrue(error["root_cause"][0]["type"])
        if says:
            self.assertIn(says, json.dumps(reply))
        return error

    def test_broken_json(self):
        for body in ("{", '{"a":', '{"a" 1}', '{"a":1}}x', "[1]", '"text"', "nul", '{"a":01}', '{"a":\x01}', '{"a":"\x00"}', "\xff"):
            status, _ = self.server.ask("PUT", "/bad/_doc/1", body.encode("latin-1"))
            self.assertIn(status, (400, 500), body)
            self.assertEqual(self.server.ask("GET", "/bad/_doc/1")[0], 404, body)
        self.refused(400, "POST", "/kept/_search", '{"query": {"match_all": {}', says="Unexpected end-of-input")
        self.refused(400, "POST", "/kept/_search", '{"query": {"match_all": {}} "size": 1}', says="was expecting comma")

    def test_deep_json(self):
        deep = '{"a":' * 10000 + "1" + "}" * 10000
        status, _ = self.server.ask("PUT", "/bad/_doc/deep", deep)
        self.assertEqual(status, 400)
        status, _ = self.server.ask("POST", "/kept/_search", '{"query":' + '{"bool":{"must":' * 10000 + "{}" + "}}" * 10000 + "}")
        self.assertEqual(status, 400)
        status, _ = self.server.ask("PUT", "/bad/_doc/deep", "[" * 200000)
        self.assertEqual(status, 400)

    def test_body_too_large(self):
        error = self.refused(413, "PUT", "/bad/_doc/big", '{"a":"' + "x" * (MAX_BODY + 10) + '"}')
        self.assertIn(str(MAX_BODY), error["reason"])
        # A client that sends Expect: 100-continue gets the refusal before it has sent the body.
        with socket.create_connection(("127.0.0.1", self.server.port)) as s:
            s.sendall(b"PUT /bad/_doc/big HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n")
            answer = s.recv(65536)
        self.assertTrue(answer.startswith(b"HTTP/1.1 413"), answer[:200])

    def test_ids(self):
        self.refused(400, "PUT", "/bad/_doc/" + "x" * 513, {"a": 1}, says="512")
        self.assertEqual(self.server.ask("PUT", "/bad/_doc/" + "x" * 512, {"a": 1})[0], 201)
        for id in ("%00", "a%00b", "%ff", "%c3", "%ed%a0%80"):
            status, reply = self.server.ask("PUT", "/bad/_doc/" + id, {"a": 1})
            self.assertIn(status, (200, 201, 400), id)
            if status < 300:
                self.assertEqual(self.server.ask("GET", "/bad/_doc/" + id)[0], 200, id)
        for id in ("%zz", "%", "%2"):
            self.assertEqual(self.server.ask("GET", "/bad/_doc/" + id)[0], 405, id)  # as 7.10 answers a broken escape

    def test_index_names(self):
        for name in ("UPPER", "_x", "-x", "+x", ".", "..", "a%20b", "a,b", "a%22b", "a%3Cb", "a%7Cb", "a%2Ab", "a%3Fb", "a%5Cb",
                     "a%23b", "x" * 256):
            status, reply = self.server.ask("PUT", "/" + name)
            self.assertIn(status, (400, 405), name)
            self.assertIn("error", reply, name)

    def test_numbers(self):
        for params in ("size=-1", "from=-1", "size=99999999999999999999", "size=1e9", "size=abc", "size=", "from=2147483648",
                       "size=10001", "from=9999&size=9999", "terminate_after=-1", "timeout=abc", "timeout=-5s"):
            status, reply = self.server.ask("GET", "/kept/_search?" + params)
            self.assertIn(status, (200, 400), params)
            if status == 400:
                self.assertTrue(reply["error"]["reason"], params)
        for params in ("version=-5", "version=0", "version=99999999999999999999", "version=x", "if_seq_no=-1&if_primary_term=1",
                       "if_seq_no=1", "if_primary_term=1", "if_seq_no=x&if_primary_term=1", "timeout=1fortnight", "op_type=x",
                       "version_type=x", "version=1&version_type=external&op_type=create"):
            status, reply = self.server.ask("PUT", "/bad-numbers/_doc/1?" + params, {"a": 1})
            self.assertIn(status, (400, 409), "%s: %s" % (params, reply))
            self.assertTrue(reply["error"]["reason"], params)
        for params in ("timestamp=-1", "timestamp=x", "timestamp=99999999999999999999999", "as_of=yesterday", "as_of="):
            self.refused(400, "GET", "/kept/_doc/1?" + params)
        self.refused(400, "GET", "/kept/_doc/1?timestamp=%d" % ((1 << 53) - 1), says="future")
        self.refused(410, "GET", "/kept/_doc/1?timestamp=1", says="oldest")

    def test_wrong_units_and_names_of_times(self):
        """In another unit, under the other name, or on a call that changes something."""
        now = self.server.must("GET", "/_timestamp")["timestamp"]
        self.refused(410, "GET", "/kept/_doc/1?timestamp=%d" % (now // 10 ** 6), says="looks like seconds, and timestamps are microseconds")
        self.refused(410, "GET", "/kept/_doc/1?timestamp=%d" % (now // 10 ** 3), says="looks like milliseconds")
        self.refused(410, "POST", "/_transaction", {"mode": "query", "timestamp": now // 10 ** 3}, says="looks like milliseconds")
        self.refused(400, "GET", "/kept/_doc/1?timestamp=2026-11-20T10:00:00Z", says="[as_of] takes a time")
        self.refused(400, "GET", "/kept/_doc/1?as_of=%d" % now, says="[timestamp] takes microseconds")
        for method, path in (("PUT", "/kept/_doc/9"), ("DELETE", "/kept/_doc/1"), ("POST", "/_bulk"), ("PUT", "/new"), ("POST", "/_session")):
            body = '{"index":{"_index":"kept","_id":"9"}}\n{}\n' if path == "/_bulk" else {}
            for name in ("timestamp=%d" % now, "as_of=2026-11-20T10:00:00Z"):
                self.refused(400, method, path + "?" + name, None if method == "DELETE" else body, says="are parameters of reads")
        self.assertEqual(self.server.ask("GET", "/kept/_doc/9")[0], 404)

    def test_unknown_parameters(self):
        self.refused(400, "GET", "/kept/_doc/1?_sorce=a", says="did you mean [_source]?")
        self.refused(400, "GET", "/kept/_search?seze=1", says="did you mean [size]?")
        self.refused(400, "PUT", "/kept/_doc/2?refesh=true", {"a": 1}, says="did you mean [refresh]?")

    def test_unsupported_apis(self):
        """Each says so: it is neither a wrong method nor a document of a type called "_validate"."""
        for method, path, name in (("GET", "/_cat/allocation?v", "_cat/allocation"), ("GET", "/fs/_rank_eval", "_rank_eval"),
                                   ("GET", "/fs/_search/template?q=a", "_search/template"), ("GET", "/fs/_segments?v", "_segments"),
                                   ("GET", "/fs/_explain/1", "_explain"), ("PUT", "/_snapshot/backup", "_snapshot"), ("GET", "/_license", "_license"), ("GET", "/_xpack?human", "_xpack"), ("PUT", "/_snapshot", "_snapshot"),
                                   ("POST", "/fs/_shrink/less", "_shrink"), ("GET", "/_ingest/pipeline/p", "_ingest")):
            status, body = self.server.ask(method, path, {} if method != "GET" else None)
            self.assertEqual(status, 400, path)
            self.assertIn("API [%s] is not supported" % name, body["error"]["reason"], path)
        self.assertEqual(self.server.ask("PUT", "/fs/file/_analyze", {"an": "id"})[0], 201)
        self.assertEqual(self.server.ask("GET", "/fs/file/_analyze")[0], 200)

    def test_wrong_method(self):
        for method, path, allowed in (("POST", "/kept/_source/1", "GET"), ("DELETE", "/_bulk", "POST"), ("PATCH", "/kept/_doc/1", "PUT"),
                                      ("PUT", "/_search", "GET")):
            response = self.server.request(method, path)
            self.assertEqual(response.status, 405, "%s %s %s" % (method, path, response.body))
            self.assertIn(allowed, response.getheader("Allow"))

    def test_bulk_bodies(self):
        for body in ("", "\n", "{}", "{}\n", '{"index":{}}', '{"index":{}}\n', '{"nonsense":{}}\n{}\n',
                     '[]\n{}\n', '{"index":{"_index":"bad-bulk","foo":1}}\n{}\n'):
            status, reply = self.server.ask("POST", "/_bulk", body)
            self.assertIn(status, (200, 400), body)
            if status == 200:
                self.assertTrue(reply["errors"] or not reply["items"], body)
        status, reply = self.server.ask("POST", "/_bulk", '{"index":{"_index":"bad-bulk","_id":"1"}}\n{"a":\n'
                                                          '{"index":{"_index":"bad-bulk","_id":"2"}}\n{"a":2}\n')
        self.assertEqual([item["index"]["status"] for item in reply["items"]], [400, 201])

    def answer_to(self, data):
        """What comes back to bytes after which the client sends nothing more: the end of its side ends the connection."""
        answer = b""
        with socket.create_connection(("127.0.0.1", self.server.port)) as s:
            try:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                while part := s.recv(65536):
                    answer += part
            except OSError:  # refused and closed before all of it was sent
                pass
        return answer

    def test_broken_http(self):
        for data in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\nHost\r\n\r\n",
                     b"PUT /bad/_doc/1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n{}", b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\n\r\n",
                     b"PUT /bad/_doc/1 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                     b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 20000 + b"\r\n"):
            answer = self.answer_to(data)
            self.assertTrue(answer == b"" or answer.startswith(b"HTTP/1.1 4") or answer.startswith(b"HTTP/1.0 4")
                            or answer.startswith(b"HTTP/1.1 505"), (data[:50], answer[:200]))

    def test_incomplete_bodies_change_nothing(self):
        """A body that never comes whole changes nothing."""
        for n in (0, 1, 50):
            self.server.raw(b"PUT /cut/_doc/1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 60\r\n\r\n"
                            + b'{"a":"' + b"x" * n, read=False)
        until(lambda: self.connections() == 1, "the server has noticed that they are cut")
        self.assertEqual(self.server.ask("GET", "/cut/_doc/1")[0], 404)

    def connections(self):
        """How many are open, with the one that asks."""
        return next(iter(self.server.must("GET", "/_nodes/stats/http")["nodes"].values()))["http"]["current_open"]

    def test_half_closed(self):
        """A client that has closed its sending side still gets its answer."""
        with socket.create_connection(("127.0.0.1", self.server.port)) as s:
            s.sendall(b"GET /kept/_doc/1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            s.shutdown(socket.SHUT_WR)
            answer = b""
            while True:
                part = s.recv(65536)
                if not part:
                    break
                answer += part
        self.assertIn(b'"found":true', answer)

    def test_slow_connection(self):
        """While a request comes in byte by byte, others are answered."""
        with socket.create_connection(("127.0.0.1", self.server.port)) as slow:
            for byte in b"GET /kept":
                slow.sendall(bytes([byte]))
                self.server.must("GET", "/kept/_doc/1")

    def test_ten_thousand_idle_connections(self):
        wanted = 10000
        if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < wanted + 200:
            self.skipTest("the limit on open files is too low here")
        idle = []
        try:
            for i in range(wanted):
                s = socket.socket()
                s.connect(("127.0.0.1", self.server.port))
                idle.append(s)
                if i % 1000 == 0:
                    self.server.must("GET", "/kept/_doc/1")
            self.assertEqual(self.server.ask("GET", "/kept/_doc/1")[0], 200)
            fresh = self.server.connect()
            self.assertEqual(self.server.request("GET", "/kept/_doc/1", connection=fresh).status, 200)
            fresh.close()
        finally:
            for s in idle:
                s.close()


class Stop(unittest.TestCase):
    def test_with_open_scrolls(self):
        """Open search contexts do not delay a stop."""
        with Server() as server:
            server.must("POST", "/_bulk", "".join('{"index":{"_index":"kept","_id":"%d"}}\n{"a":1}\n' % i for i in range(20)))
            server.must("POST", "/kept/_search?scroll=5m&size=2", {"query": {"match_all": {}}})
            server.must("POST", "/kept/_pit?keep_alive=5m")
            self.assertEqual(server.stop(), 0)


class Writers:
    """Clients that write as fast as possible, 20 documents at a time, until they are stopped."""
    def __init__(self, server, clients):
        self.server = server
        self.count = 0
        self.refused = [0] * clients
        self.odd = []
        self.slowest = 0
        self.ending = False
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.write, args=(n,)) for n in range(clients)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ending = True
        for thread in self.threads:
            thread.join()

    def write(self, client):
        connection = self.server.connect()
        for batch in itertools.count():
            if self.ending:
                break
            body = "".join('{"index":{"_id":"%d-%d-%d"}}\n{"a":"%s"}\n' % (client, batch, i, os.urandom(2000).hex()) for i in range(20))
            begin = time.monotonic()
            try:
                status = self.server.request("POST", "/full/_bulk", body, connection=connection).status
            except OSError as e:
                self.odd.append(repr(e))
                break
            with self.lock:
                self.slowest = max(self.slowest, time.monotonic() - begin)
                self.count += status == 200
                self.refused[client] += status == 507
                self.odd += [] if status in (200, 507) else [status]
            time.sleep(0.005 if status == 507 else 0)
        connection.close()

    def until_refused(self):
        """Waits until each client has been refused a few more times: all requests sent before this call are answered then."""
        goal = [count + 10 for count in self.refused]
        until(lambda: self.odd or all(count >= wanted for count, wanted in zip(self.refused, goal)), "each client's writes are refused")

    def until_written(self, written):
        until(lambda: self.count >= written or any(self.refused), "%d batches are written" % written)


class FullDisk(unittest.TestCase):
    def test_refuses_and_recovers(self):
        """With a reserve larger than the disk, writes are refused and reads work; with a small one writes work again."""
        with Server() as server:
            server.must("PUT", "/kept/_doc/1", {"a": 1})
            server.stop()
            server.options = ["--reserve", "900000g"]
            server.start()
            status, reply = server.ask("PUT", "/kept/_doc/2", {"a": 2})
            self.assertEqual((status, reply["error"]["type"]), (507, "disk_full_exception"))
            self.assertIn("room", reply["error"]["reason"])
            self.assertEqual(server.must("GET", "/_cluster/health")["status"], "red")
            self.assertIn(b" red ", server.request("GET", "/_cat/health").body)
            reported = subprocess.run([PROGRAM, "status", "--url", server.url], capture_output=True, text=True, check=True).stdout
            self.assertIn("WRITES ARE REFUSED: the disk is full", reported)
            self.assertEqual(server.ask("GET", "/kept/_doc/1")[0], 200)
            self.assertEqual(server.must("GET", "/kept/_count")["count"], 1)
            server.stop()
            server.options = []
            server.start()
            self.assertNotEqual(server.must("GET", "/_cluster/health")["status"], "red")
            self.assertEqual(server.ask("PUT", "/kept/_doc/2", {"a": 2})[0], 201)

    def keepalive_refused(self, server, session, disk):
        """Deleted log files or a compaction may free space a little later; that is filled, too."""
        disk.fill()
        return server.ask("POST", "/_session/%s/_keepalive" % session)[0] == 507

    def test_completely_full_disk(self):
        """Documents fill a small disk up to the reserve, and another program the rest; then space is freed."""
        with SmallDisk(240 << 20, 120 << 20) as disk:  # RocksDB, too, wants more than the reserve to get over it
            with Server("--reserve", "40m", data=os.path.join(disk.folder, "data")) as server:
                session = server.must("POST", "/_session", {"ttl": "10m"})["session"]
                kept = self.write_until_refused(server)
                self.check_refusing(server, disk, kept)
                until(lambda: self.keepalive_refused(server, session, disk), "not even a keepalive has room")
                disk.make_room()
                self.check_recovered(server, kept)
                until(lambda: server.ask("POST", "/_session/%s/_keepalive" % session)[0] == 200, "a keepalive has room")
                self.assertEqual(server.stop(), 0, server.errors()[-3000:])
                server.start()
                self.assertEqual(server.must("GET", "/full/_count")["count"], len(kept) + 1)
                self.assertEqual(server.stop(), 0)
            found = subprocess.run([PROGRAM, "check", "--data", os.path.join(disk.folder, "data")], capture_output=True)
            self.assertEqual(found.returncode, 0, found.stdout + found.stderr)

    def test_disk_full_during_checkpoint(self):
        """The rest of the disk is filled during a checkpoint: every write is answered before space is freed."""
        for written in WRITTEN:
            with self.subTest(written=written), SmallDisk() as disk:
                with Server("--reserve", "40m", data=os.path.join(disk.folder, "data")) as server:
                    session = server.must("POST", "/_session", {"ttl": "10m"})["session"]
                    with Writers(server, 2) as writers:
                        writers.until_written(written)
                        for _ in range(20):
                            disk.fill()
                            time.sleep(0.02)
                        writers.until_refused()
                        for _ in range(9):  # longer than a mark holds: a new one would have to be written
                            self.assertEqual(server.ask("GET", "/_session/" + session)[0], 200)
                            time.sleep(0.5)
                        writers.until_refused()
                        self.assertTrue(not MEASURING or writers.slowest < 5, writers.slowest)
                        disk.make_room()
                    self.assertEqual(writers.odd, [])
                    until(lambda: server.ask("POST", "/_session/%s/_keepalive" % session)[0] == 200, "RocksDB is over it")
                    self.assertEqual(server.must("GET", "/full/_count")["count"], 20 * writers.count)
                    self.assertEqual(server.stop(), 0, server.errors()[-3000:])

    def test_stop_while_disk_is_full(self):
        """The same, and it ends before there is room, and nothing that was answered is lost."""
        for written in WRITTEN[:2]:
            with self.subTest(written=written), SmallDisk() as disk:
                with Server("--reserve", "40m", data=os.path.join(disk.folder, "data")) as server:
                    with Writers(server, 2) as writers:
                        writers.until_written(written)
                        for _ in range(20):
                            disk.fill()
                            time.sleep(0.02)
                        writers.until_refused()
                    self.assertEqual(server.stop(), 0, server.errors()[-3000:])
                    disk.make_room()
                    server.start()
                    self.assertEqual(server.must("GET", "/full/_count")["count"], 20 * writers.count)
                    self.assertEqual(server.stop(), 0)

    def test_start_on_full_disk_is_refused_until_space(self):
        """The start fails with the reason, and succeeds when there is space."""
        with SmallDisk(240 << 20, 120 << 20) as disk:
            with Server("--reserve", "40m", data=os.path.join(disk.folder, "data")) as server:
                server.must("PUT", "/kept/_doc/1", {"a": 1})
                self.assertEqual(server.stop(), 0)
                for _ in range(5):
                    disk.fill()
                found = subprocess.run([PROGRAM, "serve", "--listen", "127.0.0.1:0", "--data", server.data], capture_output=True, text=True)
                self.assertEqual(found.returncode, 1, found.stderr)
                self.assertIn("the disk is full", found.stderr)
                self.assertIn("make room", found.stderr)
                disk.make_room()
                server.start()
                self.assertEqual(server.must("GET", "/kept/_count")["count"], 1)
                self.assertEqual(server.stop(), 0)

    def test_large_commit_is_refused_without_disk_space(self):
        """There is room for small writes, not for what a transaction has gathered; with room it is committed."""
        with SmallDisk(320 << 20, 80 << 20) as disk:
            with Server("--reserve", "16m", data=os.path.join(disk.folder, "data")) as server:
                server.must("PUT", "/full/_doc/0", {"a": 1})
                transaction = server.must("POST", "/_transaction")["transaction"]
                text = json.dumps({"t": "x" * (8 << 20)})
                for i in range(4):
                    server.must("PUT", "/full/_doc/%d?transaction=%s" % (i, transaction), text)
                server.must("POST", "/full/_forcemerge")  # a checkpoint has the transaction, too: none comes between
                disk.fill(48 << 20)
                bulk = "".join('{"index":{"_id":"%d"}}\n%s\n' % (i, text) for i in range(4))
                for path, body in (("/_transaction/%s/_commit" % transaction, None), ("/other/_bulk?atomic=true", bulk)):
                    status, reply = server.ask("POST", path, body)
                    self.assertEqual((status, reply.get("error", reply).get("type")), (507, "disk_full_exception"), (path, str(reply)[:300]))
                    self.assertIn("the disk of the data directory has less space", reply["error"]["reason"])
                server.must("PUT", "/other/_doc/small", {"a": 1})
                self.assertEqual(server.must("GET", "/full/_count")["count"], 1)
                self.assertEqual(server.must("GET", "/full/_doc/0")["_source"], {"a": 1})
                disk.make_room()
                self.assertTrue(server.must("POST", "/_transaction/%s/_commit" % transaction)["committed"])
                self.assertEqual(server.must("GET", "/full/_count")["count"], 4)
                self.assertEqual(server.stop(), 0)

    def write_until_refused(self, server):
        """Returns: the ids of the documents that were acknowledged."""
        kept = []
        for batch in range(2000):
            ids = ["%d-%d" % (batch, i) for i in range(20)]
            body = "".join('{"index":{"_id":"%s"}}\n{"a":%s}\n' % (id, json.dumps(os.urandom(2000).hex())) for id in ids)
            status, reply = server.ask("POST", "/full/_bulk", body)
            if status == 507:
                self.assertEqual(reply["error"]["type"], "disk_full_exception")
                self.assertIn("room", reply["error"]["reason"])
                return kept
            self.assertEqual((status, reply["errors"]), (200, False))
            kept += ids
        self.fail("the disk was never full")

    def check_refusing(self, server, disk, kept):
        """Until the disk is full indeed, writes of another index may be accepted: a checkpoint that ends frees space, which is filled, too."""
        for _ in range(3):
            replies = []

            def is_refused():
                disk.fill()
                replies.append(server.ask("PUT", "/other/_doc/1", {"a": "x"}))
                return replies[-1][0] not in (200, 201)
            until(is_refused, "a write is refused")
            status, reply = replies[-1]
            self.assertEqual((status, reply["error"]["type"]), (507, "disk_full_exception"))
            for id in (kept[0], kept[len(kept) // 2], kept[-1]):
                self.assertEqual(server.ask("GET", "/full/_doc/" + id)[0], 200, id)
            self.assertEqual(server.must("GET", "/full/_count")["count"], len(kept))
            self.assertEqual(server.must("GET", "/full/_search?size=1")["hits"]["total"]["value"] > 0, True)

    def check_recovered(self, server, kept):
        """Writes resume without a restart, RocksDB's own after some seconds."""
        while (status := server.ask("PUT", "/full/_doc/more", {"a": "x"})[0]) == 507:
            time.sleep(0.1)
        free = os.statvfs(server.data)
        self.assertEqual(status, 201, "%d bytes are free; %s" % (free.f_bavail * free.f_frsize, server.errors()[-2000:]))
        for id in kept:
            self.assertEqual(server.ask("GET", "/full/_doc/" + id)[0], 200, id)


if __name__ == "__main__":
    unittest.main()
