# SPDX-License-Identifier: Apache-2.0
"""Renames of directories with 1 to 1,000,000 files, during puts, compared with PostgreSQL's two ways and Elasticsearch's; reads and writes around them; memory"""
import http.client
import json
import statistics
import threading
import time

from measure import rate_of
from peers import Elasticsearch, Postgres, Tidelock

SIZES = (1, 1000, 300000, 1000000)
PATH = {"properties": {"path": {"type": "path"}, "size": {"type": "long"}}}
# The guide's own mapping, and the same without its sub-field.
GUIDE = {"settings": {"analysis": {"analyzer": {"paths": {"tokenizer": "path_hierarchy"}}}},
         "mappings": {"properties": {"path": {"type": "keyword", "fields": {"tree": {"type": "text", "analyzer": "paths"}}}, "size": {"type": "long"}}}}
PLAIN = {"mappings": {"properties": {"path": {"type": "keyword"}, "size": {"type": "long"}}}}
LARGE = 300000  # what the peers rename
ROUNDS = 100  # renames of each directory, there and back
READS = 200
ACTIONS = 5000
DIRECTORIES = 100000


class Timed:
    """One connection, whose requests are timed."""

    def __init__(self, t):
        self.connection = http.client.HTTPConnection("127.0.0.1", t.port)

    def ms(self, method, path, body=None):
        begin = time.perf_counter()
        self.connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
        response = self.connection.getresponse()
        text = response.read()
        if response.status >= 300:
            raise RuntimeError("%s %s: %s" % (method, path, text[:300]))
        return (time.perf_counter() - begin) * 1000

    def median(self, times, *request):
        return statistics.median(self.ms(*request) for _ in range(times))


def load(t, index, names):
    """Returns: seconds."""
    begin = time.perf_counter()
    for first in range(0, len(names), ACTIONS):
        t.ask("POST", "/%s/_bulk?filter_path=errors" % index, "".join('{"index":{"_id":"%s"}}\n{"path":"%s","size":7}\n' % (name.replace("/", "_"), name)
                                                                     for name in names[first:first + ACTIONS]))
    return time.perf_counter() - begin


def fill(t, sizes):
    """A directory /d{size} for each, 100 files in each directory below it, and /list with 1,000."""
    t.ask("PUT", "/fs", {"mappings": PATH})
    load(t, "fs", ["/d%d/%d/f%d" % (size, i // 100, i) for size in sizes for i in range(size)] + ["/list/f%d" % i for i in range(1000)])


def renames(client, size):
    """Returns: the median time of a rename, of a put, and the ratio, of pairs by turns."""
    took, puts = [], []
    names = ["/d%d" % size, "/moved/d%d" % size]
    for i in range(ROUNDS):
        took.append(client.ms("POST", "/fs/_rename", {"from": names[i % 2], "to": names[1 - i % 2]}))
        puts.append(client.ms("PUT", "/other/_doc/%d" % i, {"v": i}))
    return statistics.median(took), statistics.median(puts)


def reads(client, directory, size):
    """Returns: the median times of a get below a directory, of a search by path with one hit, and of a subtree's first ten."""
    name = "/d%d/0/f0" % size
    return (client.median(READS, "GET", "/fs/_doc/" + name.replace("/", "_")),
            client.median(READS, "POST", "/fs/_search", {"query": {"term": {"path": directory + "/0/f0"}}}),
            client.median(READS, "POST", "/fs/_search", {"query": {"prefix": {"path": directory + "/"}}, "sort": ["_doc"], "track_total_hits": False}))


def ours(bench, sizes):
    """Returns: the time of a rename of the largest directory."""
    with bench.servers(Tidelock) as (t,):
        fill(t, sizes)
        bench.settle(t)
        client, first = Timed(t), None
        with bench.alone():
            listed = client.median(READS, "GET", "/fs/_tree?path=/list")
            before = reads(client, "/d%d" % sizes[-1], sizes[-1])
        for size in sizes:
            with bench.alone():
                took, put = renames(client, size)
            first = first or took
            bench.row("rename, %d files below, 1 client, p50" % size, took, "ms", [("a durable put", put, took / put, 1.5, 1.1), ("of one file", first, took / first, 1.3, 1)])
        directory = "/moved/d%d" % sizes[-1]
        client.ms("POST", "/fs/_rename", {"from": "/d%d" % sizes[-1], "to": directory})
        with bench.alone():
            after = reads(client, directory, sizes[-1])
            listed_after = client.median(READS, "GET", "/fs/_tree?path=/list")
        for what, least, was, now in zip(("get below", "search by path", "search below, ten hits"), (1.1, 1.3, 1.3), before, after):
            bench.row(what + " the new path, after the rename", now, "ms", [("before it", was, now / was, least, 1)])
        bench.limit("listing of 1,000", listed, "ms", 2, None)
        bench.limit("the same after renames elsewhere", listed_after, "ms", 2, None)
        many_clients(bench, t, directory)
        after_many(bench, t)
        return took


def pause(bench, t, directory):
    """Returns: the longest put of 8 clients in each of some runs, median, without and with concurrent renames of a large directory."""
    client, longest = Timed(t), {False: [], True: []}
    for _ in range(bench.runs):
        for renaming in (False, True):
            enough = threading.Event()

            def beside():
                names = [directory, "/paused"]
                while not enough.wait(0.05):
                    client.ms("POST", "/fs/_rename", {"from": names[0], "to": names[1]})
                    names.reverse()
                if names[0] != directory:
                    client.ms("POST", "/fs/_rename", {"from": names[0], "to": names[1]})
            thread = threading.Thread(target=beside)
            with bench.alone():
                if renaming:
                    thread.start()
                longest[renaming].append(t.load("put", 8, "-i", "other", "-n", 100000)["max_us"] / 1000)
                enough.set()
                if renaming:
                    thread.join()
    return statistics.median(longest[False]), statistics.median(longest[True])


def many_clients(bench, t, directory):
    bench.rates("renames, 64 clients, distinct directories", rate_of(t, "rename", 64),
                [("plain puts", rate_of(t, "put", 64, "-i", "other", "-n", 100000), 0.5, 0.8)])
    without, beside = pause(bench, t, directory)
    bench.row("longest put of 8 clients during renames of %s" % directory, beside, "ms", [("without them", without, beside / without, 1.5, 1)])


def after_many(bench, t):
    """A search with ten hits in a directory, when 1,000 renames have gone over it, and when their history has passed."""
    client, query = Timed(t), {"query": {"term": {"path": "/often/%d/f0"}}}

    def search(name):
        query["query"]["term"]["path"] = name + "/0/f0"
        with bench.alone():
            return client.median(READS, "POST", "/fs/_search", query)
    load(t, "fs", ["/often/%d/f%d" % (i // 10, i) for i in range(1000)])
    before = search("/often")
    for i in range(1000):
        client.ms("POST", "/fs/_rename", {"from": "/often" if i % 2 == 0 else "/seldom", "to": "/seldom" if i % 2 == 0 else "/often"})
    after = search("/often")
    bench.row("search 1,000 renames later", after, "ms", [("before them", before, after / before, 1.05, 1)])


def hierarchies(bench):
    """The guide's mapping against the same without its sub-field: loading, a term with ten hits, a count."""
    count = min(bench.count, LARGE)
    names = ["/a/b/%d/%d/%d/f%d" % (i // 100000, i // 1000, i // 10, i) for i in range(count)]
    with bench.servers(Tidelock) as (t,):
        took = {"guide": [], "plain": []}
        for _ in range(bench.runs):
            for index, mapping in (("guide", GUIDE), ("plain", PLAIN)):
                t.request("DELETE", "/" + index)
                t.ask("PUT", "/" + index, mapping)
                with bench.alone():
                    took[index].append(load(t, index, names))
        guide, plain = (count / statistics.median(took[index]) for index in ("guide", "plain"))
        bench.row("bulk in a tree 6 deep, path.tree", guide, "1/s", [("without the sub-field", plain, guide / plain, 0.9, 1)])
        bench.settle(t)
        client = Timed(t)

        def term(directory):
            return client.median(READS, "POST", "/guide/_search", {"query": {"term": {"path.tree": directory}}})
        with bench.alone():
            before = term("/a/b/0/1/100")
            counted = client.median(READS, "POST", "/guide/_count", {"query": {"term": {"path.tree": "/a/b/0"}}})
        client.ms("POST", "/guide/_rename", {"from": "/a/b", "to": "/c"})
        with bench.alone():
            after = term("/c/0/1/100")
            counted_after = client.median(READS, "POST", "/guide/_count", {"query": {"term": {"path.tree": "/c/0"}}})
        bench.row("term on the hierarchy, ten hits, after a rename", after, "ms", [("before it", before, after / before, 1.2, 1)])
        bench.limit("count of a subtree of %d" % min(count, 100000), counted, "ms", 5, None)
        bench.limit("the same after a rename", counted_after, "ms", 5, None)


def memory_of(bench, name):
    with bench.servers(Tidelock) as (t,):
        t.ask("PUT", "/fs", {"mappings": PATH})
        load(t, "fs", [name(i) for i in range(DIRECTORIES)])
        return t.memory_mib()


def memory(bench):
    apart, together = memory_of(bench, lambda i: "/%d/%d/f" % (i // 1000, i)), memory_of(bench, lambda i: "/all/f%d" % i)
    bench.limit("memory, %d directories of one file beyond one of as many files" % DIRECTORIES, max(0, apart - together), "MiB", 15, None)
    with bench.servers(Tidelock) as (t,):
        t.ask("PUT", "/fs", {"mappings": PATH})
        load(t, "fs", ["/%d/%d/f%d" % (i // 1000, i // 10, i) for i in range(bench.count)])
        bench.limit("memory, %d files in %d directories" % (bench.count, bench.count // 10), t.memory_mib(), "MiB", 200, None)


def in_elasticsearch(bench, largest):
    """The guide's way, and by query; of as many files."""
    with bench.servers(Elasticsearch) as (e,):
        if e is None:
            return
        e.ask("PUT", "/fs", {"settings": {**GUIDE["settings"], "number_of_shards": 1, "number_of_replicas": 0}, "mappings": GUIDE["mappings"]})
        count = min(bench.count, LARGE)
        load(e, "fs", ["/d/%d/f%d" % (i // 100, i) for i in range(count)])
        e.ask("POST", "/fs/_refresh")
        with bench.alone():
            begin = time.perf_counter()
            page = e.ask("POST", "/fs/_search?scroll=1m", {"size": ACTIONS, "query": {"prefix": {"path": "/d/"}}, "sort": ["_doc"]})
            while page["hits"]["hits"]:
                e.ask("POST", "/fs/_bulk?filter_path=errors", "".join('{"index":{"_id":"%s"}}\n%s\n' % (
                    hit["_id"], json.dumps({**hit["_source"], "path": "/m" + hit["_source"]["path"][2:]})) for hit in page["hits"]["hits"]))
                page = e.ask("POST", "/_search/scroll", {"scroll": "1m", "scroll_id": page["_scroll_id"]})
            scrolled = (time.perf_counter() - begin) * 1000
        e.ask("POST", "/fs/_refresh")
        with bench.alone():
            begin = time.perf_counter()
            e.ask("POST", "/fs/_update_by_query", {"query": {"prefix": {"path": "/m/"}}, "script": {
                "source": "ctx._source.path = '/n' + ctx._source.path.substring(2)", "lang": "painless"}})
            by_query = (time.perf_counter() - begin) * 1000
    bench.row("rename, %d files below" % count, largest, "ms", [("elasticsearch, scroll and bulk", scrolled, scrolled / largest, 2000, None),
                                                               ("elasticsearch, by query", by_query, by_query / largest, 1500, None)])


def in_postgres(bench, largest):
    count = min(bench.count, LARGE)
    with bench.servers(Postgres) as (p,):
        if p is None:
            return
        p.sql("create table docs(id int primary key, path text not null, size int)", "create index on docs(path text_pattern_ops)",
              "insert into docs select i, '/d/' || i / 100 || '/f' || i, 7 from generate_series(0, %d) i" % (count - 1),
              "create table nodes(id int primary key, parent_id int, name text)",
              "insert into nodes select i, i / 100, 'd' || i from generate_series(1, 100000) i", "vacuum analyze")
        times = []
        for i in range(bench.runs):
            old, new = (("/d", "/moved/d") if i % 2 == 0 else ("/moved/d", "/d"))
            with bench.alone():
                begin = time.perf_counter()
                p.sql("update docs set path = '%s' || substr(path, %d) where path like '%s/%%'" % (new, len(old) + 1, old))
                times.append((time.perf_counter() - begin) * 1000)
        with bench.alone():
            row = 1000 / p.pgbench("\\set i random(1, 1000)\nupdate nodes set name = 'n' || random() where id = :i;\n", 1)
    update = statistics.median(times)
    bench.row("rename, %d files below" % count, largest, "ms", [("postgresql, path text", update, update / largest, 500, 1000),
                                                                   ("postgresql, parent_id", row, row / largest, 1, 2)])


def run(bench):
    sizes = [size for size in SIZES if size <= max(1000, bench.count)]
    largest = ours(bench, sizes)
    in_postgres(bench, largest)
    in_elasticsearch(bench, largest)
    hierarchies(bench)
    memory(bench)
