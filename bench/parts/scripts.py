# SPDX-License-Identifier: Apache-2.0
"""Scripted updates: lock_count++ at a random id of 100,000"""
from measure import rate_of
from peers import Elasticsearch, Tidelock


def run(bench):
    n = ("-i", "lock", "-n", 100000)
    with bench.servers(Tidelock, Elasticsearch) as (t, es):
        for server in filter(None, (t, es)):
            server.ask("PUT", "/lock", {"settings": {"number_of_shards": 1, "number_of_replicas": 0}})
        bench.rates("scripted update lock_count++, 64 clients", rate_of(t, "script", 64, *n),
                    [("plain durable put", rate_of(t, "put", 64, *n), 0.7, None),
                     ("elasticsearch", rate_of(es, "script", 64, *n), None, None)])
