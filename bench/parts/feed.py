# SPDX-License-Identifier: Apache-2.0
"""The feed and the copy: writes with and without the feed, reading to its end, latency from a put to its line; a copy in Elasticsearch: initial, during puts, catching up, verified"""
import http.client
import json
import os
import re
import statistics
import subprocess
import threading
import time

from loads import MAPPING, bulk_compare, bulk_load
from peers import Elasticsearch, Tidelock, stop

PAGE = 10000
PUTS = 500
RATE = 1000  # puts a second while a copy follows
FOLLOWED_S = 5
CHANGES_EACH = 10  # of a document, while no copy follows


def p99(times):
    return sorted(times)[int(len(times) * 0.99)]


def read_to_the_end(t, options=""):
    """Returns: changes a second; with sources, if `options` do not say otherwise."""
    since, changes, begin = 0, 0, time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", t.port)
    while True:
        connection.request("GET", "/_changes?since=%d&limit=%d%s" % (since, PAGE, options))
        reply = connection.getresponse()
        text = reply.read()
        if reply.status != 200:
            raise RuntimeError(text[:300])
        since = int(reply.getheader("Tidelock-Timestamp"))
        changes += text.count(b'"op":')
        if not text:
            return changes / (time.perf_counter() - begin)


def put_to_line_ms(t):
    """Returns: p99 from a put to its line in a continuous feed, of one client."""
    feed, writer = (http.client.HTTPConnection("127.0.0.1", t.port) for _ in range(2))
    writer.connect()
    feed.request("GET", "/_changes?feed=continuous&source=false")
    lines, times = feed.getresponse(), []
    time.sleep(0.2)
    for i in range(PUTS):
        id = "line-%d" % i
        begin = time.perf_counter()
        writer.request("PUT", "/line/_doc/" + id, '{"n":1}', {"Content-Type": "application/json"})
        while ('"%s"' % id).encode() not in lines.readline():
            pass
        times.append((time.perf_counter() - begin) * 1000)
        writer.getresponse().read()
    feed.close()
    return p99(times)


class Copy:
    """tidelock replicate, from one server to another."""
    def __init__(self, bench, source, target):
        self.command = [os.path.join(bench.build, "tidelock"), "replicate", "--from", "http://127.0.0.1:%d" % source.port, "--to", "http://127.0.0.1:%d" % target.port]
        self.memory = 0
        self.sent = 0  # documents, by the last run

    def run(self, *options):
        """Returns: seconds."""
        begin = time.perf_counter()
        process = subprocess.Popen([*self.command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while process.poll() is None:
            try:
                with open("/proc/%d/status" % process.pid, encoding="ascii") as status:
                    self.memory = max(self.memory, int((re.search(r"VmHWM:\s+(\d+)", status.read()) or [0, 0])[1]) / 1024)
            except OSError:
                pass
            time.sleep(0.05)
        took = time.perf_counter() - begin
        said = process.communicate()[1]
        if process.returncode != 0:
            raise RuntimeError("%s: status %d: %s" % (options, process.returncode, said))
        self.sent = int((re.search(r"(\d+) documents sent", said) or [0, 0])[1])
        return took

    def start(self):
        return subprocess.Popen([*self.command, "--quiet"], stderr=subprocess.DEVNULL)


def lag_ms(t, es, copy):
    """Returns: p99 from a put's reply until a get in the target finds it, during RATE puts a second."""
    process, ending, times = copy.start(), threading.Event(), []

    def write():
        connection, begin, n = http.client.HTTPConnection("127.0.0.1", t.port), time.perf_counter(), 0
        while not ending.is_set():
            connection.request("PUT", "/beside/_doc/%d" % (n % 5000), '{"n":%d}' % n, {"Content-Type": "application/json"})
            connection.getresponse().read()
            n += 1
            time.sleep(max(0, begin + n / RATE - time.perf_counter()))
    t.ask("PUT", "/beside/_doc/first", '{"n":1}')
    while es.request("GET", "/beside/_doc/first")[0] != 200:
        time.sleep(0.01)
    writer = threading.Thread(target=write)
    writer.start()
    end, i = time.time() + FOLLOWED_S, 0
    while time.time() < end:
        i += 1
        t.ask("PUT", "/beside/_doc/lag-%d" % i, '{"n":1}')
        begin = time.perf_counter()
        while es.request("GET", "/beside/_doc/lag-%d" % i)[0] != 200:
            time.sleep(0.001)
        times.append((time.perf_counter() - begin) * 1000)
    ending.set()
    writer.join()
    stop(process)
    return p99(times)


def change_much(t, count):
    """So many changes, CHANGES_EACH of each document."""
    for _ in range(CHANGES_EACH):
        for first in range(0, count // CHANGES_EACH, 5000):
            t.ask("POST", "/fs/_bulk?filter_path=errors", "".join('{"index":{"_id":"c%d"}}\n{"path":"/changed/%d","size":7}\n' % (i, i)
                                                                 for i in range(first, min(first + 5000, count // CHANGES_EACH))))


def compare_bulks(bench):
    """Of two equal servers one may be several percent faster than the other for as long as they run. So each run has new ones, and starts the other one first."""
    order, seconds, processor = [(), ("--feed", "off")], [], []
    for _ in range(bench.runs):
        servers = {options: Tidelock(bench, *options) for options in order}
        pair = [servers[()], servers["--feed", "off"]]
        order.reverse()
        try:
            with bench.alone():
                took = bulk_compare(pair, "fs", MAPPING)
        finally:
            for server in pair:
                server.close()
        seconds.append(took[0])
        processor.append(took[1])
    for work, runs in (("bulk, with the feed", seconds), ("bulk, with the feed: documents a processor second", processor)):
        with_feed, without = (bench.count / statistics.median(run[i] for run in runs) for i in range(2))
        bench.row(work, with_feed, "/s", [("without", without, statistics.median(run[1] / run[0] for run in runs), 0.97, None)])


def run(bench):
    n = ("-n", bench.count)
    compare_bulks(bench)
    with bench.servers(Tidelock) as (t,):
        off = Tidelock(bench, "--feed", "off")
        try:
            bulk_load(t, "fs", MAPPING, 4)
            bulk_load(off, "fs", MAPPING, 4)
            bench.settle(t, off)
            puts = bench.median_each({"with": lambda: t.load("put", 64, *n)["ops_per_s"], "without": lambda: off.load("put", 64, *n)["ops_per_s"]})
        finally:
            off.close()
        bench.row("durable put, 64 clients, with the feed", puts["with"], "/s", [("without", puts["without"], puts["with"] / puts["without"], 0.95, 0.98)])
        with bench.alone():
            rate = read_to_the_end(t)
        bench.row("_changes read to its end, with sources", rate, "/s", [("bound", 80000, rate / 80000, 1, 2.5)])
        plain = "&source=false&expand=true"
        bare = bench.median_each({"with": lambda: read_to_the_end(t, plain + "&previous_routing=true&keys=true"), "without": lambda: read_to_the_end(t, plain)})
        bench.row("_changes read to its end, as a copy does: keys, previous_routing", bare["with"], "/s", [("without", bare["without"], bare["with"] / bare["without"], 0.9, 1)])
        with bench.alone():
            line = put_to_line_ms(t)
        bench.row("put to its line in a continuous feed, 1 client, p99", line, "ms", [("bound", 5, line / 5, 1, 0.2)])
    with bench.servers(Tidelock, Elasticsearch) as (t, es):
        if es is None:
            return
        bulk_load(t, "fs", MAPPING, 4)
        own = bench.count / bulk_load(es, "fs", MAPPING, 4)
        es.ask("DELETE", "/fs")
        copy = Copy(bench, t, es)
        with bench.alone():
            first = bench.count / copy.run("--once")
        bench.row("first copy", first, "/s", [("the target's own bulk", own, first / own, 0.6, 0.85)])
        with bench.alone():
            took = copy.run("--verify")
        bound = 60 * bench.count / 1e6
        bench.row("verify, equal documents", took, "s", [("bound", bound, took / bound, 1, 0.25)])
        with bench.alone():
            contents = copy.run("--verify", "--content")
        bench.row("verify of their contents, too", contents, "s", [("bound", bound, contents / bound, None, None)])
        change_much(t, bench.count)
        with bench.alone():
            caught = bench.count / CHANGES_EACH / copy.run("--once")
        bench.row("catching up, documents of %d changes each" % CHANGES_EACH, caught, "/s", [("the target's own bulk", own, caught / own, 0.6, None)])
        changed = bench.count // CHANGES_EACH
        bench.row("documents sent for these changes", copy.sent, "", [("documents", changed, changed / max(1, copy.sent), 1, None)])
        with bench.alone():
            lag = lag_ms(t, es, copy)
        bench.row("lag with %d puts/s, until a get has it, p99" % RATE, lag, "ms", [("bound", 1000, lag / 1000, 1, 0.2)])
        bench.row("memory of the copy, at most", copy.memory, "MiB", [("bound", 64, copy.memory / 64, 1, 0.5)])
