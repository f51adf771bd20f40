#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""_stats, _nodes/stats and _cat/indices count the executed operations: each number is checked after known operations, and those of
other indices do not change.
"""
import json
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402

RECORDED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recorded", "cluster_stats_7.10.json")


def shape(value):
    """Returns: the names of all members in their order, and the kinds of the values."""
    if isinstance(value, dict):
        return [(name, shape(inner)) for name, inner in value.items()]
    return type(value).__name__


class IndexStats(unittest.TestCase):
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

    def statistics(self, metric, index="i"):
        reply = self.server.must("GET", "/%s/_stats/%s" % (index, metric))
        self.assertEqual(reply["_all"]["total"], reply["indices"][index]["primaries"])
        return reply["_all"]["total"][metric]

    def indexing(self):
        found = self.statistics("indexing")
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
        self.assertEqual(self.statistics("indexing", "other")["index_total"], 1)

    def test_rolled_back_writes_are_not_counted(self):
        broken = '{"index":{"_index":"i","_id":"1"}}\n{"n":1}\n{"index":{"_index":"i","_id":"2"}}\n{"n":"x"}\n'
        self.server.must("PUT", "/i/_mapping", {"properties": {"n": {"type": "long"}}})
        self.assertTrue(self.server.ask("POST", "/_bulk?atomic=true", broken)[0] >= 400 or self.statistics("docs")["count"] == 0)
        self.assertEqual(self.indexing(), (0, 0, 0))

    def test_transaction_writes_are_counted_at_commit(self):
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
        found = self.statistics("get")
        self.assertEqual((found["total"], found["exists_total"], found["missing_total"]), (4, 2, 2))
        self.server.must("POST", "/i,other/_search", {"query": {"ids": {"values": ["1"]}}})
        self.server.must("POST", "/i/_search", {"query": {"term": {"n": 5}}})
        self.server.must("POST", "/_msearch", '{"index":"i"}\n{"size":0}\n{"index":"other"}\n{}\n')
        found, other = self.statistics("search"), self.statistics("search", "other")
        self.assertEqual((found["query_total"], found["fetch_total"]), (3, 1))
        self.assertEqual((other["query_total"], other["fetch_total"]), (2, 2))

    def test_sizes_are_per_index(self):
        letters = random.Random(1)
        for number in range(40):
            text = "".join(letters.choices("abcdefghijklmnopqrstuvwxyz", k=20000))
            self.server.must("PUT", "/i/_doc/%d" % number, {"t": text})
        self.server.must("POST", "/i/_forcemerge")
        mine, others = self.statistics("store")["size_in_bytes"], self.statistics("store", "other")["size_in_bytes"]
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
        self.assertIn("[jvm], which this server does not have", refusal["error"]["reason"])

    # --- The members of a 7.10.2 ----------------------------------------------------------------------------------------

    MEMBERS = {
        "docs": "count deleted",
        "store": "size_in_bytes reserved_in_bytes",
        "indexing": "index_total index_time_in_millis index_current index_failed delete_total delete_time_in_millis delete_current noop_update_total "
                    "is_throttled throttle_time_in_millis",
        "get": "total time_in_millis exists_total exists_time_in_millis missing_total missing_time_in_millis current",
        "search": "open_contexts query_total query_time_in_millis query_current fetch_total fetch_time_in_millis fetch_current scroll_total "
                  "scroll_time_in_millis scroll_current suggest_total suggest_time_in_millis suggest_current",
        "merges": "current current_docs current_size_in_bytes total total_time_in_millis total_docs total_size_in_bytes total_stopped_time_in_millis "
                  "total_throttled_time_in_millis total_auto_throttle_in_bytes",
        "refresh": "total total_time_in_millis external_total external_total_time_in_millis listeners",
        "flush": "total periodic total_time_in_millis",
        "warmer": "current total total_time_in_millis",
        "query_cache": "memory_size_in_bytes total_count hit_count miss_count cache_size cache_count evictions",
        "fielddata": "memory_size_in_bytes evictions",
        "completion": "size_in_bytes",
        "segments": "count memory_in_bytes terms_memory_in_bytes stored_fields_memory_in_bytes term_vectors_memory_in_bytes norms_memory_in_bytes "
                    "points_memory_in_bytes doc_values_memory_in_bytes index_writer_memory_in_bytes version_map_memory_in_bytes "
                    "fixed_bit_set_memory_in_bytes max_unsafe_auto_id_timestamp file_sizes",
        "translog": "operations size_in_bytes uncommitted_operations uncommitted_size_in_bytes earliest_last_modified_age",
        "request_cache": "memory_size_in_bytes evictions hit_count miss_count",
        "recovery": "current_as_source current_as_target throttle_time_in_millis",
    }

    def check_members(self, block):
        self.assertEqual({name: " ".join(members) for name, members in block.items()}, self.MEMBERS)

    def test_members_of_stats(self):
        reply = self.server.must("GET", "/i/_stats?level=shards")
        for which in ("primaries", "total"):
            self.check_members(reply["_all"][which])
            self.check_members(reply["indices"]["i"][which])
        shard = reply["indices"]["i"]["shards"]["0"][0]
        own = {"routing": "state primary node relocating_node", "commit": "id generation user_data num_docs",
               "seq_no": "max_seq_no local_checkpoint global_checkpoint", "retention_leases": "primary_term version leases"}
        self.assertEqual({name: " ".join(shard.pop(name)) for name in own}, own)
        self.check_members(shard)
        for parameter, metric in (("fields", "fielddata"), ("fielddata_fields", "fielddata"), ("fields", "completion"), ("completion_fields", "completion")):
            found = self.server.must("GET", "/i/_stats/%s?%s=*" % (metric, parameter))["_all"]["total"][metric]
            self.assertEqual(" ".join(found), self.MEMBERS[metric] + " fields")

    def test_members_of_nodes(self):
        node = list(self.server.must("GET", "/_nodes/stats")["nodes"].values())[0]
        self.check_members(node["indices"])
        self.assertLessEqual({"timestamp", "name", "transport_address", "host", "ip", "roles", "attributes"}, set(node))
        self.assertEqual(set(node["process"]), {"timestamp", "open_file_descriptors", "max_file_descriptors", "cpu", "mem"})
        self.assertEqual((set(node["process"]["cpu"]), set(node["process"]["mem"])), ({"percent", "total_in_millis"}, {"total_virtual_in_bytes"}))
        self.assertGreater(node["process"]["mem"]["total_virtual_in_bytes"], 1 << 20)
        sizes = ["total_in_bytes", "free_in_bytes", "available_in_bytes"]
        self.assertEqual(set(node["fs"]) - {"data_in_bytes"}, {"timestamp", "total", "least_usage_estimate", "most_usage_estimate", "data", "io_stats"})
        self.assertEqual(list(node["fs"]["data"][0]), ["path", "mount", "type"] + sizes)
        self.assertRegex(node["fs"]["data"][0]["mount"], r"^/.* \(.+\)$")
        for estimate in ("least_usage_estimate", "most_usage_estimate"):
            found = node["fs"][estimate]
            self.assertEqual(list(found), ["path", "total_in_bytes", "available_in_bytes", "used_disk_percent"])
            self.assertTrue(0 < found["used_disk_percent"] < 100, found)
        for disk in (node["fs"]["total"], node["fs"]["data"][0]):
            total, free, available = [disk[size] for size in sizes]
            self.assertGreaterEqual((total >= free, free >= available, available > 0), (True, True, True))
        self.assertLessEqual({"request", "fielddata", "in_flight_requests", "accounting", "parent"}, set(node["breakers"]))
        for breaker in node["breakers"].values():
            self.assertEqual(set(breaker), {"limit_size_in_bytes", "limit_size", "estimated_size_in_bytes", "estimated_size", "overhead", "tripped"})

    def test_members_of_the_cluster(self):
        reply = self.server.must("GET", "/_cluster/stats")
        for metric in ("docs", "store", "fielddata", "query_cache", "completion", "segments"):
            self.assertEqual(" ".join(reply["indices"][metric]), self.MEMBERS[metric])
        shards = reply["indices"]["shards"]
        self.assertEqual(shards["index"], {"shards": {"min": 1, "max": 1, "avg": 1.0}, "primaries": {"min": 1, "max": 1, "avg": 1.0},
                                           "replication": {"min": 0.0, "max": 0.0, "avg": 0.0}})
        with open(RECORDED, encoding="utf-8") as file:
            theirs = json.load(file)["nodes"]
        self.assertEqual(shape(reply["nodes"]), shape(theirs))
        for member in ("versions", "ingest"):
            self.assertEqual(reply["nodes"][member], theirs[member])
        self.assertEqual({role: number for role, number in reply["nodes"]["count"].items() if role != "remote_cluster_client"},
                         {role: number for role, number in theirs["count"].items() if role != "remote_cluster_client"})

    READABLE = {"time_in_millis": "getTime", "fixed_bit_set_memory_in_bytes": "fixed_bit_set"}  # names with no rule, as 7.10 has them

    def check_readable(self, value):
        """Each number of bytes or of a time follows a text of it. Returns: how many there are."""
        found = 0
        for position, (name, inner) in enumerate(value.items()):
            if isinstance(inner, dict):
                found += self.check_readable(inner)
            elif name.endswith(("_in_bytes", "_in_millis")) and name != "data_in_bytes":  # of `fs`, where `data` is a list
                readable = self.READABLE.get(name, name.rsplit("_in_", 1)[0])
                self.assertRegex(value[readable], r"^\d+(\.\d)?(b|kb|mb|gb|tb|s|ms|m|h|d)$", name)
                if not readable.startswith(("limit_", "estimated_")):  # there, too, those of breakers follow, and are always there
                    self.assertEqual(list(value)[position - 1], readable)
                found += 1
        return found

    def test_readable_members(self):
        self.server.must("PUT", "/i/_doc/1", {"n": 1})
        for path, least in (("/_stats", 100), ("/i/_stats?level=shards", 100), ("/_nodes/stats", 40), ("/_cluster/stats", 10)):
            human = self.server.must("GET", path + ("&" if "?" in path else "?") + "human")
            self.assertGreater(self.check_readable(human), least, path)
        self.assertNotIn('"size":', json.dumps(self.server.must("GET", "/_stats")))
        reply = self.server.must("POST", "/i/_update_by_query?human&pretty", {})
        self.assertEqual((reply["throttled"], reply["throttled_until"]), ("0s", "0s"))
        self.assertEqual(self.server.must("GET", "/_stats?human&filter_path=_all.total.merges.total_size")["_all"]["total"]["merges"], {"total_size": "0b"})
        self.server.must("PUT", "/i/_doc/1", {"size_in_bytes": 1})
        self.assertEqual(self.server.must("GET", "/i/_doc/1?human")["_source"], {"size_in_bytes": 1})

    def contexts(self, index="i"):
        found = self.statistics("search", index)
        return found["open_contexts"], found["scroll_current"], found["scroll_total"]

    def test_contexts(self):
        self.server.must("PUT", "/i/_doc/1", {"n": 1})
        self.assertEqual(self.contexts(), (0, 0, 0))
        scroll = self.server.must("POST", "/i/_search?scroll=1m&size=1", {})["_scroll_id"]
        pit = self.server.must("POST", "/i/_pit?keep_alive=1m")["id"]
        self.assertEqual(self.contexts(), (2, 1, 0))
        self.assertEqual(self.contexts("other"), (0, 0, 0))
        both = self.server.must("POST", "/i,other/_search?scroll=1m&size=1", {})["_scroll_id"]
        self.assertEqual((self.contexts(), self.contexts("other")), ((3, 2, 0), (1, 1, 0)))
        self.server.must("DELETE", "/_search/scroll", {"scroll_id": [scroll, both]})
        self.server.must("DELETE", "/_pit", {"id": pit})
        self.assertEqual((self.contexts(), self.contexts("other")), ((0, 0, 2), (0, 0, 1)))

    def test_failures(self):
        self.server.must("PUT", "/i/_doc/1", {"n": 1})
        self.assertEqual(self.server.ask("PUT", "/i/_create/1", {"n": 2})[0], 409)
        self.assertEqual(self.server.ask("PUT", "/i/_doc/1?if_seq_no=9&if_primary_term=1", {"n": 2})[0], 409)
        self.assertEqual(self.statistics("indexing")["index_failed"], 2)


if __name__ == "__main__":
    unittest.main()
