#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What _stats, _nodes/stats and _cat/indices count is what was done: each figure after known deeds, and none of another index."""
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402


class Figures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        for name in ("i", "other"):
            self.server.must("PUT", "/" + name)
        self.server.must("PUT", "/other/_doc/1", {"n": 1})

    def tearDown(self):
        self.server.must("DELETE", "/i,other")

    def figures(self, metric, index="i"):
        reply = self.server.must("GET", "/%s/_stats/%s" % (index, metric))
        self.assertEqual(reply["_all"]["total"], reply["indices"][index]["primaries"])
        return reply["_all"]["total"][metric]

    def indexing(self):
        found = self.figures("indexing")
        return found["index_total"], found["delete_total"], found["noop_update_total"]

    def test_writes(self):
        self.assertEqual(self.indexing(), (0, 0, 0))
        self.server.must("PUT", "/i/_doc/1", {"n": 1})
        self.server.must("PUT", "/i/_doc/1", {"n": 2})
        self.server.must("POST", "/i/_update/1", {"doc": {"n": 3}})
        self.server.must("POST", "/i/_update/1", {"doc": {"n": 3}})
        self.assertEqual(self.indexing(), (3, 0, 1))
        self.server.must("DELETE", "/i/_doc/1")
        self.assertEqual(self.server.ask("DELETE", "/i/_doc/none")[0], 404)
        self.assertEqual(self.indexing(), (3, 2, 1))
        self.server.must("POST", "/_bulk", '{"index":{"_index":"i","_id":"1"}}\n{"n":1}\n{"create":{"_index":"i","_id":"1"}}\n{"n":1}\n')
        self.assertEqual(self.server.ask("POST", "/i/_update/1?if_seq_no=77&if_primary_term=1", {"doc": {"n": 7}})[0], 409)
        self.assertEqual(self.indexing(), (4, 2, 1))
        self.server.must("POST", "/i/_update_by_query", {"query": {"match_all": {}}})
        self.assertEqual(self.indexing(), (5, 2, 1))
        self.assertEqual(self.figures("indexing", "other")["index_total"], 1)

    def test_what_is_undone_does_not_count(self):
        broken = '{"index":{"_index":"i","_id":"1"}}\n{"n":1}\n{"index":{"_index":"i","_id":"2"}}\n{"n":"x"}\n'
        self.server.must("PUT", "/i/_mapping", {"properties": {"n": {"type": "long"}}})
        self.assertTrue(self.server.ask("POST", "/_bulk?atomic=true", broken)[0] >= 400 or self.figures("docs")["count"] == 0)
        self.assertEqual(self.indexing(), (0, 0, 0))

    def test_transactions_count_at_their_commit(self):
        for end, counted in (("_rollback", (0, 0, 0)), ("_commit", (1, 1, 0))):
            transaction = self.server.must("POST", "/_transaction", {})["transaction"]
            self.server.must("PUT", "/i/_doc/1?transaction=" + transaction, {"n": 1})
            self.server.must("PUT", "/i/_doc/1?transaction=" + transaction, {"n": 2})
            self.server.ask("DELETE", "/i/_doc/2?transaction=" + transaction)
            self.assertEqual(self.indexing(), (0, 0, 0))
            self.server.must("POST", "/_transaction/%s/%s" % (transaction, end))
            self.assertEqual(self.indexing(), counted)

    def test_reads(self):
        self.server.must("PUT", "/i/_doc/1", {"n": 1})
        self.server.must("GET", "/i/_doc/1")
        self.server.ask("GET", "/i/_doc/2")
        self.server.must("POST", "/_mget", {"docs": [{"_index": "i", "_id": "1"}, {"_index": "i", "_id": "3"}]})
        self.assertEqual(self.figures("get"), {"total": 4, "exists_total": 2, "missing_total": 2})
        self.server.must("POST", "/i,other/_search", {"query": {"ids": {"values": ["1"]}}})
        self.server.must("POST", "/i/_search", {"query": {"term": {"n": 5}}})
        self.server.must("POST", "/_msearch", '{"index":"i"}\n{"size":0}\n{"index":"other"}\n{}\n')
        found, other = self.figures("search"), self.figures("search", "other")
        self.assertEqual((found["query_total"], found["fetch_total"]), (3, 1))
        self.assertEqual((other["query_total"], other["fetch_total"]), (2, 2))

    def test_sizes_are_those_of_the_index(self):
        letters = random.Random(1)
        for number in range(40):
            text = "".join(letters.choices("abcdefghijklmnopqrstuvwxyz", k=20000))
            self.server.must("PUT", "/i/_doc/%d" % number, {"t": text})
        self.server.must("POST", "/i/_forcemerge")
        mine, others = self.figures("store")["size_in_bytes"], self.figures("store", "other")["size_in_bytes"]
        self.assertGreater(mine, 300000)
        self.assertLess(others, mine / 10)
        rows = self.server.must("GET", "/_cat/indices/i,other?format=json&bytes=b&h=index,store.size")
        self.assertEqual({row["index"]: int(row["store.size"]) for row in rows}, {"i": mine, "other": others})

    def test_node(self):
        before = next(iter(self.server.must("GET", "/_nodes/stats/indices")["nodes"].values()))["indices"]
        self.server.must("PUT", "/i/_doc/1", {"n": 1})
        reply = next(iter(self.server.must("GET", "/_nodes/_local/stats")["nodes"].values()))
        self.assertEqual(reply["indices"]["indexing"]["index_total"], before["indexing"]["index_total"] + 1)
        self.assertEqual(reply["indices"]["docs"]["count"], 2)
        self.assertGreater(reply["process"]["open_file_descriptors"], 3)
        self.assertGreater(reply["fs"]["total"]["available_in_bytes"], 0)
        self.assertIn("parent", reply["breakers"])
        status, refusal = self.server.ask("GET", "/_nodes/stats/jvm")
        self.assertEqual((status, refusal["error"]["type"]), (400, "illegal_argument_exception"))
        self.assertIn("[jvm], of which this server has none", refusal["error"]["reason"])


if __name__ == "__main__":
    unittest.main()
