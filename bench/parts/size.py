# SPDX-License-Identifier: Apache-2.0
"""A million documents: resident memory, disk after compaction, start to first answer after kill -9"""
import statistics
import time

from loads import MAPPING, bulk_load
from peers import Tidelock


def run(bench):
    with bench.servers(Tidelock) as (t,):
        bulk_load(t, "fs", MAPPING, 4)
        bench.limit("resident memory after the load", t.memory_mib(), "MiB", 200, None)
        took = []
        for _ in range(bench.runs):
            t.load("put", 64, "-n", bench.count, seconds=1)
            t.kill()
            begin = time.time()
            t.start()
            t.ask("GET", "/fs/_doc/f0000000")
            took.append(time.time() - begin)
        bench.limit("start to first answer after kill -9", statistics.median(took), "s", 1, 0.2)
    with bench.servers(Tidelock) as (t,):
        bulk_load(t, "fs", MAPPING, 4)
        t.ask("POST", "/fs/_forcemerge")
        bench.settle(t)  # replaced files are deleted with a delay
        with open(bench.file("size.txt"), encoding="ascii") as size:
            bench.limit("disk after compaction", t.disk_bytes() / int(size.read()), "x JSON", 0.8, 0.5)
