#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A call that is given a timestamp replies as of that timestamp, or is refused: none ignores ?timestamp= and ?as_of=.

Every kind of object of the catalog is created, read, changed and deleted. Then each read is repeated as of before, outside
and inside a query transaction, and must be equal byte by byte.
"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402

LOOKS = [
    "/fs", "/fs?include_type_name=true", "/fs/_mapping", "/_mapping", "/fs/_mappings", "/fs/_settings", "/_settings", "/fs/_settings/index.x",
    "/fs/_mapping/field/n", "/_alias", "/fs/_alias", "/_alias/a", "/_aliases", "/_template", "/_template/t", "/_scripts/s", "/_cat/aliases",
    "/_cat/templates", "/_cluster/settings", "/fs/_doc/1", "/fs/_source/1", "/_search", "/fs/_count",
]
HEADS = ["/fs", "/_alias/a", "/_template/t", "/fs/_mapping/_doc", "/fs/_doc/1"]
REFUSED = [
    "/", "/_timestamp", "/_cat", "/_cat/count", "/_cat/count/fs", "/_cat/indices", "/_cat/health", "/_cat/nodes", "/_cat/master", "/_cat/shards",
    "/_cat/locks", "/_cat/sessions", "/_cat/transactions", "/_stats", "/fs/_stats", "/_lock/_events", "/_session", "/_transaction",
    "/_cluster/health", "/_cluster/state", "/_nodes", "/_nodes/stats", "/_tasks", "/_changes/_consumers", "/_cat/copies",
]
CHANGES = [("PUT", "/x/_doc/1", {}), ("DELETE", "/x/_doc/1", None), ("POST", "/x/_update/1", {"doc": {}}), ("PUT", "/y", None), ("DELETE", "/x", None),
           ("POST", "/_refresh", None), ("POST", "/_forcemerge", None), ("PUT", "/_template/u", {"index_patterns": ["u"]}),
           ("POST", "/_session", {}), ("POST", "/_lock", {}), ("POST", "/x/_delete_by_query", {"query": {"match_all": {}}})]


class AsOfReads(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.make(1)
        cls.before = cls.server.must("GET", "/_timestamp")
        cls.looks = {path: cls.look(path) for path in LOOKS}
        cls.heads = {path: cls.server.request("HEAD", path).status for path in HEADS}
        cls.query = cls.server.must("POST", "/_transaction", {"mode": "query"})["transaction"]
        cls.make(2)
        cls.after = {path: cls.look(path) for path in LOOKS}
        cls.server.must("DELETE", "/fs")
        for path in "/_template/t", "/_scripts/s":
            cls.server.must("DELETE", path)

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    @classmethod
    def make(cls, n):
        if n == 1:
            cls.server.must("PUT", "/fs", {"mappings": {"properties": {"n": {"type": "long"}}}})
        else:
            cls.server.must("PUT", "/fs/_mapping", {"properties": {"m": {"type": "keyword"}, "n": {"type": "long", "fields": {"k": {"type": "keyword"}}}}})
            cls.server.must("POST", "/_aliases", {"actions": [{"remove": {"index": "fs", "alias": "a"}}]})
            cls.server.must("PUT", "/fs/_settings", {"index.blocks.write": True})
            cls.server.must("PUT", "/fs/_settings", {"index.blocks.write": None})
        cls.server.must("PUT", "/fs/_settings", {"index.number_of_replicas": n + 1})
        cls.server.must("PUT", "/fs/_alias/%s" % "ab"[n - 1])
        cls.server.must("PUT", "/_template/t", {"index_patterns": ["t%d" % n], "order": n})
        cls.server.must("PUT", "/_scripts/s", {"script": {"lang": "painless", "source": "ctx._source.n = %d" % n}})
        cls.server.must("PUT", "/_cluster/settings", {"persistent": {"action.auto_create_index": "fs,n%d" % n}})
        cls.server.must("PUT", "/fs/_doc/1", {"n": n})

    @classmethod
    def look(cls, path, parameter=""):
        response = cls.server.request("GET", path + ("&" if "?" in path else "?") + "filter_path=-took" + parameter)
        return response.status, response.body

    def test_catalog_reads_at_timestamp_are_unchanged(self):
        for parameter in ("&timestamp=%d" % self.before["timestamp"], "&as_of=" + self.before["time"], "&transaction=" + self.query):
            for path, seen in self.looks.items():
                with self.subTest(path=path, parameter=parameter):
                    self.assertEqual(self.look(path, parameter), seen)
            for path, status in self.heads.items():
                with self.subTest(path=path, parameter=parameter):
                    self.assertEqual(status, 200)
                    self.assertEqual(self.server.request("HEAD", path + "?" + parameter[1:]).status, 200)
                    self.assertEqual(self.server.request("HEAD", path).status, 404)

    def test_current_reads_have_changed(self):
        """Else the case above shows nothing."""
        same = [path for path in LOOKS if self.looks[path] == self.after[path] and self.looks[path][0] == 200]
        self.assertEqual(same, ["/fs/_settings/index.x", "/fs/_count"])

    def test_reads_before_creation_find_nothing(self):
        oldest = self.server.must("GET", "/_timestamp")["oldest"]
        self.assertEqual(self.server.ask("GET", "/fs/_mapping?timestamp=%d" % oldest)[0], 404)
        self.assertEqual(self.server.ask("GET", "/_mapping?timestamp=1")[0], 410)
        self.assertEqual(self.server.ask("GET", "/_mapping?as_of=2199-01-01T00:00:00Z")[0], 400)
        self.assertEqual(self.server.ask("GET", "/_mapping?transaction=none")[0], 404)

    def test_calls_without_history_refuse_timestamp(self):
        for path in REFUSED:
            for parameter in ("timestamp=%d" % self.before["timestamp"], "as_of=" + self.before["time"]):
                with self.subTest(path=path, parameter=parameter):
                    status, reply = self.server.ask("GET", path + "?" + parameter)
                    self.assertEqual(status, 400, reply)
                    self.assertIn("which reports only the current state", reply["error"]["reason"])

    def test_changes_refuse_timestamp(self):
        for method, path, body in CHANGES:
            with self.subTest(path=path):
                status, reply = self.server.ask(method, path + "?as_of=" + self.before["time"], body)
                self.assertEqual(status, 400, reply)
                self.assertIn("the past cannot be changed", reply["error"]["reason"])


if __name__ == "__main__":
    unittest.main()
