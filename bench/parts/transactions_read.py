# SPDX-License-Identifier: Apache-2.0
"""Reads at a timestamp: query transactions, ?timestamp=, and documents with a long history, 64 clients"""

from measure import rate_of
from peers import Tidelock

COUNT = 100000
VERSIONS = 1000


def fill(t, index, count):
    t.ask("PUT", "/" + index, {"settings": {"number_of_shards": 1}})
    for begin in range(0, count, 2000):
        body = "".join('{"index":{"_id":"f%07d"}}\n{"size":%d,"note":"%s"}\n' % (i, i, "x" * 350)
                       for i in range(begin, min(count, begin + 2000)))
        t.ask("POST", "/%s/_bulk?filter_path=errors" % index, body)


def run(bench):
    with bench.servers(Tidelock) as (t,):
        fill(t, "fs", COUNT)
        n = ("-n", COUNT)
        timestamp = t.ask("GET", "/_timestamp")["timestamp"]
        get = rate_of(t, "get", 64, *n)
        twelve = lambda: 12 * t.load("query-txn", 64, *n)["ops_per_s"]
        bench.rates("query transactions of 10 gets, in requests", twelve, [("plain get", get, 0.9, 1)])
        transaction = t.ask("POST", "/_transaction", {"mode": "query", "timeout": "10m"})["transaction"]
        bench.rates("get in a query transaction that is open", rate_of(t, "get", 64, "-a", "?transaction=" + transaction, *n),
                    [("plain get", get, 0.9, 1)])
        bench.rates("get with ?timestamp", rate_of(t, "get", 64, "-a", "?timestamp=%d" % timestamp, *n),
                    [("plain get", get, 0.9, 1)])
        # Documents of equal size, a few with one version, as many with a thousand.
        few = ("-n", 10)
        fill(t, "young", 10)
        fill(t, "old", 10)
        middle = 0
        for version in range(VERSIONS):
            body = "".join('{"index":{"_id":"f%07d"}}\n{"size":%d,"note":"%s"}\n' % (i, version, "x" * 350) for i in range(10))
            t.ask("POST", "/old/_bulk?filter_path=errors", body)
            if version == VERSIONS // 2:
                middle = t.ask("GET", "/_timestamp")["timestamp"]
        young = rate_of(t, "get", 64, "-i", "young", *few)
        bench.rates("get of the latest of {:,} versions".format(VERSIONS), rate_of(t, "get", 64, "-i", "old", *few),
                    [("of one version", young, 0.5, 0.8)])
        bench.rates("get of one in the middle", rate_of(t, "get", 64, "-i", "old", "-a", "?timestamp=%d" % middle, *few),
                    [("of one version", young, 0.5, 0.8)])
