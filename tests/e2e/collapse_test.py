#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collapsed searches against a plain model: of each value the first hit in the requested order, then the page.

The model sorts all documents and keeps the first of each group. Sort values repeat, so that ties are broken by the document's
key. Pages are small, so that groups are evicted and enter again, and a third of the documents has no value.
"""
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402

SEED = int(os.environ.get("SEED", "17"))
DOCUMENTS = 400


class Collapse(unittest.TestCase):
    def test_collapse_equals_model(self):
        rng = random.Random(SEED)
        with Server() as server:
            server.must("PUT", "/i", {"mappings": {"properties": {"k": {"type": "keyword"}, "g": {"type": "double"}, "n": {"type": "long"}}}})
            documents = {}
            lines = []
            for number in range(DOCUMENTS):
                source = {"n": rng.randrange(40)}
                if rng.random() < 0.7:
                    source["k"] = "v%d" % rng.randrange(60)
                if rng.random() < 0.7:
                    source["g"] = rng.choice([0.5, 1.5, 2.5, -1.0, 7.25])
                documents["%03d" % number] = source
                lines.append('{"index":{"_id":"%03d"}}\n%s\n' % (number, str(source).replace("'", '"')))
            self.assertFalse(server.must("POST", "/i/_bulk", "".join(lines))["errors"])
            for turn in range(150):
                self.compare(server, documents, rng)

    def compare(self, server, documents, rng):
        field, order = rng.choice(["k", "g", "n"]), rng.choice(["asc", "desc"])
        start, size, least = rng.randrange(20), rng.randrange(12), rng.randrange(40)
        body = {"collapse": {"field": field}, "sort": [{"n": order}], "from": start, "size": size, "track_total_hits": True,
                "query": {"range": {"n": {"gte": least}}}}
        matching = sorted((d["n"] if order == "asc" else -d["n"], i) for i, d in documents.items() if d["n"] >= least)
        best = {}
        for _, name in matching:
            best.setdefault(documents[name].get(field), name)
        wanted = list(best.values())[start:start + size]
        reply = server.must("POST", "/i/_search", body)
        reported = "SEED=%d %r" % (SEED, body)
        self.assertEqual([hit["_id"] for hit in reply["hits"]["hits"]], wanted, reported)
        self.assertEqual(reply["hits"]["total"], {"value": len(matching), "relation": "eq"}, reported)
        for hit in reply["hits"]["hits"]:
            value = documents[hit["_id"]].get(field)
            self.assertEqual(hit.get("fields"), None if value is None else {field: [value]}, reported)


if __name__ == "__main__":
    unittest.main()
