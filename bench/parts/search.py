# SPDX-License-Identifier: Apache-2.0
"""A term query with about 10 hits of a million documents, and a scroll over all of them"""
import time

from loads import MAPPING, bulk_load
from measure import rate_of
from peers import Elasticsearch, Tidelock


def scroll(t):
    """Returns: documents a second."""
    begin = time.time()
    first = t.ask("POST", "/fs/_search?scroll=1m&size=1000", {"sort": ["_doc"]})
    seen = len(first["hits"]["hits"])
    while True:
        _, page = t.request("POST", "/_search/scroll", {"scroll": "1m", "scroll_id": first["_scroll_id"]})
        hits = page.count(b'"_id":')
        seen += hits
        if hits == 0:
            return seen / (time.time() - begin)


def run(bench):
    n = ("-n", bench.count)
    terms = ("-v", bench.file("terms.txt"))
    with bench.servers(Tidelock, Elasticsearch) as (t, es):
        bulk_load(t, "fs", MAPPING, 4)
        if es:
            bulk_load(es, "fs", MAPPING, 4)
        bench.settle(t, es)
        medians = bench.median_each({"get": lambda: t.load("get", 1, *n)["p50_us"],
                                     "term": lambda: t.load("term", 1, *terms)["p50_us"]})
        bench.row("term query, about 10 hits, 1 client, p50", medians["term"], "us",
                  [("get", medians["get"], medians["term"] / medians["get"], 3, 2)])
        bench.rates("term query, about 10 hits, 64 clients", rate_of(t, "term", 64, *terms),
                    [("get", rate_of(t, "get", 64, *n), 1 / 3, 1 / 2),
                     ("elasticsearch", rate_of(es, "term", 64, *terms), None, None)])
        rate = bench.median_each({"scroll": lambda: scroll(t)})["scroll"]
        bench.row("scroll of everything, 1,000 a page", rate, "docs/s", [("bound", 200000, rate / 200000, 1, 2)])
