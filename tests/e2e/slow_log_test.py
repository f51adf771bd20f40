#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""index.search.slowlog.* (docs/monitoring.md, "Slow requests"): a request that reaches a threshold is logged at its level, once for
each phase; others are not logged.
"""
import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402

LINE = re.compile(r"Z (warning|info|debug): index\.search\.slowlog\.(query|fetch): \[([a-z]+)\] took\[(\d+\.\d)ms\], took_millis\[(\d+)\], total_hits\[(\d+) hits\], "
                  r"total_shards\[(\d+)\], source\[(.*)\], by 127\.0\.0\.1:\d+(.*)$", re.M)


class Slow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--log-level", "debug")
        cls.server.start()
        for index in "a", "b":
            cls.server.must("PUT", "/%s/_doc/1" % index, {"n": 1})

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def setUp(self):
        self.set("a,b", {"index.search.slowlog.*": None})

    def set(self, index, settings):
        self.server.must("PUT", "/%s/_settings" % index, settings)

    def logged(self, path, body=None, headers=None):
        """Returns: the log's data about a request: level, phase, index, hits, source, the end of the client."""
        before = len(self.server.errors())
        self.server.must("POST", path, body, headers)
        return [(line[0], line[1], line[2], int(line[5]), line[7], line[8]) for line in LINE.findall(self.server.errors()[before:])]

    def test_levels(self):
        body = {"query": {"match_all": {}}}
        source = json.dumps(body)
        self.assertEqual(self.logged("/a/_search", body), [])
        for settings, level in (({"warn": "1h"}, None), ({"warn": "1h", "info": "0"}, "info"), ({"warn": "0nanos", "info": "0"}, "warning"), ({"debug": "0ms"}, "debug"),
                                ({"trace": "0s"}, "debug"), ({"warn": "-1", "info": "-1", "debug": "1d", "trace": "-1"}, None)):
            self.set("a", {"index.search.slowlog.*": None})
            self.set("a", {"index.search.slowlog.threshold.query." + name: value for name, value in settings.items()})
            self.assertEqual(self.logged("/a/_search", body), [] if level is None else [(level, "query", "a", 1, source, "")], settings)

    def test_lowest_level(self):
        self.set("a", {"index.search.slowlog.threshold.query.debug": "0", "index.search.slowlog.level": "info"})
        self.assertEqual(self.logged("/a/_search", {}), [])
        self.set("a", {"index.search.slowlog.threshold.query.info": "0"})
        self.assertEqual([line[0] for line in self.logged("/a/_search", {})], ["info"])

    def test_phases_and_indices(self):
        """Each index has its own thresholds; a search that fetches nothing has no line of the fetch phase."""
        self.set("a", {"index.search.slowlog.threshold.fetch.warn": "0"})
        self.set("b", {"index.search.slowlog.threshold.query.info": "0", "index.search.slowlog.threshold.fetch.info": "0"})
        self.assertEqual([line[:4] for line in self.logged("/a,b/_search", {})], [("warning", "fetch", "a", 2), ("info", "query", "b", 2), ("info", "fetch", "b", 2)])
        self.assertEqual([line[:4] for line in self.logged("/a,b/_search", {"size": 0})], [("info", "query", "b", 2)])

    def test_kinds_of_searches(self):
        self.set("a", {"index.search.slowlog.threshold.query.warn": "0"})
        self.assertEqual(self.logged("/a/_search?q=n:1", None, {"X-Opaque-Id": "night shift"})[0][4:], ("", ", night shift"))
        lines = '{"index": "a"}\n{"size": 1}\n{"index": "b"}\n{}\n{"index": "a"}\n{"size": 2}\n'
        self.assertEqual([line[2:5] for line in self.logged("/_msearch", lines)], [("a", 1, '{"size": 1}'), ("a", 1, '{"size": 2}')])
        before = len(self.server.errors())
        scroll = self.server.must("POST", "/a/_search?scroll=1m", {"size": 1})["_scroll_id"]
        self.server.must("POST", "/_search/scroll", {"scroll_id": scroll})
        self.assertEqual(len(LINE.findall(self.server.errors()[before:])), 2)

    def test_long_bodies_and_control_characters(self):
        """Any body is logged in one line; a long one is truncated."""
        self.set("a", {"index.search.slowlog.threshold.query.warn": "0"})
        body = '{\n  "query": {"match": {"t": "\x1b[31m%s"}}\n}' % ("x" * 5000)
        before = len(self.server.errors())
        self.server.ask("POST", "/a/_search", body.replace("\x1b", "\\u001b"))
        found = LINE.findall(self.server.errors()[before:])
        self.assertEqual(len(found), 1)
        self.assertLess(len(found[0][7]), 1001)


if __name__ == "__main__":
    unittest.main()
