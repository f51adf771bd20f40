#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The names that a lock can have, and the writes that it blocks: the tables of docs/locking.md, row by row, with another client's writes.

The tables are read from the document, so that it cannot be wrong. KINDS below are the kinds of names that it must have, so that
no row can get lost.
"""
import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import PROGRAM, ROOT, Server  # noqa: E402

# A kind of name: the parts that it has, the index, whether that is there.
KINDS = [((), None), (("index",), "log"), (("index",), "files"), (("index",), "both"), (("index",), "new"),
         (("index", "path"), "fs"), (("index", "path"), "new"), (("id", "index"), "log"), (("id", "index"), "files"),
         (("id", "index"), "new"), (("id", "index"), "old"), (("id", "index"), "bare"), (("id", "index", "type"), "old"),
         (("id", "index", "type"), "log")]

FIVE = {"Content-Type": "application/json"}


def table(heading):
    """Returns: the rows of the table whose first row is `heading`, as lists of cells."""
    with open(os.path.join(ROOT, "docs", "locking.md"), encoding="utf-8") as file:
        lines = file.read().split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith(heading))
    rows = []
    for line in lines[at + 2:]:
        if not line.startswith("|"):
            return rows
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def code(cell):
    return re.findall(r"`([^`]*)`", cell)


def request_of(text):
    """Returns: method, path, body of `PUT /x {"a": 1}`."""
    parts = text.split(" ", 2)
    return parts[0], parts[1], json.loads(parts[2]) if len(parts) > 2 else None


class Stage:
    """A server with what the document says there is. Every write that goes through is taken back."""

    def __init__(self):
        self.server = Server().start()

    def fill(self):
        must = self.server.must
        self.server.ask("DELETE", "/fs,log,old,bare,new?ignore_unavailable=true")
        must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}}}, "aliases": {"files": {}, "both": {}}})
        must("PUT", "/fs/_doc/1", {"path": "/clinton/README"})
        must("PUT", "/fs/_doc/2", {})
        must("PUT", "/log", {"aliases": {"both": {"is_write_index": True}}})
        must("PUT", "/log/_doc/1", {})
        must("PUT", "/old/a/1", {})
        must("PUT", "/old/b/2", {})
        must("PUT", "/bare", {})

    def session(self):
        return self.server.must("POST", "/_session", {"ttl": "60s"})["session"]

    def lock(self, session, target):
        return self.server.ask("POST", "/_lock", {"session": session, "locks": [dict(target, mode="exclusive")]})

    def stranger(self, text):
        method, path, body = request_of(text)
        return self.server.ask(method, path + ("&" if "?" in path else "?") + "timeout=0s", body, FIVE)


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stage = Stage()

    @classmethod
    def tearDownClass(cls):
        cls.stage.server.close()

    def setUp(self):
        self.stage.fill()

    def try_row(self, target, stopped, through):
        stage = self.stage
        session = stage.session()
        status, reply = stage.lock(session, target)
        self.assertEqual(status, 200, reply)
        missing = target.get("index") == "new"
        self.assertEqual(reply.get("index_missing", False), missing, reply)
        self.assertEqual(reply["locks"][0].get("index_missing", False), missing, reply)
        for text in stopped:
            status, reply = stage.stranger(text)
            self.assertEqual(status, 409, (target, text, reply))
            self.assertEqual(reply["error"]["type"], "lock_wait_timeout_exception", (target, text, reply))
        # Another lock by the same name is not to be had either.
        other = stage.session()
        status, reply = stage.lock(other, target)
        self.assertEqual(status, 409, (target, reply))
        for text in through:
            status, reply = stage.stranger(text)
            self.assertIn(status, (200, 201), (target, text, reply))
            self.assertFalse(reply.get("errors"), reply)
        self.assertEqual(stage.server.must("POST", "/_unlock", {"session": session, "locks": [target]})["released"], 1)
        self.assertEqual(stage.server.must("GET", "/_lock")["locks"], [], target)
        # The refused writes succeed without the lock.
        for text in stopped:
            stage.fill()
            status, reply = stage.stranger(text)
            self.assertIn(status, (200, 201), (target, text, reply))
        stage.server.must("DELETE", "/_session/" + session)
        stage.server.must("DELETE", "/_session/" + other)

    def test_each_row_blocks_the_documented_writes(self):
        rows = table("| a lock on | is |")
        reported = set()
        for cells in rows:
            target = json.loads(code(cells[0])[0])
            reported.add((tuple(sorted(target)), target.get("index")))
            with self.subTest(lock=target):
                self.stage.fill()
                self.try_row(target, code(cells[2]), code(cells[3]))
        self.assertEqual(set(KINDS) - reported, set(), "the table lacks these")

    def test_each_refusal(self):
        rows = table("| a lock on | why not |")
        self.assertGreaterEqual(len(rows), 15)
        session = self.stage.session()
        for cells in rows:
            target = json.loads(code(cells[0])[0])
            with self.subTest(lock=target):
                status, reply = self.stage.lock(session, target)
                self.assertEqual(status, 400, reply)
                self.assertNotEqual(reply["error"]["reason"], "")
        self.stage.server.must("DELETE", "/_session/" + session)

    def test_the_missing_field_is_named(self):
        session = self.stage.session()
        status, reply = self.stage.lock(session, {"index": "log", "path": "/clinton"})
        self.assertEqual(status, 400)
        for words in ("[log]", "[/clinton]", "field such as [path] of type [path]", "path_hierarchy"):
            self.assertIn(words, reply["error"]["reason"])
        # By an alias it is the index that is looked at, in an atomic set all are refused, and nothing is held.
        self.assertEqual(self.stage.lock(session, {"index": "both", "path": "/clinton"})[0], 400)
        status, reply = self.stage.server.ask("POST", "/_lock", {"session": session, "locks": [
            {"mode": "shared", "index": "fs"}, {"mode": "shared", "index": "log", "path": "/x"}]})
        self.assertEqual(status, 400)
        self.assertEqual(self.stage.server.must("GET", "/_lock")["locks"], [])
        self.stage.server.must("DELETE", "/_session/" + session)

    def test_other_wrong_names(self):
        session = self.stage.session()
        for path in ("", "a", "./a", "/.", "/..", "/a/..", "/a/.", "//", "/a//", "//a", "/*", "/a?", "/a/b*c", "/a/./b/"):
            with self.subTest(path=path):
                self.assertEqual(self.stage.lock(session, {"index": "fs", "path": path})[0], 400)
                self.assertEqual(self.stage.lock(session, {"index": "new", "path": path})[0], 400)
        for path in ("/", "/a/", "/...", "/.a", "/a.", "/a..b", "/[a]", "/a b", "/\u00e4"):
            with self.subTest(path=path):
                self.assertEqual(self.stage.lock(session, {"index": "fs", "path": path})[0], 200)
        self.stage.server.must("DELETE", "/_session/" + session)

    def test_a_transaction_names_its_locks_by_the_same_rules(self):
        transaction = self.stage.server.must("POST", "/_transaction", {"mode": "update"})["transaction"]
        for target in ({"index": "log", "path": "/a"}, {"index": "fs", "path": "a"}, {"index": "l*"}):
            status, reply = self.stage.server.ask("POST", "/_lock", {
                "transaction": transaction, "locks": [dict(target, mode="shared")]})
            self.assertEqual(status, 400, reply)
        self.stage.server.must("POST", "/_transaction/%s/_rollback" % transaction)

    def test_holder_cannot_change_its_locked_path(self):
        session = self.stage.session()
        must, ask = self.stage.server.must, self.stage.server.ask
        self.assertEqual(self.stage.lock(session, {"index": "files", "id": "1"})[0], 200)
        self.assertEqual(self.stage.lock(session, {"index": "new"})[0], 200)
        for method, path, body in (
                ("POST", "/_aliases", {"actions": [{"remove": {"index": "fs", "alias": "files"}},
                                                   {"add": {"index": "log", "alias": "files"}}]}),
                ("PUT", "/log/_alias/new", None), ("DELETE", "/fs", None),
                ("PUT", "/more", {"aliases": {"new": {}}}), ("DELETE", "/fs/_alias/*", None)):
            status, reply = ask(method, path + "?session=" + session, body)
            self.assertEqual(status, 409, (path, reply))
            self.assertEqual(reply["error"]["type"], "lock_conflict_exception", (path, reply))
        must("PUT", "/_template/m", {"index_patterns": ["more*"], "aliases": {"new": {}}})
        status, reply = ask("PUT", "/more-1/_doc/1?session=" + session, {})
        self.assertEqual((status, reply["error"]["type"]), (409, "lock_conflict_exception"))
        status, reply = ask("PUT", "/more-1/_doc/1?timeout=0s", {})
        self.assertEqual((status, reply["error"]["type"]), (409, "lock_wait_timeout_exception"))
        must("DELETE", "/_template/m")
        must("PUT", "/new/_doc/1?session=" + session, {})
        must("DELETE", "/_session/" + session)
        must("DELETE", "/fs/_alias/files")

    def test_unchanged_document_keeps_its_path(self):
        """A write of the holder that does not change the document keeps its path in the lock tree."""
        ask, must = self.stage.server.ask, self.stage.server.must
        nothing = [("DELETE", "/fs/_doc/1?routing=elsewhere", None, 404),
                   ("POST", "/fs/_update/1", {"script": "ctx._source.path = '/bill/README'; ctx.op = 'none'"}, 200),
                   ("POST", "/fs/_update/1", {"script": "ctx._source.remove('path'); ctx.op = 'none'"}, 200)]
        must("DELETE", "/fs")
        must("PUT", "/fs", {"settings": {"number_of_shards": 5}, "mappings": {"properties": {"path": {"type": "path"}}}})
        must("PUT", "/fs/_doc/1", {"path": "/clinton/README"})
        for method, path, body, answer in nothing:
            session, other = self.stage.session(), self.stage.session()
            self.assertEqual(self.stage.lock(session, {"index": "fs", "id": "1"})[0], 200)
            status, reply = ask(method, path + ("&" if "?" in path else "?") + "session=" + session, body)
            self.assertEqual(status, answer, (path, reply))
            self.assertIn(reply["result"], ("noop", "not_found"))
            status, reply = self.stage.lock(other, {"index": "fs", "path": "/clinton"})
            self.assertEqual(status, 409, (method, path, body, reply))
            self.assertEqual(self.stage.lock(other, {"index": "fs", "path": "/bill"})[0], 200)
            for one in (session, other):
                must("DELETE", "/_session/" + one)
        must("DELETE", "/fs")

    def test_lock_command_warns(self):
        def run(*target):
            return subprocess.run([PROGRAM, "lock", "--url", self.stage.server.url, *target, "--", "true"],
                                  capture_output=True, text=True, check=False)
        job = run("nowhere")
        self.assertEqual((job.returncode, job.stdout), (0, ""))
        self.assertIn("there is no index [nowhere]", job.stderr)
        self.assertIn("there is no index [nowhere]", run("nowhere:/a").stderr)
        self.assertEqual(run("log").stderr, "")
        self.assertEqual(run("/").stderr, "")
        job = run("log:/library/*")
        self.assertEqual(job.returncode, 1)
        self.assertIn("is a pattern", job.stderr)


if __name__ == "__main__":
    unittest.main()
