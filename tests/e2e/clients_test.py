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

    def test_scroll(self):
        self.fill("fs", 250)
        page, seen = self.client.search(index="fs", scroll="1m", size=100, sort="_doc"), set()
        while page["hits"]["hits"]:
            seen.update(hit["_id"] for hit in page["hits"]["hits"])
            page = self.client.scroll(scroll_id=page["_scroll_id"], scroll="1m")
        self.assertEqual(len(seen), 250)
        self.assertTrue(self.client.clear_scroll(scroll_id=page["_scroll_id"])["succeeded"])
        with self.assertRaises(elasticsearch.NotFoundError):
            self.client.scroll(scroll_id=page["_scroll_id"], scroll="1m")

    def assert_refused(self, status, kind, call_refused):
        """Checks what a user reads off the library's exception."""
        with self.assertRaises(elasticsearch.ApiError if MAJOR >= 8 else elasticsearch.TransportError) as caught:
            call_refused()
        error = caught.exception
        self.assertEqual((error.status_code, (error.body if MAJOR >= 8 else error.info)["error"]["type"]), (status, kind))

    def test_errors(self):
        self.assert_refused(404, "index_not_found_exception", lambda: self.client.search(index="nowhere"))
        self.client.index(index="fs", id="1", **body({"size": 1}))
        self.assert_refused(400, "mapper_parsing_exception", lambda: self.client.index(index="fs", **body({"size": "many"})))
        self.assert_refused(400, "parsing_exception", lambda: call(self.client.search, "fs", query={"nonsense": {}}))
        self.assert_refused(409, "version_conflict_engine_exception", lambda: self.client.create(index="fs", id="1", **body({})))
        actions = [{"_index": "fs", "_id": "1", "_op_type": "create", "size": 1}, {"_index": "fs", "_id": "2", "size": 2}]
        done, failed = helpers.bulk(self.client, actions, raise_on_error=False)
        self.assertEqual((done, [item["create"]["status"] for item in failed]), (1, [409]))
        with self.assertRaises(helpers.BulkIndexError):
            helpers.bulk(self.client, actions)

    def native(self, method, path, members=None):
        """A call of Tidelock's own, as docs/http-api.md shows it."""
        if MAJOR >= 8:
            return self.client.perform_request(method, path, headers={"Content-Type": "application/json", "Accept": "application/json"}, body=members)
        return self.client.transport.perform_request(method, path, body=members)

    def within(self, header, value):
        """Returns: the client, and what its calls take to send the header."""
        headers = {header: value}
        return (self.client.options(headers=headers), {}) if MAJOR >= 8 else (self.client, {"headers": headers})

    def test_lock(self):
        session = self.native("POST", "/_session", {"ttl": "1m", "name": "editor"})["session"]
        self.assertTrue(self.native("POST", "/_lock", {"session": session, "locks": [{"mode": "exclusive", "index": "fs"}]})["granted"])
        self.assert_refused(409, "lock_wait_timeout_exception", lambda: self.client.index(index="fs", id="1", timeout="0s", **body({"size": 1})))
        holder, more = self.within("Tidelock-Session", session)
        holder.index(index="fs", id="1", **more, **body({"size": 2}))
        self.assertEqual(helpers.bulk(holder, [{"_index": "fs", "_id": "2", "size": 3}], **more), (1, []))
        self.native("DELETE", "/_session/" + session)
        self.client.index(index="fs", id="1", **body({"size": 4}))

    def test_transaction(self):
        transaction = self.native("POST", "/_transaction", {"mode": "update"})["transaction"]
        inside, more = self.within("Tidelock-Transaction", transaction)
        inside.index(index="fs", id="1", **more, **body({"size": 1}))
        self.assertTrue(inside.exists(index="fs", id="1", **more))
        self.assertFalse(self.client.exists(index="fs", id="1"))
        self.assertTrue(self.native("POST", "/_transaction/%s/_commit" % transaction)["committed"])
        self.assertTrue(self.client.exists(index="fs", id="1"))

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
