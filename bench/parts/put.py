# SPDX-License-Identifier: Apache-2.0
"""Durable put at a random id of a million documents, 64 clients and 1"""
from loads import MAPPING, bulk_load, postgres_put
from measure import rate_of
from peers import Elasticsearch, Postgres, Redis, Tidelock


def run(bench):
    n = ("-n", bench.count)
    with bench.servers(Tidelock, Postgres, Redis, Elasticsearch) as (t, pg, redis, es):
        bulk_load(t, "fs", MAPPING, 4)
        if es:
            bulk_load(es, "fs", MAPPING, 4)
        postgres = postgres_put(pg, bench)
        bench.settle(t, es)
        bench.rates("durable put, random id, 64 clients", rate_of(t, "put", 64, *n),
                    [("postgresql", postgres(64), 2, None), ("elasticsearch", rate_of(es, "put", 64, *n), 4, None),
                     ("redis", rate_of(redis, "redis-put", 64, *n), 0.6, 1)])
        bench.rates("durable put, 1 client", rate_of(t, "put", 1, *n),
                    [("postgresql", postgres(1), 0.8, 1.2), ("elasticsearch", rate_of(es, "put", 1, *n), None, None),
                     ("redis", rate_of(redis, "redis-put", 1, *n), None, None)])
