#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The client library of Elasticsearch for Python, as packaged by Debian (7.17 in 12, 8.17 in 13), used as its users do.

Only the library shows which checks it makes before it sends a request, which headers it requires and which shapes of replies it
parses. If it is not installed the test prints that and exits with 77.
"""
import os
import sys
import unittest
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from server import Server  # noqa: E402

try:
    import elasticsearch
    from elasticsearch import helpers
except ImportError:
    print("skipped: python3-elasticsearch is not installed")
    sys.exit(77)

MAJOR = elasticsearch.__version__[0]


def body(document):
    """A document as a call of this version takes it."""
    return {"document": document} if MAJOR >= 8 else {"body": document}


def call(function, index, **members):
    """A call whose body has the given members."""
    return function(index=index, **members) if MAJOR >= 8 else function(index=index, body=members)


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        warnings.simplefilter("ignore")
        cls.server = Server()
        cls.server.start()
        cls.client = elasticsearch.Elasticsearch(cls.server.url)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.close()

    def setUp(self):
        self.client.indices.delete(index="*")

    def fill(self, index, count):
        actions = ({"_index": index, "_id": str(i), "name": "n%d" % (i % 10), "size": i} for i in range(count))
        self.assertEqual(helpers.bulk(self.client, actions), (count, []))
        self.client.indices.refresh(index=index)

    def test_greeting(self):
        self.assertTrue(self.client.ping())
        self.assertEqual(self.client.info()["tagline"], "You Know, for Search")
        self.assertEqual(self.client.cluster.health()["status"], "green")

    def test_document(self):
        self.assertEqual(self.client.index(index="fs", id="1", **body({"size": 1}))["result"], "created")
        self.assertEqual(self.client.get(index="fs", id="1")["_source"], {"size": 1})
        self.assertTrue(self.client.exists(index="fs", id="1"))
        self.assertFalse(self.client.exists(index="fs", id="2"))
        with self.assertRaises(elasticsearch.NotFoundError):
            self.client.get(index="fs", id="2")
        with self.assertRaises(elasticsearch.ConflictError):
            self.client.create(index="fs", id="1", **body({}))
        self.assertEqual(self.client.delete(index="fs", id="1")["result"], "deleted")

    def test_condition(self):
        first = self.client.index(index="fs", id="1", **body({"size": 1}))
        condition = {"if_seq_no": first["_seq_no"], "if_primary_term": first["_primary_term"]}
        self.client.index(index="fs", id="1", **condition, **body({"size": 2}))
        with self.assertRaises(elasticsearch.ConflictError):
            self.client.index(index="fs", id="1", **condition, **body({"size": 3}))

    def test_update(self):
        self.client.index(index="fs", id="1", **body({"size": 1}))
        change = {"script": {"source": "ctx._source.size += params.by", "params": {"by": 2}}}
        self.client.update(index="fs", id="1", **(change if MAJOR >= 8 else {"body": change}))
        self.assertEqual(self.client.get_source(index="fs", id="1")["size"], 3)

    def test_helpers(self):
        self.fill("fs", 1200)
        self.assertEqual(self.client.count(index="fs")["count"], 1200)
        self.assertEqual(len(list(helpers.scan(self.client, index="fs", size=100))), 1200)
        self.assertEqual(helpers.reindex(self.client, "fs", "copy")[0], 1200)
        actions = ({"_index": "fs", "_id": str(i), "size": 0} for i in range(1200))
        self.assertTrue(all(ok for ok, _ in helpers.parallel_bulk(self.client, actions, thread_count=4)))

    def test_search(self):
        self.fill("fs", 100)
        found = call(self.client.search, "fs", query={"term": {"name": "n3"}}, sort=[{"size": "desc"}], size=3)
        self.assertEqual([hit["_source"]["size"] for hit in found["hits"]["hits"]], [93, 83, 73])
        self.assertEqual(found["hits"]["total"]["value"], 10)

    def test_by_query(self):
        self.fill("fs", 100)
        call(self.client.update_by_query, "fs", query={"term": {"name": "n3"}}, script={"source": "ctx._source.size = 0"})
        call(self.client.delete_by_query, "fs", query={"term": {"name": "n4"}})
        self.client.indices.refresh(index="fs")
        self.assertEqual(call(self.client.count, "fs", query={"term": {"size": 0}})["count"], 11)
        self.assertEqual(self.client.count(index="fs")["count"], 90)

    def test_point_in_time(self):
        self.fill("fs", 10)
        pit = self.client.open_point_in_time(index="fs", keep_alive="1m")["id"]
        self.client.index(index="fs", id="late", **body({"size": 11}))
        members = {"pit": {"id": pit, "keep_alive": "1m"}, "size": 100}
        found = self.client.search(**members) if MAJOR >= 8 else self.client.search(body=members)
        self.assertEqual(found["hits"]["total"]["value"], 10)
        self.client.close_point_in_time(**({"id": pit} if MAJOR >= 8 else {"body": {"id": pit}}))

    def test_catalog(self):
        self.client.indices.create(index="fs", **({"mappings": {"properties": {"size": {"type": "long"}}}} if MAJOR >= 8 else
                                                  {"body": {"mappings": {"properties": {"size": {"type": "long"}}}}}))
        self.client.indices.put_alias(index="fs", name="files")
        self.assertEqual(list(self.client.indices.get_alias(index="files")), ["fs"])
        self.assertEqual(self.client.indices.get_mapping(index="fs")["fs"]["mappings"]["properties"]["size"]["type"], "long")
        self.assertIn("fs", str(self.client.cat.indices()))
        with self.assertRaises(elasticsearch.BadRequestError if MAJOR >= 8 else elasticsearch.RequestError):
            self.client.indices.create(index="fs")


if __name__ == "__main__":
    unittest.main()
