# SPDX-License-Identifier: Apache-2.0
"""Locks: distinct documents, subtrees, one contended document"""
from loads import MAPPING
from measure import rate_of
from peers import Elasticsearch, Postgres, Redis, Tidelock

LEASE = "\\set k random(1, 1000000000)\nINSERT INTO locks AS l VALUES ('k' || :k, :client_id, now() + interval '5 s') " \
        "ON CONFLICT (key) DO UPDATE SET owner = excluded.owner, expires = excluded.expires WHERE l.expires < now();\n" \
        "DELETE FROM locks WHERE key = 'k' || :k AND owner = :client_id::text;\n"
ROW_LOCK = "BEGIN;\nSELECT * FROM mutexes WHERE key = 'one' FOR UPDATE;\nCOMMIT;\n"


def run(bench):
    with bench.servers(Tidelock, Postgres, Redis, Elasticsearch) as (t, pg, redis, es):
        t.ask("PUT", "/fs", MAPPING)
        if pg:
            pg.sql("CREATE TABLE locks (key text PRIMARY KEY, owner text, expires timestamptz)",
                   "CREATE TABLE mutexes (key text PRIMARY KEY)", "INSERT INTO mutexes VALUES ('one')")
        bench.rates("lock + unlock, distinct documents, 64 clients", rate_of(t, "lock", 64),
                    [("redis SET NX + Lua", rate_of(redis, "redis-lock", 64), 0.7, 1),
                     ("postgresql lease row", (lambda: pg.pgbench(LEASE, 64)) if pg else None, 2, None),
                     ("elasticsearch recipe", rate_of(es, "recipe", 64, "-i", "lock"), 1.5, None)])
        bench.rates("lock + unlock, subtrees 6 deep, 64 clients", rate_of(t, "lock-tree", 64),
                    [("distinct documents", rate_of(t, "lock", 64), 0.9, None)])
        bench.rates("lock + unlock, 1 client", rate_of(t, "lock", 1),
                    [("redis SET NX + Lua", rate_of(redis, "redis-lock", 1), 0.7, 1)])
        bench.rates("one contended document, 64 clients", rate_of(t, "lock-one", 64),
                    [("redis BLPOP", rate_of(redis, "redis-one", 64), 1, 2),
                     ("postgresql FOR UPDATE", (lambda: pg.pgbench(ROW_LOCK, 64)) if pg else None, None, None)])
        waits = t.load("lock-one", 64)["steps"][0]
        bench.row("the same: longest wait to the median", waits["max_us"], "us",
                  [("median wait", waits["p50_us"], waits["max_us"] / waits["p50_us"], 2, 1.5)])
