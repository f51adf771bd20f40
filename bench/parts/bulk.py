# SPDX-License-Identifier: Apache-2.0
"""Bulk load of a million documents, with entries for every field and for the path only"""
import time

from loads import MAPPING, bulk_load, path_only
from peers import Elasticsearch, Postgres, Tidelock

TABLE = ("DROP TABLE IF EXISTS docs", "CREATE TABLE docs (id text PRIMARY KEY, doc jsonb NOT NULL)",
         "CREATE INDEX docs_path ON docs ((doc->>'path'))", "CHECKPOINT")


def run(bench):
    with bench.servers(Postgres, Elasticsearch) as (pg, es):

        def product(mapping, connections):
            def measure():
                with bench.servers(Tidelock) as (t,):
                    return bench.count / bulk_load(t, "fs", mapping, connections)
            return measure

        def elastic(mapping, connections):
            return (lambda: bench.count / bulk_load(es, "fs", mapping, connections)) if es else None

        def postgres(fill):
            def measure():
                pg.sql(*TABLE)
                begin = time.time()
                fill()
                return bench.count / (time.time() - begin)
            return measure if pg else None

        for connections in (1, 4):
            bench.rates("bulk, entries for every field, %d connection%s" % (connections, "s" if connections > 1 else ""),
                        product(MAPPING, connections), [("elasticsearch", elastic(MAPPING, connections), 2.5, 5)], "docs/s")
        bench.rates("bulk, entries for the path only, 1 connection", product(path_only(), 1),
                    [("elasticsearch", elastic(path_only(), 1), 4, None),
                     ("postgresql INSERT x 500", postgres(lambda: pg.sql_file(bench.file("docs.sql"))), 0.8, None),
                     ("postgresql COPY", postgres(lambda: pg.sql("\\copy docs from '%s'" % bench.file("docs.tsv"))), None, 1)],
                    "docs/s")
