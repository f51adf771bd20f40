#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cleanup of an ended session: complete before any waiting request is granted; deferred while other owners hold conflicting locks.

Sessions are ended by force, which is equal to an expiry and needs no waiting. Each case checks the state that the next holder
finds, and after kill -9 the state that a restart restores.
"""
import http.client
import json
import os
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from clock import ClockedServer  # noqa: E402
from server import PROGRAM, Server  # noqa: E402
from waiting import until  # noqa: E402

MAPPING = {"mappings": {"properties": {"path": {"type": "path"}}}}


def lock(index, **what):
    return {"mode": what.pop("mode", "exclusive"), "index": index, **what}


class Cleanup(unittest.TestCase):
    def setUp(self):
        self.server = ClockedServer.of_class(self, "--max-ephemeral", "6000")
        self.server.must("PUT", "/fs", MAPPING)

    def session(self, **members):
        return self.server.must("POST", "/_session", {"ttl": "5m", **members})["session"]

    def leaving(self, document, **source):
        """A session that writes a document when it dies."""
        return self.session(name="holder", on_expire=[{"index": {"_index": "fs", "_id": document}}, source])

    def take(self, session, *locks, wait="0s"):
        return self.server.ask("POST", "/_lock", {"session": session, "wait": wait, "locks": list(locks)})

    def in_line(self, session, *locks, then=None):
        """Waits for locks in a thread. Returns: the thread; its .got has the status and the result of then()."""
        def run():
            connection = self.server.connect()
            reply = self.server.request("POST", "/_lock", {"session": session, "wait": "10m", "locks": list(locks)},
                                        connection=connection)
            thread.got = (reply.status, then(connection) if then is not None else None)
            connection.close()
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        number = self.server.number(session)
        until(lambda: any(waiter.get("session") == number for held in self.server.must("GET", "/_lock")["locks"] for waiter in held["waiters"]),
              "it waits")
        return thread

    def kill(self, session):
        self.server.must("DELETE", "/_session/%s?force=true" % session)

    def source(self, document, connection=None):
        reply = self.server.request("GET", "/fs/_doc/" + document, connection=connection)
        found = json.loads(reply.body)
        return found.get("_source") if found.get("found") else None

    def test_cleanup_precedes_next_grant(self):
        dead, next_one = self.leaving("1", path="/a/1", v=9), self.session()
        self.assertEqual(self.take(dead, lock("fs", path="/a"))[0], 200)
        self.server.must("PUT", "/fs/_doc/2?session=%s&lease=%s" % (dead, dead), {"path": "/a/2"})
        line = self.in_line(next_one, lock("fs"),
                            then=lambda connection: [self.source(name, connection) for name in ("1", "2")])
        self.kill(dead)
        line.join()
        self.assertEqual(line.got, (200, [{"path": "/a/1", "v": 9}, None]))
        status, _ = self.server.ask("PUT", "/fs/_create/2?session=" + next_one, {"path": "/a/2"})
        self.assertEqual(status, 201)

    def test_bulk_of_holder_with_waiters(self):
        holder, other = self.session(), self.session()
        self.take(holder, lock("fs", path="/a"))
        line = self.in_line(other, lock("fs", path="/a"))
        lines = [{"index": {"_index": "fs", "_id": "1"}}, {"v": 1},
                 {"update": {"_index": "fs", "_id": "1"}}, {"doc": {"path": "/a/1"}},
                 {"index": {"_index": "fs", "_id": "2"}}, {"path": "/a/2"}]
        reply = self.server.must("POST", "/_bulk?session=%s&timeout=0s" % holder,
                                 "".join(json.dumps(line) + "\n" for line in lines),
                                 {"Content-Type": "application/x-ndjson"})
        self.assertFalse(reply["errors"], reply)
        self.kill(holder)
        line.join()
        self.assertEqual(line.got[0], 200)

    def test_deferred_actions_survive_crash(self):
        dead, holder, next_one = self.leaving("1", v=9), self.session(), self.session()
        self.server.must("PUT", "/fs/_doc/1", {"v": 1})
        self.server.must("PUT", "/fs/_doc/2?lease=" + dead, {"v": 2})
        self.take(holder, lock("fs", id="1", mode="shared"), lock("fs", id="2"))
        self.kill(dead)
        self.server.kill()
        self.server.start()
        kept = self.server.must("GET", "/_session")["deferred"]
        self.assertEqual([(one["session"], one["name"], one["action"], one["id"]) for one in kept],
                         [(dead, "holder", "index", "1"), (dead, "holder", "remove ephemeral", "2")])
        self.assertIn("cleanup of " + dead, self.server.request("GET", "/_cat/locks").body.decode())
        self.assertEqual([self.source("1"), self.source("2")], [{"v": 1}, {"v": 2}])
        # A shared lock is compatible with the holder's, but must not precede the deferred action.
        # The holder may upgrade its own lock.
        line = self.in_line(next_one, lock("fs", id="1", mode="shared"),
                            then=lambda connection: [self.source(name, connection) for name in ("1", "2")])
        self.assertEqual(self.take(holder, lock("fs", id="1"))[0], 200)
        self.server.must("POST", "/_unlock", {"session": holder})
        line.join()
        self.assertEqual(line.got, (200, [{"v": 9}, None]))
        self.assertEqual(self.server.must("GET", "/_session")["deferred"], [])

    def kept(self):
        return [(one["action"], one["index"], one["id"]) for one in self.server.must("GET", "/_session")["deferred"]]

    def test_deferred_action_uses_alias_of_session_end(self):
        """A deferred action writes to the index that the alias had when the session ended."""
        self.server.must("PUT", "/gs")
        self.server.must("PUT", "/fs/_alias/a")
        self.server.must("PUT", "/fs/_doc/1", {"v": 1})
        dead, holder = self.session(on_expire=[{"index": {"_index": "a", "_id": "1"}}, {"v": 8},
                                               {"update": {"_index": "fs", "_id": "1"}}, {"doc": {"w": 9}}]), self.session()
        self.take(holder, lock("fs", id="1", mode="update"))
        self.kill(dead)
        self.assertEqual(self.kept(), [("index", "fs", "1"), ("update", "fs", "1")])
        self.server.must("POST", "/_aliases", {"actions": [{"remove": {"index": "fs", "alias": "a"}},
                                                           {"add": {"index": "gs", "alias": "a"}}]})
        self.server.kill()
        self.server.start()
        self.assertEqual(len(self.kept()), 2)
        self.server.must("POST", "/_unlock", {"session": holder})
        self.assertEqual(self.source("1"), {"v": 8, "w": 9})
        self.assertEqual(self.server.ask("GET", "/gs/_doc/1")[0], 404)
        self.assertEqual(self.kept(), [])

    def test_a_missing_index(self):
        """The action makes it; a lock on the name keeps that from being done, and then it goes before all others."""
        dead, holder = self.session(on_expire=[{"index": {"_index": "new", "_id": "1"}}, {"v": 9}]), self.session()
        self.take(holder, lock("new"))
        self.kill(dead)
        self.assertEqual(self.kept(), [("index", "new", "1")])
        self.assertEqual(self.server.ask("PUT", "/fs/_alias/new?timeout=0s")[0], 409)
        self.server.must("POST", "/_unlock", {"session": holder})
        self.assertEqual(self.server.must("GET", "/new/_doc/1")["_source"], {"v": 9})
        self.kill(self.session(on_expire=[{"index": {"_index": "newer", "_id": "1"}}, {"v": 9},
                                          {"delete": {"_index": "newest", "_id": "1"}}]))
        self.assertEqual(self.server.must("GET", "/newer/_doc/1")["_source"], {"v": 9})

    def test_invalid_index_names_in_actions_are_refused(self):
        """Checked when the action is stored: at its execution there is no client to get the error."""
        for name in ("fs-*", "_all", "fs,gs", "Upper", "..", "-fs"):
            status, reply = self.server.ask("POST", "/_session", {"on_expire": [{"delete": {"_index": name, "_id": "1"}}]})
            self.assertEqual((status, reply["error"]["type"]), (400, "invalid_index_name_exception"), name)

    def test_each_conflicting_lock_mode_defers(self):
        """Each mode of each lock that covers the document defers the action. It is listed meanwhile, and done before the next grant."""
        self.server.must("PUT", "/fs/_doc/1", {"path": "/a/1"})
        for mode in ("shared", "update", "exclusive"):
            for what in ({"index": "fs", "id": "1"}, {"index": "fs", "path": "/a"}, {"index": "fs"}, {}):
                dead = self.session(name="holder", on_expire=[{"update": {"_index": "fs", "_id": "1"}},
                                                              {"doc": {"v": "%s %s" % (mode, what)}}])
                holder, next_one = self.session(), self.session()
                self.assertEqual(self.take(holder, {"mode": mode, **what})[0], 200)
                self.kill(dead)
                self.assertEqual(self.kept(), [("update", "fs", "1")])
                shown = subprocess.run([PROGRAM, "status", "--url", self.server.url], capture_output=True, text=True, check=True)
                self.assertIn("update fs/1, cleanup of holder", shown.stdout)
                line = self.in_line(next_one, lock("fs", id="1", mode="shared"), then=lambda connection: self.source("1", connection))
                self.server.must("POST", "/_unlock", {"session": holder})
                line.join()
                self.assertEqual(line.got, (200, {"path": "/a/1", "v": "%s %s" % (mode, what)}))
                for session in (holder, next_one):
                    self.kill(session)

    def test_unrelated_locks_do_not_defer(self):
        """Locks on siblings of the document, or reads of them in a transaction."""
        self.server.must("PUT", "/fs/_doc/1", {"path": "/a/1"})
        self.server.must("PUT", "/fs/_doc/2", {"path": "/a/2"})
        for mode in ("shared", "update", "exclusive"):
            dead, holder = self.leaving("1", path="/a/1", v=mode), self.session()
            transaction = self.server.must("POST", "/_transaction", {"session": holder})["transaction"]
            self.take(holder, lock("fs", id="2", mode=mode), lock("fs", path="/b", mode=mode), lock("gs", mode=mode))
            self.server.ask("GET", "/fs/_doc/3?transaction=" + transaction)
            self.kill(dead)
            self.assertEqual(self.source("1"), {"path": "/a/1", "v": mode})
            self.kill(holder)

    def test_blocks_and_closed_indices(self):
        for before, after in ((("PUT", "/fs/_settings", {"index.blocks.write": True}),
                               ("PUT", "/fs/_settings", {"index.blocks.write": False})),
                              (("POST", "/fs/_close", None), ("POST", "/fs/_open", None))):
            dead = self.leaving("1", v=9)
            self.server.must("PUT", "/fs/_doc/2?lease=" + dead, {"v": 2})
            self.server.must(*before)
            self.kill(dead)
            self.server.must(*after)
            self.assertEqual([self.source("1"), self.source("2")], [{"v": 9}, None])
            self.server.must("PUT", "/fs/_create/2", {"v": 3})
            self.server.must("DELETE", "/fs/_doc/2")

    def test_ephemeral_limit_and_deleted_indices(self):
        session = self.session()
        self.fill(session, 6000)
        status, reply = self.server.ask("PUT", "/fs/_doc/more?lease=" + session, {})
        self.assertEqual((status, reply["error"]["type"]), (429, "too_many_ephemeral_documents_exception"))
        self.server.must("PUT", "/fs/_doc/0?lease=" + session, {"again": 1})
        transaction = self.server.must("POST", "/_transaction", {})["transaction"]
        self.server.must("DELETE", "/fs")
        self.assertEqual(self.server.must("GET", "/_session/" + session)["ephemeral_count"], 0)
        self.server.must("PUT", "/fs/_doc/more?lease=%s&transaction=%s" % (session, transaction), {})
        self.server.must("POST", "/_transaction/%s/_commit" % transaction)
        self.assertEqual(self.server.must("GET", "/_session/" + session)["ephemeral_count"], 1)

    def fill(self, session, count):
        lines = "".join('{"index":{"_index":"fs","_id":"%d"}}\n{"v":%d}\n' % (i, i) for i in range(count))
        reply = self.server.must("POST", "/_bulk?lease=" + session, lines, {"Content-Type": "application/x-ndjson"})
        self.assertFalse(reply["errors"])

    def test_many_ephemeral_documents_are_deleted_before_grant(self):
        dead, next_one = self.session(), self.session()
        self.take(dead, lock("fs"))
        lines = "".join('{"index":{"_index":"fs","_id":"%d"}}\n{"v":%d}\n' % (i, i) for i in range(5500))
        self.server.must("POST", "/_bulk?lease=%s&session=%s" % (dead, dead), lines,
                         {"Content-Type": "application/x-ndjson"})

        def count(connection):
            return json.loads(self.server.request("GET", "/fs/_count", connection=connection).body)["count"]
        line = self.in_line(next_one, lock("fs"), then=count)
        self.kill(dead)  # it answers when all are gone
        self.assertEqual(self.server.must("GET", "/fs/_count")["count"], 0)
        line.join()
        self.assertEqual(line.got, (200, 0))
        self.assertEqual(self.server.ask("GET", "/_session/" + dead)[0], 404)

    def test_crash_during_session_end(self):
        dead = self.session(ttl="1m")
        self.fill(dead, 6000)
        self.server.pass_time(61)
        until(lambda: self.server.must("GET", "/fs/_count")["count"] < 6000, "it begins to leave")
        self.server.kill()
        self.server.start()
        until(lambda: self.server.must("GET", "/_session")["sessions"] == [], "it has left")
        self.assertEqual(self.server.must("GET", "/fs/_count")["count"], 0)

    def count_at(self, timestamp, connection=None):
        reply = self.server.request("GET", "/fs/_count?timestamp=%d" % timestamp, connection=connection)
        return json.loads(reply.body)["count"]

    def instant_of(self, before, after):
        """Returns: the first timestamp at which not all of 5,500 documents are there any more."""
        while before + 1 < after:
            middle = (before + after) // 2
            if self.count_at(middle) == 5500:
                before = middle
            else:
                after = middle
        return after

    def seen_at(self, timestamp):
        """Returns: what each way to read finds of the 5,500 documents."""
        at = "timestamp=%d" % timestamp
        search = self.server.must("POST", "/fs/_search?size=0&" + at, {"query": {"range": {"v": {"gte": 0}}}})
        docs = self.server.must("POST", "/fs/_mget?" + at, {"ids": ["0", "2000", "5499"]})["docs"]
        return (self.count_at(timestamp), search["hits"]["total"]["value"], [doc["found"] for doc in docs])

    ALL = (5500, 5500, [True] * 3)
    NONE = (0, 0, [False] * 3)

    def check_moment(self, before, after):
        instant = self.instant_of(before, after)
        self.assertEqual(self.seen_at(instant - 1), self.ALL)
        for later in {0, 1, 2, 3, (after - instant) // 2, after - instant}:
            if instant + later <= after:  # larger timestamps are in the future if there was no command since
                self.assertEqual(self.seen_at(instant + later), self.NONE)
        versions = self.server.must("GET", "/fs/_doc/5499?version_history")["versions"]
        self.assertIn((False, instant), [(version["deleted"], version["to"]) for version in versions])

    def test_many_ephemeral_documents_are_deleted_at_one_timestamp(self):
        dead = self.session()
        self.fill(dead, 5500)
        seen, done = [], threading.Event()

        def watch():
            connection = self.server.connect()
            while not done.is_set() or len(seen) < 2:
                reply = self.server.request("GET", "/fs/_count", connection=connection)
                seen.append((int(reply.headers["Tidelock-Timestamp"]), json.loads(reply.body)["count"]))
            connection.close()
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        until(lambda: seen, "it watches")
        self.kill(dead)
        done.set()
        watcher.join()
        self.assertEqual(set(count for _, count in seen) - {5500, 0}, set())
        counts = [count for _, count in seen]
        self.assertEqual(counts, sorted(counts, reverse=True))
        after = int(self.server.request("GET", "/fs/_count").headers["Tidelock-Timestamp"])
        self.check_moment(seen[0][0], after)

    def test_many_ephemeral_documents_are_deleted_at_one_timestamp_despite_crash(self):
        dead = self.session()
        self.fill(dead, 5500)
        before = int(self.server.request("GET", "/fs/_count").headers["Tidelock-Timestamp"])

        def end():
            try:
                self.server.request("DELETE", "/_session/%s?force=true" % dead, connection=self.server.connect())
            except (OSError, http.client.HTTPException):
                pass  # the server is killed meanwhile
        threading.Thread(target=end, daemon=True).start()
        until(lambda: self.server.must("GET", "/fs/_count")["count"] == 0, "it leaves")
        self.server.kill()
        self.server.start()
        self.assertEqual(self.server.must("GET", "/fs/_count")["count"], 0)
        until(lambda: self.server.ask("GET", "/_session/" + dead)[0] == 404, "it has left")
        after = int(self.server.request("GET", "/fs/_count").headers["Tidelock-Timestamp"])
        self.check_moment(before, after)
        for i in (0, 5499):
            self.assertEqual(self.server.ask("PUT", "/fs/_create/%d" % i, {"v": 1})[0], 201)

    def test_ids_of_deleted_ephemeral_documents_are_free(self):
        """Creates in the place of documents, alone, in a bulk and in a transaction, while they are swept away."""
        dead = self.session()
        self.fill(dead, 5500)

        def end():
            connection = self.server.connect()
            self.server.request("DELETE", "/_session/%s?force=true" % dead, connection=connection)
            connection.close()
        ends = threading.Thread(target=end, daemon=True)
        ends.start()
        until(lambda: self.server.must("GET", "/fs/_count")["count"] == 0, "it leaves")
        transaction = self.server.must("POST", "/_transaction", {})["transaction"]
        statuses = [self.server.ask("PUT", "/fs/_create/5499", {"v": 1})[0],
                    self.server.ask("PUT", "/fs/_create/5498?transaction=" + transaction, {"v": 1})[0]]
        reply = self.server.must("POST", "/_bulk?atomic=true", "".join(
            '{"create":{"_index":"fs","_id":"%d"}}\n{"v":1}\n' % i for i in range(5400, 5490)),
            {"Content-Type": "application/x-ndjson"})
        self.assertEqual(statuses + [reply["errors"]], [201, 201, False])
        self.assertEqual(self.server.ask("POST", "/fs/_update/5000", {"doc": {"v": 2}})[0], 404)
        self.server.must("POST", "/_transaction/%s/_rollback" % transaction)
        ends.join()
        self.assertEqual(self.server.must("GET", "/fs/_count")["count"], 91)
        found = self.server.must("GET", "/fs/_doc/5499")
        self.assertEqual((found["_version"], found["_source"]), (3, {"v": 1}))
        self.assertIsNone(self.source("5498"))

    def test_locked_ephemeral_documents_stay_until_unlock(self):
        dead, holder = self.session(), self.session()
        self.fill(dead, 5500)
        self.take(holder, lock("fs", id="77", mode="shared"))
        self.kill(dead)
        self.assertEqual(self.server.must("GET", "/fs/_count")["count"], 1)
        self.assertEqual(self.source("77"), {"v": 77})
        self.server.must("POST", "/_unlock", {"session": holder})
        self.assertIsNone(self.source("77"))
        self.assertEqual(self.server.must("GET", "/fs/_count")["count"], 0)

    def all_kept(self, count):
        """A session locks the index that contains an ended session's ephemeral documents. Returns: the holder."""
        dead, holder = self.session(), self.session()
        self.fill(dead, count)
        self.assertEqual(self.take(holder, lock("fs", mode="shared"))[0], 200)
        self.kill(dead)
        self.assertEqual(self.server.must("GET", "/fs/_count")["count"], count)
        return holder

    def test_index_lock_is_granted_after_deferred_actions(self):
        holder, next_one = self.all_kept(1500), self.session()

        def look(connection):
            reply = self.server.request("GET", "/fs/_count", connection=connection)
            return json.loads(reply.body)["count"]
        line = self.in_line(next_one, lock("fs"), then=look)
        self.server.must("POST", "/_unlock", {"session": holder})
        line.join()
        self.assertEqual(line.got, (200, 0))
        self.server.must("POST", "/_unlock", {"session": next_one})
        self.assertEqual(self.server.must("GET", "/_session")["deferred"], [])

    def test_deferred_action_blocks_each_document_until_done(self):
        holder = self.all_kept(1500)
        self.server.must("POST", "/_unlock", {"session": holder})
        for document in ("1499", "0", "700"):
            self.assertEqual(self.server.ask("PUT", "/fs/_create/" + document, {"v": -1})[0], 201)
        until(lambda: self.server.must("GET", "/_session")["deferred"] == [], "all is done")
        self.assertEqual(self.server.must("GET", "/fs/_count")["count"], 3)
        self.assertEqual([self.source(name) for name in ("0", "700", "1499")], [{"v": -1}] * 3)

    def test_crash_during_deferred_actions(self):
        holder = self.all_kept(1500)
        self.server.must("POST", "/_unlock", {"session": holder})
        self.server.kill()
        self.server.start()
        self.assertEqual(self.take(self.session(), lock("fs"), wait="60s")[0], 200)
        self.assertEqual(self.server.must("GET", "/fs/_count")["count"], 0)

    def test_cycle_through_own_transaction_is_a_deadlock(self):
        one, two = self.session(), self.session()
        transaction = self.server.must("POST", "/_transaction", {"session": one})["transaction"]
        self.server.must("PUT", "/fs/_doc/1?transaction=" + transaction, {"v": 1})
        self.take(two, lock("fs", id="2"))
        line = self.in_line(one, lock("fs", id="2"))
        status, reply = self.take(two, lock("fs", id="1"), wait="60s")
        self.assertEqual((status, reply["error"]["type"]), (409, "deadlock_detected_exception"))
        self.kill(two)
        line.join()
        self.assertEqual(line.got[0], 200)


if __name__ == "__main__":
    unittest.main()
