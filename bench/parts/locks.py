# SPDX-License-Identifier: Apache-2.0
"""Locks without contention: each client locks its own documents and subtrees, 64 clients and 1"""
from loads import MAPPING
from measure import rate_of
from peers import Elasticsearch, Etcd, Postgres, Redis, Tidelock

LEASE = "\\set k random(1, 1000000000)\n" \
        "INSERT INTO locks AS l VALUES ('k' || :k, :client_id, now() + interval '5 s') ON CONFLICT (key) DO UPDATE " \
        "SET owner = excluded.owner, expires = excluded.expires WHERE l.expires < now();\n" \
        "DELETE FROM locks WHERE key = 'k' || :k AND owner = :client_id::text;\n"
ADVISORY = "\\set k random(1, 1000000000)\nSELECT pg_advisory_lock(:k);\nSELECT pg_advisory_unlock(:k);\n"


def run(bench):
    with bench.servers(Tidelock, Postgres, Redis, Etcd, Elasticsearch) as (t, pg, redis, etcd, es):
        t.ask("PUT", "/fs", MAPPING)
        if pg:
            pg.sql("CREATE TABLE locks (key text PRIMARY KEY, owner text, expires timestamptz)")

        def postgres(script, clients):
            return (lambda: pg.pgbench(script, clients)) if pg else None

        bench.rates("lock + unlock, distinct documents, 64 clients", rate_of(t, "lock", 64),
                    [("redis SET NX + Lua", rate_of(redis, "redis-lock", 64), 0.7, 1),
                     ("postgresql lease row", postgres(LEASE, 64), 2, None),
                     ("etcd", rate_of(etcd, "etcd-lock", 64), 8, None),
                     ("elasticsearch recipe", rate_of(es, "recipe", 64, "-i", "lock"), 1.5, None),
                     ("postgresql advisory, in memory", postgres(ADVISORY, 64), None, None)])
        bench.rates("lock + unlock, subtrees 6 deep, 64 clients", rate_of(t, "lock-tree", 64),
                    [("distinct documents", rate_of(t, "lock", 64), 0.9, None)])
        bench.rates("lock + unlock, 1 client", rate_of(t, "lock", 1),
                    [("redis SET NX + Lua", rate_of(redis, "redis-lock", 1), 0.7, 1),
                     ("postgresql lease row", postgres(LEASE, 1), None, None),
                     ("etcd", rate_of(etcd, "etcd-lock", 1), None, None)])
