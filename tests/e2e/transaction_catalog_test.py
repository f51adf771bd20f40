#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a transaction asks of the catalog stays as it was told, or is refused by name: every route that reads, from the route table.

Each GET of routes.def is asked in a fresh update transaction. It must be refused, or leave a lock, which is what keeps its answer; then some
are tried with the stranger's changes that would make the answer another.
"""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402

ROUTES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "api", "request", "routes.def")
PARTS = {"index": "fs", "type": "_doc", "id": "1", "name": "a", "metric": "_all", "fields": "n", "lang": "painless", "node_id": "_local",
         "task_id": "x:1", "scroll_id": "x"}
# They change nothing and tell nothing.
IDLE = {"index_refresh", "index_flush"}
# What is told, the part of the path, and strangers' changes that would make it another.
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


def routes():
    """Returns: (path, handler) of each route that answers to GET and is none of Tidelock's own."""
    with open(ROUTES, encoding="utf-8") as file:
        text = file.read()
    rows = re.findall(r'^X\(([A-Z |]+), "([^"]+)", ([A-Z]+), (\w+),', text, re.M)
    return [(re.sub(r"\{(\w+)\}", lambda part: PARTS[part.group(1)], path), handler)
            for methods, path, form, handler in rows if "GET" in methods and form != "OWN"]


class Catalog(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.server.must("PUT", "/fs", {"mappings": {"properties": {"n": {"type": "long"}}}, "aliases": {"a": {}}})
        cls.server.must("PUT", "/log")
        cls.server.must("PUT", "/shut")
        cls.server.must("POST", "/shut/_close")
        cls.server.must("PUT", "/_template/a", {"index_patterns": ["t*"]})
        cls.server.must("PUT", "/_scripts/1", {"script": {"lang": "painless", "source": "1"}})
        cls.server.must("PUT", "/fs/_doc/1", {"n": 1})

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

    def test_every_route_that_reads(self):
        self.assertGreater(len(routes()), 80)
        for path, handler in routes():
            with self.subTest(path=path, handler=handler):
                self.begin()
                status, reply = self.server.ask("GET", self.inside(path))
                if handler not in IDLE and status < 400:
                    self.assertGreater(self.locks() + self.names_held(), 0, reply)
                self.server.must("POST", "/_transaction/%s/_rollback" % self.transaction)

    def test_by_the_header_what_is_no_part_of_it_is_answered(self):
        for path in ("/", "/_cluster/health", "/_nodes", "/_tasks", "/_cat/health"):
            self.assertEqual(self.server.request("GET", path, headers={"Tidelock-Transaction": self.transaction}).status, 200, path)
        for path in ("/_cat/indices", "/_cat/count", "/_stats", "/_template/a", "/_cluster/settings"):
            response = self.server.request("GET", path, headers={"Tidelock-Transaction": self.transaction})
            self.assertEqual(response.status, 400, path)

    def test_what_was_told_stays(self):
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
