#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes of indices and locks: which locks a change waits for and which it ignores, its timeout, and how a wait ends."""
import json
import os
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402
from waiting import until  # noqa: E402

# Each kind of change: method, path, body, and whether it changes all that is in the index.
CHANGES = [
    ("DELETE", "/fs", None, True),
    ("POST", "/fs/_close", None, True),
    ("PUT", "/fs/_mapping", {"properties": {"n": {"type": "long"}}}, False),
    ("PUT", "/fs/_settings", {"number_of_replicas": 2}, False),
    ("PUT", "/fs/_alias/files", None, False),
    ("POST", "/_aliases", {"actions": [{"add": {"index": "fs", "alias": "tree"}}]}, False),
    ("POST", "/_aliases", {"actions": [{"remove_index": {"index": "fs"}}]}, True),
]


class CatalogLocks(unittest.TestCase):
    def setUp(self):
        self.server = Server.of_class(self)
        self.server.must("PUT", "/fs/_doc/1", {"n": 1})
        self.session = self.server.must("POST", "/_session", {"ttl": "1h"})["session"]

    def lock(self, **what):
        self.server.must("POST", "/_lock", {"session": self.session, "locks": [dict(what, mode=what.get("mode", "exclusive"))]})

    def unlock(self):
        self.server.must("POST", "/_unlock", {"session": self.session})

    def change(self, method, path, body, parameters):
        response = self.server.request(method, path + "?" + parameters, body)
        return response.status, json.loads(response.body)

    def refused(self, change):
        status, reply = self.change(*change[:3], "timeout=0s")
        self.assertEqual((status, reply["error"]["type"]), (409, "lock_wait_timeout_exception"), change)
        self.assertEqual(reply["error"]["holders"][0]["session"], self.server.number(self.session))

    def test_locks_on_the_index_and_on_everything(self):
        for what in ({"index": "fs"}, {"index": "fs", "mode": "shared"}, {}):
            self.lock(**what)
            for change in CHANGES:
                self.refused(change)
            self.unlock()

    def test_document_lock_blocks_changes_of_all_documents(self):
        self.lock(index="fs", id="1")
        for change in CHANGES:
            if change[3]:
                self.refused(change)
            else:
                self.assertEqual(self.change(*change[:3], "timeout=0s")[0], 200, change)

    def test_session_is_not_blocked_by_its_own_locks(self):
        self.lock(index="fs")
        for change in CHANGES[2:6] + CHANGES[:1]:
            self.assertEqual(self.change(*change[:3], "timeout=0s&session=" + self.session)[0], 200, change)
        self.assertEqual(self.change("PUT", "/fs", None, "timeout=0s")[0], 409)
        self.assertEqual(self.change("PUT", "/fs", None, "timeout=0s&session=" + self.session)[0], 200)
        status, reply = self.change("DELETE", "/fs", None, "session=nobody")
        self.assertEqual((status, reply["error"]["type"]), (404, "session_missing_exception"))

    def test_fencing_tokens(self):
        """A change that names a token is refused unless that is of a lock of its session on all that it changes."""
        def token(**what):
            return self.server.must("POST", "/_lock", {"session": self.session, "locks": [{"mode": "exclusive", **what}]})["fencing_token"]
        old = token(index="fs")
        self.unlock()
        document = token(index="fs", id="1")
        elsewhere = token(index="other")
        for change in CHANGES:
            for stale in (old, 1, document, elsewhere):
                status, reply = self.change(*change[:3], "timeout=0s&fencing_token=%d" % stale)
                self.assertEqual((status, reply["error"]["type"]), (409, "stale_fencing_token_exception"), change)
                if stale != elsewhere:  # a token of [other] is valid for changes in [other]
                    status, reply = self.change(*change[:3], "timeout=0s&fencing_token=%d&session=%s" % (stale, self.session))
                    self.assertEqual((status, reply["error"]["type"]), (409, "stale_fencing_token_exception"), change)
        self.unlock()
        for what in ({}, {"index": "fs"}):
            now = token(**what)
            own = "fencing_token=%d&session=%s" % (now, self.session)
            for change in CHANGES[2:6] + CHANGES[:1]:
                self.assertEqual(self.change(*change[:3], "timeout=0s&" + own)[0], 200, change)
            self.assertEqual(self.change("PUT", "/fs", None, "timeout=0s&fencing_token=%d" % now)[0], 409)
            self.assertEqual(self.change("PUT", "/fs", None, "timeout=0s&" + own)[0], 200)
            self.unlock()
            self.assertEqual(self.change("PUT", "/new", None, own)[0], 409)
        self.assertEqual(self.server.ask("HEAD", "/new")[0], 404)

    def test_change_waits_and_continues(self):
        self.lock(index="fs", id="1")
        results = []
        connection = self.server.connect()
        thread = threading.Thread(
            target=lambda: results.append(self.server.request("DELETE", "/fs?timeout=1h", connection=connection).status))
        thread.start()
        until(lambda: any(one["waiters"] for one in self.server.must("GET", "/_lock")["locks"]), "it waits")
        self.assertEqual(results, [])
        self.unlock()
        thread.join()
        connection.close()
        self.assertEqual(results, [200])
        self.assertEqual(self.server.request("GET", "/fs/_doc/1").status, 404)

    def test_open_transaction_blocks_index_deletion(self):
        transaction = self.server.must("POST", "/_transaction", {"mode": "update"})["transaction"]
        self.server.must("PUT", "/fs/_doc/2?transaction=" + transaction, {"n": 2})
        self.assertEqual(self.change("DELETE", "/fs", None, "timeout=0s")[0], 409)
        self.server.must("POST", "/_transaction/%s/_commit" % transaction)
        self.assertEqual(self.server.must("GET", "/fs/_doc/2")["_source"], {"n": 2})
        self.assertEqual(self.change("DELETE", "/fs", None, "timeout=0s")[0], 200)

    def test_first_document_of_an_index_waits_for_directory_lock(self):
        self.server.must("PUT", "/_template/tree", {"index_patterns": ["new"], "mappings": {"properties": {"path": {"type": "path"}}}})
        self.lock(index="new", path="/clinton")
        status, reply = self.change("PUT", "/new/_doc/1", {"path": "/clinton/projects"}, "timeout=0s")
        self.assertEqual((status, reply["error"]["type"]), (409, "lock_wait_timeout_exception"))
        self.assertEqual(self.change("PUT", "/new/_doc/1", {"path": "/bill"}, "timeout=0s")[0], 201)


if __name__ == "__main__":
    unittest.main()
