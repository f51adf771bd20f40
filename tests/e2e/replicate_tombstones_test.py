#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A copy whose deletes are documents: `tidelock replicate --tombstones`. Nothing that arrives late brings a deleted document back, whatever the target forgets.

As replicate_test.py, with TIDELOCK_TARGET=http://127.0.0.1:PORT the target is a real Elasticsearch or OpenSearch from 6.8 on.
"""
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from replicate_test import TARGET, Copy, without_rests  # noqa: E402
from proxy import Meddler  # noqa: E402
from server import PROGRAM  # noqa: E402
from waiting import until  # noqa: E402


class Tombstones(Copy):
    def command(self, *options, to=None):
        return super().command("--tombstones", *options, to=to)

    def seen(self, name, ask=None):
        """What a reader sees under a name: id to source."""
        (ask or self.target.must)("POST", "/%s/_refresh" % name)
        return {hit["_id"]: hit["_source"] for hit in (ask or self.target.must)("POST", "/%s/_search" % name, {"size": 1000})["hits"]["hits"]}

    def tombstones(self, index="fs-copy"):
        return {id for id, source in self.seen(index).items() if "tidelock_deleted" in source}

    def assert_seen(self, *names):
        for name in names:
            self.assertEqual(self.seen(name), self.seen(name, self.source.must))

    def test_deletes_stay(self):
        """Also if an old request arrives after the target has forgotten the versions of deletes."""
        self.source.must("PUT", "/fs", {"mappings": {"dynamic": "strict", "properties": {"n": {"type": "long"}}}, "aliases": {"odd": {"filter": {"term": {"n": 7}}}, "all": {}}})
        self.source.must("POST", "/_bulk", "".join('{"index":{"_index":"fs","_id":"%d"}}\n{"n":%d}\n' % (i, i) for i in range(20)))
        self.once()
        self.assert_seen("fs", "odd", "all")
        old = self.target.must("GET", "/fs-copy/_doc/7")["_version"]
        self.source.must("DELETE", "/fs/_doc/7")
        self.source.must("DELETE", "/fs/_doc/8")
        self.once()
        self.assertEqual(self.tombstones(), {"7", "8"})
        self.assert_seen("fs", "odd", "all")
        self.assertNotIn("7", self.seen("fs"))
        if not TARGET:
            self.target.stop()
            self.target.start()
        self.assertEqual(self.target.ask("PUT", "/fs-copy/_doc/7?version=%d&version_type=external" % old, {"n": 7})[0], 409)
        self.source.must("PUT", "/fs/_doc/8", {"n": 88})  # made again
        self.once()
        self.assertEqual(self.tombstones(), {"7"})
        self.assert_seen("fs", "odd", "all")
        self.assertEqual(self.seen("fs")["8"], {"n": 88})
        verify = subprocess.run(self.command("--verify"), capture_output=True, text=True)
        self.assertEqual(verify.returncode, 0, verify.stdout + verify.stderr)

    def test_mended(self):
        """An extra document becomes a tombstone, one that is missing comes, and a tombstone is neither extra nor missing."""
        self.fill(10)
        self.once()
        self.source.must("DELETE", "/fs/_doc/1")
        self.once()
        self.target.must("DELETE", "/fs-copy/_doc/2")
        self.target.must("PUT", "/fs-copy/_doc/stray", {"n": 1})
        repair = subprocess.run(self.command("--repair"), capture_output=True, text=True, env=without_rests())
        *found, _, last = repair.stdout.splitlines()
        self.assertEqual((repair.returncode, sorted(found)), (0, ["extra      fs/stray", "missing    fs/2"]), repair.stdout)
        self.assertEqual(last, "equal after the repair: 2 documents were repaired")
        self.assertEqual(self.tombstones(), {"1", "stray"})
        self.assert_seen("fs")
        self.assertEqual(subprocess.run(self.command("--verify"), capture_output=True).returncode, 0)

    def test_copy_after_lost_position(self):
        """A copy whose place is lost goes over what there is: tombstones stay as they are, what the source has no more becomes one."""
        self.fill(10)
        self.once()
        self.source.must("DELETE", "/fs/_doc/1")
        self.once()
        before = self.seen("fs-copy")["1"]
        self.source.must("DELETE", "/fs/_doc/2")
        self.target.must("DELETE", "/.tidelock-replicate")
        self.once()
        self.assertEqual(self.tombstones(), {"1", "2"})
        self.assertEqual(self.seen("fs-copy")["1"], before)
        self.assert_seen("fs")

    def test_old_tombstones_are_deleted(self):
        self.fill(10)
        sent = []

        def judge(method, path, body):
            if path.startswith("/_bulk") and b"tidelock_deleted" in body:
                sent.append(body)
            return "pass"
        meddler = self.enterContext(Meddler(self.target.port, judge))
        process = self.follow("--tombstone-time", "1s", to=meddler.url)
        until(lambda: self.target.ask("GET", "/fs-copy/_doc/9")[0] == 200, "it follows")
        self.assertEqual(sent, [])
        self.source.must("DELETE", "/fs/_doc/1?routing=1")
        until(lambda: sent, "there is one")
        until(lambda: "1" not in self.seen("fs-copy"), "it is gone")
        self.assertIsNone(process.poll(), self.messages(process))
        self.assert_seen("fs")
        self.source.must("PUT", "/fs/_doc/1", {"n": 1, "t": "again"})
        until(lambda: self.seen("fs").get("1") == {"n": 1, "t": "again"}, "it is there again")

    def test_indices(self):
        """Types, a prefix, an index that is made anew, and one that goes."""
        for type in ("file", "lock"):
            self.source.must("PUT", "/two/%s/1" % type, {"type": type})
        self.source.must("PUT", "/one/_doc/1", {"n": 1})
        self.once("--prefix", "live-")
        self.assertEqual(self.seen("live-two-lock"), {"1": {"type": "lock"}})
        self.source.must("DELETE", "/two/lock/1")
        self.source.must("DELETE", "/one")
        self.source.must("PUT", "/one/_doc/2", {"n": "other"})
        self.once("--prefix", "live-")
        self.assertEqual(self.tombstones("live-two-lock-copy"), {"1"})
        self.assertEqual((self.seen("live-two-lock"), self.seen("live-two-file")), ({}, {"1": {"type": "file"}}))
        self.assertEqual(self.seen("live-one-copy"), {"2": {"n": "other"}})

    def test_changed_tombstones_option_is_refused(self):
        self.fill(3)
        self.once()
        plain = [PROGRAM, "replicate", "--from", self.source.url, "--to", self.target.url]
        for options in (("--once",), ("--verify",), ("--repair",)):
            run = subprocess.run([*plain, *options], capture_output=True, text=True)
            self.assertEqual((run.returncode, "was made with --tombstones" in run.stderr), (1, True), run.stderr)
        self.assertEqual(subprocess.run([*plain, "--once", "--name", "b", "--prefix", "b-"], capture_output=True).returncode, 0)
        self.assertIn("was made without --tombstones", self.once("--name", "b", "--prefix", "b-", expect=1))
        self.source.must("PUT", "/fs-copy/_doc/1", {})
        self.assertIn("leave one out", self.once(expect=1))
        self.once("--index", "fs")


del Copy  # its cases are elsewhere

if __name__ == "__main__":
    unittest.main(verbosity=2)
