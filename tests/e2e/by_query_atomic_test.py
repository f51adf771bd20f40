#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`_update_by_query`, `_delete_by_query` and `_reindex` with ?atomic=true: all changes at one timestamp, or none.

A call is blocked in the middle by a shared lock on its last document. Other clients can read its documents then, and try to
conflict with it.
"""
import os
import re
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402
from waiting import Waiting, until  # noqa: E402

ALL = {"query": {"match_all": {}}}
ADD = {"script": {"source": "ctx._source.n += 1"}}
DOCUMENTS = 2500
ONE_BY_ONE = "atomic=true&scroll_size=1&timeout=10m"


class Case(unittest.TestCase):
    def setUp(self):
        self.server = Server.of_class(self)

    def tearDown(self):
        self.assertEqual(self.server.must("GET", "/_lock")["locks"], [], "locks are left behind")

    def fill(self, index, count):
        reply = self.server.must("POST", "/_bulk", "".join(
            '{"index":{"_index":"%s","_id":"%d"}}\n{"n":%d}\n' % (index, number, number) for number in range(count)))
        self.assertFalse(reply["errors"])

    def values(self, index, parameters=""):
        hits = self.server.must("GET", "/%s/_search?size=1000%s" % (index, parameters))["hits"]["hits"]
        return {int(hit["_id"]): hit["_source"]["n"] for hit in hits}


class AllOrNothing(Case):
    def test_update(self):
        self.fill("fs", DOCUMENTS)
        reply = self.server.must("POST", "/fs/_update_by_query?atomic=true", ADD)
        self.assertEqual((reply["updated"], reply["batches"], reply["failures"]), (DOCUMENTS, 3, []))
        versions = [self.server.must("GET", "/fs/_doc/%d?version_history=true" % number)["versions"][0]["from"] for number in (0, 1, DOCUMENTS - 1)]
        self.assertEqual(len(set(versions)), 1, "one timestamp for all: %s" % versions)

    def test_failing_script_rolls_back_earlier_batches(self):
        self.fill("fs", DOCUMENTS)
        script = {"script": {"source": "if (ctx._source.n == %d) { ctx._source.n = params.no.such } else { ctx._source.n = -1 }" % (DOCUMENTS - 1)}}
        status, reply = self.server.ask("POST", "/fs/_update_by_query?atomic=true", script)
        self.assertEqual((status, reply["error"]["type"]), (400, "script_exception"))
        self.assertEqual(self.server.must("POST", "/fs/_count", {"query": {"term": {"n": -1}}})["count"], 0)

    def test_conflict_rolls_back_all(self):
        self.fill("fs", 30)
        self.server.must("PUT", "/to/_doc/7", {"n": 7})
        create = {"source": {"index": "fs", "size": 10}, "dest": {"index": "to", "op_type": "create"}}
        status, reply = self.server.ask("POST", "/_reindex?atomic=true", create)
        self.assertEqual((status, reply["rolled_back"], reply["created"], reply["version_conflicts"]), (409, True, 0, 1))
        self.assertEqual([failure["id"] for failure in reply["failures"]], ["7"])
        self.assertEqual(self.values("to"), {7: 7})
        reply = self.server.must("POST", "/_reindex?atomic=true", {"conflicts": "proceed", **create})
        self.assertEqual((reply["created"], reply["version_conflicts"]), (29, 1))

    def test_delete(self):
        self.fill("fs", DOCUMENTS)
        self.assertEqual(self.server.must("POST", "/fs/_delete_by_query?atomic=true", ALL)["deleted"], DOCUMENTS)
        self.assertEqual(self.server.must("GET", "/fs/_count")["count"], 0)

    def test_as_a_task(self):
        self.fill("fs", 30)
        task = self.server.must("POST", "/fs/_update_by_query?atomic=true&wait_for_completion=false", ADD)["task"]
        done = self.server.must("GET", "/_tasks/%s?wait_for_completion=true" % task)
        self.assertEqual(done["response"]["updated"], 30)
        self.assertEqual(self.values("fs"), {number: number + 1 for number in range(30)})

    def test_cancelled(self):
        self.fill("fs", 1000)
        task = self.server.must("POST", "/fs/_update_by_query?wait_for_completion=false&requests_per_second=10&" + ONE_BY_ONE, ADD)["task"]
        until(lambda: self.server.must("GET", "/_tasks/" + task)["task"]["status"]["updated"] > 2, "it has begun")
        self.server.must("POST", "/_tasks/%s/_cancel" % task)
        done = self.server.must("GET", "/_tasks/%s?wait_for_completion=true" % task)
        self.assertTrue(done["response"]["rolled_back"])
        self.assertEqual(done["response"]["updated"], 0)
        self.assertEqual(self.values("fs"), {number: number for number in range(1000)})

    def test_not_inside_another_transaction(self):
        self.fill("fs", 3)
        transaction = self.server.must("POST", "/_transaction")["transaction"]
        status, reply = self.server.ask("POST", "/fs/_delete_by_query?atomic=true&transaction=" + transaction, ALL)
        self.assertEqual(status, 400)
        self.assertIn("[atomic]", reply["error"]["reason"])
        self.server.must("POST", "/_transaction/%s/_rollback" % transaction)


class RepeatedRollback(Case):
    """Atomic calls that fail at their last document, one after another, while another client writes to another index."""
    ROUNDS = 12

    def metric(self, name):
        page = self.server.request("GET", "/_metrics").body.decode()
        return int(re.search(r"^%s (\d+)" % re.escape(name), page, re.M).group(1))

    def metrics(self):
        return {name: self.metric(name) for name in (
            'tidelock_memory_bytes{use="transactions"}', "tidelock_transactions", "tidelock_steps_over_bound_total")}

    def rounds(self, path, body, status):
        before = self.metrics()
        self.assertEqual(before["tidelock_steps_over_bound_total"], 0)
        writer = Writer(self.server)
        for _ in range(self.ROUNDS):
            answer = self.server.ask("POST", path, body)
            self.assertEqual(answer[0], status, answer[1])
            self.assertEqual(self.metrics(), before)
            self.assertEqual(self.server.must("GET", "/_lock")["locks"], self.locks)
        self.assertEqual(writer.stop(), {201})
        self.assertEqual(self.server.must("POST", "/fs/_count", {"query": {"range": {"n": {"gte": 0}}}})["count"], DOCUMENTS)
        self.assertEqual(self.server.must("POST", "/fs/_count", {"query": {"term": {"n": -1}}})["count"], 0)

    def test_update(self):
        self.fill("fs", DOCUMENTS)
        self.locks = []
        script = "if (ctx._source.n == %d) { ctx._source.n = params.no.such } else { ctx._source.n = -1 }" % (DOCUMENTS - 1)
        self.rounds("/fs/_update_by_query?atomic=true", {"script": {"source": script}, "sort": ["n"]}, 400)

    def test_delete(self):
        self.fill("fs", DOCUMENTS)
        holder = self.server.must("POST", "/_session", {"ttl": "1h"})["session"]
        self.server.must("POST", "/_lock", {"session": holder, "locks": [{"mode": "shared", "index": "fs", "id": str(DOCUMENTS - 1)}]})
        self.locks = self.server.must("GET", "/_lock")["locks"]
        self.rounds("/fs/_delete_by_query?atomic=true&timeout=0s", {"query": {"match_all": {}}, "sort": ["n"]}, 409)
        self.server.must("DELETE", "/_session/" + holder)


class Writer(threading.Thread):
    """Creates documents, one after another, until it is stopped."""

    def __init__(self, server):
        super().__init__()
        self.server, self.statuses, self.ends = server, set(), threading.Event()
        self.start()

    def run(self):
        connection = self.server.connect()
        while not self.ends.is_set():
            self.statuses.add(self.server.request("POST", "/other/_doc", {"n": 1}, connection=connection).status)
        connection.close()

    def stop(self):
        """Returns: the statuses that it got."""
        self.ends.set()
        self.join()
        return self.statuses


class Concurrent(Case):
    def waiters(self):
        return sum(len(lock["waiters"]) for lock in self.server.must("GET", "/_lock")["locks"])

    def begun(self):
        """All is changed but the last one of ten documents, on which it waits. Returns: the request, and the session that blocks it."""
        self.fill("fs", 10)
        holder = self.server.must("POST", "/_session", {"ttl": "1h"})["session"]
        self.server.must("POST", "/_lock", {"session": holder, "locks": [{"mode": "shared", "index": "fs", "id": "9"}]})
        work = Waiting(self.server, "POST", "/fs/_update_by_query?" + ONE_BY_ONE, ADD)
        until(lambda: self.waiters() == 1, "it waits for the last one")
        return work, holder

    def test_readers_see_all_or_nothing(self):
        before, after = ({number: number + more for number in range(10)} for more in (0, 1))
        work, holder = self.begun()
        for _ in range(3):
            self.assertEqual(self.values("fs"), before)
        self.server.must("DELETE", "/_session/" + holder)
        while work.is_alive():
            self.assertIn(self.values("fs"), (before, after))
        work.join()
        self.assertEqual((work.status, work.reply["updated"]), (200, 10))
        self.assertEqual(self.values("fs"), after)

    def test_inserts_into_its_range_wait(self):
        work, holder = self.begun()
        status, reply = self.server.ask("PUT", "/fs/_doc/99?timeout=0s", {"n": 99})
        self.assertEqual(status, 409, reply)
        adds = Waiting(self.server, "PUT", "/fs/_doc/99?timeout=10m", {"n": 99})
        until(lambda: self.waiters() == 2, "the new document waits")
        self.server.must("DELETE", "/_session/" + holder)
        work.join()
        adds.join()
        self.assertEqual((adds.status, adds.reply["result"]), (201, "created"))
        self.assertEqual((work.status, work.reply["updated"], self.values("fs")[99]), (200, 10, 99))

    def test_is_not_blocked_by_its_session(self):
        self.fill("fs", 3)
        session = self.server.must("POST", "/_session", {"ttl": "1h"})["session"]
        self.server.must("POST", "/_lock", {"session": session, "locks": [{"mode": "exclusive", "index": "fs"}]})
        status, reply = self.server.ask("POST", "/fs/_update_by_query?atomic=true&timeout=0s", ADD)
        self.assertEqual((status, reply["error"]["type"]), (409, "lock_conflict_exception"))
        self.assertEqual(self.server.must("POST", "/fs/_update_by_query?atomic=true&session=" + session, ADD)["updated"], 3)
        self.server.must("DELETE", "/_session/" + session)

    def test_deadlock_victim_is_retried(self):
        """Its cycle with another transaction is resolved without a deadlock event: it releases its locks and retries."""
        self.fill("fs", 3)
        other = self.server.must("POST", "/_transaction")["transaction"]
        self.server.must("PUT", "/to/_doc/2?transaction=" + other, {"n": -1})
        work = Waiting(self.server, "POST", "/_reindex?atomic=true&timeout=10m&requests_per_second=5", {"source": {"index": "fs", "size": 1}, "dest": {"index": "to"}})
        until(lambda: len(self.server.must("GET", "/_transaction")["transactions"]) == 2, "it has begun")
        until(lambda: any(lock.get("index") == "fs" for lock in self.server.must("GET", "/_lock")["locks"]), "it has locked what it reads")
        self.server.must("PUT", "/fs/_doc/0?timeout=10m&transaction=" + other, {"n": 100})
        self.assertEqual(len(self.server.must("GET", "/_lock/_events")["events"]), 1, "no deadlock: nothing was tried")
        self.server.must("POST", "/_transaction/%s/_commit" % other)
        work.join()
        self.assertEqual((work.status, work.reply["created"] + work.reply["updated"]), (200, 3), work.reply)
        self.assertEqual(self.values("to"), {0: 100, 1: 1, 2: 2})

    def test_kill_nine(self):
        """Its internal transaction ends with the server, and its locks. A client's transaction continues."""
        work, holder = self.begun()
        client = self.server.must("POST", "/_transaction")["transaction"]
        self.server.must("PUT", "/other/_doc/1?transaction=" + client, {"n": 1})
        self.assertEqual(self.server.ask("PUT", "/fs/_doc/0?timeout=0s", {"n": 100})[0], 409, "it holds no locks")
        self.server.kill()
        work.join()
        self.server.start()
        rows = self.server.must("GET", "/_transaction")["transactions"]
        self.assertEqual(len(rows), 1, "its transaction goes on: %s" % rows)
        self.assertEqual(self.values("fs"), {number: number for number in range(10)})
        self.server.must("PUT", "/fs/_doc/0?timeout=0s", {"n": 100})
        self.server.must("PUT", "/fs/_doc/99?timeout=0s", {"n": 99})
        self.assertEqual(self.server.must("POST", "/_transaction/%s/_commit" % client)["changes"], 1)
        self.server.must("DELETE", "/_session/" + holder)


if __name__ == "__main__":
    unittest.main()
