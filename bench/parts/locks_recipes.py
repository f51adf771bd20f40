# SPDX-License-Identifier: Apache-2.0
"""Locks built out of documents, as the books do: global, document, tree, 64 clients"""
from measure import rate_of
from peers import Elasticsearch, Tidelock

RECIPES = [("recipe-global", "global lock, one _create for all"), ("recipe-document", "document lock, scripted upsert"),
           ("recipe-tree", "tree lock, counted shares and one _create")]


def run(bench):
    with bench.servers(Tidelock, Elasticsearch) as (t, es):
        for server in (t, es):
            if server:
                server.ask("PUT", "/lock", {"settings": {"number_of_shards": 1, "number_of_replicas": 0}})
        for scenario, name in RECIPES:
            bench.rates(name + ", 64 clients", rate_of(t, scenario, 64, "-i", "lock"),
                        [("elasticsearch", rate_of(es, scenario, 64, "-i", "lock"), 3, None)])
