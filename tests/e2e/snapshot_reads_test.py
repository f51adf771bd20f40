#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Readers at a timestamp and writers do not block each other.

While a large transaction is written and committed, and while by-query calls rewrite and delete everything, a reader continues to
get documents at an earlier timestamp: every reply is the old state, and many gets begin and end during each of these calls. With
TIDELOCK_TEST_LONG the latency of its gets is compared with that of gets while another process only uses processor time, and
printed as a ratio of their p99. The ratio is meaningful only on an idle machine, so only an extreme one fails.

    snapshot_reads_test.py [--documents 4000] (100000 for measurements; 20000 with TIDELOCK_TEST_LONG)
"""
import argparse
import json
import multiprocessing
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import process_guard  # noqa: E402
from server import HANGS, Server  # noqa: E402

LONG = os.environ.get("TIDELOCK_TEST_LONG")
BULK = 1000  # documents a request
BATCH = 20   # gets
LONGEST_SECONDS = 2.0  # a get that takes longer was blocked


def burn():
    process_guard.die_with_parent()
    while True:
        pass


def read(port, timestamp, count, old, results):
    """Gets at the timestamp until it is killed; hands over when they began and ended now and then."""
    process_guard.die_with_parent()
    import http.client
    import random
    connection = http.client.HTTPConnection("127.0.0.1", port)
    times = []
    while True:
        number = random.randrange(count)
        begin = time.perf_counter()
        connection.request("GET", "/fs/_doc/%d?timestamp=%d" % (number, timestamp))
        body = connection.getresponse().read()
        times.append((begin, time.perf_counter()))
        if json.loads(body).get("_source") != old:
            results.put("document %d at %d is %s" % (number, timestamp, body))
            return
        if len(times) == BATCH:
            results.put(times)
            times = []


class Reader:
    """A process that reads while the caller does something else."""

    def __init__(self, server, timestamp, count, old):
        self.arguments = (server.port, timestamp, count, old)

    def during(self, what):
        """Returns: how long each get took that began and ended during what(), sorted."""
        results = multiprocessing.Queue()
        reader = multiprocessing.Process(target=read, args=(*self.arguments, results))
        reader.start()
        self.take(results, wait=True)  # it has begun
        begin = time.perf_counter()
        what()
        end = time.perf_counter()
        times = self.take(results, wait=True)
        while times[-1][1] < end:
            times += self.take(results, wait=True)
        reader.kill()
        reader.join()
        return sorted(last - first for first, last in times if first >= begin and last <= end)

    def take(self, results, wait=False):
        times = []
        while wait or not results.empty():
            part = results.get(timeout=HANGS)
            assert isinstance(part, list), part
            times += part
            wait = False
        return times


def p99(times):
    return times[int(len(times) * 0.99)] * 1e6


def bulk(server, parameters, lines):
    reply = server.must("POST", "/_bulk" + parameters, "".join(json.dumps(line) + "\n" for line in lines))
    assert not reply["errors"], str(reply)[:500]


def write_all(server, count, source, parameters=""):
    for first in range(0, count, BULK):
        lines = []
        for number in range(first, min(first + BULK, count)):
            lines += [{"index": {"_index": "fs", "_id": str(number)}}, source]
        bulk(server, parameters, lines)


def large_transaction(server, count):
    transaction = server.must("POST", "/_transaction", {"timeout": "1h"})["transaction"]
    write_all(server, count, {"state": "new"}, "?transaction=" + transaction)
    assert server.must("GET", "/fs/_search?size=0&track_total_hits=true&q=state:new")["hits"]["total"]["value"] == 0, "seen before its commit"
    committed = server.must("POST", "/_transaction/%s/_commit" % transaction)
    assert committed["changes"] == count, committed
    before = server.must("POST", "/fs/_count?timestamp=%d" % (committed["timestamp"] - 1), {"query": {"term": {"state": "new"}}})["count"]
    after = server.must("POST", "/fs/_count?timestamp=%d" % committed["timestamp"], {"query": {"term": {"state": "new"}}})["count"]
    assert (before, after) == (0, count), (before, after)


def by_query(server, count):
    reply = server.must("POST", "/fs/_update_by_query", {"query": {"match_all": {}}, "script": {"source": "ctx._source.state = 'newer'"}})
    assert reply["updated"] == count, reply
    assert server.must("POST", "/fs/_delete_by_query", {"query": {"match_all": {}}})["deleted"] == count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, default=20000 if LONG else 4000)
    count = parser.parse_args().documents
    old = {"state": "old"}
    with Server() as server:
        server.must("PUT", "/fs", {"mappings": {"properties": {"state": {"type": "keyword"}}}})
        write_all(server, count, old)
        timestamp = server.must("GET", "/_timestamp")["timestamp"]
        reader = Reader(server, timestamp, count, old)
        calm = None
        if LONG:
            burner = multiprocessing.Process(target=burn)
            burner.start()
            calm = reader.during(lambda: time.sleep(2))
            burner.kill()
            burner.join()
            print("gets at a timestamp beside a processor burner: p99 %.0f us of %d" % (p99(calm), len(calm)))
        for name, work in (("a transaction of %d changes" % count, large_transaction), ("by-query calls over %d documents" % count, by_query)):
            begin = time.time()
            times = reader.during(lambda: work(server, count))
            assert len(times) > 10, "only %d gets were begun and answered during %s" % (len(times), name)
            print("during %s (%.1f s): %d gets, p99 %.0f us, longest %.1f ms%s" %
                  (name, time.time() - begin, len(times), p99(times), times[-1] * 1000, ", ratio %.2f" % (p99(times) / p99(calm)) if LONG else ""))
            assert not LONG or times[-1] < LONGEST_SECONDS, "a get has waited"
        assert server.must("GET", "/fs/_count?timestamp=%d" % timestamp)["count"] == count
        assert server.must("GET", "/fs/_count")["count"] == 0


if __name__ == "__main__":
    main()
