#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Searches over HTTP: the shapes of replies, the state that scrolls and points in time see, searches inside transactions and at past
timestamps, and the by-query calls while other clients write.
"""
import json
import os
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server, check  # noqa: E402

SHARDS = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}


def ids(reply):
    return [hit["_id"] for hit in reply["hits"]["hits"]]


def many_slices(number):
    return ("The number of slices [%d] is too large. It must be less than [1024]. "
            "This limit can be set by changing the [index.max_slices_per_scroll] index level setting." % number)


class Search(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def tearDown(self):
        self.server.ask("DELETE", "/_all")
        self.server.ask("DELETE", "/_search/scroll/_all")

    def fill(self, index, count, **fields):
        lines = []
        for i in range(count):
            lines += [json.dumps({"index": {"_index": index, "_id": "%05d" % i}}), json.dumps(dict(fields, n=i))]
        status, reply = self.server.ask("POST", "/_bulk", "\n".join(lines) + "\n", {"Content-Type": "application/x-ndjson"})
        self.assertEqual((status, reply["errors"]), (200, False))

    def ok(self, method, path, body=None, headers=None):
        status, reply = self.server.ask(method, path, body, headers)
        self.assertEqual(status, 200, "%s %s: %s" % (method, path, reply))
        return reply

    def test_reply_of_7(self):
        self.server.must("PUT", "/s/_doc/1?routing=r", {"a": "x"})
        reply = self.ok("GET", "/s/_search?version=true&seq_no_primary_term=true")
        self.assertIsInstance(reply.pop("took"), int)
        self.assertEqual(reply, {
            "timed_out": False, "_shards": SHARDS,
            "hits": {"total": {"value": 1, "relation": "eq"}, "max_score": 1.0, "hits": [
                {"_index": "s", "_type": "_doc", "_id": "1", "_version": 1, "_seq_no": 0, "_primary_term": 1, "_score": 1.0,
                 "_routing": "r", "_source": {"a": "x"}}]}})

    def test_reply_of_8(self):
        self.server.must("PUT", "/s/_doc/1", {"a": "x"})
        reply = self.ok("GET", "/s/_search", None, {"Accept": "application/vnd.elasticsearch+json; compatible-with=8"})
        self.assertEqual(reply["hits"]["hits"], [{"_index": "s", "_id": "1", "_score": 1.0, "_source": {"a": "x"}}])

    def test_reply_of_5(self):
        self.server.must("PUT", "/s/t/1", {"a": "x"})
        self.server.must("PUT", "/s/u/2", {"a": "x"})
        for path, count in (("/s/t/_search", 1), ("/s/t,u/_search", 2), ("/s/_search", 2), ("/s/missing/_search", 0)):
            reply = self.ok("GET", path)
            self.assertEqual(reply["hits"]["total"], count, path)
            self.assertEqual(reply["_shards"]["total"], 5, path)
        self.assertEqual(self.ok("GET", "/s/t/_search")["hits"]["hits"][0],
                         {"_index": "s", "_type": "t", "_id": "1", "_score": 1.0, "_source": {"a": "x"}})

    def test_refusals(self):
        self.server.must("PUT", "/s/_doc/1", {"n": 1})
        for method, path, body, status, kind, reason in (
                ("POST", "/s/_search", {"query": {"trm": {}}}, 400, "parsing_exception",
                 "unknown query [trm] did you mean any of [term, terms]?"),
                ("POST", "/s/_search", {"siz": 1}, 400, "parsing_exception", "Unknown key for a VALUE_NUMBER in [siz]."),
                ("GET", "/s/_search?size=-2", None, 400, "illegal_argument_exception",
                 "[size] parameter cannot be negative, found [-2]"),
                ("GET", "/s/_search?size=10001", None, 400, "search_phase_execution_exception", "all shards failed"),
                ("POST", "/s/_update_by_query?scroll_size=10001", None, 400, "search_phase_execution_exception", "all shards failed"),
                ("POST", "/s/_update_by_query?slices=1025", None, 400, "search_phase_execution_exception", "all shards failed"),
                ("POST", "/_reindex", {"source": {"index": "s", "size": 10001}, "dest": {"index": "d"}}, 400,
                 "search_phase_execution_exception", "all shards failed"),
                # Without an index there is no shard that reports it.
                ("POST", "/none-*/_update_by_query?slices=2147483647", None, 400, "illegal_argument_exception", many_slices(2147483647)),
                ("POST", "/none-*/_delete_by_query?slices=1025", {"query": {"match_all": {}}}, 400, "illegal_argument_exception", many_slices(1025)),
                ("GET", "/s/_search?siz=1", None, 400, "illegal_argument_exception",
                 "request [/s/_search] contains unrecognized parameter: [siz] -> did you mean [size]?"),
                ("GET", "/missing/_search", None, 404, "index_not_found_exception", "no such index [missing]"),
                ("POST", "/s/_search", {"highlight": {"fields": {}}}, 400, "illegal_argument_exception",
                 "[highlight] is not supported by this server"),
                ("POST", "/_search/scroll", {"scroll_id": "x"}, 400, "illegal_argument_exception", "Cannot parse scroll id"),
                ("POST", "/s/_delete_by_query", {}, 400, "action_request_validation_exception",
                 "Validation Failed: 1: query is missing;")):
            got, reply = self.server.ask(method, path, body)
            self.assertEqual((got, reply["error"]["type"], reply["error"]["reason"]), (status, kind, reason))

    def test_bounds_of_calls_by_query_in_tasks(self):
        """A call whose client does not wait begins a task, which ends with the error."""
        self.server.must("PUT", "/s/_doc/1", {"n": 1})
        for index, param, kind in (("s", "slices=1025", "search_phase_execution_exception"), ("s", "scroll_size=10001", "search_phase_execution_exception"),
                                   ("none-*", "slices=1025", "illegal_argument_exception"), ("none-*", "scroll_size=10001", None)):
            with self.subTest(index=index, param=param):
                task = self.ok("POST", "/%s/_update_by_query?wait_for_completion=false&%s" % (index, param))["task"]
                ended = self.ok("GET", "/_tasks/%s?wait_for_completion=true" % task)
                self.assertTrue(ended["completed"])
                self.assertEqual(ended.get("error", {}).get("type"), kind)
                self.assertEqual("response" in ended, kind is None)

    def test_ended_task(self):
        """Cancelling and rethrottling succeed for a task that is gone: its node is listed as having failed."""
        node = self.ok("GET", "/_nodes")["nodes"].popitem()[0]
        for method_path, what in (("/_reindex/%s:%s/_rethrottle?requests_per_second=-1", "missing"), ("/_tasks/%s:%s/_cancel", "not found")):
            for name, kind, reason in ((node, "resource_not_found_exception", "task [%s:99999] is %s" % (node, what)),
                                       ("elsewhere", "no_such_node_exception", "No such node [elsewhere]")):
                reply = self.ok("POST", method_path % (name, 99999))
                cause = reply["node_failures"][0]["caused_by"]
                self.assertEqual((cause["type"], cause["reason"], reply["nodes"]), (kind, reason, {}))

    def test_date_math_in_names_of_a_body(self):
        """Names in a body are resolved as those in a path. 7.10 answers each of these requests in this way."""
        name, day = "<s-{now/d}>", time.strftime("s-%Y.%m.%d", time.gmtime())
        lines = [{"index": {"_index": name, "_id": "1"}}, {"v": 1}, {"update": {"_index": name, "_id": "1"}}, {"doc": {"v": 2}}]
        body = "".join(json.dumps(line) + "\n" for line in lines).encode()
        reply = self.server.must("POST", "/_bulk", body, {"Content-Type": "application/x-ndjson", "Tidelock-Request": "dates"})
        if time.strftime("s-%Y.%m.%d", time.gmtime()) != day:
            self.skipTest("it was midnight")
        self.assertEqual([(list(item.values())[0]["_index"], list(item.values())[0].get("_version")) for item in reply["items"]], [(day, 1), (day, 2)])
        self.assertEqual(self.server.must("POST", "/_mget", {"docs": [{"_index": name, "_id": "1"}]})["docs"][0]["_source"], {"v": 2})
        searches = b'{"index": "<s-{now/d}>"}\n{}\n'
        reply = self.server.must("POST", "/_msearch", searches, {"Content-Type": "application/x-ndjson"})
        self.assertEqual(reply["responses"][0]["hits"]["total"]["value"], 1)
        reply = self.server.must("POST", "/_reindex", {"source": {"index": name}, "dest": {"index": "<t-{now/d}>"}})
        self.assertEqual(reply["created"], 1)
        self.assertEqual(self.server.must("GET", "/t%s/_count" % day[1:])["count"], 1)
        self.server.must("POST", "/_aliases", {"actions": [{"add": {"index": name, "alias": "a"}}]})
        self.assertEqual(list(self.server.must("GET", "/_alias/a")), [day])

    def test_wrong_date_math_in_names_of_a_body(self):
        """An expression that is no date fails its document or search alone, but a bulk as a whole, as in 7.10."""
        self.server.must("PUT", "/plain/_doc/1", {"v": 1})
        docs = [{"_index": "plain", "_id": "1"}, {"_index": "<s-{now/d>", "_id": "1"}]
        found, wrong = self.server.must("POST", "/_mget", {"docs": docs})["docs"]
        self.assertEqual((found["_source"], wrong["_index"], wrong["error"]["type"]), ({"v": 1}, "<s-{now/d>", "parse_exception"))
        searches = b'{"index": "plain"}\n{}\n{"index": "<s-{now/d>"}\n{}\n'
        found, wrong = self.server.must("POST", "/_msearch", searches, {"Content-Type": "application/x-ndjson"})["responses"]
        self.assertEqual((found["status"], wrong["status"], wrong["error"]["type"]), (200, 400, "parse_exception"))
        transaction = self.server.must("POST", "/_transaction", {})["transaction"]
        found, wrong = self.server.must("POST", "/_mget?transaction=" + transaction, {"docs": docs})["docs"]
        self.assertEqual((found["_source"], wrong["error"]["type"]), ({"v": 1}, "parse_exception"))
        self.assertEqual({lock.get("index") for lock in self.server.must("GET", "/_lock")["locks"]}, {"plain"})
        self.server.must("POST", "/_transaction/%s/_rollback" % transaction)
        status, reply = self.server.ask("POST", "/_bulk", b'{"index": {"_index": "<s-{now/d>", "_id": "1"}}\n{}\n', {"Content-Type": "application/x-ndjson"})
        self.assertEqual((status, reply["error"]["type"]), (400, "parse_exception"), reply)
        for times in (100, 3000, 50000):  # results too long for a name, and an expression too long to be resolved
            reply = self.server.must("POST", "/_mget", {"docs": [{"_index": "<" + "{now/d}" * times + ">", "_id": "1"}]})
            self.assertIn("error", reply["docs"][0])

    def test_dialect_of_a_date_name_in_a_path(self):
        """The index of today decides it, as for a request that names that: of a typed path, and of one of all releases."""
        seven, five = time.strftime("seven-%Y.%m.%d", time.gmtime()), time.strftime("five-%Y.%m.%d", time.gmtime())
        self.server.must("PUT", "/plain/_doc/1", {"v": 1})
        self.server.must("PUT", "/%s?include_type_name=true" % seven, {"mappings": {"t": {}}})
        self.server.must("PUT", "/%s/t/1" % five, {"v": 1})
        replies = []
        for index_7, index_5 in (("%3Cseven-%7Bnow%2Fd%7D%3E", "%3Cfive-%7Bnow%2Fd%7D%3E"), (seven, five)):
            replies.append((sorted(self.server.must("PUT", "/%s/t/%d" % (index_7, len(replies)), {"v": 1})),
                            sorted(self.server.must("PUT", "/%s/t/%d" % (index_5, 2 + len(replies)), {"v": 1})),
                            self.ok("GET", "/%s/_search?size=0" % index_7)["hits"]["total"]["relation"],
                            type(self.ok("GET", "/%s/_search?size=0" % index_5)["hits"]["total"])))
        if time.strftime("seven-%Y.%m.%d", time.gmtime()) != seven:
            self.skipTest("it was midnight")
        self.assertEqual(replies[0], replies[1])
        self.assertIn("_seq_no", replies[0][0])
        self.assertIn("created", replies[0][1])
        self.assertEqual(replies[0][2:], ("eq", int))
        status, reply = self.server.ask("PUT", "/%3Cseven-%7Bnow%2Fd%3E/t/1", {"v": 1})
        self.assertEqual((status, reply["error"]["type"]), (400, "parse_exception"), reply)

    def test_alias_with_filter_and_date_name(self):
        self.fill("s", 10)
        self.server.must("POST", "/_aliases", {"actions": [{"add": {"index": "s", "alias": "low", "filter": {"range": {"n": {"lt": 3}}}}}]})
        self.assertEqual(ids(self.ok("GET", "/low/_search")), ["00000", "00001", "00002"])
        status, reply = self.server.ask("GET", "/%3Cs-%7Bnow%2Fd%7D%3E/_search")
        self.assertEqual(status, 404)
        self.assertRegex(reply["error"]["reason"], r"no such index \[s-\d{4}\.\d{2}\.\d{2}\]")

    def scroll_all(self, path, body):
        reply = self.ok("POST", path, body)
        found, total = [], reply["hits"]["total"]["value"]
        while ids(reply):
            found += ids(reply)
            yield found, total
            reply = self.ok("POST", "/_search/scroll", {"scroll": "1m", "scroll_id": reply["_scroll_id"]})
            self.assertEqual(reply["hits"]["total"]["value"], total)

    def test_scroll_reads_one_timestamp(self):
        self.fill("s", 100)
        everything = ["%05d" % i for i in range(100)]
        for body in ({"size": 7}, {"size": 7, "sort": ["_doc"]}, {"size": 7, "sort": [{"n": "asc"}]},
                     {"size": 100, "query": {"range": {"n": {"gte": 0}}}}):
            found = None
            for found, total in self.scroll_all("/s/_search?scroll=1m", body):
                self.assertEqual(total, 100)
                self.server.must("PUT", "/s/_doc/00050", {"n": 50, "again": len(found)})
                self.server.ask("DELETE", "/s/_doc/00099")
            self.assertEqual(found, everything, body)
            self.server.must("PUT", "/s/_doc/00099", {"n": 99})

    def test_slices_partition_the_hits(self):
        self.fill("s", 60)
        found = []
        for i in range(3):
            for part, _ in self.scroll_all("/s/_search?scroll=1m", {"slice": {"id": i, "max": 3}, "size": 9}):
                last = part
            found += last
        self.assertEqual(sorted(found), ["%05d" % i for i in range(60)])

    def test_slices_by_a_field(self):
        """Each document is in one slice, also without a value; the slices of a call by query, too."""
        self.fill("s", 200)
        self.server.must("PUT", "/s/_doc/none", {"m": 1})
        for field in ("n", "_id"):
            with self.subTest(field=field):
                slices = []
                for i in range(3):
                    page = self.ok("POST", "/s/_search?scroll=1m", {"size": 1000, "slice": {"field": field, "id": i, "max": 3}})
                    self.server.must("DELETE", "/_search/scroll", {"scroll_id": page["_scroll_id"]})
                    slices.append([hit["_id"] for hit in page["hits"]["hits"]])
                self.assertEqual(sorted(sum(slices, [])), sorted(["%05d" % i for i in range(200)] + ["none"]))
                self.assertTrue(all(slices), slices)
        updated = [self.ok("POST", "/s/_update_by_query", {"slice": {"field": "n", "id": i, "max": 2}})["updated"] for i in range(2)]
        self.assertEqual(sum(updated), 201)

    def test_total_of_each_page(self):
        """Each request for a page says by itself whether the total is a number, as in 7.10."""
        self.fill("s", 3)
        page = self.ok("POST", "/s/_search?scroll=1m&rest_total_hits_as_int=true", {"size": 1, "sort": ["n"]})
        self.assertEqual(page["hits"]["total"], 3)
        following = {"scroll": "1m", "scroll_id": page["_scroll_id"]}
        self.assertEqual(self.ok("POST", "/_search/scroll", following)["hits"]["total"], {"value": 3, "relation": "eq"})
        self.assertEqual(self.ok("POST", "/_search/scroll?rest_total_hits_as_int=true", following)["hits"]["total"], 3)
        self.server.must("DELETE", "/_search/scroll", {"scroll_id": page["_scroll_id"]})

    def test_too_many_sort_keys(self):
        """Those of the parameter follow those of the body, and none is left out."""
        self.fill("s", 3)
        keys = ["n"] * 64
        self.assertEqual(len(self.ok("GET", "/s/_search?sort=" + ",".join(keys))["hits"]["hits"][0]["sort"]), 64)
        for query, body in ((keys + ["_id"], {}), (["_id"], {"sort": keys})):
            status, reply = self.server.ask("POST", "/s/_search?sort=" + ",".join(query), body)
            self.assertEqual((status, reply["error"]["reason"]), (400, "more than 64 sort keys"))

    def test_scores_that_are_no_json_numbers(self):
        """As Elasticsearch writes them. A score without quotes would make the whole reply unreadable."""
        self.server.must("PUT", "/scored/_doc/1", {"a": 1})
        weights = [{"weight": 3e38}, {"weight": 3e38}]
        for query, score in (({"functions": weights}, b"3.4028235E38"), ({"functions": weights, "boost": 2}, b'"Infinity"'),
                             ({"script_score": {"script": "Double.NaN"}}, b"null")):
            reply = self.server.request("POST", "/scored/_search", {"query": {"function_score": query}})
            self.assertIn(b'"max_score":%s,' % score, reply.body)
            self.assertIn(b'"_score":%s,' % score, reply.body)
        status, reply = self.server.ask("POST", "/scored/_search", {"query": {"function_score": {"script_score": {"script": "-1.0 / 0"}}}})
        self.assertEqual((status, reply["error"]["root_cause"][0]["reason"]),
                         (400, "script score function must not produce negative scores, but got: [-Infinity]"))

    def test_script_sort_without_script(self):
        """The name alone is that of a field, which has no mapping."""
        self.fill("s", 3)
        for query, body in (("?sort=_script", {}), ("?sort=_script:desc", {}), ("", {"sort": ["_script"]}), ("", {"sort": "_script"}),
                            ("", {"aggs": {"a": {"top_hits": {"sort": ["_script"]}}}})):
            status, reply = self.server.ask("POST", "/s/_search" + query, body)
            self.assertEqual((status, reply["error"]["root_cause"][0]["reason"]),
                             (400, "No mapping found for [_script] in order to sort on"))
        status, reply = self.server.ask("POST", "/s/_search", {"sort": [{"_script": "asc"}]})
        self.assertEqual(status, 400, reply)

    def test_scroll_is_cleared(self):
        self.fill("s", 3)
        scroll = self.ok("POST", "/s/_search?scroll=1m", {"size": 1})["_scroll_id"]
        self.assertEqual(self.ok("DELETE", "/_search/scroll", {"scroll_id": [scroll]}), {"succeeded": True, "num_freed": 1})
        status, reply = self.server.ask("POST", "/_search/scroll", {"scroll_id": scroll})
        self.assertEqual((status, reply["error"]["root_cause"][0]["type"]), (404, "search_context_missing_exception"))
        self.assertEqual(reply["error"]["caused_by"], reply["error"]["root_cause"][0])
        self.assertEqual(self.server.ask("DELETE", "/_search/scroll/" + scroll), (404, {"succeeded": True, "num_freed": 0}))

    def test_point_in_time(self):
        self.fill("s", 3)
        pit = self.ok("POST", "/s/_pit?keep_alive=1m")["id"]
        self.server.must("PUT", "/s/_doc/new", {"n": 9})
        reply = self.ok("POST", "/_search", {"pit": {"id": pit, "keep_alive": "1m"}, "sort": ["n"]})
        self.assertEqual((reply["pit_id"], ids(reply)), (pit, ["00000", "00001", "00002"]))
        self.assertEqual(len(ids(self.ok("GET", "/s/_search"))), 4)
        self.assertEqual(self.ok("DELETE", "/_pit", {"id": pit}), {"succeeded": True, "num_freed": 1})

    def test_search_at_past_timestamp(self):
        self.fill("s", 3)
        before = self.ok("GET", "/_timestamp")["timestamp"]
        self.server.must("PUT", "/s/_doc/new", {"n": 9})
        for path in ("/s/_search?timestamp=", "/s/_search?q=n:%5B0%20TO%20100%5D&timestamp="):
            self.assertEqual(self.ok("GET", path + str(before))["hits"]["total"]["value"], 3)
        self.assertEqual(self.ok("GET", "/s/_count?timestamp=%d" % before)["count"], 3)
        status, reply = self.server.ask("GET", "/s/_search?timestamp=%d" % (before + 10 ** 12))
        self.assertEqual((status, reply["error"]["type"]), (400, "timestamp_in_future_exception"))
        status, reply = self.server.ask("GET", "/s/_search?timestamp=1")
        self.assertEqual((status, reply["error"]["type"]), (410, "timestamp_too_old_exception"))

    def test_inside_a_transaction(self):
        self.fill("s", 3)
        transaction = self.server.must("POST", "/_transaction", {"mode": "update"})["transaction"]
        inside = {"Tidelock-Transaction": transaction}
        self.server.must("PUT", "/s/_doc/mine", {"n": 9}, inside)
        self.server.must("DELETE", "/s/_doc/00000", None, inside)
        self.assertEqual(ids(self.ok("GET", "/s/_search", None, inside)), ["00001", "00002", "mine"])
        self.assertEqual(ids(self.ok("POST", "/s/_search", {"query": {"term": {"n": 9}}}, inside)), ["mine"])
        self.assertEqual(self.ok("GET", "/s/_count", None, inside)["count"], 3)
        self.assertEqual(ids(self.ok("GET", "/s/_search")), ["00000", "00001", "00002"])
        self.ok("POST", "/s/_delete_by_query", {"query": {"term": {"n": 1}}}, inside)
        self.assertEqual(ids(self.ok("GET", "/s/_search", None, inside)), ["00002", "mine"])
        self.server.must("POST", "/_transaction/%s/_commit" % transaction)
        self.assertEqual(ids(self.ok("GET", "/s/_search")), ["00002", "mine"])

    def test_directories(self):
        """Directories of paths have no secondary index entries; each kind of query on them finds the documents below."""
        self.server.must("PUT", "/s", {
            "settings": {"analysis": {"analyzer": {"paths": {"tokenizer": "path_hierarchy"}}}},
            "mappings": {"properties": {"path": {"type": "keyword", "fields": {"tree": {"type": "text", "analyzer": "paths"}}}}}})

        def below(directory, headers=None, timestamp=""):
            body = {"query": {"term": {"path.tree": directory}}}
            reply = self.ok("POST", "/s/_search?size=100" + timestamp, dict(body, sort=[{"path": "asc"}]), headers)
            if not timestamp:
                self.assertEqual(self.ok("POST", "/s/_count", body, headers)["count"], reply["hits"]["total"]["value"])
            return ids(reply)

        lines = []
        for i in range(1200):
            document = {"path": "/a/%04d/f" % i if i >= 10 else ["/b/%d" % i, "/b-c", "/c/x/%d" % i], "n": i}
            lines += [json.dumps({"index": {"_id": "%04d" % i}}), json.dumps(document)]
        self.server.must("POST", "/s/_bulk", "\n".join(lines) + "\n", {"Content-Type": "application/x-ndjson"})
        ten = ["%04d" % i for i in range(10)]
        for directory in ("/b", "/b-c", "/c", "/c/x"):
            self.assertEqual(sorted(below(directory)), ten)
        self.assertEqual((below("/a/0700"), below("/"), below("/b/")), (["0700"], [], []))
        before = self.ok("GET", "/_timestamp")["timestamp"]
        self.server.must("PUT", "/s/_doc/0003", {"path": "/a/new", "n": 3})
        self.assertEqual((sorted(below("/b")), below("/a/new")), ([i for i in ten if i != "0003"], ["0003"]))
        self.assertEqual(sorted(below("/b", timestamp="&timestamp=%d" % before)), ten)

        transaction = self.server.must("POST", "/_transaction", {"mode": "update"})["transaction"]
        inside = {"Tidelock-Transaction": transaction}
        self.server.must("PUT", "/s/_doc/mine", {"path": "/b/mine"}, inside)
        self.server.must("DELETE", "/s/_doc/0004", None, inside)
        self.assertEqual(sorted(below("/b", inside)), [i for i in ten if i not in ("0003", "0004")] + ["mine"])
        self.assertEqual(len(below("/b")), 9)
        self.server.must("POST", "/_transaction/%s/_commit" % transaction)
        found = self.ok("POST", "/s/_search?size=0", {
            "query": {"bool": {"filter": [{"prefix": {"path.tree": "/b"}}, {"exists": {"field": "path.tree"}}]}},
            "aggs": {"most": {"max": {"field": "n"}}}})
        self.assertEqual((found["hits"]["total"]["value"], found["aggregations"]["most"]["value"]), (9, 9.0))
        deleted = self.ok("POST", "/s/_delete_by_query", {"query": {"term": {"path.tree": "/c"}}})["deleted"]
        self.assertEqual((deleted, below("/b"), len(below("/a/new"))), (8, ["mine"], 1))
        self.server.stop()
        status, text = check(self.server.data)
        self.assertEqual(status, 0, text)
        self.server.start()

    def test_delete_by_query(self):
        self.fill("s", 2500)
        reply = self.ok("POST", "/s/_delete_by_query", {"query": {"range": {"n": {"lt": 2100}}}})
        reply.pop("took")
        self.assertEqual(reply, {
            "timed_out": False, "total": 2100, "deleted": 2100, "batches": 3, "version_conflicts": 0, "noops": 0,
            "retries": {"bulk": 0, "search": 0}, "throttled_millis": 0, "requests_per_second": -1.0, "throttled_until_millis": 0,
            "failures": []})
        self.assertEqual(self.ok("GET", "/s/_count")["count"], 400)

    def test_delete_by_query_of_1(self):
        self.server.must("PUT", "/s/t/1", {"a": 1})
        self.server.must("PUT", "/s/t/2", {"a": 2})
        self.assertEqual(self.ok("DELETE", "/s/t/_query", {"query": {"term": {"a": 1}}}),
                         {"_indices": {"s": {"_shards": {"total": 5, "successful": 5, "failed": 0}}}})
        self.assertEqual(self.ok("GET", "/s/t/_count")["count"], 1)

    def test_reindex(self):
        self.fill("s", 30)
        reply = self.ok("POST", "/_reindex?slices=3", {"source": {"index": "s", "query": {"range": {"n": {"gte": 10}}}}, "dest": {"index": "d"}})
        self.assertEqual((reply["created"], reply["total"], len(reply["slices"])), (20, 20, 3))
        self.server.must("PUT", "/d/_doc/00010", {"mine": True})
        reply = self.ok("POST", "/_reindex", {"conflicts": "proceed", "source": {"index": "s"}, "dest": {"index": "d", "op_type": "create"}})
        self.assertEqual((reply["created"], reply["version_conflicts"]), (10, 20))
        self.assertEqual(self.ok("GET", "/d/_doc/00010")["_source"], {"mine": True})

    def test_reindex_of_many_fields_in_several_commands(self):
        """The mappings of one batch take longer than those of one command may."""
        self.ok("POST", "/_bulk", "".join('{"index":{"_index":"s","_id":"%d"}}\n{"field-%d":%d}\n' % (i, i, i) for i in range(150)))
        for query in ("", "?atomic=true"):
            with self.subTest(query=query):
                reply = self.ok("POST", "/_reindex" + query, {"source": {"index": "s"}, "dest": {"index": "d%d" % len(query)}})
                self.assertEqual((reply["failures"], reply["created"], reply["batches"]), ([], 150, 1))
                self.assertEqual(self.ok("GET", "/d%d/_count" % len(query))["count"], 150)

    def test_by_query_with_aggregations(self):
        """A body of a search has them, too: each slice, and each attempt of an atomic call, is a search of its own."""
        body = {"query": {"match_all": {}}, "sort": ["n"], "aggs": {
            "n": {"terms": {"field": "n"}, "aggs": {"h": {"top_hits": {"size": 1, "sort": ["n"]}}}},
            "r": {"range": {"field": "n", "ranges": [{"to": 3}, {"from": 3}]}}, "m": {"max": {"field": "n", "format": "0.0"}}}}
        for path in ("/s/_update_by_query?slices=4", "/s/_update_by_query?slices=4&atomic=true", "/s/_update_by_query?scroll_size=7"):
            with self.subTest(path=path):
                self.fill("s", 30)
                reply = self.ok("POST", path, body)
                self.assertEqual((reply["total"], reply["updated"], reply["failures"]), (30, 30, []))

    def test_by_query_loses_no_update(self):
        """Deletes the documents that were 'old' at its start; concurrent changes cause conflicts or wait, and are never lost."""
        self.fill("s", 3000, state="old")
        changed = []

        def change():
            connection = self.server.connect()
            for i in range(0, 3000, 7):
                body = json.dumps({"n": i, "state": "new"}).encode()
                response = self.server.request("PUT", "/s/_doc/%05d" % i, body, None, connection)
                if response.status in (200, 201):  # from now on it is not what the call set out to delete
                    changed.append("%05d" % i)

        thread = threading.Thread(target=change)
        thread.start()
        self.server.ask("POST", "/s/_delete_by_query?conflicts=proceed&scroll_size=50", {"query": {"term": {"state": "old"}}})
        thread.join()
        for name in changed:
            status, reply = self.server.ask("GET", "/s/_doc/" + name)
            self.assertEqual((status, reply.get("_source", {}).get("state")), (200, "new"), name)

    def test_tasks(self):
        self.fill("s", 10)
        task = self.ok("POST", "/s/_delete_by_query?wait_for_completion=false&scroll_size=1&requests_per_second=0.5",
                       {"query": {"match_all": {}}})["task"]
        node, number = task.split(":")
        running = self.ok("GET", "/_tasks?actions=*byquery&group_by=none")["tasks"]
        self.assertEqual([t["id"] for t in running], [int(number)])
        self.assertIn(node, self.ok("POST", "/_delete_by_query/%s/_rethrottle?requests_per_second=-1" % task)["nodes"])
        reply = self.ok("GET", "/_tasks/%s?wait_for_completion=true" % task)
        self.assertEqual((reply["completed"], reply["response"]["deleted"]), (True, 10))
        self.assertEqual(self.ok("GET", "/.tasks/_doc/" + task)["_source"]["response"]["deleted"], 10)
        task = self.ok("POST", "/s/_update_by_query?wait_for_completion=false&requests_per_second=0.0001&scroll_size=1")["task"]
        self.server.must("PUT", "/s/_doc/1", {"n": 1})
        self.ok("GET", "/_tasks/%s?wait_for_completion=true" % task)

    def test_task_numbers_are_not_used_again(self):
        """After a restart a task replaces no stored result, and an id of before names no other task."""
        results = {}
        for _ in range(2):
            self.fill("s", 3)
            for n in range(3):
                task = self.ok("POST", "/s/_update_by_query?wait_for_completion=false", {"query": {"term": {"_id": str(n)}}})["task"]
                self.ok("GET", "/_tasks/%s?wait_for_completion=true" % task)
                results[task] = self.ok("GET", "/.tasks/_doc/" + task)["_source"]
            self.server.restart()
        self.assertEqual(len(results), 6)
        for task, result in results.items():
            self.assertEqual(self.ok("GET", "/.tasks/_doc/" + task)["_source"], result)
            self.assertEqual(self.ok("GET", "/_tasks/" + task)["response"], result["response"])


if __name__ == "__main__":
    unittest.main()
