#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Catalog data read by a transaction stays the same until its end, or the read is refused by name: each route of the route table.

Each row of routes.def, with each of its methods, is called in a fresh update transaction, named by the parameter and by the
header. WITHIN has the expected result of each handler: a new route must be added there. Some reads of the catalog are combined
with changes by other clients that would change the reply.
"""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402

ROUTES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "api", "request", "routes.def")
PARTS = {"index": "fs", "type": "_doc", "id": "1", "name": "a", "metric": "_all", "fields": "n", "lang": "painless", "node_id": "_local",
         "task_id": "x:1", "scroll_id": "x", "transaction": "none"}
ACTION = '{"index": {"_index": "fs", "_id": "2"}}\n{"n": 2}\n'
ALL = {"query": {"match_all": {}}}
# The expected effect of each handler in an update transaction, and a body. LOCKED: the objects that
# it reads or writes are locked. REFUSED: 400, since no lock protects the object, or the call takes
# effect at once, or the API does not exist. APART: the call is part of no transaction: named by the
# parameter it is refused with that reason; with the header, which a client may send with every
# request, it is executed as outside. FREES: the opened object is released at once, inside and
# outside.
LOCKED, REFUSED, APART, FREES = "locked", "refused", "apart", "frees"
WITHIN = {
    "doc_get": (LOCKED, None), "doc_source": (LOCKED, None), "doc_delete": (LOCKED, None), "doc_index": (LOCKED, {"n": 1}),
    "doc_create": (LOCKED, {"n": 1}), "doc_update": (LOCKED, {"doc": {"n": 2}}), "bulk": (LOCKED, ACTION),
    "mget": (LOCKED, {"docs": [{"_index": "fs", "_id": "1"}]}), "search": (LOCKED, None), "count": (LOCKED, None),
    "msearch": (LOCKED, '{"index": "fs"}\n{}\n'), "pit_open": (LOCKED, None), "pit_open_other": (LOCKED, None),
    "delete_by_query": (LOCKED, ALL), "update_by_query": (LOCKED, None), "delete_by_query_old": (LOCKED, ALL),
    "reindex": (LOCKED, {"source": {"index": "fs"}, "dest": {"index": "log"}}), "lock": (LOCKED, {"locks": [{"mode": "shared", "index": "fs"}]}),
    "rename": (LOCKED, {"from": "/a", "to": "/b"}), "tree": (LOCKED, None),
    "index_exists": (LOCKED, None), "index_get": (LOCKED, None), "settings_get": (LOCKED, None), "mapping_get": (LOCKED, None),
    "mapping_get_field": (LOCKED, None), "field_caps": (LOCKED, None), "validate_query": (LOCKED, None), "type_exists": (LOCKED, None), "alias_get": (LOCKED, None), "cat_aliases": (LOCKED, None),
    "script_get": (LOCKED, None),
    # Only for the transaction that opened it; tested below.
    "scroll": (REFUSED, {"scroll_id": "x"}), "scroll_clear": (FREES, {"scroll_id": ["x"]}), "pit_close": (FREES, {"id": "x"}),
    "pit_close_other": (FREES, None),
    "unlock": (REFUSED, None), "absent": (REFUSED, None),
    "index_create": (REFUSED, None), "index_delete": (REFUSED, None), "index_open": (REFUSED, None), "index_close": (REFUSED, None),
    "settings_put": (REFUSED, {}), "mapping_put": (REFUSED, {}), "alias_put": (REFUSED, {}), "alias_delete": (REFUSED, None),
    "aliases_post": (REFUSED, {"actions": []}), "template_get": (REFUSED, None), "template_put": (REFUSED, {}), "template_delete": (REFUSED, None),
    "analyze": (REFUSED, {"text": "a"}), "index_template_get": (REFUSED, None), "index_template_put": (REFUSED, {}), "index_template_delete": (REFUSED, None),
    "component_get": (REFUSED, None), "component_put": (REFUSED, {}), "component_delete": (REFUSED, None),
    "script_put": (REFUSED, {}), "script_delete": (REFUSED, None), "cluster_settings_get": (REFUSED, None), "cluster_settings_put": (REFUSED, {}),
    "cluster_state": (REFUSED, None), "stats": (REFUSED, None), "cat_indices": (REFUSED, None), "cat_count": (REFUSED, None),
    "cat_shards": (REFUSED, None), "changes": (APART, None), "cat_templates": (REFUSED, None),
    "index_refresh": (APART, None), "index_flush": (APART, None), "index_forcemerge": (APART, None), "backup": (APART, None), "index_clear_cache": (APART, None),
    "script_execute": (APART, {"script": "1 + 1"}), "tasks": (APART, None), "task_get": (APART, None), "task_cancel": (APART, None),
    "task_rethrottle": (APART, None), "info": (APART, None), "cat": (APART, None), "cat_health": (APART, None), "cat_nodes": (APART, None),
    "cat_master": (APART, None), "cluster_health": (APART, None), "cluster_stats": (APART, None), "nodes": (APART, None),
    "nodes_stats": (APART, None), "metrics": (APART, None), "health_live": (APART, None), "health_ready": (APART, None), "data_stream_get": (APART, None),
    "timestamp": (APART, None), "session_open": (APART, None), "session_status": (APART, None), "session_close": (APART, None), "deferred_retry": (APART, None), "deferred_drop": (APART, None),
    "session_keepalive": (APART, None), "session_attach": (APART, None), "lock_status": (APART, None), "lock_events": (APART, None),
    "txn_begin": (APART, None), "txn_status": (APART, None), "txn_commit": (APART, None), "txn_rollback": (APART, None), "cat_memory": (APART, None),
    "cat_locks": (APART, None), "cat_sessions": (APART, None), "cat_transactions": (APART, None),
    "hosts": (APART, None), "cat_hosts": (APART, None), "host_forget": (APART, None), "host_timestamp": (APART, None), "checkpoint_make": (APART, None), "checkpoint_read": (APART, None), "checkpoint_drop": (APART, None),
    "events": (APART, None), "ui": (APART, None),
    "copies": (APART, None), "cat_copies": (APART, None), "copy_report": (APART, {}), "copy_forget": (APART, None),
}
NEEDED = {"pit_open": "keep_alive=1m&", "pit_open_other": "keep_alive=1m&", "mapping_get": "include_type_name=true&", "field_caps": "fields=*&", "task_rethrottle": "requests_per_second=1&", "events": "once=true&"}
# The path of a read, and changes by other clients that would change its reply.
KEPT = [
    ("/fs", [("PUT", "/fs/_mapping", {"properties": {"m": {"type": "long"}}}), ("PUT", "/fs/_alias/x", None), ("DELETE", "/fs", None),
             ("PUT", "/fs/_settings", {"index.number_of_replicas": 3})]),
    ("/fs/_mapping", [("PUT", "/fs/_mapping", {"properties": {"m": {"type": "long"}}}), ("PUT", "/fs/_doc/2", {"new": 1})]),
    ("/f*/_settings", [("PUT", "/fs/_settings", {"index.number_of_replicas": 3}), ("PUT", "/f2", None)]),
    ("/shut/_settings", [("PUT", "/shut/_settings", {"index.number_of_replicas": 3}), ("POST", "/shut/_open", None)]),
    ("/_settings?expand_wildcards=all", [("PUT", "/shut/_settings", {"index.number_of_replicas": 3})]),
    ("/fs,none/_settings?ignore_unavailable=true", [("PUT", "/fs/_settings", {"index.number_of_replicas": 3}), ("PUT", "/none", None)]),
    ("/_alias", [("PUT", "/log/_alias/x", None), ("DELETE", "/fs/_alias/a", None)]),
    ("/_alias/x", [("PUT", "/log/_alias/x", None)]),
    ("/a/_mapping", [("DELETE", "/fs/_alias/a", None), ("PUT", "/log/_alias/a", None)]),
    ("/_cat/aliases", [("PUT", "/log/_alias/x", None)]),
    ("/_scripts/1", [("PUT", "/_scripts/1", {"script": {"lang": "painless", "source": "2"}}), ("DELETE", "/_scripts/1", None)]),
    ("/_scripts/none", [("PUT", "/_scripts/none", {"script": {"lang": "painless", "source": "2"}})]),
    ("/none", [("PUT", "/none", None)]),
]


def routes(parts=PARTS):
    """Returns: (methods, path, handler) of each route, with these parts of paths; None: as in the table."""
    with open(ROUTES, encoding="utf-8") as file:
        text = file.read()
    rows = re.findall(r'^X\(([A-Z |]+), "([^"]+)", ([A-Z]+), (\w+),', text, re.M)
    assert len(rows) == text.count("\nX(")
    return [(methods.split(" | "), re.sub(r"\{(\w+)\}", lambda part: part.group() if parts is None else parts[part.group(1)], path), handler)
            for methods, path, form, handler in rows]


class Catalog(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.server.must("PUT", "/fs", {"mappings": {"properties": {"n": {"type": "long"}, "path": {"type": "path"}}}, "aliases": {"a": {}}})
        cls.server.must("PUT", "/log")
        cls.server.must("PUT", "/shut")
        cls.server.must("POST", "/shut/_close")
        cls.server.must("PUT", "/_template/a", {"index_patterns": ["t*"]})
        cls.server.must("PUT", "/_scripts/1", {"script": {"lang": "painless", "source": "1"}})
        cls.server.must("PUT", "/fs/_doc/1", {"n": 1})
        cls.server.must("PUT", "/fs/_doc/p", {"path": "/a/x"})

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def setUp(self):
        self.begin()

    def begin(self):
        self.transaction = self.server.must("POST", "/_transaction")["transaction"]
        self.addCleanup(self.server.ask, "POST", "/_transaction/%s/_rollback" % self.transaction)

    def locks(self):
        return self.server.must("GET", "/_transaction/" + self.transaction)["lock_count"]

    def names_held(self):
        return len(self.server.must("GET", "/_lock")["locks"])

    def inside(self, path):
        return path + ("&" if "?" in path else "?") + "transaction=" + self.transaction

    def ask(self, method, path, handler, how):
        """Asks in the transaction, named `how`. Returns: the reply."""
        path += "?" + NEEDED.get(handler, "") if handler in NEEDED else ""
        body = WITHIN[handler][1]
        if handler == "mget" and path != "/_mget":
            body = {"ids": ["1"]}
        headers = {"Content-Type": "application/x-ndjson" if isinstance(body, str) else "application/json"} if body is not None else {}
        if how == "header":
            headers["Tidelock-Transaction"] = self.transaction
        elif how == "parameter":
            path = self.inside(path)
        return self.server.request(method, path, body, headers)

    def judge(self, method, path, handler):
        what = WITHIN[handler][0]
        replies = {}
        for how in ("parameter", "header"):
            self.begin()
            reply = replies[how] = self.ask(method, path, handler, how)
            kept = self.server.ask("GET", "/_transaction/" + self.transaction)[1].get("lock_count", 0) + self.names_held()
            reported = (how, reply.status, reply.body)
            if what == LOCKED and reply.status not in (404, 405):
                self.assertTrue(reply.status < 300 or reply.status == 409 and handler == "doc_create", reported)
                self.assertGreater(kept, 0, reported)
            elif what == REFUSED or (what == APART and how == "parameter"):
                self.assertIn(reply.status, (400, 405), reported)
                self.assertEqual(kept, 0, reported)
            elif what in (APART, FREES):
                self.assertEqual(kept, 0, reported)
            self.server.ask("POST", "/_transaction/%s/_rollback" % self.transaction)
        if what in (APART, FREES):
            self.assertEqual(replies["header"].status, self.ask(method, path, handler, "nowhere").status)

    def test_every_route(self):
        self.assertGreater(len(routes()), 170)
        self.assertEqual({handler for _, _, handler in routes()}, set(WITHIN))
        for methods, path, handler in routes():
            for method in methods:
                if method == "POST" and path in ("/_mapping/_doc", "/_mappings/_doc"):
                    continue  # that is a document of an index which cannot be
                with self.subTest(method=method, path=path, handler=handler):
                    self.judge(method, path, handler)

    def test_head_requests(self):
        """Where GET is answered HEAD may be, and then it is a read as any other."""
        for methods, path, handler in routes():
            if "GET" in methods and "HEAD" not in methods and handler != "session_attach":
                with self.subTest(path=path, handler=handler):
                    self.begin()
                    reply = self.ask("HEAD", path, handler, "parameter")
                    if reply.status < 300:
                        self.assertGreater(self.locks() + self.names_held(), 0, reply)
                    self.server.ask("POST", "/_transaction/%s/_rollback" % self.transaction)

    def test_contexts_of_another_transaction(self):
        """Scrolls and points in time belong to the transaction that opened them; any client can release them, at once."""
        scroll = self.server.must("GET", "/fs/_search?scroll=1m&size=1")["_scroll_id"]
        point = self.server.must("POST", "/fs/_pit?keep_alive=1m")["id"]
        for method, path, body in (("POST", "/_search/scroll", {"scroll_id": scroll}), ("POST", "/_search", {"pit": {"id": point}})):
            status, reply = self.server.ask(method, self.inside(path), body)
            self.assertEqual(status, 400, reply)
            self.assertIn("did not open", reply["error"]["reason"])
        for path, body in (("/_search/scroll", {"scroll_id": scroll}), ("/_pit", {"id": point})):
            self.assertEqual(self.server.ask("DELETE", path, body)[0], 200)

    def test_two_transactions_in_one_request(self):
        other = self.server.must("POST", "/_transaction")["transaction"]
        self.assertEqual(self.server.ask("POST", self.inside("/_transaction/%s/_commit" % other))[0], 400)
        self.server.must("POST", "/_transaction/%s/_commit?transaction=%s" % (other, other))

    def test_independent_calls_with_header_are_executed(self):
        for path in ("/", "/_cluster/health", "/_nodes", "/_tasks", "/_cat/health"):
            self.assertEqual(self.server.request("GET", path, headers={"Tidelock-Transaction": self.transaction}).status, 200, path)
        for path in ("/_cat/indices", "/_cat/count", "/_stats", "/_template/a", "/_cluster/settings"):
            response = self.server.request("GET", path, headers={"Tidelock-Transaction": self.transaction})
            self.assertEqual(response.status, 400, path)

    def test_catalog_reads_are_repeatable(self):
        for path, changes in KEPT:
            for method, change, body in changes:
                with self.subTest(path=path, change=change):
                    self.begin()
                    before = self.server.request("GET", self.inside(path))
                    status, reply = self.server.ask(method, change + ("&" if "?" in change else "?") + "timeout=0s", body)
                    self.assertEqual((status, reply["error"]["type"]), (409, "lock_wait_timeout_exception"), reply)
                    after = self.server.request("GET", self.inside(path))
                    self.assertEqual((before.status, before.body), (after.status, after.body))
                    self.server.must("POST", "/_transaction/%s/_rollback" % self.transaction)


if __name__ == "__main__":
    unittest.main()
