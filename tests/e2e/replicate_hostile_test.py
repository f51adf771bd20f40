#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A target with wrong replies: `tidelock replicate` waits, or ends with a status of its own and a reason. When the replies are right
again it copies everything.

A proxy changes the target's replies: truncated, emptied, of another type, with more or fewer members, redirected, endless. More seeds:
TIDELOCK_SEEDS=FIRST,COUNT python3 tests/e2e/replicate_hostile_test.py
"""
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from replicate_test import Copy  # noqa: E402
from proxy import Meddler  # noqa: E402

REASONS = {0, 1, 69, 75, 76, 143}
FIRST, COUNT = (int(number) for number in os.environ.get("TIDELOCK_SEEDS", "1,20" if os.environ.get("TIDELOCK_TEST_LONG") else "1,2").split(","))
ALL = "TIDELOCK_SEEDS" in os.environ


def change(value, chance, rate):
    """Something else that JSON can say, here and there."""
    if chance.random() < rate:
        return chance.choice([None, True, 0, -1, 1 << 63, 1e300, "", "\0", "x" * 3000, [], {}, [value] * 3, {"a": value}, 200, 404, "\u202e\x1b[2J"])
    if isinstance(value, dict):
        changed = {key: change(member, chance, rate) for key, member in value.items() if chance.random() >= rate}
        if chance.random() < rate:
            changed["error"] = chance.choice([{"type": "cluster_block_exception"}, "no", 7, {"type": 1, "reason": []}])
        return changed
    if isinstance(value, list):
        changed = [change(member, chance, rate) for member in value]
        if chance.random() < rate:
            changed = chance.choice([changed[:len(changed) // 2], changed * 3, changed[::-1], changed * (1 + 1200 // (len(changed) + 1))])
        return changed
    return value


def other_body(body):
    return lambda status, kind, answer: (status, kind, body if isinstance(body, bytes) else body(answer))


def other_status(status):
    return lambda _, kind, answer: (status, kind, answer)


SPOILS = {
    "cut": other_body(lambda answer: answer[:len(answer) // 2]),
    "empty": other_body(b""),
    "a page": lambda *_: (200, "text/html", b"<html><body>It works!</body></html>"),
    "a list": other_body(b"[]"), "nothing": other_body(b"null"), "a number": other_body(b"7"), "no members": other_body(b"{}"),
    "lists": other_body(lambda answer: json.dumps({key: [] for key in json.loads(answer)}).encode()),
    "deep": other_body(b'{"items":' + b"[" * 100000 + b"]" * 100000 + b"}"),
    "no text": other_body(bytes(range(256))), "compressed": other_body(gzip.compress),
    "redirected": other_status(301), "nobody's": other_status(418), "without content": lambda *_: (204, "", b""), "forbidden": other_status(403), "ill": other_status(500),
    "long": other_body(lambda answer: answer + b" " * (32 << 20)),
}


class Hostile(Copy):
    def setUp(self):
        super().setUp()
        self.meddler = Meddler(self.target.port)
        self.meddler.__enter__()
        self.addCleanup(self.meddler.__exit__)
        self.source.must("POST", "/_bulk", "".join('{"index":{"_index":"%s","_id":"%d","routing":"%d"}}\n{"n":%d}\n' % (("a", "b")[i % 2], i, i % 3, i) for i in range(600)))

    def run_some(self, options, enough):
        """Runs it until it ends or enough() is true; then SIGTERM ends it. Returns: its status and its output."""
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            process = subprocess.Popen(self.command(*options, to=self.meddler.url), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
            try:
                while process.poll() is None and not enough():
                    time.sleep(0.005)
                process.terminate()
                process.wait()
            finally:
                process.kill()
                process.wait()
            output.seek(0)
            said = output.read()
        self.assertIn(process.returncode, REASONS, said)
        if process.returncode != 0:
            self.assertRegex(said, "(?m)^tidelock replicate: |^not equal: ")
        self.assertNotIn("\x1b", said)
        return process.returncode, said

    def run_beside(self, spoil, where, *options):
        """Runs it while the replies to some requests are wrong, until two were sent, of which one was read. Returns: its status and its output."""
        lies = []

        def lie(method, path, answer):
            if where not in path:
                return answer
            lies.append(path)
            return spoil(*answer)
        self.meddler.spoil = lie
        return self.run_some(options, lambda: len(lies) > 1)

    def assert_copies(self, *options):
        """Copies with right replies again. Damage that the wrong ones did to the target is not the copy's fault."""
        self.meddler.spoil = None
        for index in self.target.must("GET", "/_settings"):
            self.target.must("DELETE", "/" + index)
        self.once(*options)
        self.assert_equal()

    def test_each_lie(self):
        """Wrong replies to every request, or only to one kind, among right ones."""
        places = ("", "/_bulk", "/_search", "/_mapping")
        for i, (what, spoil) in enumerate(SPOILS.items()):
            for where in places if ALL else (places[i % len(places)],):
                with self.subTest((what, where)):
                    self.run_beside(spoil, where, "--once")
        self.assert_copies()

    def test_compared(self):
        """A comparison reports equality only if both are equal."""
        self.once()
        self.target.must("DELETE", "/a/_doc/2?routing=2")
        places = ("/_search", "/_mget")
        for i, (what, spoil) in enumerate(SPOILS.items()):
            for where in places if ALL else (places[i % len(places)],):
                with self.subTest((what, where)):
                    _, said = self.run_beside(spoil, where, "--verify")
                    self.assertNotIn("equal: 600", said)
        self.assert_copies()

    def test_routings_that_are_no_texts(self):
        """A page of the target's documents, of which each has several routings."""
        def several(status, kind, answer):
            reply = json.loads(answer)
            for hit in reply.get("hits", {}).get("hits", []):
                hit["_routing"] = [hit.get("_routing")] * 3
            return status, kind, json.dumps(reply).encode()
        for options in (("--once",), ("--verify",), ("--repair",)):
            with self.subTest(options):
                self.meddler.spoil = None
                self.once()
                self.target.must("DELETE", "/.tidelock-replicate")  # so that a copy looks for documents that only the target has
                self.run_beside(several, "/_search", *options)
        self.assert_copies()

    def test_slow(self):
        """A reply that arrives byte by byte, for 10,000 s: the program still ends at SIGTERM."""
        self.meddler.drip = 100
        self.run_some(("--once",), lambda: self.meddler.asked > 0)

    def test_by_chance(self):
        for seed in range(FIRST, FIRST + COUNT):
            chance = random.Random(seed)
            rate = chance.choice([0.001, 0.01, 0.1])
            lock = threading.Lock()

            def spoil(method, path, answer):
                with lock:
                    try:
                        return answer[0], answer[1], json.dumps(change(json.loads(answer[2]), chance, rate)).encode()
                    except ValueError:
                        return answer
            def enough():
                """It has asked for much, or asks for nothing more."""
                nonlocal asked, since
                if asked != self.meddler.asked:
                    asked, since = self.meddler.asked, time.monotonic()
                return asked > first and (asked - first > 40 or time.monotonic() - since > 0.3)
            with self.subTest(seed):
                self.meddler.spoil = spoil
                for options in chance.sample([("--once",), ("--verify",), ("--repair",), ("--once", "--tombstones", "--name", "t", "--prefix", "t-"),
                                              ("--suspect-time", "0s", "--verify-every", "1s")], 2):
                    first = asked = self.meddler.asked
                    since = time.monotonic()
                    self.run_some(options, enough)
        self.assert_copies()


del Copy  # its cases are elsewhere

if __name__ == "__main__":
    unittest.main(verbosity=2)
