#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names chosen by a client so that all have the same value of a hash without a secret key (slice_hash() of src/base/slice.h):
200,000 members of an object and 60,000 ids of locks cost as much as other names of that number and length, and other clients are
served meanwhile. The server's processor time is compared, not elapsed time. Comparisons are counted in
tests/unit/core/collision_test.c.
"""
import itertools
import json
import os
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402

MASK = (1 << 64) - 1
STAGES, CHOICES = 3, 59  # 205,379 names of 48 bytes
KEYS, LOCKS = 200000, 60000
# Quadratic work would take at least fifty times as long. A measurement includes the neighbour's
# requests, at most one thread's processor time, and a second of other work.
TIMES, OTHER_WORK_S = 4, 2.0
# Pieces of work with bad names, in most of which a neighbour has to be served again and again.
TRIALS, MAJORITY = (5, 3) if os.environ.get("TIDELOCK_TEST_LONG") else (3, 2)
LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_:;<=>@^`|~!#$%&'()+")
DIGITS = [b"%08d" % number for number in range(20)]


def fold(state, word):
    state = (state ^ word) * 0x9ddfea08eb382d69 & MASK
    return state ^ state >> 32


def stage(state):
    """Returns: pieces of two words each, all of which lead from one state to the same other one; and that."""
    pieces, target, number = [], int.from_bytes(b"aAzZmMqQ", "little") ^ fold(state, int.from_bytes(b"00000000", "little")), 0
    while len(pieces) < CHOICES:
        first = b"%08d" % number
        second = (fold(state, int.from_bytes(first, "little")) ^ target).to_bytes(8, "little")
        if LETTERS.issuperset(second):
            pieces.append((first + second).decode())
        number += 1
    return pieces, fold(target, 0)


def colliding():
    state, stages = fold(0xcbf29ce484222325, 16 * STAGES), []
    for _ in range(STAGES):
        pieces, state = stage(state)
        stages.append(pieces)
    return ["".join(parts) for parts in itertools.product(*stages)]


class Neighbour(threading.Thread):
    """GET / and a put, over and over."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.rounds, self.failure, self.stopping = server, 0, None, threading.Event()

    def run(self):
        connection = self.server.connect()
        try:
            while not self.stopping.is_set():
                for method, path, body in (("GET", "/", None), ("PUT", "/neighbour/_doc/1?timeout=0s", {"n": self.rounds})):
                    response = self.server.request(method, path, body, connection=connection)
                    assert response.status in (200, 201), response.body
                self.rounds += 1
        except Exception as failure:  # pylint: disable=broad-except
            self.failure = failure
        connection.close()


class Collisions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.server.must("PUT", "/fs", {"mappings": {"dynamic": False}})
        cls.bad = colliding()
        assert len(set(cls.bad)) >= KEYS
        cls.good = ["".join(reversed(name)) for name in cls.bad]

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def spent(self):
        """Returns: the processor time of the server, in seconds."""
        with open("/proc/%d/stat" % self.server.process.pid, encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def cost(self, work):
        before = self.spent()
        work()
        return self.spent() - before

    def compare(self, work):
        """Does work with both kinds of names, with the colliding ones while a neighbour is served."""
        # The second time something is there already, as for those that collide: an update is merged.
        good = max(self.cost(lambda: work(self.good)) for _ in range(2))
        served = 0
        for left in reversed(range(TRIALS)):
            before = self.spent()
            served += self.rounds_beside(work) > 1
            self.assertLess(self.spent() - before, TIMES * good + OTHER_WORK_S)
            if served >= MAJORITY or served + left < MAJORITY:
                break
        self.assertGreaterEqual(served, MAJORITY, "in most trials nothing else is answered meanwhile")

    def rounds_beside(self, work):
        """Returns: how often a neighbour was served while the bad names were worked on; on a busy machine it may be held up elsewhere."""
        neighbour = Neighbour(self.server)
        neighbour.start()
        work(self.bad)
        rounds = neighbour.rounds
        neighbour.stopping.set()
        neighbour.join()
        self.assertIsNone(neighbour.failure)
        return rounds

    def test_the_names_collide(self):
        def hash_of(name):
            state, data = fold(0xcbf29ce484222325, len(name)), name.encode()
            for at in range(0, len(data), 8):
                state = fold(state, int.from_bytes(data[at:at + 8], "little"))
            return state
        self.assertEqual(len({hash_of(name) for name in self.bad[::1000]}), 1)
        self.assertGreater(len({hash_of(name) for name in self.good[::1000]}), 200)

    def test_members_of_an_object(self):
        def put(names):
            body = "{%s}" % ",".join('"%s":%d' % pair for pair in zip(names, range(KEYS)))
            self.server.must("PUT", "/fs/_doc/1", body, {"Content-Type": "application/json"})
        self.compare(put)

    def test_members_that_an_update_merges(self):
        def update(names):
            body = json.dumps({"doc": dict(zip(names, range(KEYS)))})
            self.server.must("POST", "/fs/_update/2", body.replace("{", '{"doc_as_upsert":true,', 1), {"Content-Type": "application/json"})
        self.compare(update)

    def test_locks(self):
        def lock(names):
            session = self.server.must("POST", "/_session", {})["session"]
            for first in range(0, LOCKS, LOCKS // 3):  # one request may not have all
                reply = self.server.must("POST", "/_lock", {"session": session, "locks": [
                    {"mode": "exclusive", "index": "fs", "id": name} for name in names[first:first + LOCKS // 3]]})
                self.assertTrue(reply["granted"])
            self.assertEqual(self.server.must("POST", "/_unlock", {"session": session})["released"], LOCKS)
            self.server.must("DELETE", "/_session/" + session)
        self.compare(lock)

    def test_ids_of_a_bulk(self):
        def bulk(names):
            lines = "".join('{"index":{"_index":"fs","_id":"%s"}}\n{}\n' % name for name in names[:20000])
            self.assertFalse(self.server.must("POST", "/_bulk?filter_path=errors", lines, {"Content-Type": "application/x-ndjson"})["errors"])
        self.compare(bulk)


if __name__ == "__main__":
    unittest.main()
