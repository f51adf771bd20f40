# SPDX-License-Identifier: Apache-2.0
"""One document that 64 clients want at once, waiting in order"""
import statistics

from loads import MAPPING
from measure import rate_of
from peers import Etcd, Postgres, Redis, Tidelock

ROW = "BEGIN;\nSELECT * FROM mutexes WHERE key = 'one' FOR UPDATE;\nCOMMIT;\n"
ADVISORY = "SELECT pg_advisory_lock(1);\nSELECT pg_advisory_unlock(1);\n"


def etcd_anew(bench):
    """Each run has a server of its own: requests left waiting by the previous run would delay this one."""
    def measure():
        etcd = Etcd(bench)
        try:
            return etcd.load("etcd-one", 64)["ops_per_s"]
        finally:
            etcd.close()
    return measure


def run(bench):
    with bench.servers(Tidelock, Postgres, Redis, Etcd) as (t, pg, redis, etcd):
        t.ask("PUT", "/fs", MAPPING)
        if pg:
            pg.sql("CREATE TABLE mutexes (key text PRIMARY KEY)", "INSERT INTO mutexes VALUES ('one')")
        waits = []

        def product():
            results = t.load("lock-one", 64)
            waits.append(results["steps"][0])
            return results["ops_per_s"]

        def postgres(script):
            return (lambda: pg.pgbench(script, 64)) if pg else None

        bench.rates("one contended document, 64 clients", product,
                    [("redis BLPOP", rate_of(redis, "redis-one", 64), 1, 2), ("etcd", etcd_anew(bench) if etcd else None, 10, None),
                     ("postgresql FOR UPDATE", postgres(ROW), None, None),
                     ("postgresql advisory, in memory", postgres(ADVISORY), None, None)])
        longest = statistics.median(wait["max_us"] / max(1, wait["p50_us"]) for wait in waits)
        median = statistics.median(wait["p50_us"] for wait in waits)
        bench.row("the same: longest wait", longest * median, "us", [("median wait", median, longest, 2, 1.5)])
