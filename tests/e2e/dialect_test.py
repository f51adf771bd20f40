#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each part of a request has the dialect that it has as a request of its own: items of _bulk, of on_expire, of _msearch and of _mget, in any order."""
import itertools
import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402

# Lines of one item each. N is replaced by what makes the names of a request its own; each item has indices of its own, so that the others
# change nothing for it.
ITEMS = [
    ['{"index":{"_index":"seven-N","_id":"1"}}', '{"a":1}'],
    ['{"index":{"_index":"five-N","_type":"file","_id":"1"}}', '{"a":1}'],
    ['{"create":{"_index":"old7","_id":"1"}}', '{"a":1}'],                            # conflicts
    ['{"create":{"_index":"old5","_type":"file","_id":"1"}}', '{"a":1}'],
    ['{"delete":{"_index":"none7-N","_id":"1"}}'],                                    # 7.10's makes no index, 5.6's does
    ['{"delete":{"_index":"none5-N","_type":"file","_id":"1"}}'],
    ['{"update":{"_index":"old7","_id":"1","_source":true}}', '{"doc":{"a":2}}'],
    ['{"update":{"_index":"old5","_type":"file","_id":"1","_source":true}}', '{"doc":{"a":2}}'],
    ['{"index":{"_index":"twice7-N","_id":"1"}}', '{"a":1,"a":2}'],                   # 5.6 takes the last
    ['{"index":{"_index":"twice5-N","_type":"file","_id":"1"}}', '{"a":1,"a":2}'],
    ['{"update":{"_index":"ctx7-N","_id":"1"}}', '{"script":{"source":"ctx._source.t = ctx._type"},"upsert":{}}'],
    ['{"index":{"_index":"closed7","_id":"1"}}', '{"a":1}'],
    ['{"index":{"_index":"closed5","_type":"file","_id":"1"}}', '{"a":1}'],
]


class Dialect(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.number = 0

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        for name in ("old", "closed"):
            self.server.must("PUT", "/%s7/_doc/1" % name, {"a": 0})
            self.server.must("PUT", "/%s5/file/1" % name, {"a": 0})
            if name == "closed":
                self.server.must("POST", "/closed7,closed5/_close")

    def tearDown(self):
        self.server.must("DELETE", "/*")

    def bulk(self, *items):
        """What became of each item, and the indices that it made, without what the others do not have."""
        Dialect.number += 1
        text = "".join(line + "\n" for item in items for line in item).replace("-N", "-%d" % self.number)
        replies = self.server.must("POST", "/_bulk", text)["items"]
        self.assertEqual(len(replies), len(items))
        found = []
        for item, reply in zip(items, replies):
            name = re.search(r'"_index":"([^"]*)"', item[0]).group(1).replace("-N", "-%d" % self.number)
            status, index = self.server.ask("GET", "/%s" % name)
            made = json.dumps(index[name]["mappings"]) if status == 200 else ""
            numbers = re.compile(r'("_seq_no"|"_version"|"index_uuid"|\bseqNo): *("[^"]*"|\d+)')
            text = numbers.sub(r"\1", json.dumps(reply))
            text = re.sub(r"\[[^\]]*/[^\]]{22}\]|\[\w+-\d+/\w+\]", "[index]", text)
            text = re.sub(r"current version \[\d+\]", "current version", text)
            found.append((text + made).replace("-%d" % self.number, "-N"))
        return found

    def test_bulk_pairs(self):
        for one, other in itertools.permutations(ITEMS, 2):
            with self.subTest(first=one[0], then=other[0]):
                self.tearDown()
                self.setUp()
                alone = self.bulk(one) + self.bulk(other)
                self.tearDown()
                self.setUp()
                self.assertEqual(self.bulk(one, other), alone)

    def test_bulk_of_all(self):
        for order in (ITEMS, ITEMS[::-1], ITEMS[7:] + ITEMS[:7]):
            self.tearDown()
            self.setUp()
            alone = [self.bulk(item)[0] for item in order]
            self.tearDown()
            self.setUp()
            self.assertEqual(self.bulk(*order), alone)

    def test_a_transaction_has_both(self):
        text = "".join(line + "\n" for item in ITEMS[:2] for line in item).replace("-N", "-t")
        txn = self.server.must("POST", "/_transaction")["transaction"]
        status, reply = self.server.ask("POST", "/_bulk", text, headers={"Tidelock-Transaction": txn})
        self.assertEqual((status, [list(item.values())[0]["_type"] for item in reply["items"]]), (200, ["_doc", "file"]))
        self.server.must("POST", "/_transaction/%s/_commit" % txn)
        self.assertIn("file", self.server.must("GET", "/five-t")["five-t"]["mappings"])
        self.assertIn("properties", self.server.must("GET", "/seven-t")["seven-t"]["mappings"])

    def test_on_expire_actions(self):
        actions = [json.loads(line) for item in ITEMS[:2] for line in item]
        body = {"ttl": "60s", "on_expire": json.loads(json.dumps(actions).replace("-N", "-s"))}
        session = self.server.must("POST", "/_session", body)["session"]
        self.server.must("DELETE", "/_session/%s?force=true" % session)
        self.assertIn("file", self.server.must("GET", "/five-s")["five-s"]["mappings"])
        self.assertIn("properties", self.server.must("GET", "/seven-s")["seven-s"]["mappings"])

    def search(self, *headers):
        text = "".join(json.dumps(header) + "\n{}\n" for header in headers)
        replies = self.server.must("POST", "/_msearch", text)["responses"]
        for reply in replies:
            reply.pop("took", None)
        return replies

    def test_msearch(self):
        headers = [{"index": "old7"}, {"index": "old5"}, {"index": "old5", "type": "file"}, {"index": "nowhere"},
                   {"index": "old5,closed5"}, {"index": "closed7"}]
        for one, other in itertools.permutations(headers, 2):
            with self.subTest(first=one, then=other):
                self.assertEqual(self.search(one, other), self.search(one) + self.search(other))
        by_path = self.server.must("POST", "/old5/_search")
        self.assertEqual(self.search({"index": "old7"}, {"index": "old5"})[1]["hits"], by_path["hits"])

    # --- _mget --------------------------------------------------------------------------------------------------------------

    DOCS = [{"_index": "old7", "_id": "1"}, {"_index": "old7", "_id": "1", "version": 9}, {"_index": "nowhere", "_id": "1"},
            {"_index": "old5", "_id": "1"}, {"_index": "old5", "_id": "1", "_version": 9}, {"_index": "closed5", "_id": "1"},
            {"_index": "old5", "_type": "file", "_id": "1"}, {"_index": "old5", "_type": "file", "_id": "1", "_routing": "r"},
            {"_index": "old5", "_type": "file", "_id": "1", "_version": 9, "_source": 5}, {"_index": "nowhere", "_type": "file", "_id": "1"}]

    def test_mget(self):
        def mget(*docs):
            return re.sub(r"/[\w-]{22}\]", "]", json.dumps(self.server.must("POST", "/_mget", {"docs": docs})["docs"]))
        for one, other in itertools.permutations(self.DOCS, 2):
            with self.subTest(first=one, then=other):
                self.assertEqual(mget(one, other), mget(one)[:-1] + ", " + mget(other)[1:])

    def test_mget_by_path(self):
        for doc in self.DOCS:
            rest = dict(doc)
            path = "/".join([rest.pop("_index")] + ([rest.pop("_type")] if "_type" in doc else []))
            with self.subTest(doc=doc):
                self.assertEqual(self.server.must("POST", "/_mget", {"docs": [doc]}), self.server.must("POST", "/%s/_mget" % path, {"docs": [rest]}))

    def test_mget_of_many_names(self):
        """Each name is compared with all indices once, and all of them are looked at once for names that do not exist."""
        self.server.must("DELETE", "/old7,closed7")
        for i in range(100):
            self.server.must("PUT", "/many%d/file/1" % i, {"a": 0})
        self.server.must("POST", "/_aliases", {"actions": [{"add": {"index": "many*", "alias": "all"}}]})
        docs = [{"_index": name, "_id": "1"} for name in ("nowhere", "nothing")] * 22000
        found = self.server.must("POST", "/_mget", {"docs": docs})["docs"]
        self.assertEqual(len(found), len(docs))
        self.assertEqual(json.dumps(found[0]), json.dumps(self.server.must("POST", "/_mget", {"docs": docs[:1]})["docs"][0]))
        self.assertEqual(json.dumps(found[1]), json.dumps(found[-1]))
        self.assertEqual(len(self.server.must("POST", "/_mget", {"docs": [{"_index": "all", "_id": "1"}, {"_index": "old5", "_id": "1"}] * 22000})["docs"]), 44000)
        docs = [{"_index": "x%d*" % i, "_id": "1"} for i in range(22000)]
        status, refused = self.server.ask("POST", "/_mget", {"docs": docs})
        self.assertEqual((status, refused["error"]["type"]), (400, "illegal_argument_exception"))
        self.assertIn("so many names and wildcards", refused["error"]["reason"])

    def test_bulk_of_many_names(self):
        """A type such as _x, which is a slip, leaves the dialect to the index: each name is compared with all indices once."""
        for i in range(100):
            self.server.must("PUT", "/many%d/file/1" % i, {"a": 0})
        lines = [['{"create":{"_index":"%s","_type":"_x","_id":"1"}}' % name, '{"a":1}'] for name in ("old7", "old5", "many1", "many2")]

        def outcomes(items):
            replies = self.server.must("POST", "/_bulk", "".join(line + "\n" for item in items for line in item))["items"]
            return [(reply["create"]["status"], reply["create"].get("error", {}).get("type")) for reply in replies]
        alone = [outcomes([item])[0] for item in lines]
        self.assertEqual(outcomes(lines * 2000), alone * 2000)

    def test_msearch_of_many_names(self):
        """So it is for searches. One with too many wildcards is refused by itself."""
        for i in range(100):
            self.server.must("PUT", "/many%d/file/1" % i, {"a": 0})
        self.server.must("POST", "/_aliases", {"actions": [{"add": {"index": "many*", "alias": "all"}}]})
        headers = [{"index": "nowhere"}, {"index": "nothing"}]
        found = self.search(*(headers * 2500))
        self.assertEqual(found[:2], self.search(headers[0]) + self.search(headers[1]))
        self.assertEqual(found[-2:], found[:2])
        many = ",".join("x%d*" % i for i in range(25000))
        self.assertEqual([reply["status"] for reply in self.search({"index": many}, {"index": "old7"})], [400, 200])

    def test_mget_of_the_past(self):
        """The indices that there are now decide the dialect of items with a type and without one, of calls alone and of an _mget."""
        self.server.must("PUT", "/past/file/1", {"a": 0})
        at = "timestamp=%d" % self.server.must("GET", "/_timestamp")["timestamp"]
        self.server.must("DELETE", "/past")
        typed = self.server.must("POST", "/_mget?" + at, {"docs": [{"_index": "past", "_type": "file", "_id": "1"}]})["docs"][0]
        untyped = self.server.must("POST", "/_mget?" + at, {"docs": [{"_index": "past", "_id": "1"}]})["docs"][0]
        self.assertEqual(typed, self.server.must("GET", "/past/file/1?" + at))
        self.assertEqual((untyped["found"], untyped["_source"]), (True, {"a": 0}))
        both = self.server.must("POST", "/_mget?" + at, {"docs": [{"_index": "past", "_id": "1"}, {"_index": "past", "_type": "file", "_id": "1"}]})["docs"]
        self.assertEqual(json.dumps(both), json.dumps([untyped, typed]))


if __name__ == "__main__":
    unittest.main()
