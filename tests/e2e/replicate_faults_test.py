#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A copy whose target, or a proxy before it, fails in a way of its own: credentials that are no longer valid, pages of a proxy; and a copy that is killed between a request and its place."""
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import replicate_test  # noqa: E402
from replicate_standin_test import Target  # noqa: E402
from replicate_test import until  # noqa: E402

DENIED = {"error": {"type": "security_exception", "reason": "action [indices:data/write/bulk[s]] is unauthorized for user [copy]"}, "status": 403}
UNKNOWN = {"error": {"type": "security_exception", "reason": "unable to authenticate user [copy]"}, "status": 401}
ADVICE = "correct the user and password of --to, or its privileges, and start the copy again"
HTML = b"<html><body>no server is available to handle this request</body></html>"


class Meddled(replicate_test.Copy):
    """Between the copy and the target is a proxy."""
    new_target = Target

    def setUp(self):
        super().setUp()
        self.meddler = replicate_test.Meddler(self.target.port)
        self.meddler.__enter__()
        self.addCleanup(self.meddler.__exit__)

    def place(self):
        return self.target.must("GET", "/.tidelock-replicate/_doc/default")["_source"]["timestamp"]

    def assert_nothing_set_aside(self):
        self.assertEqual(self.target.ask("GET", "/.tidelock-replicate-refused")[0], 404)

    def through(self):
        process = self.follow(to=self.meddler.url, fast=True)
        self.await_equal()
        return process


class Credentials(Meddled):
    def assert_ends(self, spoil, change, reason):
        """Follows until replies are spoiled. The copy ends with a message, and the next one, whose credentials are valid, sends the missing changes."""
        self.fill(20)
        process = self.through()
        self.meddler.spoil = spoil
        changed = change()
        self.assertEqual(self.ended(process), 1)
        self.assertIn(reason, self.messages(process))
        self.assertIn(ADVICE, self.messages(process))
        self.assertLess(self.place(), changed)
        self.assert_nothing_set_aside()
        self.meddler.spoil = None
        self.source.end_owners()
        self.through()
        self.assert_equal()

    def write(self):
        return int(self.source.request("PUT", "/fs/_doc/1", json.dumps({"n": 77})).headers["Tidelock-Timestamp"])

    def test_unknown(self):
        """All requests are answered 401 in the middle."""
        self.assert_ends(lambda method, path, answer: (401, "application/json", json.dumps(UNKNOWN).encode()), self.write, "unable to authenticate user [copy]")

    def test_privilege_of_documents(self):
        """A bulk is answered 200, and its items 403: none is taken for a document that the mapping does not accept."""
        def deny(method, path, answer):
            if not path.startswith("/_bulk"):
                return answer
            reply = json.loads(answer[2])
            for item in reply["items"]:
                (_, it), = item.items()
                it.update(DENIED)
            return 200, "application/json", json.dumps(reply).encode()
        self.assert_ends(deny, self.write, "the target does not let the copy write to fs: action [indices:data/write/bulk[s]] is unauthorized for user [copy]")

    def test_privilege_of_mappings(self):
        """The change of a mapping, or of aliases, is not left out: later documents would get another mapping."""
        def deny(where):
            return lambda method, path, answer: (403, "application/json", json.dumps(DENIED).encode()) if where in path and method != "GET" else answer

        def switch():
            return int(self.source.request("POST", "/_aliases", json.dumps({"actions": [{"add": {"index": "fs", "alias": "new"}}]})).headers["Tidelock-Timestamp"])

        def map_field():
            return int(self.source.request("PUT", "/fs/_mapping", json.dumps({"properties": {"k": {"type": "keyword"}}})).headers["Tidelock-Timestamp"])
        self.assert_ends(deny("/_mapping"), map_field, "the target does not take the mapping of fs")
        self.assertEqual(self.target.indices["fs"].mappings["properties"]["k"], {"type": "keyword"})
        self.running[-1].kill()
        self.running[-1].wait()
        self.source.end_owners()
        self.assert_ends(deny("/_aliases"), switch, "the target does not take the aliases of fs")
        self.assertIn("new", self.target.indices["fs"].aliases)


class Pages(Meddled):
    def test_waits(self):
        """A proxy answers with pages while it finds no target, all requests or one kind: the copy waits, and ends nothing, begins nothing anew, and skips nothing."""
        self.fill(20)
        process = self.through()
        for number, status in enumerate((502, 503, 504, 404)):
            for where in ("", "/_bulk", "/_mapping", "/.tidelock-replicate/"):
                with self.subTest((status, where)):
                    answered = []

                    def page(method, path, answer, status=status, where=where, answered=answered):
                        if where not in path:
                            return answer
                        answered.append(path)
                        return status, "text/html", HTML
                    self.meddler.spoil = page
                    self.source.must("PUT", "/fs/_doc/1", {"n": status, "where": where or "all"})
                    self.source.request("DELETE", "/fs/_doc/%d" % (2 + number))
                    self.source.must("PUT", "/fs-%d-%s/_doc/1" % (status, where.strip("/._")), {"n": 1})
                    until(lambda: len(answered) > 2 or process.poll() is not None, "it was answered with pages")
                    self.assertIsNone(process.poll(), self.messages(process))
                    self.meddler.spoil = None
                    self.await_equal()
        self.assertNotIn("compared", self.messages(process))
        self.assert_nothing_set_aside()

    def test_place_is_not_taken_for_missing(self):
        """A page with 404 in reply to a read of the place: the copy continues from its place when that is answered."""
        self.fill(20)
        self.once()
        self.source.must("PUT", "/fs/_doc/1", {"n": 1})
        pages = []

        def page(method, path, answer):
            if method != "GET" or not path.startswith("/.tidelock-replicate/") or len(pages) == 3:
                return answer
            pages.append(path)
            return 404, "text/html", HTML
        self.meddler.spoil = page
        self.assertIn(" 1 documents sent", self.once(to=self.meddler.url))
        self.assertEqual(len(pages), 3)


class Killed(Meddled):
    def test_between_bulk_and_place(self):
        """kill -9 after the target has a bulk, and before it has the place: documents that have changed since are sent in their newest state only."""
        self.fill(20)
        process = self.through()
        bulks, states = [], []

        def judge(method, path, body):
            if method == "PUT" and path.startswith("/.tidelock-replicate/"):
                return "drop"
            if path.startswith("/_bulk"):
                bulks.append(body)
            return "pass"
        self.meddler.judge = judge
        self.source.must("PUT", "/fs/_doc/1", {"s": "first"})
        self.source.must("PUT", "/fs/_doc/gone", {"s": "first"})
        until(lambda: self.equal(), "the target has the bulk")
        place = self.place()
        self.kill_copy(process)
        self.source.must("PUT", "/fs/_doc/1", {"s": "second"})
        self.source.must("DELETE", "/fs/_doc/gone")
        self.assertEqual(self.place(), place)
        first = len(bulks)
        self.meddler.judge = lambda method, path, body: states.append(body) or "pass" if path.startswith("/_bulk") else "pass"
        self.through()
        self.assertGreater(first, 0)
        self.assertGreater(len(states), 0)
        self.assertNotIn(b'"first"', b"".join(states))
        until(lambda: self.place() > place or self.running[-1].poll() is not None, "the place is beyond them")
        self.assertIsNone(self.running[-1].poll(), self.messages(self.running[-1]))


class Conflict(replicate_test.Copy):
    """The target's index has another mapping than the source's."""
    new_target = Target

    def test_counted_told_and_tried_again(self):
        self.target.must("PUT", "/fs", {"mappings": {"properties": {"n": {"type": "long"}}}})
        self.source.must("PUT", "/fs", {"mappings": {"properties": {"n": {"type": "keyword"}}}})
        for i in range(10):
            self.source.must("PUT", "/fs/_doc/%d" % i, {"n": "text" if i in (3, 4) else "7"})
        process = self.follow("--verify-every", "0", fast=True)

        def consumer():
            return self.source.must("GET", "/_changes/_consumers")["consumers"][0]
        self.until(lambda: process.poll() is not None or (self.has_place() and consumer().get("refused") == 2), "its status counts the refused ones")
        self.assertIsNone(process.poll(), self.messages(process))
        self.assertEqual(set(replicate_test.documents(self.target.must)) - {("fs", "meanwhile")}, {("fs", str(i)) for i in range(10) if i not in (3, 4)})
        for id in "34":
            self.assertIn("the target refuses fs/" + id, self.messages(process))
            self.assertEqual(self.target.must("GET", "/.tidelock-replicate-refused/_doc/default:fs:" + id)["_source"]["id"], id)
        self.source.must("PUT", "/fs/_doc/3", {"n": "8"})  # the next change of one
        until(lambda: self.target.ask("GET", "/fs/_doc/3")[0] == 200, "it is tried again")
        self.kill_copy(process)
        self.assertIn("the target refuses fs/4", self.repair(1))
        self.target.indices["fs"].mappings["properties"]["n"] = {"type": "keyword"}  # what another target's index would have
        self.repair(0)
        self.assert_equal()

    def repair(self, expect):
        run = subprocess.run(self.command("--quiet", "--repair"), capture_output=True, text=True, env=replicate_test.without_rests())
        self.assertEqual(run.returncode, expect, run.stdout + run.stderr)
        return run.stderr


class Prefixes(replicate_test.Copy):
    new_target = Target

    def test_two_copies(self):
        """Two copies with their own names and prefixes follow into one target, and neither touches indices of the other."""
        self.fill(20)
        for name in ("a", "b"):
            self.follow("--name", name, "--prefix", name + "-", "--delete-indices")
        both = {"a-", "b-"}
        until(lambda: all(self.target.ask("GET", "/%sfs/_doc/19" % prefix)[0] == 200 for prefix in both), "both have copied")
        self.source.must("PUT", "/other/_doc/1", {"n": 1})
        self.source.must("DELETE", "/fs")
        self.source.must("PUT", "/a-fs/_doc/1", {"n": "of b"})  # b-a-fs and a-a-fs
        self.source.must("PUT", "/fs/_doc/1", {"n": "again"})

        def copied():
            there = replicate_test.documents(self.target.must)
            here = replicate_test.documents(self.source.must)
            return there == {(prefix + index, id): document for prefix in both for (index, id), document in here.items()}
        until(lambda: copied() or any(process.poll() is not None for process in self.running), "both are equal")
        self.assertTrue(copied(), [self.messages(process) for process in self.running])

    def test_one_name(self):
        """A second prefix under the name of a copy that runs, or has run, is refused before anything is written."""
        self.fill(20)
        self.follow("--prefix", "a-")
        until(self.has_place, "it follows")
        self.assertIn("is being made already", self.once("--prefix", "b-", expect=75))
        self.kill_copy(self.running[-1])
        self.assertIn('was made with --prefix "a-"', self.once("--prefix", "b-", expect=1))
        self.assertEqual(self.target.ask("GET", "/b-fs")[0], 404)

    def test_one_index_in_the_target(self):
        """Prefixes under which two indices of the source need one of the target: the second copy is refused, and the first one keeps its index."""
        self.source.must("PUT", "/fs/_doc/1", {"n": "fs"})
        self.source.must("PUT", "/live-fs/_doc/1", {"n": "live"})
        self.once("--name", "a", "--index", "live-fs")
        self.assertIn("the target's index live-fs is a copy of another index, which was made under --name a", self.once("--name", "b", "--index", "fs", "--prefix", "live-", expect=1))
        self.assertEqual(replicate_test.documents(self.target.must), {("live-fs", "1"): ({"n": "live"}, None)})


class Records(replicate_test.Copy):
    """The target answers 503 when the record of a refused document is put."""
    new_target = Target

    def prepare(self):
        self.target.must("PUT", "/fs", {"mappings": {"properties": {"n": {"type": "long"}}}})
        self.source.must("PUT", "/fs/_doc/1", {"n": "text"})
        self.refused = []
        self.unavailable = True
        answer = self.target.answer

        def answer_some(method, path, body):
            if not self.unavailable or not path.startswith("/.tidelock-replicate-refused/") or method == "GET":
                return answer(method, path, body)
            self.refused.append(path)
            return 503, {"error": {"type": "unavailable_shards_exception", "reason": "no shard"}, "status": 503}
        self.target.answer = answer_some
        self.addCleanup(delattr, self.target, "answer")

    def record(self):
        status, record = self.target.ask("GET", "/.tidelock-replicate-refused/_doc/default:fs:1")
        return record["_source"]["id"] if status == 200 else None

    def test_repeated(self):
        """The record of a refused document is put again when the target takes none at first."""
        self.prepare()
        process = self.follow()
        until(lambda: len(self.refused) > 2 or process.poll() is not None or self.has_place(), "the record is refused")
        self.unavailable = False
        until(lambda: self.record() == "1" or process.poll() is not None, "it is kept")
        self.assertIsNone(process.poll(), self.messages(process))

    def test_stopped_before(self):
        """A copy that is stopped before the record is kept has no place beyond the document, and the next one records it."""
        self.prepare()
        process = self.follow()
        until(lambda: len(self.refused) > 2 or process.poll() is not None or self.has_place(), "the record is refused")
        process.terminate()
        process.wait()
        self.assertIsNone(self.record())
        self.assertFalse(self.has_place())
        self.unavailable = False
        self.source.end_owners()
        self.once(expect=1)
        self.assertEqual(self.record(), "1")


if __name__ == "__main__":
    unittest.main(verbosity=2)
