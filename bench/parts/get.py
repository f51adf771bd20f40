# SPDX-License-Identifier: Apache-2.0
"""Get by a random id of a million documents, 64 clients and 1"""
from loads import MAPPING, bulk_load, postgres_table
from measure import rate_of
from peers import Elasticsearch, Hello, Postgres, Redis, Tidelock

PROGRAMS = ["hello"]


def run(bench):
    n = ("-n", bench.count)
    select = "\\set i random(0, %d)\nSELECT doc FROM kv WHERE id = 'f' || lpad(:i::text, 7, '0');\n" % (bench.count - 1)
    with bench.servers(Tidelock, Postgres, Redis, Hello, Elasticsearch) as (t, pg, redis, hello, es):
        bulk_load(t, "fs", MAPPING, 4)
        if es:
            bulk_load(es, "fs", MAPPING, 4)
        if pg:
            postgres_table(pg, bench)
        if redis:
            redis.load("redis-put", 64, *n, seconds=10)
        bench.settle(t, es)

        def postgres(clients):
            return (lambda: pg.pgbench(select, clients)) if pg else None

        bench.rates("get by id, 64 clients", rate_of(t, "get", 64, *n),
                    [("postgresql", postgres(64), 1, 1.4), ("elasticsearch", rate_of(es, "get", 64, *n), 5, None),
                     ("libmicrohttpd", rate_of(hello, "root", 64), 0.55, 0.75),
                     ("redis", rate_of(redis, "redis-get", 64, *n), None, None)])
        bench.rates("get by id, 1 client", rate_of(t, "get", 1, *n),
                    [("postgresql", postgres(1), None, None), ("elasticsearch", rate_of(es, "get", 1, *n), None, None)])
        timestamp = t.ask("GET", "/_timestamp")["timestamp"]
        bench.rates("get with ?timestamp, 64 clients", rate_of(t, "get", 64, "-a", "?timestamp=%d" % timestamp, *n),
                    [("plain get", rate_of(t, "get", 64, *n), 0.9, None)])
