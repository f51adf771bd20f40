# SPDX-License-Identifier: Apache-2.0
"""Cost and gain of the command log: puts, locks, transactions, starts, bytes written; with --before also those of another build"""
import http.client
import os
import re
import statistics
import subprocess
import threading
import time

from loads import MAPPING, Source, bulk_load, postgres_put
from measure import rate_of
from parts import transactions, transactions_large
from peers import Http, Postgres, Redis, Tidelock

PROGRAMS = ["load", "save_bench"]
BATCH = 2000  # documents of a bulk, as loads.Source hands them out
KILLED_AFTER = 2  # seconds of load


class Before(Tidelock):
    """The build that --before names."""
    name = "--before"
    program = None

    @staticmethod
    def available():
        return Before.program is not None

    def path(self):
        return Before.program


def subjects(bench, server, before, scenario, clients, least, hoped, *more):
    """Returns: a rate of the product, and the rate of the build before as a peer."""
    return rate_of(server, scenario, clients, *more), ("before", rate_of(before, scenario, clients, *more), least, hoped)


def puts(bench):
    n = ("-n", bench.count)
    with bench.servers(Tidelock, Before, Postgres, Redis) as (t, before, pg, redis):
        for server in filter(None, (t, before)):
            bulk_load(server, "fs", MAPPING, 4)
        bench.limit("memory after {:,} documents".format(bench.count), t.memory_mib(), "MiB", 200, None)
        postgres = postgres_put(pg, bench)
        bench.settle(t, before)
        for clients, least, hoped, least_pg, hoped_redis in ((64, 1.25, None, 2, 0.6), (1, 1, 1.15, None, None)):
            ours, theirs = subjects(bench, t, before, "put", clients, least, hoped, *n)
            bench.rates("durable put, %d client%s" % (clients, "s" if clients > 1 else ""), ours,
                        [theirs,
                         ("postgresql", postgres(clients), least_pg, None),
                         ("redis", rate_of(redis, "redis-put", clients, *n), None, hoped_redis)])
        written(bench, t, before)
        starts(bench, t)


def disk_written(folder):
    """Returns: bytes that were written to the block device of a folder since the machine's start, by all programs. What the kernel counts for one process
    would be wrong: it counts the whole folio, up to 2 MiB, each time that a byte of it becomes dirty, of which the file system then writes single blocks."""
    device = os.stat(folder).st_dev
    with open("/sys/dev/block/%d:%d/stat" % (os.major(device), os.minor(device)), encoding="ascii") as stat:
        return int(stat.read().split()[6]) * 512


def written_for_a_put(bench, server):
    """Returns: bytes that are written to the disk for a put: log, flushes and compactions. Nothing else may write to that disk meanwhile."""
    def done():
        return server.ask("GET", "/fs/_stats/indexing")["_all"]["total"]["indexing"]["index_total"]
    bench.settle(server)
    os.sync()
    begin, before = disk_written(bench.work), done()
    server.load("put", 64, "-n", bench.count)
    server.ask("POST", "/fs/_flush")
    bench.settle(server)
    os.sync()
    return (disk_written(bench.work) - begin) / max(1, done() - before)


def written(bench, t, before):
    results = bench.median_each({s.name: lambda s=s: written_for_a_put(bench, s) for s in (t, before) if s})
    ratios = [("before", results[before.name], results[t.name] / results[before.name], 0.8, 0.6)] if before else None
    bench.row("bytes written to the disk for a put", results[t.name], "bytes", ratios)


class Bulk(threading.Thread):
    """Bulk requests from one connection, until the server ends."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.mine = Http(server.bench, server.port)
        self.source = Source(server.bench.data, BATCH)

    def run(self):
        try:
            while body := self.source.body():
                self.mine.request("POST", "/fs/_bulk?filter_path=errors", body)
        except (OSError, http.client.HTTPException):
            pass  # the server was killed
        self.source.file.close()


def kill_under(bench, t, scenario):
    """Kills the server under a load. Returns: seconds from its start to its first answer."""
    if scenario == "bulk":
        load = Bulk(t)
    else:
        load = threading.Thread(target=lambda: subprocess.run(
            [bench.program("load"), "--port", str(t.port), "--clients", "64", "--seconds",
             str(10 * KILLED_AFTER), "-n", str(bench.count), scenario], capture_output=True, check=False))
    load.start()
    time.sleep(KILLED_AFTER)
    t.kill()
    load.join()
    begin = time.time()
    t.start()
    t.ask("GET", "/fs/_doc/f0000000")
    return time.time() - begin


def starts(bench, t):
    for scenario, what in (("put", "puts"), ("lock", "locks"), ("bulk", "a bulk")):
        took = [kill_under(bench, t, scenario) for _ in range(bench.runs)]
        bench.limit("start to first answer after kill -9 under %s" % what, statistics.median(took), "s", 1.5, 0.5)
    t.process.terminate()
    t.process.wait()
    begin = time.time()
    t.start()
    t.ask("GET", "/fs/_doc/f0000000")
    took_clean = time.time() - begin
    bench.row("the same after an orderly stop, which replays nothing", took_clean, "s", None)


def locks(bench):
    with bench.servers(Tidelock, Before, Redis) as (t, before, redis):
        for server in filter(None, (t, before)):
            server.ask("PUT", "/fs", MAPPING)
        ours, theirs = subjects(bench, t, before, "lock-one", 64, 1, 1.15)
        bench.rates("one contended document, 64 clients", ours, [theirs])
        ours, theirs = subjects(bench, t, before, "lock", 64, 1.1, 1.3)
        bench.rates("lock + unlock, distinct documents, 64 clients", ours,
                    [theirs, ("redis SET NX + Lua", rate_of(redis, "redis-lock", 64), 1, None)])


def bulks(bench):
    def of(kind):
        def measure():
            with bench.servers(kind) as (server,):
                return bench.count / bulk_load(server, "fs", MAPPING, 1)
        return measure
    bench.rates("bulk of {:,}, every field".format(bench.count), of(Tidelock),
                [("before", of(Before) if Before.available() else None, 1.1, 1.3)], "docs/s")


def transfers(bench):
    with bench.servers(Tidelock, Before) as (t, before):
        for server in filter(None, (t, before)):
            transactions.accounts(server, None, 100000, "bank")
        ours, theirs = subjects(bench, t, before, "interactive", 64, 0.95, 1.1, "-n", 100000, "-i", "bank")
        bench.rates("interactive transfer, 64 clients", ours, [theirs])


def large(bench):
    with bench.servers(Tidelock, Before) as (t, before):
        bench.rates("transaction of {:,} changes".format(transactions_large.changes(bench)), lambda: transactions_large.whole(t),
                    [("before", (lambda: transactions_large.whole(before)) if before else None, 1, None)], "docs/s")
        transactions_large.fresh(t, "fs")
        transactions_large.send(t, "fs", "")
        pauses = []
        for _ in range(bench.runs):
            with bench.alone():
                results, _ = transactions_large.beside(bench, t, "put", 4, 5, "-n", transactions_large.changes(bench))
                pauses.append(results["max_us"] / 1000)
        bench.limit("the same: longest pause of others", statistics.median(pauses), "ms", 150, 50)


def saves(bench):
    """Measures how long a checkpoint stops the writer, in a separate process."""
    locks_held = min(1000000, bench.count)
    with bench.alone():
        run = subprocess.run([bench.program("save_bench"), "--dir", os.path.join(bench.work, "save"),
                              "--locks", str(locks_held), "--overlays", "4" if bench.count >= 1000000 else "1"],
                             capture_output=True, text=True, check=True)
    for what, part, encoded, handed in re.findall(
            r"^(.*?) +record of .* in parts of up to +([\d.]+) ms; encoded in +([\d.]+) ms, handed over in +([\d.]+) ms", run.stdout, re.M):
        name = {"nothing": "nothing open", "locks": "{:,} locks".format(locks_held)}.get(what, what)
        bench.limit("pause of a save, " + name, max(float(part), float(encoded) + float(handed)), "ms", 20, None)


def run(bench):
    Before.program = bench.before
    puts(bench)
    locks(bench)
    bulks(bench)
    large(bench)
    transfers(bench)
    saves(bench)
