# SPDX-License-Identifier: Apache-2.0
"""Open transactions: memory of 10,000 that idle; a crash with 1,000 that have made 100 changes each"""
import time

from loads import MAPPING
from peers import Tidelock

IDLE = 10000
AT_WORK = 1000
CHANGES = 100


def run(bench):
    with bench.servers(Tidelock) as (t,):
        t.ask("PUT", "/fs", MAPPING)
        t.load("put", 64, "-n", 100000, seconds=2)
        before = t.memory_mib()
        for _ in range(IDLE - 1):  # one less than the most there may be
            t.ask("POST", "/_transaction", {"timeout": "30m"})
        bench.limit("memory of {:,} open transactions".format(IDLE - 1), t.memory_mib() - before, "MiB", 20, None)
    with bench.servers(Tidelock) as (t,):
        t.ask("PUT", "/fs", MAPPING)
        for i in range(AT_WORK):
            transaction = t.ask("POST", "/_transaction", {"timeout": "30m"})["transaction"]
            body = "".join('{"index":{"_id":"t%d-%d"}}\n{"name":"f%d","size":%d}\n' % (i, j, j, i) for j in range(CHANGES))
            t.ask("POST", "/fs/_bulk?filter_path=errors&transaction=" + transaction, body)
        t.kill()
        begin = time.time()
        t.start()
        t.ask("GET", "/fs/_count")
        bench.limit("crash to first answer, {:,} open with {:,} changes".format(AT_WORK, CHANGES), time.time() - begin, "s",
                    2, 0.5)
