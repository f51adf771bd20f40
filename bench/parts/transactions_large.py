# SPDX-License-Identifier: Apache-2.0
"""A transaction of 100,000 changes: its rate against a plain bulk, and the effect of its commit on other clients"""
import statistics
import subprocess
import sys
import threading
import time

from loads import MAPPING, Source
from measure import load
from peers import Http, Tidelock, stop

CHANGES_MAX = 100000
BATCH = 2000
PATIENCE = 10  # seconds; requests not answered within it are not counted, so the commit must have ended


def changes(bench):
    """Returns: how many changes a transaction makes: at most as many as there are documents in the data set."""
    return min(CHANGES_MAX, bench.count)


def send(t, index, extra):
    source = Source(t.bench.data, BATCH)
    for _ in range(changes(t.bench) // BATCH):
        status, data = t.request("POST", "/%s/_bulk?filter_path=errors%s" % (index, extra), source.body())
        if status != 200 or b'"errors":false' not in data:
            raise RuntimeError(data[:300])
    source.file.close()


def fresh(t, index):
    t.request("DELETE", "/" + index)
    t.ask("PUT", "/" + index, MAPPING)


def timed(work):
    begin = time.time()
    work()
    return time.time() - begin


def plain(t):
    fresh(t, "plain")
    return changes(t.bench) / timed(lambda: send(t, "plain", ""))


def begun(t):
    """Returns: a transaction that has made all its changes."""
    fresh(t, "inside")
    transaction = t.ask("POST", "/_transaction", {"timeout": "10m"})["transaction"]
    send(t, "inside", "&transaction=" + transaction)
    return transaction


def commit(t, transaction):
    return t.ask("POST", "/_transaction/%s/_commit" % transaction)


def whole(t):
    return changes(t.bench) / timed(lambda: commit(t, begun(t)))


def beside(bench, t, scenario, clients, seconds, *more):
    """Commits while a load runs. Returns: the load's results, and the duration of the commit."""
    transaction = begun(t)
    mine = Http(bench, t.port)
    took = []
    timer = threading.Timer(1.5, lambda: took.append(timed(lambda: commit(mine, transaction))))
    timer.start()
    results = load(bench, t.port, scenario, clients, "-w", 1, *more, seconds=seconds)
    timer.join()
    return results, took[0]


def run(bench):
    with bench.servers(Tidelock) as (t,):
        fresh(t, "fs")
        send(t, "fs", "")
        n = ("-n", changes(bench))
        bench.rates("transaction of {:,} changes, all entries, 1 connection".format(changes(bench)), lambda: whole(t),
                    [("plain bulk", lambda: plain(t), 0.5, 0.8)], "docs/s")
        pauses = []
        gets = []
        for _ in range(bench.runs):
            with bench.alone():
                results, took = beside(bench, t, "put", 4, PATIENCE, *n)
                pauses.append((results["max_us"] / 1000, took))
            with bench.alone():
                burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
                calm = load(bench, t.port, "get", 64, *n, seconds=1)["p99_us"]
                stop(burner)
                results, took = beside(bench, t, "get", 64, max(0.5, pauses[-1][1]), *n)
                gets.append((results["p99_us"], calm))
        pause, took = statistics.median(p[0] for p in pauses), statistics.median(p[1] for p in pauses)
        bench.limit("longest pause of other writers at its commit", pause, "ms", 500, 50)
        bench.row("the commit", took * 1000, "ms", [("longest pause", pause, took * 1000 / pause, None, None)])
        loaded, calm = statistics.median(g[0] for g in gets), statistics.median(g[1] for g in gets)
        bench.row("get p99 meanwhile, 64 clients", loaded, "us", [("with a CPU burner", calm, loaded / calm, 1.5, 1.2)])
