#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fencing tokens, checked by the store on every write that names one, for each call.

Each call is made by the holder of a lock with a token that is stale, with one of a lock elsewhere, and with the right one; also
with the right one without a session and by another session. Only the holder's call with the right token is executed.
"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402

STALE = "stale_fencing_token_exception"
ONE = {"query": {"term": {"n": 1}}}
LINES = '{"index":{"_index":"fs","_id":"1"}}\n{"n":1,"path":"/d/1"}\n{"update":{"_index":"fs","_id":"1"}}\n{"doc":{"m":1}}\n'

# Method, path, body. All of them write document 1 and nothing else.
WRITES = [
    ("PUT", "/fs/_doc/1", {"n": 1, "path": "/d/1"}),
    ("POST", "/fs/_update/1", {"doc": {"m": 2}}),
    ("POST", "/fs/_update/1", {"script": "ctx._source.m = 3"}),
    ("POST", "/_bulk", LINES),
    ("POST", "/_bulk?atomic=true", LINES),
    ("POST", "/fs/_update_by_query", ONE),
    ("POST", "/_reindex", {"source": {"index": "from", **ONE}, "dest": {"index": "fs"}}),
    ("DELETE", "/fs/_doc/1", None),
    ("PUT", "/fs/_create/1", {"n": 1, "path": "/d/1"}),
    ("POST", "/fs/_delete_by_query", ONE),
]
READS_FIRST = [  # under locks, too, which others have
    ("POST", "/fs/_update_by_query?atomic=true", ONE),
    ("POST", "/_reindex?atomic=true", {"source": {"index": "from", **ONE}, "dest": {"index": "fs"}}),
    ("POST", "/fs/_delete_by_query?atomic=true", ONE),
]


class Fencing(unittest.TestCase):
    def setUp(self):
        self.server = Server.of_class(self)
        self.server.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}, "n": {"type": "long"}}}})
        self.server.must("PUT", "/from/_doc/1", {"n": 1, "path": "/d/1"})
        self.restore("")
        self.session = self.server.must("POST", "/_session", {"ttl": "1m"})["session"]
        self.other = self.server.must("POST", "/_session", {"ttl": "1m"})["session"]

    def restore(self, by):
        self.server.must("PUT", "/fs/_doc/1?" + by, {"n": 1, "path": "/d/1"})

    def lock(self, session, mode="exclusive", **what):
        return self.server.must("POST", "/_lock", {"session": session, "locks": [{"mode": mode, "index": "fs", **what}]})["fencing_token"]

    def write(self, write, by):
        """Returns: the status of what became of document 1, and the type of the error, or None."""
        method, path, body = write
        status, reply = self.server.ask(method, path + ("&" if "?" in path else "?") + "timeout=0s&" + by, body)
        error = reply.get("error")
        for item in reply.get("items", []):
            result, = item.values()
            status, error = result["status"], result.get("error")
        for failure in reply.get("failures", []):
            status, error = failure["status"], failure["cause"]
        return status, error and error["type"]

    def state(self):
        return self.server.ask("GET", "/fs/_doc/1")[1]

    def check(self, writes, stale, token):
        own = "&session=" + self.session
        for write in writes:
            before = self.state()
            for wrong in stale:
                self.assertEqual(self.write(write, "fencing_token=%d%s" % (wrong, own)), (409, STALE), (write, wrong))
            for other in ("", "&session=" + self.other):
                refused = self.write(write, "fencing_token=%d%s" % (token, other))
                self.assertIn(refused, [(409, STALE)] + ([(409, "lock_conflict_exception")] if write in READS_FIRST else []), (write, other))
            self.assertEqual(self.state(), before, write)
            status, error = self.write(write, "fencing_token=%d%s" % (token, own))
            self.assertEqual((status < 300, error), (True, None), write)
            self.assertNotEqual(self.state(), before, write)
            if self.state()["found"] is False and write[1] != "/fs/_doc/1":
                self.restore("fencing_token=%d%s" % (token, own))

    def test_every_write_under_a_lock_on_the_document(self):
        token = self.lock(self.session, id="1")
        elsewhere = [self.lock(self.other, id="2"), self.lock(self.other, path="/e")]
        self.check(WRITES, [1, token - 1, token + 1, *elsewhere], token)

    def test_under_a_lock_on_its_directory_or_index(self):
        for what in ({"path": "/d"}, {"path": "/"}, {}):
            gone = self.lock(self.session, **what)
            self.server.must("POST", "/_unlock", {"session": self.session})
            self.check(WRITES, [gone], self.lock(self.session, **what))
            self.server.must("POST", "/_unlock", {"session": self.session})

    def test_by_query_as_one(self):
        gone = self.lock(self.session)
        self.server.must("POST", "/_unlock", {"session": self.session})
        self.check(READS_FIRST, [gone], self.lock(self.session))
        self.assertEqual(self.server.must("GET", "/_transaction")["transactions"], [])

    def test_token_of_shared_lock_does_not_allow_writes(self):
        """Its token is right, but another holds the document as well."""
        token, other = self.lock(self.session, "shared", id="1"), self.lock(self.other, "shared", id="1")
        pairs = ((token, self.session), (other, self.other))
        for pair in pairs:
            self.assertEqual(self.write(WRITES[0], "fencing_token=%d&session=%s" % pair), (409, "lock_wait_timeout_exception"))
        self.server.must("POST", "/_unlock", {"session": self.other})
        self.assertEqual(self.write(WRITES[0], "fencing_token=%d&session=%s" % pairs[1]), (409, STALE))
        self.assertEqual(self.write(WRITES[0], "fencing_token=%d&session=%s" % pairs[0]), (200, None))

    def test_a_change_of_an_index(self):
        token = self.lock(self.session)
        change = ("PUT", "/fs/_mapping", {"properties": {"m": {"type": "long"}}})
        for by in ("", "&session=" + self.other):
            self.assertEqual(self.write(change, "fencing_token=%d%s" % (token, by)), (409, STALE))
        self.assertNotIn("m", self.server.must("GET", "/fs/_mapping")["fs"]["mappings"]["properties"])
        self.assertEqual(self.write(change, "fencing_token=%d&session=%s" % (token, self.session)), (200, None))

    def test_token_without_session_is_refused_with_remedy(self):
        token = self.lock(self.session, id="1")
        status, reply = self.server.ask("PUT", "/fs/_doc/1?fencing_token=%d" % token, {"n": 2})
        self.assertEqual((status, reply["error"]["type"]), (409, STALE))
        self.assertIn("the request must name its [session], too", reply["error"]["reason"])

    def test_a_commit(self):
        token = self.lock(self.session, id="1")
        for wrong in (token - 1, self.lock(self.other, id="2")):
            transaction = self.server.must("POST", "/_transaction", {"session": self.session})["transaction"]
            self.server.must("PUT", "/fs/_doc/1?transaction=" + transaction, {"n": 5})
            status, reply = self.server.ask("POST", "/_transaction/%s/_commit?fencing_token=%d" % (transaction, wrong))
            self.assertEqual((status, reply["error"]["type"]), (409, STALE))
            self.assertEqual(self.state()["_source"]["n"], 1)
            theirs = self.server.must("POST", "/_transaction", {"session": self.other})["transaction"]
            self.server.must("PUT", "/from/_doc/2?transaction=" + theirs, {"n": 5})
            status, reply = self.server.ask("POST", "/_transaction/%s/_commit?fencing_token=%d" % (theirs, token))
            self.assertEqual((status, reply["error"]["type"]), (409, STALE))
            self.server.must("POST", "/_transaction/%s/_rollback" % theirs)
            self.server.must("POST", "/_transaction/%s/_commit?fencing_token=%d" % (transaction, token))
            self.assertEqual(self.state()["_source"]["n"], 5)
            self.restore("session=" + self.session)


if __name__ == "__main__":
    unittest.main()
