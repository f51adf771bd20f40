#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GET /_changes: a client that follows it from any timestamp, with the documents as of that timestamp, has the documents of the end."""
import contextlib
import http.client
import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import PROGRAM, Server  # noqa: E402
from waiting import until  # noqa: E402


class Feed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def now(self):
        return self.server.must("GET", "/_timestamp")["timestamp"]

    def read(self, since, **options):
        """Returns: the lines, and up to when the answer has all changes."""
        query = "".join("&%s=%s" % pair for pair in options.items())
        reply = self.server.request("GET", "/_changes?since=%d%s" % (since, query))
        self.assertEqual(reply.status, 200, reply.body)
        self.assertEqual(reply.getheader("Content-Type"), "application/x-ndjson")
        return [json.loads(line) for line in reply.body.splitlines()], int(reply.getheader("Tidelock-Timestamp"))

    def documents(self, index, ts=None):
        at = "?timestamp=%d" % ts if ts else ""
        reply = self.server.must("POST", "/%s/_search%s" % (index, at), {"size": 1000, "version": True})
        return {hit["_id"]: (hit["_version"], hit["_source"]) for hit in reply["hits"]["hits"]}

    def follow(self, documents, since, index, **options):
        """Applies the changes after `since` to the end. A change that is shown with a later state of its document includes moves up to that state."""
        later = {}
        while True:
            lines, covered = self.read(since, index=index, **options)
            last = since
            for line in lines:
                self.assertGreater(line["timestamp"], last)
                last = line["timestamp"]
                for change in line["changes"]:
                    if change["op"] == "index":
                        later[change["_id"]] = change.get("timestamp", 0)
                        documents[change["_id"]] = (change["_version"], change["_source"])
                    elif change["op"] == "delete":
                        documents.pop(change["_id"], None)
                    elif change["op"] == "rename":
                        self.assertNotIn("expand", options)
                        self.move({key: value for key, value in documents.items() if later.get(key, 0) < last}, documents, change["from"], change["to"])
                    elif change["op"] == "index_deleted":
                        documents.clear()
            self.assertGreaterEqual(covered, last)
            if covered == since or (not lines and covered >= since):
                return covered
            since = covered

    @staticmethod
    def move(some, documents, old, new):
        for key, (version, source) in some.items():
            path = source.get("path", "")
            if path == old or path.startswith(old + "/"):
                documents[key] = (version + 1, dict(source, path=new + path[len(old):]))

    def test_feed_from_every_timestamp(self):
        server, rng = self.server, random.Random(7)
        server.must("PUT", "/walk", {"mappings": {"properties": {"path": {"type": "path"}}}})
        instants = [self.now()]
        for step in range(120):
            key, kind = "%d" % rng.randrange(12), rng.randrange(9)
            if kind < 4:
                server.must("PUT", "/walk/_doc/" + key, {"n": step, "path": "/%s/%s/%s" % (rng.choice("ab"), rng.choice("xy"), key)})
            elif kind == 4:
                server.ask("DELETE", "/walk/_doc/" + key)
            elif kind == 5:
                server.ask("POST", "/walk/_rename", {"from": "/%s/%s" % (rng.choice("ab"), rng.choice("xy")),
                                                     "to": "/%s/%s" % (rng.choice("ab"), rng.choice("xy"))})
            elif kind == 6:
                lines = "".join(json.dumps(line) + "\n" for i in range(3) for line in
                                ({"index": {"_id": str(rng.randrange(12))}}, {"b": step, "i": i, "path": "/a/x/%d" % (100 * step + i)}))
                server.must("POST", "/walk/_bulk?atomic=true", lines)
            else:
                transaction = server.must("POST", "/_transaction", {"mode": "update"})["transaction"]
                header = {"Tidelock-Transaction": transaction}
                server.must("PUT", "/walk/_doc/" + key, {"t": step, "path": "/b/y/t%d" % step}, header)
                server.ask("DELETE", "/walk/_doc/%d" % rng.randrange(12), None, header)
                server.must("POST", "/_transaction/%s/%s" % (transaction, rng.choice(("_commit", "_rollback"))))
            instants.append(self.now())
        end = self.documents("walk")
        for limit in (1, 7, 1000):
            for ts in instants[::9 if limit == 1 else 3]:
                documents = self.documents("walk", ts)
                self.follow(documents, ts, "walk", limit=limit)
                self.assertEqual(documents, end, "from %d by %d" % (ts, limit))
                documents = self.documents("walk", ts)
                self.follow(documents, ts, "walk", limit=limit, expand="true")
                self.assertEqual(documents, end, "from %d by %d, renames expanded" % (ts, limit))

    def test_a_commit_is_one_line(self):
        server, since = self.server, self.now()
        transaction = server.must("POST", "/_transaction", {"mode": "update"})["transaction"]
        for i in range(2500):
            if i % 500 == 0:
                body = "".join('{"index": {"_index": "big", "_id": "%d"}}\n{"n": %d}\n' % (j, j) for j in range(i, i + 500))
                server.must("POST", "/_bulk", body, {"Tidelock-Transaction": transaction})
        self.assertEqual([line for line in self.read(since, index="big")[0] if "transaction" in line], [])
        committed = server.must("POST", "/_transaction/%s/_commit" % transaction)["timestamp"]
        lines, covered = self.read(since, index="big", limit=1, source="false")
        while lines and lines[0]["timestamp"] < committed:
            lines, covered = self.read(covered, index="big", limit=1, source="false")
        self.assertEqual(lines[0]["timestamp"], committed)
        self.assertEqual(lines[0]["transaction"], transaction)
        self.assertEqual(len(lines[0]["changes"]), 2500)
        self.assertNotIn("_source", lines[0]["changes"][0])
        self.assertGreaterEqual(covered, committed)

    def test_source_of_several_lines(self):
        """The line breaks of a document are no line breaks of the feed, before and after a rename and document by document."""
        server = self.server
        server.must("PUT", "/lines", {"mappings": {"properties": {"path": {"type": "path"}}}})
        since = self.now()
        source = '\n{\r\n"path" :\r"/a/b",\n\n "t": "two\\nlines"}\n'
        server.must("PUT", "/lines/_doc/1", source)
        server.must("POST", "/lines/_rename", {"from": "/a", "to": "/c"})
        expected = {"path": "/a/b", "t": "two\nlines"}
        put, rename = self.read(since, index="lines")[0]
        self.assertEqual([change["_source"] for change in put["changes"] if change["op"] == "index"], [expected])
        self.assertEqual([change["op"] for change in rename["changes"]], ["rename"])
        line = self.read(since, index="lines", expand="true")[0][-1]
        self.assertEqual([change["_source"] for change in line["changes"]], [expected | {"path": "/c/b"}])
        self.assertEqual(server.request("GET", "/lines/_source/1").body, source.replace("/a/b", "/c/b").encode())

    def test_routing(self):
        """A delete has the routing that the document had, also where it is named by an alias, and of documents that had one."""
        since = self.now()
        self.server.must("PUT", "/routed", {"aliases": {"by-alias": {"routing": "z"}}})
        for path in ("/routed/_doc/1?routing=x", "/by-alias/_doc/2", "/routed/_doc/3"):
            self.server.must("PUT", path, {"n": 1})
            self.server.must("DELETE", path)
        lines = [json.loads(line) for line in self.server.request("GET", "/_changes?since=%d&index=routed" % since).body.splitlines()]
        deletes = [change for line in lines for change in line["changes"] if change["op"] == "delete"]
        self.assertEqual([(c["_id"], c.get("_routing")) for c in deletes], [("1", "x"), ("2", "z"), ("3", None)])

    def test_previous_routing(self):
        """Each change of a routing names the one before, also over deletes, several writes in one commit and a transaction."""
        def put(id, routing, header=None):
            self.server.must("PUT", "/moved/_doc/%s%s" % (id, "?routing=" + routing if routing else ""), {"n": 1}, header)

        def bulk(*actions, atomic="true"):
            self.server.must("POST", "/moved/_bulk?atomic=" + atomic, "".join(
                json.dumps({kind: {"_id": id, **({"routing": routing} if routing else {})}}) + ("\n{}\n" if kind == "index" else "\n") for kind, id, routing in actions))
        self.server.must("PUT", "/moved", {"settings": {"number_of_shards": 1}})
        since = self.now()
        put("1", None)  # the index has had no routing yet
        put("1", "a")
        put("1", "a")
        put("1", "b")
        self.server.must("DELETE", "/moved/_doc/1?routing=b")
        put("1", None)
        put("2", "x")
        bulk(("index", "2", "y"), ("index", "2", "z"))
        bulk(("index", "2", "w"), ("delete", "2", "w"))
        transaction = self.server.must("POST", "/_transaction", {"mode": "update"})["transaction"]
        for routing in ("p", "q"):
            put("2", routing, {"Tidelock-Transaction": transaction})
        self.server.must("POST", "/_transaction/%s/_commit" % transaction)

        def changes_of(**options):
            lines, _ = self.read(since, index="moved", source="false", **options)
            return [(c["op"], c["_id"], c.get("_routing"), c.get("_previous_routing", "same")) for line in lines for c in line["changes"] if "_id" in c]
        self.assertEqual(changes_of(previous_routing="true"), [
            ("index", "1", None, "same"), ("index", "1", "a", None), ("index", "1", "a", "same"), ("index", "1", "b", "a"), ("delete", "1", "b", "same"),
            ("index", "1", None, "b"), ("index", "2", "x", "same"), ("index", "2", "z", "x"), ("delete", "2", "w", "z"), ("index", "2", "q", "w")])
        self.assertEqual({change[3] for change in changes_of()}, {"same"})

    def test_keys(self):
        """Documents are only named, also those that are gone and those below a rename; where documents have routings the answer is the same as without."""
        def changes_of(index, **options):
            lines, _ = self.read(since, index=index, source="false", expand="true", **options)
            return [(line["timestamp"], {key: value for key, value in c.items() if key not in ("_version", "_seq_no", "_primary_term")}) for line in lines for c in line["changes"]]
        since = self.now()
        self.server.must("PUT", "/plain", {"mappings": {"properties": {"path": {"type": "path"}}}})
        self.server.must("PUT", "/plain/_doc/1", {"path": "/a/1"})
        self.server.must("POST", "/plain/_rename", {"from": "/a", "to": "/b"})
        self.server.must("DELETE", "/plain/_doc/1")
        self.server.must("PUT", "/shards/_doc/1?routing=r", {"n": 1})
        self.server.must("PUT", "/shards/_doc/1?routing=s", {"n": 1})
        whole = changes_of("plain")
        self.assertEqual([change.get("op") for _, change in whole if "_id" in change], ["index", "index", "delete"])
        self.assertEqual(changes_of("plain", keys="true"), [(ts, {**change, "op": "changed"} if "_id" in change else change) for ts, change in whole])
        self.assertEqual(changes_of("shards", keys="true", previous_routing="true"), changes_of("shards", previous_routing="true"))
        self.assertEqual(self.server.ask("GET", "/_changes?since=%d&keys=true" % since)[0], 400)

    def test_first_routing(self):
        """However an index gets its first routing: the version before it, without one, is found."""
        def transaction(index):
            id = self.server.must("POST", "/_transaction", {"mode": "update"})["transaction"]
            self.server.must("PUT", "/%s/_doc/1?routing=r" % index, {"n": 2}, {"Tidelock-Transaction": id})
            self.server.must("POST", "/_transaction/%s/_commit" % id)
        ways = {"write": lambda index: self.server.must("PUT", "/%s/_doc/1?routing=r" % index, {"n": 2}),
                "bulk": lambda index: self.server.must("POST", "/%s/_bulk?atomic=true" % index, '{"index":{"_id":"2"}}\n{}\n{"index":{"_id":"1","routing":"r"}}\n{}\n'),
                "transaction": transaction}
        for way, write in ways.items():
            with self.subTest(way):
                index, since = "first-" + way, self.now()
                self.server.must("PUT", "/%s/_doc/1" % index, {"n": 1})
                write(index)
                lines, _ = self.read(since, index=index, source="false", previous_routing="true")
                seen = [(c["op"], c.get("_routing"), c.get("_previous_routing", "same")) for line in lines for c in line["changes"] if c.get("_id") == "1"]
                self.assertEqual(seen, [("index", None, "same"), ("index", "r", None)])

    def test_indices(self):
        server, since = self.server, self.now()
        server.must("PUT", "/ix-a", {"aliases": {"al": {}}})
        server.must("PUT", "/ix-b/_doc/%C3%A4%01%22", {"n": 1})
        server.must("PUT", "/ix-a/_doc/1", {"n": 1})
        server.must("PUT", "/ix-a/_alias/second")
        server.must("PUT", "/ix-a/_settings", {"index.number_of_replicas": 2})
        lines, covered = self.read(since, index="ix-*")
        ops = [(change["op"], change["_index"]) for line in lines for change in line["changes"]]
        for op in (("index_created", "ix-a"), ("index_created", "ix-b"), ("index", "ix-b"), ("aliases", "ix-a"), ("settings", "ix-a")):
            self.assertIn(op, ops)
        self.assertIn("ä\x01\"", [change.get("_id") for line in lines for change in line["changes"]])
        self.assertEqual({index for _, index in [(c["op"], c["_index"]) for line in self.read(since, index="second")[0] for c in line["changes"]]}, {"ix-a"})
        server.must("DELETE", "/ix-a")
        server.must("PUT", "/ix-a/_doc/1", {"n": 2})
        ops = [change for line in self.read(since, index="ix-a")[0] for change in line["changes"]]
        self.assertEqual([c["op"] for c in ops if c["op"].startswith("index_")], ["index_created", "index_deleted", "index_created"])
        self.assertEqual([c["_source"] for c in ops if c["op"] == "index"], [{"n": 2}], "what is of a deleted index is not reported")
        self.assertEqual(self.read(since, index="none")[0], [])
        self.assertEqual(self.read(since, index="ix-*,-ix-a")[0], self.read(since, index="ix-b")[0], "a name that is taken away")
        middle = self.now()
        server.must("PUT", "/ix-b/_alias/gone")
        before = self.now()
        server.must("DELETE", "/ix-b")
        self.assertIn("index_deleted", [c["op"] for line in self.read(before, index="gone")[0] for c in line["changes"]], "by an alias that went with it")
        self.assertGreater(before, middle)
        self.assertGreater(covered, since)

    def test_feed_of_current_timestamp_is_empty(self):
        self.server.must("PUT", "/one/_doc/1", {})
        reply = self.server.request("GET", "/_changes")
        self.assertEqual((reply.status, reply.body), (200, b""))
        begin = int(reply.getheader("Tidelock-Timestamp"))
        self.server.must("PUT", "/one/_doc/1", {"n": 1})
        self.assertEqual([c["_source"] for line in self.read(begin)[0] for c in line["changes"] if c["op"] == "index"], [{"n": 1}])

    def test_refused(self):
        now = self.now()
        for query, status in (("since=%d" % (now + 10 ** 9), 400), ("since=-1", 400), ("since=x", 400), ("limit=0", 400),
                              ("limit=100001", 400), ("source=maybe", 400), ("feed=x", 400), ("feed=continuous&wait=1s", 400), ("feed=continuous&limit=5", 400), ("feed=continuous&since=x", 400), ("expand=x", 400),
                              ("since=%d&transaction=x" % now, 400), ("since=%d&as_of=%d" % (now, now), 400)):
            status_is, body = self.server.ask("GET", "/_changes?" + query)
            self.assertEqual(status_is, status, query)
            self.assertIn("reason", body["error"])

    def test_killed_and_started(self):
        with Server() as server:
            begin = server.must("GET", "/_timestamp")["timestamp"]
            for i in range(50):
                server.must("PUT", "/k/_doc/%d" % (i % 7), {"n": i})
            before = server.request("GET", "/_changes?since=%d" % begin).body
            server.kill()
            server.start()
            after = server.request("GET", "/_changes?since=%d" % begin).body
            self.assertEqual(after[:len(before)], before)

    def test_feed_beyond_history_shows_current_documents(self):
        """Beyond the history, documents are shown in their current state: earlier moves are not applied again."""
        with Server("--history", "1s", "--feed", "1h") as server:
            since = server.must("GET", "/_timestamp")["timestamp"]
            server.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}}}})
            server.must("PUT", "/fs/_doc/1", {"path": "/x/d"})
            server.must("PUT", "/fs/_doc/2", {"path": "/y/e"})
            server.must("POST", "/fs/_rename", {"from": "/y", "to": "/z"})
            server.must("POST", "/fs/_rename", {"from": "/x", "to": "/y"})
            while b'"later":true' not in (body := server.request("GET", "/_changes?since=%d" % since).body):
                server.must("PUT", "/other/_doc/1", {})
                time.sleep(0.2)
            self.assertEqual(body.count(b'"op":"rename"'), 2)
            own, self.server, documents = self.server, server, {}
            try:
                self.follow(documents, since, "fs")
                self.assertEqual(documents, self.documents("fs"))
                documents = {}
                self.follow(documents, since, "fs", expand="true")
                self.assertEqual(documents, self.documents("fs"), "renames expanded")
            finally:
                self.server = own

    def test_a_rename_document_by_document(self):
        server = self.server
        server.must("PUT", "/deep", {"mappings": {"properties": {"path": {"type": "path"}}}})
        below = ["/a", "/a/b", "/a/b/c", "/a/b/c/d/e/f/g", "/a/bc", "/a/0", "/a/b.x", "/a/ä/ä"]
        beside = ["/a.b", "/a0", "/ab", "/b", "/A", "/a-", "/`", "/"]
        for number, path in enumerate(below + beside):
            server.must("PUT", "/deep/_doc/%d" % number, {"path": path})
        since = self.now()
        server.must("POST", "/deep/_rename", {"from": "/a", "to": "/x/y"})
        line, = self.read(since, index="deep", expand="true")[0]
        self.assertEqual({(change["op"], change["_id"], change["_source"]["path"], change["_version"]) for change in line["changes"]},
                         {("index", str(number), "/x/y" + path[2:], 2) for number, path in enumerate(below)})
        self.assertEqual(len(line["changes"]), len(below))
        since = self.now()
        server.must("POST", "/deep/_rename", {"from": "/x/y/b/c/d/e/f/g", "to": "/g"})
        line, = self.read(since, index="deep", expand="true", source="false")[0]
        self.assertEqual([(change["_id"], "_source" in change) for change in line["changes"]], [("3", False)])

    def test_ids_with_every_byte(self):
        """Ids with NUL, line ends, quotes and unassigned characters: the feed names each as it was put, and as it was deleted."""
        ids = {chr(n) for n in range(0x180)} - {"_"} | {"a\0b", "a\0c", "\u2028", "\U0001f600", "../x", "%00", "x" * 512}
        since = self.now()
        for action, source in (("index", '{"n":1}\n'), ("delete", "")):
            self.server.must("POST", "/bytes/_bulk", "".join("%s\n%s" % (json.dumps({action: {"_id": id}}), source) for id in ids))
            lines, since = self.read(since, index="bytes")
            self.assertEqual(sorted(change["_id"] for line in lines for change in line["changes"] if change["op"] == action), sorted(ids))

    def test_large_document(self):
        """A document larger than all buffers of a reply, among others. TIDELOCK_TEST_LONG: 50 MB."""
        since, text = self.now(), "0123456789abcde " * ((50 if os.environ.get("TIDELOCK_TEST_LONG") else 8) << 16)
        for id, source in (("before", {"n": 1}), ("large", {"t": text}), ("after", {"n": 2})):
            self.server.must("PUT", "/large/_doc/" + id, source)
        changes = [change for line in self.read(since, index="large")[0] for change in line["changes"] if change["op"] == "index"]
        self.assertEqual([change["_id"] for change in changes], ["before", "large", "after"])
        self.assertTrue(changes[1]["_source"] == {"t": text})  # the message would have both

    def test_cut_by_size(self):
        """Beyond --feed-max older changes are removed, whether or not a reader has them."""
        with Server("--feed-max", "64k") as server:
            server.must("PUT", "/fs/_doc/first", {"n": 1})
            since = server.must("GET", "/_timestamp")["timestamp"]
            for _ in range(20):
                server.must("POST", "/fs/_bulk?atomic=true", "".join('{"index":{"_id":"%s"}}\n{"n":1}\n' % os.urandom(100).hex() for _ in range(100)))
            server.stop()  # its memory is written to files
            server.start()
            answers = []

            def is_cut():
                answers[:] = server.ask("GET", "/_changes?since=%d&limit=1" % since)
                return answers[0] == 410
            until(is_cut, "the feed is cut")
            oldest = answers[1]["error"]["oldest"]
            self.assertGreater(oldest, since)
            server.must("PUT", "/fs/_doc/last", {"n": 1})
            lines = [json.loads(line) for line in server.request("GET", "/_changes?since=%d&limit=100000&source=false" % oldest).body.splitlines()]
            self.assertEqual([len(line["changes"]) for line in lines], [100] * (len(lines) - 1) + [1])
            self.assertLess(len(lines), 21)

    def test_cut_by_size_keeps_the_newest(self):
        """The sizes of files are estimates, which attribute a small feed to its newest record; the newest commits, half of --feed-max together, stay all the same."""
        with Server("--feed-max", "64k") as server:
            server.must("PUT", "/fs/_doc/first", {"n": 1})
            places = []
            for _ in range(60):
                places.append(server.must("GET", "/_timestamp")["timestamp"])
                server.must("POST", "/fs/_bulk?atomic=true", "".join('{"index":{"_id":"%s"}}\n{"n":1}\n' % os.urandom(100).hex() for _ in range(10)))
            server.restart()  # its memory is written to files
            until(lambda: server.ask("GET", "/_changes?since=%d&limit=1" % places[0])[0] == 410, "the feed is cut")
            for place in places[-10:]:  # each commit takes 2 KB
                self.assertEqual(server.ask("GET", "/_changes?since=%d&limit=1" % place)[0], 200)
            large = server.must("GET", "/_timestamp")["timestamp"]
            server.must("POST", "/fs/_bulk?atomic=true", "".join('{"index":{"_id":"%s"}}\n{"n":1}\n' % os.urandom(100).hex() for _ in range(1000)))
            server.restart()
            until(lambda: server.ask("GET", "/_changes?since=%d&limit=1" % places[-10])[0] == 410, "the feed is cut")
            lines = server.request("GET", "/_changes?since=%d&limit=1&source=false" % large).body.splitlines()
            self.assertEqual([len(json.loads(line)["changes"]) for line in lines], [1000], "the newest commit is kept, although it is larger than the limit")

    def test_feed_turned_off_and_on(self):
        """A disabled feed returns nothing; when enabled again it names the oldest timestamp that can be followed."""
        with Server("--feed", "off") as server:
            server.must("PUT", "/k/_doc/1", {})
            status, body = server.ask("GET", "/_changes?since=1")
            self.assertEqual(status, 400)
            self.assertIn("--feed", body["error"]["reason"])
            server.options = tuple(option for option in server.options if option not in ("--feed", "off"))
            server.restart()
            status, body = server.ask("GET", "/_changes?since=1")
            self.assertEqual((status, body["error"]["type"]), (410, "timestamp_too_old_exception"))
            oldest = int(re.search(r"oldest possible \[since\] is (\d+)", body["error"]["reason"]).group(1))
            server.must("PUT", "/k/_doc/1", {"n": 2})
            reply = server.request("GET", "/_changes?since=%d&index=k" % oldest)
            self.assertIn(b'"_source":{"n": 2}', reply.body)
            self.assertEqual(server.ask("GET", "/_changes?since=%d" % (oldest - 1))[0], 410)


class Follower(threading.Thread):
    """Follows from a timestamp on, on connections of its own, over whatever happens to the server; notes each change in its order."""
    def __init__(self, server, since, index):
        super().__init__()
        self.server, self.since, self.index, self.seen, self.over, self.asked = server, since, index, [], False, 0
        self.start()

    def run(self):
        while not self.over:
            try:
                with contextlib.closing(self.server.connect()) as connection:
                    while not self.over:
                        self.ask(connection)
            except (OSError, http.client.HTTPException):
                time.sleep(0.02)

    def ask(self, connection):
        connection.request("GET", "/_changes?since=%d&index=%s&wait=2s" % (self.since, self.index))
        reply = connection.getresponse()
        body = reply.read()
        if reply.status == 503:  # it stops
            return
        assert reply.status == 200, body
        for line in body.splitlines():
            commit = json.loads(line)
            assert commit["timestamp"] > self.since
            self.seen += [(change["_id"], change.get("_version")) for change in commit["changes"] if change["op"] in ("index", "delete")]
        self.since, self.asked = int(reply.getheader("Tidelock-Timestamp")), self.asked + 1

    def end(self):
        self.over = True
        self.join()


class Wait(unittest.TestCase):
    """?wait=: the answer comes with the first change, and costs nothing before."""
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--history", "1s", "--feed", "1h")
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def now(self):
        return self.server.must("GET", "/_timestamp")["timestamp"]

    def in_background(self, since, query=""):
        """A waiting request and its result. It is the only request in flight, except the one that reads the number."""
        came = {}

        def run():
            with contextlib.closing(self.server.connect()) as connection:
                connection.request("GET", "/_changes?since=%d%s" % (since, query))
                reply = connection.getresponse()
                came.update(status=reply.status, lines=[json.loads(line) for line in reply.read().splitlines()], covered=int(reply.getheader("Tidelock-Timestamp")))
        until(lambda: self.metric("tidelock_http_requests_in_flight") == 1, "the requests before have ended")
        thread = threading.Thread(target=run)
        thread.start()
        until(lambda: came or self.metric("tidelock_http_requests_in_flight") == 2, "the server has the request")
        return thread, came

    def metric(self, name):
        page = self.server.request("GET", "/_metrics").body.decode()
        return int(re.search(r"^%s (\d+)$" % name, page, re.M).group(1))

    def test_wait_ends_with_first_matching_change(self):
        """The reply is sent at the first change of the requested index, long before the end of the wait; other indices do not count."""
        thread, came = self.in_background(self.now(), "&wait=1h&index=one")
        self.server.must("PUT", "/other/_doc/1", {"n": 0})
        self.server.must("PUT", "/one/_doc/1", {"n": 1})
        thread.join()
        self.assertEqual([change["op"] for change in came["lines"][0]["changes"]], ["index_created", "mapping", "index"])
        self.assertGreaterEqual(came["covered"], came["lines"][0]["timestamp"])

    def test_existing_changes_are_returned_at_once(self):
        since = self.now()
        self.server.must("PUT", "/there/_doc/1", {})
        thread, came = self.in_background(since, "&wait=1h")
        thread.join()
        self.assertEqual(len(came["lines"]), 1)

    def test_wait_without_changes_ends_empty(self):
        """Up to the end of the wait there was nothing, and the answer, not before that end, says so, with the next `since`."""
        self.server.must("PUT", "/vain/_doc/1", {})
        since = self.now()
        begin = time.monotonic()
        thread, came = self.in_background(since, "&wait=1s&index=vain")
        self.server.must("PUT", "/noise/_doc/1", {})
        thread.join()
        self.assertGreaterEqual(time.monotonic() - begin, 1.0)
        self.assertEqual((came["status"], came["lines"]), (200, []))
        self.assertGreater(came["covered"], since)
        self.assertEqual(self.server.request("GET", "/_changes?since=%d&index=vain" % since).body, b"")

    def test_waiting_request_does_not_pin_history(self):
        """While a request waits, the history of its `since` is removed as if it were not there."""
        self.server.must("PUT", "/kept/_doc/1", {})
        since = self.now()
        thread, came = self.in_background(since, "&wait=1h&index=kept")
        number = 0
        while self.server.ask("GET", "/kept/_doc/1?timestamp=%d" % since)[0] != 410:
            number += 1
            self.server.must("PUT", "/noise/_doc/1", {"n": number})
            time.sleep(0.02)
        self.assertEqual(came, {})
        self.server.must("PUT", "/kept/_doc/2", {})
        thread.join()
        self.assertEqual([change["_id"] for change in came["lines"][0]["changes"]], ["2"])

    def test_wait_without_since_starts_now(self):
        """Then it is what comes after the request."""
        with contextlib.closing(self.server.connect()) as connection:
            connection.request("GET", "/_changes?wait=1h&index=begun")
            number = 0
            while not select.select([connection.sock], [], [], 0.02)[0]:  # the request may have come after the first of them
                number += 1
                self.server.must("PUT", "/begun/_doc/%d" % number, {})
            self.assertIn(b'"op":"index"', connection.getresponse().read())

    def test_many_waiting_requests_hold_no_worker(self):
        """Waiting requests hold no worker; those whose client disconnects are freed."""
        until(lambda: self.metric("tidelock_http_requests_in_flight") == 1, "the requests before have ended")
        since = self.now()
        connections = [self.server.connect() for _ in range(200)]
        for connection in connections:
            connection.request("GET", "/_changes?since=%d&wait=10m&index=never" % since)
        until(lambda: self.metric("tidelock_http_requests_in_flight") == 201, "all wait")
        for number in range(50):
            self.server.must("PUT", "/busy/_doc/%d" % number, {"n": number})
            self.assertEqual(self.server.must("POST", "/busy/_search", {"query": {"term": {"n": number}}})["hits"]["total"]["value"], 1)
        for connection in connections:
            connection.close()
        until(lambda: self.metric("tidelock_http_requests_in_flight") == 1, "those who have gone are forgotten")

    def test_stopped(self):
        with Server() as server:
            server.must("PUT", "/a/_doc/1", {})
            with contextlib.closing(server.connect()) as connection:
                connection.request("GET", "/_changes?wait=1h")
                until(lambda: b"\ntidelock_http_requests_in_flight 2\n" in server.request("GET", "/_metrics").body, "the server has the request")
                self.assertEqual(server.stop(), 0)
                reply = connection.getresponse()
                self.assertEqual((reply.status, reply.read()), (200, b""))

    def test_killed_while_followed(self):
        """Every change that was acknowledged is seen, in order, and none twice, over kill -9 and orderly restarts."""
        rng = random.Random(11)
        with Server(port=0) as server:
            server.must("PUT", "/f/_doc/0", {"n": 0})
            server.port_wanted = server.port
            followers = [Follower(server, server.must("GET", "/_timestamp")["timestamp"], "f") for _ in range(3)]
            acknowledged = {}
            for life in range(20 if os.environ.get("TIDELOCK_TEST_LONG") else 4):
                for _ in range(rng.randrange(20, 100)):
                    number = rng.randrange(40)
                    acknowledged[str(number)] = server.must("PUT", "/f/_doc/%d" % number, {"n": number})["_version"]
                if life % 2:
                    server.stop()
                else:
                    server.kill()
                server.start()
            last = server.must("PUT", "/f/_doc/last", {})["_version"]
            for follower in followers:
                until(lambda follower=follower: follower.seen and follower.seen[-1] == ("last", last), "the follower has come to the end")
                follower.end()
                self.assertEqual(len(follower.seen), len(set(follower.seen)), "nothing is reported twice")
                newest = {}
                for name, version in follower.seen:
                    self.assertEqual(version, newest.get(name, 0 if name != "0" else 1) + 1, "in order, without a gap")
                    newest[name] = version
                self.assertEqual({name: newest.get(name) for name in acknowledged}, acknowledged)
            self.assertEqual(followers[0].seen, followers[1].seen)

    def test_refused(self):
        for wait, reason in (("2h", "1h at most"), ("-5s", "negative durations are not supported"), ("soon", "soon"), ("5", "5")):
            status, reply = self.server.ask("GET", "/_changes?wait=" + wait)
            self.assertEqual(status, 400, reply)
            self.assertIn(reason, reply["error"]["reason"])
        status, reply = self.server.ask("GET", "/_changes?since=1&wait=1s")
        if status == 410:
            self.assertGreater(reply["error"]["oldest"], 1)


class Continuous(unittest.TestCase):
    """?feed=continuous: the answer stays open."""
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--memory", "512m")
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def open(self, query=""):
        connection = self.server.connect()
        self.addCleanup(connection.close)
        connection.request("GET", "/_changes?feed=continuous" + query)
        reply = connection.getresponse()
        self.assertEqual(reply.status, 200)
        return connection, reply

    def now(self):
        return self.server.must("GET", "/_timestamp")["timestamp"]

    metric = Wait.metric

    def commits(self, reply, enough):
        """Lines with changes, until `enough` of all that came."""
        lines = []
        while not enough(lines):
            line = json.loads(reply.readline())
            if "changes" in line:
                lines.append(line)
        return lines

    def test_follows(self):
        _, reply = self.open("&index=one")
        first = json.loads(reply.readline())  # nothing for a second
        self.assertEqual(list(first), ["timestamp"])
        for number in range(20):
            self.server.must("PUT", "/one/_doc/%d" % number, {"n": number})
            self.server.must("PUT", "/other/_doc/%d" % number, {"n": number})
        lines = self.commits(reply, lambda lines: len(lines) == 20)
        self.assertEqual([line["changes"][-1]["_source"]["n"] for line in lines], list(range(20)))
        self.assertEqual(sorted(line["timestamp"] for line in lines), [line["timestamp"] for line in lines])
        quiet = json.loads(reply.readline())
        self.assertGreater(quiet["timestamp"], lines[-1]["timestamp"], "from there one can go on")

    def test_stream_opened_during_writes_releases_its_pin(self):
        """The timestamp pinned at the beginning is released, even if the current one has advanced."""
        over = threading.Event()

        def write():
            with contextlib.closing(self.server.connect()) as connection:
                while not over.is_set():
                    self.server.request("PUT", "/busy/_doc/1", {}, connection=connection)
        writers = [threading.Thread(target=write) for _ in range(3)]
        for writer in writers:
            writer.start()
        try:
            for _ in range(100):
                connection, reply = self.open()
                self.commits(reply, lambda lines: lines)
                connection.close()
        finally:
            over.set()
            for writer in writers:
                writer.join()

    def test_from_where_it_was(self):
        since = self.now()
        for number in range(3):
            self.server.must("PUT", "/since/_doc/%d" % number, {"n": number})
        _, reply = self.open("&index=since&since=%d&source=false" % since)
        lines = self.commits(reply, lambda lines: len(lines) == 3)
        self.assertNotIn("_source", lines[2]["changes"][0])

    def test_many_changes_in_one_commit(self):
        """More changes than a stream buffers; a slow client gets all of them at its speed, while other clients continue. TIDELOCK_TEST_LONG: 100,000 documents."""
        many = 100000 if os.environ.get("TIDELOCK_TEST_LONG") else 30000
        since = self.now()
        body = "".join('{"index": {"_id": "%d"}}\n{"n": %d, "text": "%s"}\n' % (number, number, "x" * 100) for number in range(many))
        reply = self.server.request("POST", "/many/_bulk?atomic=true&filter_path=errors", body)
        self.assertEqual(json.loads(reply.body), {"errors": False})
        del body
        _, reply = self.open("&index=many&since=%d" % since)
        for number in range(100):
            self.server.must("PUT", "/beside/_doc/1", {"n": number})
        found = self.commits(reply, lambda lines: any(len(line["changes"]) >= many for line in lines))
        numbers = [change["_source"]["n"] for change in found[-1]["changes"] if change["op"] == "index"]
        self.assertEqual(sorted(numbers), list(range(many)))

    def test_readers_that_do_not_read_hold_little_memory(self):
        """They hold little memory and no worker; those that disconnect are freed."""
        until(lambda: self.metric("tidelock_http_streams") == 0, "the streams of earlier cases have ended")
        open_ones = [self.open()[0] for _ in range(100)]
        until(lambda: self.metric("tidelock_http_streams") == 100, "all are open")
        for number in range(300):
            self.server.must("PUT", "/unread/_doc/%d" % number, {"text": "x" * 5000})
        self.assertEqual(self.server.must("POST", "/unread/_search", {"query": {"match_all": {}}, "size": 0})["hits"]["total"]["value"], 300)
        for connection in open_ones:
            connection.close()
        until(lambda: self.metric("tidelock_http_streams") == 0, "those who have gone are forgotten")

    def test_stopped(self):
        with Server() as server:
            with contextlib.closing(server.connect()) as connection:
                connection.request("GET", "/_changes?feed=continuous")
                reply = connection.getresponse()
                reply.readline()
                self.assertEqual(server.stop(), 0)
                reply.read()  # it ends in good order


class Command(unittest.TestCase):
    """`tidelock changes`."""
    def setUp(self):
        self.server = Server()
        self.server.start()
        self.addCleanup(self.server.close)
        self.environment = dict(os.environ, TIDELOCK_URL=self.server.url, TZ="UTC")

    def run_tool(self, *words):
        return subprocess.run([PROGRAM, "changes", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment)

    def test_shown(self):
        done = self.run_tool()
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""), "nothing was ever changed")
        self.server.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}}}})
        self.server.must("PUT", "/fs/_doc/1", {"path": "/a/b"})
        since = self.server.must("GET", "/_timestamp")["timestamp"]
        self.server.must("PUT", "/fs/_doc/ev%1Bil%0A", {"path": "/a/c"})
        self.server.must("POST", "/fs/_rename", {"from": "/a", "to": "/b"})
        self.server.must("DELETE", "/fs/_doc/1")
        transaction = self.server.must("POST", "/_transaction")["transaction"]
        for number in 2, 3:
            self.server.must("PUT", "/fs/_doc/%d?transaction=%s" % (number, transaction), {"path": "/%d" % number})
        self.server.must("POST", "/_transaction/%s/_commit" % transaction)
        lines = self.run_tool("--since", str(since)).stdout.splitlines()
        instant = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}"
        for line, expected in zip(lines, (instant + r"  index          fs/ev\\033il\\n  v1", instant + r"  rename         fs: /a -> /b", instant + r"  delete         fs/1",
                                          instant + r"  index          fs/2  v1", r" {26}  index          fs/3  v1", r" {26}  by transaction \S+")):
            self.assertRegex(line, "^" + expected + "$")
        self.assertEqual(len(lines), 6)
        self.assertEqual(len(self.run_tool("--since", "-1h").stdout.splitlines()), 6 + 2)
        self.assertEqual(self.run_tool("--index", "none").stdout, "")
        commits = [json.loads(line) for line in self.run_tool("--json", "--since", str(since)).stdout.splitlines()]
        self.assertEqual(len(commits), 4)
        self.assertEqual(commits[0]["changes"][0]["_source"], {"path": "/a/c"})
        self.assertEqual(self.run_tool("--json", "--since", str(commits[-1]["timestamp"])).stdout, "")

    def test_wrong(self):
        for words in (("--since", "soon"), ("--since", "-soon"), ("fs",), ("--since", "0")):
            self.assertEqual(self.run_tool(*words).returncode, 64, words)
        done = self.run_tool("--since", str(1 << 62))
        self.assertEqual(done.returncode, 1)
        self.assertIn("in the future", done.stderr)
        self.server.stop()
        self.assertEqual(self.run_tool().returncode, 69)
        self.server.start()

    def test_more_than_one_answer(self):
        """A thousand changes are an answer; the command reads them all."""
        lines = "".join('{"index": {"_id": "%d"}}\n{}\n' % number for number in range(700))
        since = self.server.must("GET", "/_timestamp")["timestamp"]
        for _ in range(4):
            self.server.must("POST", "/big/_bulk", lines)
        self.assertEqual(len([line for line in self.run_tool("--since", str(since)).stdout.splitlines() if "  index  " in line]), 2800)

    def test_followed(self):
        """It waits for a server that is away, and misses nothing."""
        self.server.must("PUT", "/fs/_doc/0", {})
        self.server.port_wanted = self.server.port
        with tempfile.TemporaryFile("a+") as out, tempfile.TemporaryFile("a+") as errors:  # appended to, wherever it is read
            follower = subprocess.Popen([PROGRAM, "changes", "--follow", "--index", "fs"], stdout=out, stderr=errors, env=self.environment)

            def seen():
                out.seek(0)
                return re.findall(r"  index          fs/(\d+)", out.read())

            def said():
                errors.seek(0)
                return errors.read()
            while not seen():  # from when on it follows is not known here
                self.server.must("PUT", "/fs/_doc/0", {})
                time.sleep(0.02)
            self.server.must("PUT", "/fs/_doc/1", {})
            until(lambda: seen()[-1] == "1", "the first is seen")
            self.server.kill()
            until(lambda: "waiting for the server" in said(), "it waits for the server")
            self.server.start()
            self.server.must("PUT", "/fs/_doc/2", {})
            until(lambda: seen()[-1] == "2", "the second is seen")
            self.assertEqual([id for id in seen() if id != "0"], ["1", "2"])
            follower.send_signal(signal.SIGTERM)
            follower.wait()
            self.assertEqual(said().count("waiting for the server"), 1)


if __name__ == "__main__":
    unittest.main()
