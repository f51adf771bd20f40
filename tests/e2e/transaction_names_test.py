#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data that an update transaction has read stays the same until its end, for each way to read it over HTTP.

A read is done in a transaction. Then a write of another client that would change the reply must be refused (timeout 0s), one that
would not must succeed, and the same read in the transaction has the same reply. The isolation specs txn-* have the interleavings.
"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402

LOOKUP = {"terms": {"n": {"index": "lists", "id": "1", "path": "n"}}}
STORED = {"script": {"script": {"id": "s"}}}


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def setUp(self):
        must = self.server.must
        self.server.ask("DELETE", "/*")
        must("PUT", "/log-1/_doc/1", {"n": 1})
        must("PUT", "/log-2/_doc/1", {"n": 2})
        must("PUT", "/lists/_doc/1", {"n": [1, 2]})
        must("PUT", "/lists/_doc/2", {"n": 3})
        must("PUT", "/_scripts/s", {"script": {"lang": "painless", "source": "doc['n'].value > 0"}})
        must("PUT", "/_scripts/w", {"script": {"lang": "painless", "source": "ctx._source.n += 1"}})
        must("PUT", "/old/a/1", {"n": 1})
        must("PUT", "/log-1/_alias/read", {"is_write_index": False})
        must("PUT", "/log-1/_alias/logs")
        must("POST", "/_aliases", {"actions": [{"add": {"index": "log-1", "alias": "some", "filter": LOOKUP}}]})
        self.transaction = must("POST", "/_transaction", {"mode": "update"})["transaction"]

    def tearDown(self):
        self.server.ask("POST", "/_transaction/%s/_rollback" % self.transaction)

    def inside(self, method, path, body=None):
        return self.server.ask(method, path + ("&" if "?" in path else "?") + "transaction=" + self.transaction, body)

    def stranger(self, write):
        method, path, *body = write
        return self.server.ask(method, path + ("&" if "?" in path else "?") + "timeout=0s", *body)

    def stays(self, read, stopped, through=()):
        """Reads; then the writes that are stopped, those that are not, and the same again."""
        before = self.inside(*read)
        for write in stopped:
            status, reply = self.stranger(write)
            self.assertEqual(status, 409, (read, write, reply))
            self.assertEqual(reply["error"]["type"], "lock_wait_timeout_exception", reply)
        for write in through:
            status, reply = self.stranger(write)
            self.assertLess(status, 300, (read, write, reply))
        again = self.inside(*read)
        for answer in (before, again):
            if isinstance(answer[1], dict):
                answer[1].pop("took", None)
                answer[1].pop("_scroll_id", None)
                answer[1].pop("id", None)
        self.assertEqual(before, again)
        return before


class Reads(Case):
    def test_patterns(self):
        for expression in ("log-*", "_all", "*", "log-*,-log-2", "log-1,log-*"):
            with self.subTest(expression=expression):
                self.setUp()
                self.stays(("GET", "/%s/_search" % expression),
                           [("PUT", "/log-3/_doc/1", {}), ("PUT", "/log-3"), ("PUT", "/log-2/_alias/log-x"), ("DELETE", "/log-1"),
                            ("POST", "/log-1/_close"), ("PUT", "/log-1/_settings", {"index": {"hidden": True}})],
                           [("PUT", "/_template/t", {"index_patterns": ["zz*"]})])
                self.tearDown()

    def test_pattern_does_not_block_other_indices(self):
        self.stays(("GET", "/log-*/_count"), [("PUT", "/log-1/_doc/2", {})], [("PUT", "/lists/_doc/3", {})])

    def test_all_indices(self):
        for path in ("/_search", "/_count"):
            self.stays(("GET", path), [("PUT", "/log-3/_doc/1", {}), ("PUT", "/lists/_doc/9", {})])

    def test_closed_indices(self):
        self.server.must("POST", "/log-2/_close")
        self.stays(("GET", "/log-*/_search"), [("POST", "/log-2/_open")])
        self.tearDown()
        self.setUp()
        self.server.must("POST", "/log-2/_close")
        self.stays(("GET", "/log-1,log-2/_search?ignore_unavailable=true"), [("POST", "/log-2/_open")])

    def test_an_alias(self):
        for path in ("/logs/_search", "/logs/_count", "/logs/_doc/1", "/logs/_source/1", "/logs/_doc/77"):
            with self.subTest(path=path):
                self.setUp()
                self.stays(("GET", path), [("PUT", "/log-2/_alias/logs"), ("DELETE", "/log-1/_alias/logs"), ("DELETE", "/log-1"),
                                           ("PUT", "/log-9", {"aliases": {"logs": {}}})],
                           [("PUT", "/log-2/_alias/other"), ("PUT", "/log-9")])
                self.tearDown()

    def test_alias_without_write_index(self):
        """As outside of a transaction: 200."""
        self.assertEqual(self.server.ask("GET", "/read/_doc/1")[0], 200)
        status, reply = self.inside("GET", "/read/_doc/1")
        self.assertEqual((status, reply["_source"]), (200, {"n": 1}))
        self.assertEqual(self.inside("GET", "/read/_source/1"), (200, {"n": 1}))
        status, reply = self.inside("POST", "/_mget", {"docs": [{"_index": "read", "_id": "1"}]})
        self.assertEqual(reply["docs"][0]["_source"], {"n": 1})
        self.assertEqual(self.stranger(("PUT", "/log-1/_doc/1", {}))[0], 409)
        self.assertEqual(self.inside("GET", "/read/_search")[0], 200)

    def test_an_alias_of_two(self):
        self.server.must("PUT", "/log-2/_alias/logs")
        answer = self.stays(("GET", "/logs/_doc/1"), [("DELETE", "/log-2/_alias/logs")])
        self.assertEqual(answer[0], 400)

    def test_missing_names(self):
        for path in ("/new/_doc/1", "/new/_search", "/new/_count", "/new,log-1/_search?ignore_unavailable=true"):
            with self.subTest(path=path):
                self.setUp()
                self.stays(("GET", path), [("PUT", "/new/_doc/1", {}), ("PUT", "/new"), ("PUT", "/log-2/_alias/new")],
                           [("PUT", "/newer/_doc/1", {})])
                self.tearDown()

    def test_many_gets(self):
        docs = {"docs": [{"_index": "logs", "_id": "1"}, {"_index": "new", "_id": "1"}, {"_index": "log-2", "_id": "5"}]}
        self.stays(("POST", "/_mget", docs),
                   [("DELETE", "/log-1/_alias/logs"), ("PUT", "/new"), ("PUT", "/log-2/_doc/5", {}), ("PUT", "/log-1/_doc/1", {})],
                   [("PUT", "/log-2/_doc/6", {})])

    def test_reads_of_any_type(self):
        answer = self.stays(("GET", "/old/_all/2"), [("PUT", "/old/a/2", {}), ("PUT", "/old/b/2", {})], [("PUT", "/old/a/3", {})])
        self.assertEqual(answer[0], 404)
        locked = [lock for lock in self.server.must("GET", "/_lock")["locks"]]
        self.assertNotIn("_all", [lock.get("type") for lock in locked])
        self.stays(("GET", "/old/_all/1"), [("PUT", "/old/a/1", {}), ("DELETE", "/old/a/1"), ("PUT", "/old/b/1", {})])

    def test_index_without_type(self):
        self.server.must("PUT", "/bare")
        for path in ("/bare/_doc/1", "/bare/file/1"):
            with self.subTest(path=path):
                self.stays(("GET", path), [("PUT", "/bare/file/1", {}), ("PUT", "/bare/_doc/1", {})])

    def test_lookups(self):
        for index, query in (("log-*", LOOKUP), ("log-1", {"bool": {"filter": [LOOKUP]}}), ("log-1,log-2", {"bool": {"must_not": LOOKUP}})):
            for path in ("_search", "_count"):
                with self.subTest(index=index, path=path):
                    self.setUp()
                    self.stays(("POST", "/%s/%s" % (index, path), {"query": query}),
                               [("PUT", "/lists/_doc/1", {"n": 1}), ("DELETE", "/lists/_doc/1"), ("DELETE", "/lists")],
                               [("PUT", "/lists/_doc/2", {"n": 1})])
                    self.tearDown()

    def test_lookup_of_missing_document(self):
        query = {"terms": {"n": {"index": "lists", "id": "9", "path": "n"}}}
        self.stays(("POST", "/log-1/_search", {"query": query}), [("PUT", "/lists/_doc/9", {"n": 1})])
        query = {"terms": {"n": {"index": "none", "id": "9", "path": "n"}}}
        self.stays(("POST", "/log-1/_search", {"query": query}), [("PUT", "/none/_doc/9", {"n": 1})])

    def test_the_filter_of_an_alias_looks_up(self):
        self.stays(("GET", "/some/_search"), [("PUT", "/lists/_doc/1", {"n": 5})], [("PUT", "/lists/_doc/2", {"n": 5})])
        self.tearDown()
        self.setUp()
        self.stays(("GET", "/som*/_search"), [("PUT", "/lists/_doc/1", {"n": 5})])

    def test_stored_scripts(self):
        put = {"script": {"lang": "painless", "source": "false"}}
        for body in ({"query": STORED}, {"script_fields": {"x": {"script": {"id": "s"}}}},
                     {"sort": {"_script": {"type": "string", "script": {"id": "s"}}}},
                     {"query": {"function_score": {"script_score": {"script": {"id": "s"}}}}}):
            with self.subTest(body=body):
                self.setUp()
                self.stays(("POST", "/log-1/_search", body), [("PUT", "/_scripts/s", put), ("DELETE", "/_scripts/s")],
                           [("PUT", "/_scripts/other", put)])
                self.tearDown()

    def test_several_searches(self):
        lines = '{"index":"log-*"}\n{"query":{"match_all":{}}}\n{"index":"lists"}\n{"query":{"terms":{"n":{"index":"old","id":"1","type":"a","path":"n"}}}}\n'
        self.inside("POST", "/_msearch", lines)
        for write in (("PUT", "/log-3/_doc/1", {}), ("PUT", "/lists/_doc/7", {}), ("PUT", "/old/a/1", {"n": 7})):
            self.assertEqual(self.stranger(write)[0], 409, write)
        self.assertEqual(self.stranger(("PUT", "/old/a/2", {"n": 7}))[0], 201)

    def test_scrolls_and_points_in_time(self):
        self.stays(("POST", "/log-*/_search?scroll=1m", {"query": LOOKUP}), [("PUT", "/log-3/_doc/1", {}), ("PUT", "/lists/_doc/1", {})])
        self.tearDown()
        self.setUp()
        status, reply = self.inside("POST", "/log-*/_pit?keep_alive=1m")
        self.assertEqual(status, 200)
        self.assertEqual(self.stranger(("PUT", "/log-3/_doc/1", {}))[0], 409)
        body = {"pit": {"id": reply["id"]}, "query": LOOKUP}
        status, reply = self.inside("POST", "/_search", body)
        self.assertEqual(status, 400)
        self.assertIn("point in time", reply["error"]["reason"])
        self.assertEqual(self.inside("POST", "/_search", {"pit": body["pit"]})[0], 200)


class Writes(Case):
    def test_by_an_alias(self):
        self.assertEqual(self.inside("PUT", "/logs/_doc/5", {})[0], 201)
        self.assertEqual(self.stranger(("DELETE", "/log-1/_alias/logs"))[0], 409)
        self.assertEqual(self.stranger(("PUT", "/log-2/_alias/more"))[0], 200)

    def test_with_a_stored_script(self):
        self.assertEqual(self.inside("POST", "/log-1/_update/1", {"script": {"id": "w"}})[0], 200)
        self.assertEqual(self.stranger(("DELETE", "/_scripts/w"))[0], 409)
        self.assertEqual(self.stranger(("DELETE", "/_scripts/s"))[0], 200)

    def test_by_query(self):
        body = {"query": LOOKUP, "script": {"id": "w"}}
        self.assertEqual(self.inside("POST", "/log-*/_update_by_query", body)[1]["updated"], 2)
        for write in (("DELETE", "/_scripts/w"), ("PUT", "/log-3/_doc/1", {}), ("PUT", "/lists/_doc/1", {})):
            self.assertEqual(self.stranger(write)[0], 409, write)
        self.tearDown()
        self.setUp()
        self.assertEqual(self.inside("POST", "/log-*/_delete_by_query", {"query": {"match_all": {}}})[1]["deleted"], 2)
        self.assertEqual(self.stranger(("PUT", "/log-3/_doc/1", {}))[0], 409)

    def test_index_created_in_transaction(self):
        self.assertEqual(self.inside("GET", "/log-*/_search")[0], 200)
        self.assertEqual(self.inside("PUT", "/log-7/_doc/1", {})[0], 201)
        self.assertEqual(self.stranger(("PUT", "/log-7/_doc/2", {}))[0], 409)

    def test_atomic_by_query_waits_for_name_locks(self):
        """atomic=true waits for the transactions that hold its names, and no index can be created that it would have to change."""
        self.inside("PUT", "/log-9/_doc/1", {"n": 1})
        status, reply = self.server.ask("POST", "/log-*/_update_by_query?atomic=true&timeout=200ms", {"script": {"id": "w"}})
        self.assertEqual(status, 409, reply)
        self.server.must("POST", "/_transaction/%s/_commit" % self.transaction)
        self.assertEqual(self.server.must("POST", "/log-*/_update_by_query?atomic=true", {"script": {"id": "w"}})["updated"], 3)


if __name__ == "__main__":
    unittest.main()
