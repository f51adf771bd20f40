#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GET /_metrics reports the executed operations: each number is checked after known operations. The text is valid in its formats,
read by a strict parser. The rules and the dashboard of contrib/ use only existing metrics. If Debian's prometheus is installed
it scrapes the server, and its promtool checks.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import ROOT, Server  # noqa: E402
from waiting import Waiting, until  # noqa: E402

RULES = os.path.join(ROOT, "contrib", "prometheus", "tidelock.rules.yml")
DASHBOARD = os.path.join(ROOT, "contrib", "grafana", "tidelock.json")
OPEN = "application/openmetrics-text; version=1.0.0,text/plain;version=0.0.4;q=0.5"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')


class Page:
    """A page, parsed: .types by family, .samples by (name, labels). What a format does not allow raises ValueError."""

    def __init__(self, text, open_metrics):
        self.types, self.helps, self.samples = {}, {}, {}
        self.open = open_metrics
        if not text.endswith("\n") or (open_metrics and not text.endswith("# EOF\n")):
            raise ValueError("the end is missing")
        lines = text[:-1].split("\n")
        if open_metrics:
            lines.pop()
        family = None
        for line in lines:
            if line.startswith("# HELP "):
                family, self.helps[family] = self.fresh(line, self.helps)
            elif line.startswith("# TYPE "):
                name, kind = self.fresh(line, self.types)
                if name != family or kind not in ("counter", "gauge", "histogram"):
                    raise ValueError(line)
                self.types[name] = kind
            else:
                self.sample(line, family)
        for family, kind in self.types.items():
            if kind == "histogram":
                self.check_histogram(family)

    def fresh(self, line, known):
        _, _, name, rest = line.split(" ", 3)
        if name in known or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise ValueError("twice, or no name: " + line)
        return name, rest

    def sample(self, line, family):
        match = re.fullmatch(r"([a-z][a-z0-9_]*)(?:\{(.*)\})? (\d+(?:\.\d+)?)", line)
        if match is None:
            raise ValueError(line)
        name, text, value = match.groups()
        ends = {"counter": ["_total"] if self.open else [""], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}[self.types[family]]
        if name not in [family + end for end in ends] or (self.types[family] == "counter") != name.endswith("_total"):
            raise ValueError("not of the family at hand, or badly named: " + line)
        labels, at = [], 0
        while text and at < len(text):
            match = LABEL.match(text, at)
            if match is None:
                raise ValueError(line)
            labels.append((match.group(1), match.group(2)))
            at = match.end()
        if len(dict(labels)) != len(labels) or (name, frozenset(labels)) in self.samples:
            raise ValueError("twice: " + line)
        self.samples[name, frozenset(labels)] = float(value)

    def check_histogram(self, family):
        series = {}
        for (name, labels), value in self.samples.items():
            if name == family + "_bucket":
                le = dict(labels)["le"]
                series.setdefault(frozenset(pair for pair in labels if pair[0] != "le"), []).append((float(le), value))
        for labels, buckets in series.items():
            buckets.sort()
            counts = [count for _, count in buckets]
            if counts != sorted(counts) or buckets[-1][0] != float("inf") or counts[-1] != self.samples[family + "_count", labels]:
                raise ValueError("%s %r: %r" % (family, dict(labels), buckets))
            if (family + "_sum", labels) not in self.samples:
                raise ValueError(family)

    def get(self, name, **labels):
        return self.samples.get((name, frozenset(labels.items())), 0)

    def names(self):
        return {name for name, _ in self.samples}


def names_asked(expression):
    return set(re.findall(r"\b(?:tidelock|process)_[a-z0-9_]+", expression))


class Metrics(unittest.TestCase):
    def setUp(self):
        self.server = Server().start()
        self.addCleanup(self.server.close)

    def page(self, open_metrics=False):
        reply = self.server.request("GET", "/_metrics", headers={"Accept": OPEN} if open_metrics else {})
        self.assertEqual(reply.status, 200)
        kind = reply.getheader("Content-Type")
        self.assertTrue(kind.startswith("application/openmetrics-text; version=1.0.0" if open_metrics else "text/plain; version=0.0.4"), kind)
        return Page(reply.body.decode(), open_metrics)

    def session(self, ttl="1h"):
        return self.server.must("POST", "/_session", {"ttl": ttl})["session"]

    def lock(self, session, mode, path, **more):
        return self.server.ask("POST", "/_lock", dict({"session": session, "locks": [{"mode": mode, "index": "fs", "path": path}]}, **more))

    def test_both_formats_are_equal(self):
        self.server.must("PUT", "/fs/_doc/1", {"a": 1})
        old, new = self.page(), self.page(open_metrics=True)
        self.assertEqual({name if kind != "counter" else name[:-len("_total")] for name, kind in old.types.items()}, set(new.types))
        self.assertEqual(old.names(), new.names())
        self.assertEqual(self.server.request("HEAD", "/_metrics").status, 200)
        self.assertEqual(self.server.ask("GET", "/_metrics?x=1")[0], 400)
        self.assertEqual(self.server.ask("POST", "/_metrics", {})[0], 405)

    def test_requests(self):
        before = self.page()
        for i in range(7):
            self.server.must("PUT", "/fs/_doc/%d" % i, {"a": i})
        self.server.ask("GET", "/fs/_doc/none")
        self.server.ask("GET", "/none/_doc/1")
        self.server.ask("PATCH", "/fs")
        after = self.page()
        put = {"route": "/{index}/_doc/{id}", "method": "PUT"}
        self.assertEqual([after.get("tidelock_http_requests_total", code=code, **put) for code in ("200", "201")], [0, 7])
        self.assertEqual(after.get("tidelock_http_requests_total", route="/{index}/_doc/{id}", method="GET", code="404"), 2)
        self.assertEqual(after.get("tidelock_http_requests_total", route="none", method="other", code="405"), 1)
        self.assertEqual(after.get("tidelock_http_request_duration_seconds_count", **put), 7)
        self.assertEqual(after.get("tidelock_http_requests_total", route="/_metrics", method="GET", code="200"),
                         before.get("tidelock_http_requests_total", route="/_metrics", method="GET", code="200") + 1)
        self.assertEqual(after.get("tidelock_commands_total", command="write"), 7)
        self.assertEqual(after.get("tidelock_documents"), 7)
        self.assertEqual(after.get("tidelock_indices"), 1)
        self.assertGreaterEqual(after.get("tidelock_sync_duration_seconds_count"), before.get("tidelock_sync_duration_seconds_count") + 1)
        self.assertEqual(after.get("tidelock_http_requests_in_flight"), 1)
        self.assertGreaterEqual(after.get("tidelock_http_connections"), 1)

    def test_requests_refused_by_http_layer(self):
        self.server.raw(b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", timeout=None)
        self.assertEqual(self.page().get("tidelock_http_requests_refused_total"), 1)

    def test_locks(self):
        a, b = self.session(), self.session()
        self.lock(a, "exclusive", "/x")
        self.lock(a, "shared", "/y")
        self.lock(a, "shared", "/z")
        page = self.page()
        self.assertEqual([page.get("tidelock_locks_held", mode=mode) for mode in ("shared", "update", "exclusive")], [2, 0, 1])
        self.lock(a, "update", "/y")  # a lock that becomes stronger is one lock
        page = self.page()
        self.assertEqual([page.get("tidelock_locks_held", mode=mode) for mode in ("shared", "update", "exclusive")], [1, 1, 1])
        self.assertEqual(self.lock(b, "exclusive", "/x", wait="10ms")[0], 409)
        page = self.page()
        self.assertEqual(page.get("tidelock_lock_wait_duration_seconds_count", outcome="timeout"), 1)
        waiter = Waiting(self.server, "POST", "/_lock", {"session": b, "locks": [{"mode": "exclusive", "index": "fs", "path": "/x"}], "wait": "10m"})
        until(lambda: self.page().get("tidelock_lock_waiters") == 1, "the page says so")
        self.assertEqual(self.page().get("tidelock_locks_wanted", mode="exclusive"), 1)
        self.server.must("POST", "/_unlock", {"session": a})
        waiter.join()
        page = self.page()
        self.assertEqual(page.get("tidelock_lock_wait_duration_seconds_count", outcome="granted"), 1)
        self.assertEqual([page.get("tidelock_locks_held", mode=mode) for mode in ("shared", "update", "exclusive")], [0, 0, 1])
        self.assertEqual((page.get("tidelock_lock_waiters"), page.get("tidelock_locks_wanted", mode="exclusive")), (0, 0))
        self.server.must("DELETE", "/_session/" + b)
        self.assertEqual(self.page().get("tidelock_locks_held", mode="exclusive"), 0)

    def test_deadlock(self):
        a, b = self.session(), self.session()
        self.lock(a, "exclusive", "/x")
        self.lock(b, "exclusive", "/y")
        other = Waiting(self.server, "POST", "/_lock", {"session": a, "locks": [{"mode": "exclusive", "index": "fs", "path": "/y"}], "wait": "10m"})
        until(lambda: self.page().get("tidelock_lock_waiters") == 1, "the page says so")
        self.lock(b, "exclusive", "/x", wait="10m")
        page = self.page()
        self.assertEqual(page.get("tidelock_deadlocks_total", broken_by="ended"), 1)
        self.server.must("POST", "/_unlock", {"session": b})
        other.join()

    def test_sessions_and_transactions(self):
        self.session(), self.session(ttl="1s")
        closed, forced = self.session(), self.session()
        self.server.must("DELETE", "/_session/" + closed)
        self.server.must("DELETE", "/_session/%s?force=true" % forced)
        for end in ("_commit", "_rollback", None):
            transaction = self.server.must("POST", "/_transaction", {})["transaction"]
            if end is not None:
                self.server.must("POST", "/_transaction/%s/%s" % (transaction, end))
        self.server.must("POST", "/_transaction", {"mode": "query"})
        until(lambda: self.page().get("tidelock_sessions_ended_total", how="expired") == 1, "the page says so")
        page = self.page()
        self.assertEqual([page.get("tidelock_sessions_ended_total", how=how) for how in ("closed", "forced", "detached")], [1, 1, 0])
        self.assertEqual((page.get("tidelock_sessions"), page.get("tidelock_sessions_opened_total")), (1, 4))
        self.assertEqual([page.get("tidelock_transactions_ended_total", mode="update", outcome=end) for end in ("committed", "rolled_back", "aborted")],
                         [1, 1, 0])
        self.assertEqual([page.get("tidelock_transactions_begun_total", mode=mode) for mode in ("update", "query")], [3, 1])
        self.assertEqual(page.get("tidelock_transactions"), 2)

    def test_counters_restart_and_gauges_do_not(self):
        self.server.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}}}})
        self.server.must("PUT", "/fs/_doc/1", {"path": "/y/1"})
        self.lock(self.session(), "shared", "/x")
        self.server.restart()
        page = self.page()
        self.assertEqual((page.get("tidelock_locks_held", mode="shared"), page.get("tidelock_sessions"), page.get("tidelock_documents")), (1, 1, 1))
        self.assertEqual((page.get("tidelock_sessions_opened_total"), page.get("tidelock_commands_total", command="write")), (0, 0))

    def test_store(self):
        before = self.page()
        self.server.must("PUT", "/fs/_doc/1", {"a": "x" * 1000})
        self.server.must("POST", "/fs/_flush")
        self.server.must("POST", "/fs/_forcemerge")
        after = self.page()
        self.assertGreater(after.get("tidelock_store_flushes_total"), before.get("tidelock_store_flushes_total"))
        self.assertGreater(after.get("tidelock_store_tables"), 0)
        self.assertGreater(after.get("tidelock_store_disk_bytes", kind="tables"), 0)
        self.assertEqual(after.get("tidelock_store_writable"), 1)

    def test_size_of_page_is_constant(self):
        """A page with 300 indices and 2,000 locks has as many lines as one without, and no name of a client's."""
        self.server.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}}}})
        session = self.session()
        self.lock(session, "shared", "/first")
        self.page()
        few = self.page()
        for i in range(300):
            self.server.must("PUT", "/index-%d" % i)
        locks = [{"mode": "shared", "index": "fs", "path": "/p%d" % i} for i in range(2000)]
        self.server.must("POST", "/_lock", {"session": session, "locks": locks})
        many = self.page()
        self.assertEqual(many.get("tidelock_locks_held", mode="shared"), 2001)
        fresh = {key for key in set(many.samples) - set(few.samples) if ("route", "/{index}") not in key[1]}
        self.assertEqual(fresh, set())

    def test_contrib_uses_existing_metrics(self):
        self.server.must("PUT", "/fs/_doc/1", {"a": 1})
        names = self.page().names()
        with open(RULES, encoding="utf-8") as file:
            rules = file.read()
        with open(DASHBOARD, encoding="utf-8") as file:
            dashboard = json.load(file)
        asked = names_asked("\n".join(line for line in rules.split("\n") if "expr:" in line))
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                asked |= names_asked(target["expr"])
        self.assertGreater(len(asked), 20)
        self.assertEqual(asked - names, set())
        with open(os.path.join(ROOT, "docs", "monitoring.md"), encoding="utf-8") as file:
            remedies = file.read().split("## What to do about an alert")[1]
        self.assertEqual([name for name in re.findall(r"alert: (\w+)", rules) if "`%s`" % name not in remedies], [])

    @unittest.skipUnless(shutil.which("promtool"), "prometheus is not installed: promtool does not check page and rules")
    def test_promtool(self):
        subprocess.run(["promtool", "check", "rules", RULES], check=True, stdout=subprocess.DEVNULL)
        text = self.server.request("GET", "/_metrics").body
        reported = subprocess.run(["promtool", "check", "metrics"], input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual((reported.returncode, reported.stdout), (0, b""))

    @unittest.skipUnless(shutil.which("prometheus"), "prometheus is not installed: no real one scrapes")
    def test_prometheus(self):
        folder = tempfile.mkdtemp(prefix="tidelock-prometheus-")
        self.addCleanup(shutil.rmtree, folder)
        with open(os.path.join(folder, "c.yml"), "w", encoding="utf-8") as file:
            file.write("global:\n  scrape_interval: 1s\nrule_files: ['%s']\nscrape_configs:\n- job_name: tidelock\n  metrics_path: /_metrics\n"
                       "  static_configs:\n  - targets: ['127.0.0.1:%d']\n" % (RULES, self.server.port))
        port = self.free_port()
        process = subprocess.Popen(["prometheus", "--config.file=" + folder + "/c.yml", "--storage.tsdb.path=" + folder + "/data",
                                    "--web.listen-address=127.0.0.1:%d" % port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until(lambda: self.asked(port, "up{job='tidelock'}") == ["1"], "the page says so")
            self.assertEqual(self.asked(port, "tidelock_store_writable"), ["1"])
        finally:
            process.terminate()
            process.wait()

    def free_port(self):
        import socket
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return free.getsockname()[1]

    def asked(self, port, expression):
        url = "http://127.0.0.1:%d/api/v1/query?query=%s" % (port, urllib.parse.quote(expression))
        try:
            with urllib.request.urlopen(url, timeout=5) as reply:
                return [row["value"][1] for row in json.load(reply)["data"]["result"]]
        except OSError:
            return []


if __name__ == "__main__":
    unittest.main()
