#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each setting of the two tables (src/core/catalog/*_settings.def) is enforced, or refused with a remedy, or listed in
docs/compatibility.md as one that no reply depends on.
"""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from clock import ClockedServer  # noqa: E402
from server import ROOT, Server  # noqa: E402
from waiting import until  # noqa: E402

# A value of each kind that is no setting's default.
VALUES = {"TEXT": "1", "NUMBER": "7", "REAL": "30", "BOOLEAN": "true", "TIME": "90s", "BYTES": "5mb", "PRIVATE": "1"}
# A valid value of each text setting that permits only a few.
CHOICES = {"index.auto_expand_replicas": "0-1", "index.codec": "best_compression", "index.fielddata.cache": "node", "index.indexing.slowlog.level": "info",
           "index.recovery.type": "", "index.routing.allocation.enable": "none", "index.routing.rebalance.enable": "none", "index.shard.check_on_startup":
           "checksum", "index.store.fs.fs_lock": "simple", "index.store.type": "niofs", "index.translog.durability": "async",
           "cluster.no_master_block": "write", "cluster.persistent_tasks.allocation.enable": "none", "cluster.routing.allocation.allow_rebalance": "always",
           "cluster.routing.allocation.enable": "none", "cluster.routing.allocation.shard_state.reroute.priority": "HIGH",
           "cluster.routing.rebalance.enable": "none", "indices.recovery.max_concurrent_file_chunks": "3",
           "indices.recovery.max_concurrent_operations": "3", "discovery.zen.no_master_block": "write", "script.max_compilations_rate": "10/1m"}
NONSENSE = {"TEXT": "nonsense", "NUMBER": "nonsense", "REAL": "nonsense", "BOOLEAN": "nonsense", "TIME": "nonsense", "BYTES": "nonsense"}

FIELDS = {"properties": {"n": {"type": "long"}, "k": {"type": "keyword"}}}


def rows(name, pattern):
    with open(os.path.join(ROOT, "src", "core", "catalog", name), encoding="utf-8") as file:
        found = re.findall(pattern, file.read(), re.M)
    assert len(found) > 90, name
    return found


def alone(effect):
    """Returns: the effect on a new command of a row that has another one on those of old logs."""
    return effect.removesuffix("_19")


INDEX = rows("index_settings.def", r'^X\("([^"]+)", (\w+), \w+, -?\w+, -?\w+, \w+, (\w+), "([^"]*)", "([^"]*)"\)$')
CLUSTER = rows("cluster_settings.def", r'^X\("([^"]+)", (\w+), -?\d+, (\w+), "([^"]*)"\)$')


# Of 5.x; 7.10 refuses them in a new index.
REMOVED = {"index.mapper.dynamic", "index.optimize_auto_generated_id"}


class Settings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        with open(os.path.join(ROOT, "docs", "compatibility.md"), encoding="utf-8") as file:
            cls.page = file.read()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.ask, self.must = self.server.ask, self.server.must

    def tearDown(self):
        self.must("PUT", "/_cluster/settings", {"transient": {"*": None}, "persistent": {"*": None}})
        for block in ("read_only", "read_only_allow_delete"):
            self.ask("PUT", "/*/_settings?expand_wildcards=all", {"index.blocks." + block: None})
        self.must("DELETE", "/*?expand_wildcards=all")

    def make(self, settings=None, documents=0):
        self.ask("DELETE", "/i?expand_wildcards=all")
        self.must("PUT", "/i", {"settings": settings or {}, "mappings": FIELDS})
        for i in range(documents):
            self.must("PUT", "/i/_doc/%d" % i, {"n": i, "k": "a%d" % i})

    def refused(self, method, path, body=None, status=400, reason=""):
        got, reply = self.ask(method, path, body)
        reported = reply["error"]["reason"] if isinstance(reply, dict) and "error" in reply else str(reply)
        causes = str(reply)
        self.assertEqual((got, reason in causes), (status, True), (method, path, body, reported))

    # --- The tables -----------------------------------------------------------------------------------------------------

    def test_each_of_an_index(self):
        for key, kind, effect, only, what in INDEX:
            with self.subTest(key=key):
                effect = alone(effect)
                name = key.replace("*", "x")
                value = CHOICES.get(key, VALUES[kind])
                if key in REMOVED:
                    self.refused("PUT", "/x", {"settings": {name: value}}, reason="was removed")
                    self.make()
                    self.must("PUT", "/i/_settings", {name: "true"})
                    only = ""
                elif effect in ("FIXED", "OWN"):
                    value = "false" if only == "true" else value if value != only else "2"
                    self.refused("PUT", "/x", {"settings": {name: value}})
                    self.assertTrue(what)
                elif effect == "IDLE":
                    self.must("PUT", "/x", {"settings": {name: value}})
                    self.must("DELETE", "/x")
                    self.assertTrue(what)
                else:
                    self.assertEqual(effect, "USED")
                    self.assertIn(key if "threshold" not in key else "index.search.slowlog.threshold", EFFECTS)
                for accepted in only.split("|") if only else []:
                    self.must("PUT", "/x", {"settings": {name: accepted}})
                    self.must("DELETE", "/x")
                self.assertIn("`%s`" % key, self.page.split("## Settings of an index")[1])
                if kind != "TEXT" or key in CHOICES:
                    self.refused("PUT", "/x", {"settings": {name: NONSENSE.get(kind, "1")}})

    def test_each_of_the_cluster(self):
        for key, kind, effect, what in CLUSTER:
            with self.subTest(key=key):
                effect = alone(effect)
                name = key.replace("*", "x")
                body = {"transient": {name: CHOICES.get(key, VALUES[kind])}}
                if effect == "OWN":
                    self.refused("PUT", "/_cluster/settings", body, reason="has no effect here: ")
                elif effect == "FIXED":
                    body["transient"][name] = "false" if what == "true" else CHOICES.get(key, VALUES[kind])
                    self.refused("PUT", "/_cluster/settings", body, reason="it is [%s] here" % what)
                    for accepted in what.split("|"):
                        self.must("PUT", "/_cluster/settings", {"transient": {name: accepted}})
                elif effect == "IDLE":
                    self.must("PUT", "/_cluster/settings", body)
                else:
                    self.assertEqual(effect, "USED")
                    self.assertIn(key, EFFECTS)
                self.assertIn("`%s`" % key, self.page.split("## Settings of the cluster")[1])
                if kind != "TEXT" or key in CHOICES:
                    self.refused("PUT", "/_cluster/settings", {"transient": {name: NONSENSE[kind]}})

    def test_unknown_names(self):
        for name in ("index.search.nonsense", "index.nonsense"):
            self.refused("PUT", "/x", {"settings": {name: "1"}}, reason="unknown setting [%s]" % name)
            self.make()
            self.refused("PUT", "/i/_settings", {name: "1"}, reason="unknown setting [%s]" % name)
        for name in ("search.nonsense", "nonsense", "index.search.nonsense"):
            self.refused("PUT", "/_cluster/settings", {"persistent": {name: "1"}}, reason="persistent setting [%s], not recognized" % name)

    def test_number_of_cluster_settings_is_bounded(self):
        """Two requests of 600 made a section that could not be read again: none of its settings counted any more."""
        def metadata(first, value):
            return {"persistent": {"cluster.metadata.%d" % i: value for i in range(first, first + 600)}}
        self.must("PUT", "/_cluster/settings", {"persistent": {"action.auto_create_index": False}})
        self.must("PUT", "/_cluster/settings", metadata(0, "x"))
        self.refused("PUT", "/_cluster/settings", metadata(600, "x"), reason=
                     "the cluster would have more than [1000] persistent settings: leave some out, or remove some with null")
        self.assertEqual(self.ask("PUT", "/uninvited/_doc/1", {})[0], 404)
        self.must("PUT", "/_cluster/settings", {"persistent": {"cluster.metadata.*": None}})
        self.must("PUT", "/_cluster/settings", metadata(600, "x"))

    def test_effects(self):
        keys = [key for key, _, effect, _, _ in INDEX if effect == "USED"] + [key for key, _, effect, _ in CLUSTER if effect == "USED"]
        for key, effect in EFFECTS.items():
            with self.subTest(key=key):
                self.assertTrue(any(used.startswith(key) for used in keys), key)
                effect(self, key)
            self.tearDown()

    # --- What those that are used do ---------------------------------------------------------------------------------------

    def analysis(self, _):
        self.must("PUT", "/x", {"settings": {"analysis": {"analyzer": {"a": {"type": "whitespace"}}}}})
        tokens = self.must("POST", "/x/_analyze", {"analyzer": "a", "text": "A-b C"})["tokens"]
        self.assertEqual([token["token"] for token in tokens], ["A-b", "C"])

    def tokens_of_analyze(self, key):
        self.make({key: 2})
        self.refused("POST", "/i/_analyze", {"analyzer": "standard", "text": "a b c"}, 500, "[%s]" % key)

    def deleted(self, id):
        """Indexes and deletes a document, as version 10 and 20 of a client's."""
        self.must("PUT", "/i/_doc/%s?version=10&version_type=external" % id, {})
        self.must("DELETE", "/i/_doc/%s?version=20&version_type=external" % id)

    def judged_by_delete(self, id):
        """Returns: whether the delete's version refuses an older state."""
        status, reply = self.ask("PUT", "/i/_doc/%s?version=15&version_type=external" % id, {})
        self.assertIn(status, (201, 409), reply)
        return status == 409

    def gc_deletes(self, key):
        """As Elasticsearch 7.10 answers, also that a longer time does not bring back what did not count; it forgets at a refresh."""
        self.make({key: "-1"}, 1)
        self.must("DELETE", "/i/_doc/0")
        self.assertEqual(self.must("PUT", "/i/_doc/0", {})["_version"], 1)
        lines = '{"index":{"_id":"b"}}\n{}\n{"delete":{"_id":"b"}}\n{"index":{"_id":"b"}}\n{}\n'
        items = self.must("POST", "/i/_bulk", lines, {"Content-Type": "application/x-ndjson"})["items"]
        self.assertEqual([next(iter(item.values()))["_version"] for item in items], [1, 2, 1])
        self.deleted("1")
        self.assertFalse(self.judged_by_delete("1"))

        self.must("PUT", "/i/_settings", {key: "1h"})
        for id in "2345":
            self.deleted(id)
        self.assertTrue(self.judged_by_delete("2"))
        self.must("PUT", "/i/_settings", {key: "0s"})
        self.assertFalse(self.judged_by_delete("2"))
        self.must("PUT", "/i/_settings", {key: "1h"})
        self.assertFalse(self.judged_by_delete("3"))
        self.deleted("6")
        self.must("PUT", "/i/_settings", {key: None})
        self.assertTrue(self.judged_by_delete("6"))

        self.must("PUT", "/i/_settings", {key: "100ms"})
        self.deleted("7")
        until(lambda: not self.judged_by_delete("7"), "the version of the delete does not count any more")
        for value in ("-2", "5", "1.5s", "-5s"):
            self.refused("PUT", "/i/_settings", {key: value})

    def block(self, key):
        spares = key.endswith("allow_delete")
        status = 429 if spares else 403
        self.make({}, 1)
        self.must("PUT", "/i/_settings", {key: True})
        for method, path, body in (("PUT", "/i/_doc/2", {}), ("DELETE", "/i/_doc/0", None), ("POST", "/i/_update/0", {"doc": {"n": 2}})):
            self.refused(method, path, body, status, "index [i] blocked by: [")
        for method, path, body in (("PUT", "/i/_mapping", {"properties": {"z": {"type": "long"}}}), ("PUT", "/i/_settings", {"index.priority": 3}),
                                   ("PUT", "/i/_alias/a", None), ("POST", "/i/_close", None), ("POST", "/i/_open", None),
                                   ("POST", "/_aliases", {"actions": [{"add": {"index": "i", "alias": "a"}}]})):
            if key.endswith(".write"):
                self.must(method, path, body)
            else:
                self.refused(method, path, body, status, "index [i] blocked by: [")
        self.assertEqual(self.must("GET", "/i/_count")["count"], 1)
        self.must("PUT", "/other/_doc/1", {})
        if key.endswith("read_only"):
            self.refused("DELETE", "/i", None, status, "index [i] blocked by: [FORBIDDEN/5/index read-only (api)];")
            self.refused("DELETE", "/i,other", None, status)
            self.refused("POST", "/_aliases", {"actions": [{"remove_index": {"index": "i"}}]}, status)
            self.assertEqual(self.must("GET", "/other/_count")["count"], 1)
            self.must("PUT", "/i/_settings", {key: None})
        self.must("DELETE", "/i")

    def hidden(self, key):
        self.make({key: True})
        self.assertEqual(self.must("GET", "/*/_settings"), {})
        self.must("GET", "/i/_settings")

    def depth(self, key):
        self.make({key: 1})
        self.refused("PUT", "/i/_mapping", {"properties": {"o": {"properties": {"p": {"properties": {"n": {"type": "long"}}}}}}})

    def total_fields(self, key):
        self.make({key: 2})
        self.refused("PUT", "/i/_mapping", {"properties": {"o": {"type": "long"}}}, reason="Limit of total fields [2]")

    def docvalue_fields(self, key):
        self.make({key: 1}, 1)
        self.must("POST", "/i/_search", {"docvalue_fields": ["n"]})
        self.refused("POST", "/i/_search", {"docvalue_fields": ["n", "k"]}, reason="[%s]" % key)

    def inner_window(self, key):
        self.make({key: 2}, 1)
        body = {"aggs": {"t": {"terms": {"field": "k"}, "aggs": {"h": {"top_hits": {"size": 3}}}}}}
        self.refused("POST", "/i/_search", body, reason="[%s]" % key)

    def regex(self, key):
        self.make({key: 3}, 1)
        self.refused("POST", "/i/_search", {"query": {"regexp": {"k": "abcd"}}}, reason="[%s]" % key)

    def window(self, key):
        self.make({key: 5}, 1)
        self.refused("POST", "/i/_search", {"size": 6}, reason="[%s]" % key)

    def script_fields(self, key):
        self.make({key: 1}, 1)
        script = {"script": "1"}
        self.refused("POST", "/i/_search", {"script_fields": {"a": script, "b": script}}, reason="[%s]" % key)

    def terms(self, key):
        self.make({key: 1}, 1)
        self.refused("POST", "/i/_search", {"query": {"terms": {"k": ["a", "b"]}}}, reason="[%s]" % key)

    def replicas(self, key):
        self.make({key: 3})
        self.assertEqual(self.must("PUT", "/i/_doc/1", {})["_shards"]["total"], 4)

    def expand(self, key):
        for value, replicas in (("0-1", 0), ("0-all", 0), ("2-5", 2)):
            self.make({key: value, "index.number_of_replicas": 3})
            self.assertEqual(self.must("PUT", "/i/_doc/1", {})["_shards"]["total"], 1 + replicas, value)
            self.assertEqual(self.must("GET", "/i/_settings")["i"]["settings"]["index"]["number_of_replicas"], str(replicas))
        self.must("PUT", "/_template/t", {"index_patterns": ["of*"], "settings": {key: "0-all"}})
        self.assertEqual(self.must("PUT", "/of/_doc/1", {})["_shards"]["total"], 1)
        self.must("DELETE", "/_template/t")

    def routing_shards(self, key):
        """Also where a template has the setting, and for an index that a write makes."""
        self.must("PUT", "/_template/t", {"index_patterns": ["of*"], "settings": {key: 7, "index.number_of_shards": 2}})
        self.refused("PUT", "/of", {}, reason="the number of source shards [2] must be a factor of [7]")
        self.refused("PUT", "/of/_doc/1", {}, reason="the number of source shards [2] must be a factor of [7]")
        self.must("PUT", "/of", {"settings": {key: 8}})
        self.must("DELETE", "/_template/t")

    def shards_in_all(self, key):
        """tests/golden/7.10/compat-shard-limits.jsonl has 7.10's answers; here also the writes that would make an index."""
        self.make({"index.number_of_replicas": 0}, 1)
        self.cluster(key, 2)
        reason = "this action would add [2] total shards, but this cluster currently has [1]/[2] maximum shards open;"
        for method, path, body in (("PUT", "/j", {}), ("PUT", "/j/_doc/1", {}), ("POST", "/j/_update/1", {"doc": {}, "doc_as_upsert": True})):
            self.refused(method, path, body, reason=reason)
        self.must("PUT", "/j", {"settings": {"index.number_of_replicas": 0}})
        self.refused("PUT", "/k", {"settings": {"index.number_of_replicas": 0}}, reason="currently has [2]/[2] maximum shards open;")

    def shards(self, key):
        self.make({key: 3})
        self.assertEqual(self.must("POST", "/i/_search", {})["_shards"]["total"], 3)

    def slow(self, _):
        self.make({"index.search.slowlog.threshold.query.warn": "0ms"}, 1)
        self.must("POST", "/i/_search", {"query": {"term": {"k": "slowest"}}})
        self.assertIn("index.search.slowlog.query: [i]", self.server.errors())

    def slow_level(self, key):
        self.make({"index.search.slowlog.threshold.query.info": "0ms", key: "warn"}, 1)
        self.must("POST", "/i/_search", {"query": {"term": {"k": "unheard"}}})
        self.assertNotIn("unheard", self.server.errors())

    def cluster(self, key, value):
        self.must("PUT", "/_cluster/settings", {"transient": {key: value}})

    def auto_create(self, key):
        self.cluster(key, "+a*,-b*,c")
        self.must("PUT", "/a1/_doc/1", {})
        self.must("PUT", "/c/_doc/1", {})
        self.refused("PUT", "/b1/_doc/1", {}, 404, "contains [-b*] which forbids automatic creation")
        self.refused("PUT", "/d/_doc/1", {}, 404, "doesn't match")
        self.cluster(key, "test")
        self.refused("PUT", "/d/_doc/1", {}, 404, "([test]) doesn't match")
        self.must("PUT", "/test/_doc/1", {})
        self.cluster(key, "false")
        self.refused("PUT", "/d/_doc/1", {}, 404)
        self.reindex_into_missing()

    def reindex_into_missing(self):
        """A destination that may not be made ends a reindex; one to which its script redirects is a failure of each document."""
        self.refused("POST", "/_reindex", {"source": {"index": "a1"}, "dest": {"index": "d"}}, 404, "no such index [d]")
        body = {"source": {"index": "a1"}, "dest": {"index": "c"}, "script": {"source": "ctx._index = 'd'"}}
        for conflicts in "abort", "proceed":
            status, reply = self.ask("POST", "/_reindex?refresh", {**body, "conflicts": conflicts})
            self.assertEqual(status, 404, reply)
            self.assertEqual((reply["total"], reply["created"], len(reply["failures"])), (1, 0, 1))
            failure = reply["failures"][0]
            self.assertEqual((failure["index"], failure["id"], failure["status"]), ("d", "1", 404))
            self.assertEqual(failure["cause"]["type"], "index_not_found_exception")

    def destructive(self, key):
        self.make()
        self.cluster(key, True)
        for method, path in (("DELETE", "/*"), ("DELETE", "/_all"), ("POST", "/_all/_close"), ("DELETE", "/i*")):
            self.refused(method, path, reason="Wildcard expressions or all indices are not allowed")
        self.must("DELETE", "/i")

    def close(self, key):
        self.make()
        self.cluster(key, False)
        self.assertGreaterEqual(self.ask("POST", "/i/_close")[0], 400)

    def keep_alive(self, key):
        self.make({}, 1)
        self.cluster(key, "6m")
        self.refused("POST", "/i/_search?scroll=7m", {}, reason="is too large")

    def default_keep_alive(self, key):
        """A scroll that names no time is kept for that of the setting; without it for 5 minutes."""
        for setting, minutes in ((None, 5), ("20m", 20), ("1m", 1)):
            with ClockedServer() as server:
                server.must("PUT", "/_cluster/settings", {"transient": {key: setting}})
                server.must("PUT", "/i/_doc/1", {})
                opened = [server.must("POST", "/i/_search?size=1&scroll=0s", {})["_scroll_id"] for _ in range(2)]
                server.clock.jump(60 * minutes - 30)
                server.must("POST", "/_search/scroll", {"scroll_id": opened[0], "scroll": "1h"})
                server.clock.jump(31)
                self.assertEqual(server.ask("POST", "/_search/scroll", {"scroll_id": opened[1]})[0], 404, setting)
                server.must("POST", "/_search/scroll", {"scroll_id": opened[0]})

    def search_timeout(self, key):
        self.make({}, 1)
        self.cluster(key, "1ms")
        self.must("POST", "/i/_search", {})

    def log(self, key):
        self.cluster(key, "DEBUG")
        self.assertEqual(self.must("GET", "/_cluster/settings?flat_settings=true")["transient"][key], "DEBUG")

    def of_hosts(self, key):
        """tests/e2e/reads_test.py tests their effect in a cluster."""
        self.refused("PUT", "/_cluster/settings", {"transient": {key: "fast"}}, reason="this server is in no cluster")


EFFECTS = {
    "index.analysis.*": Settings.analysis,
    "index.analyze.max_token_count": Settings.tokens_of_analyze,
    "index.blocks.read_only": Settings.block,
    "index.blocks.read_only_allow_delete": Settings.block,
    "index.blocks.write": Settings.block,
    "index.gc_deletes": Settings.gc_deletes,
    "index.hidden": Settings.hidden,
    "index.mapping.depth.limit": Settings.depth,
    "index.mapping.total_fields.limit": Settings.total_fields,
    "index.max_docvalue_fields_search": Settings.docvalue_fields,
    "index.max_inner_result_window": Settings.inner_window,
    "index.max_regex_length": Settings.regex,
    "index.max_result_window": Settings.window,
    "index.max_script_fields": Settings.script_fields,
    "index.max_terms_count": Settings.terms,
    "index.auto_expand_replicas": Settings.expand,
    "index.number_of_replicas": Settings.replicas,
    "index.number_of_routing_shards": Settings.routing_shards,
    "index.number_of_shards": Settings.shards,
    "index.search.slowlog.threshold": Settings.slow,
    "index.search.slowlog.level": Settings.slow_level,
    "action.auto_create_index": Settings.auto_create,
    "action.destructive_requires_name": Settings.destructive,
    "cluster.indices.close.enable": Settings.close,
    "cluster.max_shards_per_node": Settings.shards_in_all,
    "logger._root": Settings.log,
    "search.default_keep_alive": Settings.default_keep_alive,
    "search.default_search_timeout": Settings.search_timeout,
    "search.max_keep_alive": Settings.keep_alive,
    "tidelock.distribute_timestamps": Settings.of_hosts,
    "tidelock.multi_version_concurrency_control": Settings.of_hosts,
}


if __name__ == "__main__":
    unittest.main()
