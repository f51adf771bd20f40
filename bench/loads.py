# SPDX-License-Identifier: Apache-2.0
"""The documents that parts load, and ways to load them."""
import itertools
import json
import os
import subprocess
import sys
import threading
import time

from measure import cpu_seconds, settle
from peers import Http

HERE = os.path.dirname(os.path.abspath(__file__))

# Every field of a file's document is searchable; the note only brings it to its size.
MAPPING = {
    "settings": {"number_of_shards": 1, "number_of_replicas": 0,
                 "analysis": {"analyzer": {"paths": {"tokenizer": "path_hierarchy"}}}},
    "mappings": {"properties": {
        "path": {"type": "keyword", "fields": {"tree": {"type": "text", "analyzer": "paths"}}},
        "name": {"type": "keyword"}, "size": {"type": "long"}, "mtime": {"type": "date"}, "mode": {"type": "keyword"},
        "type": {"type": "keyword"}, "owner": {"type": "keyword"},
        "note": {"type": "keyword", "index": False, "doc_values": False}}}}


def path_only():
    """Returns: the mapping with entries for the path and for nothing else."""
    mapping = json.loads(json.dumps(MAPPING))
    for name, field in mapping["mappings"]["properties"].items():
        if name != "path":
            field.update(index=False, doc_values=False)
    return mapping


def make(folder, count, files="bulk,tsv,sql,terms"):
    """Makes the data set, where it is not there yet."""
    subprocess.run([sys.executable, os.path.join(HERE, "dataset.py"), folder, "--count", str(count), "--files", files],
                   check=True)


class Source:
    """The data set as bulk bodies, handed out to several threads."""

    def __init__(self, folder, actions=2000):
        self.file = open(os.path.join(folder, "docs.bulk"), "rb")
        self.lines = 2 * actions
        self.lock = threading.Lock()

    def body(self):
        with self.lock:
            return b"".join(itertools.islice(self.file, self.lines))


def bulk_compare(servers, index, mapping, folder=None):
    """Sends the whole data set into a new index of each server: each body to one of them after the other, alternately first. So drift of the machine's speed and the load
    of other programs are the same for all. Returns: of each server the seconds of all requests, and the processor seconds."""
    source, order, took = Source(folder or servers[0].bench.data), list(range(len(servers))), [0.0] * len(servers)
    for server in servers:
        server.request("DELETE", "/" + index)
        server.ask("PUT", "/" + index, mapping)
    settle(servers)
    before = [cpu_seconds(server) for server in servers]
    for body in iter(source.body, b""):
        for i in order:
            begin = time.perf_counter()
            status, data = servers[i].request("POST", "/%s/_bulk?filter_path=errors" % index, body)
            took[i] += time.perf_counter() - begin
            if status != 200 or b'"errors":false' not in data:
                raise RuntimeError("bulk: %s" % data[:300])
        order.reverse()
    settle(servers)  # with what the load has left to do
    source.file.close()
    return took, [cpu_seconds(server) - b for server, b in zip(servers, before)]


def bulk_load(server, index, mapping, connections, folder=None):
    """Sends the whole data set into a new index. Returns: seconds."""
    server.request("DELETE", "/" + index)
    server.ask("PUT", "/" + index, mapping)
    source = Source(folder or server.bench.data)
    failed = []

    def work():
        mine = Http(server.bench, server.port)
        for body in iter(source.body, b""):
            status, data = mine.request("POST", "/%s/_bulk?filter_path=errors" % index, body)
            if status != 200 or b'"errors":false' not in data:
                failed.append(data[:300])
                return

    begin = time.time()
    threads = [threading.Thread(target=work) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.time() - begin
    source.file.close()
    if failed:
        raise RuntimeError("bulk: %s" % failed[0])
    server.ask("POST", "/%s/_refresh" % index)
    return took


def postgres_table(pg, bench):
    """Fills the table kv(id, doc) with the data set."""
    pg.sql("CREATE TABLE kv (id text PRIMARY KEY, doc jsonb NOT NULL)", "\\copy kv from '%s'" % bench.file("docs.tsv"),
           "VACUUM ANALYZE kv", "CHECKPOINT")


def postgres_put(pg, bench):
    """Fills the table kv with the data set. `pg` may be None: PostgreSQL is not installed.

    Returns: a function from a number of clients to a measurement of upserts a second at a random id, as rate_of();
    without PostgreSQL it returns None.
    """
    if pg is None:
        return lambda clients: None
    upsert = "\\set i random(0, %d)\nINSERT INTO kv VALUES ('f' || lpad(:i::text, 7, '0'), :doc::jsonb) " \
             "ON CONFLICT (id) DO UPDATE SET doc = excluded.doc;\n" % (bench.count - 1)
    with open(bench.file("docs.tsv"), encoding="utf-8") as tsv:
        doc = tsv.readline().split("\t")[1].strip()
    postgres_table(pg, bench)
    return lambda clients: lambda: pg.pgbench(upsert, clients, "-D", "doc=" + doc)
