#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The stand-in for Elasticsearch (lib/standin.py) compared with a recording of a real 7.10, clause by clause; and copies into it while it forgets deletes.

Recorded anew by: TIDELOCK_TARGET_RESTART="COMMAND" python3 tests/e2e/replicate_standin_test.py --record http://127.0.0.1:PORT, of a server all of whose indices are deleted.
"""
import json
import os
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import replicate_test  # noqa: E402
from standin import Standin  # noqa: E402

RECORDING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recorded", "replicate_7.10.json")
KEPT = {"_id", "_index", "_version", "_source", "_routing", "found", "result", "status", "count", "acknowledged", "errors"}
INSIDE = {"items", "docs", "hits", "index", "delete", "mappings", "_meta", "properties", "error", "fs", "old", "aliases"}


def bulk(*lines):
    return "".join(json.dumps(line) + "\n" for line in lines)


def index(id, version, source, **more):
    return {"index": {"_index": "fs", "_id": id, "version": version, "version_type": "external", **more}}, source


def delete(id, version, **more):
    return {"delete": {"_index": "fs", "_id": id, "version": version, "version_type": "external", **more}}


MADE = ("PUT", "/fs", {"settings": {"index": {"number_of_shards": 1, "gc_deletes": "1h"}}, "mappings": {"_meta": {"tidelock_index": "u", "tidelock_part": True}, "properties": {"n": {"type": "long"}}}})
METAS = "*.mappings._meta.tidelock_*,*.mappings.*._meta.tidelock_*"
UUIDS = "/_settings?filter_path=*.settings.index.uuid,error.type,error.index"
CLAUSES = {
    "external versions of one document": [
        MADE, ("POST", "/_bulk", bulk(*index("a", 5, {"n": 1}), *index("a", 5, {"n": 2}), *index("a", 4, {"n": 3}), *index("a", 6, {"n": 4}))), ("GET", "/fs/_doc/a")],
    "deletes have versions": [
        MADE, ("POST", "/_bulk", bulk(*index("a", 5, {"n": 1}), delete("a", 5), delete("a", 7), delete("a", 7), *index("a", 6, {"n": 2}), delete("none", 9), *index("none", 8, {"n": 3}))),
        ("GET", "/fs/_doc/a"), ("GET", "/fs/_doc/none"), ("POST", "/_bulk", bulk(*index("a", 8, {"n": 4}))), ("GET", "/fs/_doc/a")],
    "what is refused is refused alone": [
        MADE, ("POST", "/_bulk", bulk(*index("a", 5, {"n": 1}), *index("bad", 5, {"n": "no number"}), *index("x" * 513, 5, {"n": 1}), *index("b", 5, {"n": 2}))), ("GET", "/fs/_doc/b"),
        ("GET", "/fs/_doc/bad")],
    "a refused document leaves the older one": [
        MADE, ("POST", "/_bulk", bulk(*index("a", 5, {"n": 1}))), ("POST", "/_bulk", bulk(*index("a", 6, {"n": "no number"}))), ("GET", "/fs/_doc/a")],
    "write blocks": [
        MADE, ("PUT", "/fs/_settings", {"index.blocks.write": True}), ("POST", "/_bulk", bulk(*index("a", 5, {"n": 1}), delete("a", 6))),
        ("PUT", "/fs/_settings", {"index.blocks.write": False}), ("POST", "/_bulk", bulk(*index("a", 5, {"n": 1})))],
    "a full disk": [
        MADE, ("POST", "/_bulk", bulk(*index("a", 5, {"n": 1}))), ("PUT", "/fs/_settings", {"index.blocks.read_only_allow_delete": True}), ("POST", "/_bulk", bulk(*index("b", 6, {"n": 1})))],
    "closed": [
        MADE, ("POST", "/fs/_close"), ("POST", "/_bulk", bulk(*index("a", 5, {"n": 1})))],
    "an index that is not there is made": [
        ("POST", "/_bulk", bulk(*index("a", 5, {"n": 1}), delete("b", 6))), ("GET", "/fs/_doc/a"), ("GET", "/none/_doc/a"), ("GET", "/none/_mapping"), ("DELETE", "/none")],
    "the place": [
        ("PUT", "/old/_doc/default?version=10&version_type=external_gte", {"timestamp": 10}), ("PUT", "/old/_doc/default?version=10&version_type=external_gte", {"timestamp": 10, "clean": True}),
        ("PUT", "/old/_doc/default?version=9&version_type=external_gte", {"timestamp": 9}), ("GET", "/old/_doc/default"), ("GET", "/old/_doc/other")],
    "several at once": [
        MADE, ("POST", "/_bulk", bulk(*index("a", 5, {"n": 1}, routing="r"))), ("POST", "/_mget", {"docs": [
            {"_index": "fs", "_id": "a", "routing": "r"}, {"_index": "fs", "_id": "b"}, {"_index": "none", "_id": "a"}]})],
    "what a mapping says of itself": [
        MADE, ("GET", "/fs/_mapping"), ("PUT", "/fs/_mapping", {"_meta": {"tidelock_index": "u"}}), ("GET", "/fs/_mapping"), ("PUT", "/fs", {}),
        ("PUT", "/fs/_mapping", {"properties": {"t": {"type": "keyword"}}}), ("GET", "/fs/_mapping")],
    "mappings of all indices, and of each only what the copy has put there": [
        MADE, ("PUT", "/old", {"mappings": {"_meta": {"other": 1}, "properties": {"_meta": {"type": "keyword"}}}}), ("GET", "/_mapping?filter_path=" + METAS),
        ("DELETE", "/fs"), ("GET", "/_mapping?filter_path=" + METAS)],
    "aliases": [
        MADE, ("POST", "/_aliases", {"actions": [{"add": {"index": "fs", "alias": "all"}}]}), ("POST", "/_bulk", bulk(*index("a", 5, {"n": 1}))), ("GET", "/all/_doc/a"),
        ("GET", "/fs/_alias"), ("POST", "/_aliases", {"actions": [{"remove": {"index": "fs", "alias": "all"}}]}), ("GET", "/all/_doc/a")],
    "an index and an alias have different names": [
        MADE, ("PUT", "/old", {"aliases": {"fs": {}}}), ("GET", "/old/_mapping"), ("PUT", "/old", {}), ("POST", "/_aliases", {"actions": [{"add": {"index": "fs", "alias": "old"}}]}),
        ("POST", "/_aliases", {"actions": [{"add": {"index": "fs", "alias": "all"}}, {"add": {"index": "fs", "alias": "old"}}]}), ("GET", "/fs/_alias"),
        ("POST", "/_aliases", {"actions": [{"add": {"index": "fs", "alias": "_bad"}}]}), ("PUT", "/_bad", {})],
    "an alias of several indices": [
        MADE, ("PUT", "/old", {"aliases": {"all": {}}}), ("POST", "/_aliases", {"actions": [{"add": {"index": "fs", "alias": "all"}}]}), ("PUT", "/all", {}), ("DELETE", "/all"), ("GET", "/all/_mapping"),
        ("GET", "/_alias"), ("POST", "/all/_search", {}), ("POST", "/old/_close"), ("GET", "/_alias"), ("GET", "/all/_mapping"), ("GET", "/old/_mapping"), ("POST", "/all/_search", {}), ("POST", "/all/_count", {}),
        ("POST", "/_aliases", {"actions": [{"remove": {"index": "old", "alias": "all"}}]}), ("POST", "/all/_search", {}), ("POST", "/_aliases", {"actions": [{"remove": {"index": "old", "alias": "all"}}]}),
        ("POST", "/_aliases", {"actions": [{"remove": {"index": "fs", "alias": "all"}}, {"remove": {"index": "fs", "alias": "none"}}]}), ("GET", "/fs/_alias"), ("POST", "/old/_close"), ("DELETE", "/old")],
    "an alias whose filter cannot be": [
        MADE, ("POST", "/_aliases", {"actions": [{"add": {"index": "fs", "alias": "all", "filter": {"nonsense": {}}}}]}), ("PUT", "/old", {"aliases": {"all": {"filter": {"nonsense": {}}}}}),
        ("GET", "/old/_mapping")],
    "which index has a name": [
        MADE, ("PUT", "/old", {}), ("GET", "/fs,old" + UUIDS), ("POST", "/_aliases", {"actions": [{"add": {"index": "old", "alias": "all"}}]}), ("GET", "/all" + UUIDS), ("GET", "/fs,none" + UUIDS),
        ("GET", "/none" + UUIDS), ("POST", "/old/_close"), ("GET", "/fs,old" + UUIDS), ("GET", "/*" + UUIDS + "&expand_wildcards=open,closed")],
    "gc_deletes forgets": [
        ("PUT", "/fs", {"settings": {"index": {"number_of_shards": 1, "gc_deletes": "100ms"}}}), ("POST", "/_bulk", bulk(*index("a", 5, {"n": 1}), delete("a", 7))), ("WAIT", 3), ("POST", "/fs/_refresh"),
        ("POST", "/_bulk", bulk(*index("b", 5, {"n": 1}))), ("POST", "/fs/_refresh"), ("POST", "/_bulk", bulk(*index("a", 6, {"n": 2}))), ("GET", "/fs/_doc/a")],
    "a restart forgets all": [
        MADE, ("POST", "/_bulk", bulk(*index("a", 5, {"n": 1}), delete("a", 7), *index("b", 5, {"n": 1}))), ("POST", "/fs/_flush"), ("RESTART",),
        ("POST", "/_bulk", bulk(*index("a", 6, {"n": 2}), *index("b", 4, {"n": 2}))), ("GET", "/fs/_doc/a"), ("GET", "/fs/_doc/b")],
}


def reduce(value, inside=True):
    """What `tidelock replicate` looks at."""
    if isinstance(value, list):
        return [reduce(member) for member in value]
    if not isinstance(value, dict):
        return value
    if "type" in value and "reason" in value:
        return {"type": value["type"]}
    return {key: member if key in KEPT or key in ("_meta", "properties", "aliases") else reduce(member) for key, member in value.items() if key in KEPT or key in INSIDE}


def ask(url, method, path, body=None):
    data = None if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url + path, data, {"Content-Type": "application/json"}, method=method), timeout=60) as reply:
            return [reply.status, reduce(json.load(reply))]
    except urllib.error.HTTPError as error:
        return [error.code, reduce(json.load(error))]


def play(url, restart, quick):
    """Returns: the replies by clause."""
    answers = {}
    for name, steps in CLAUSES.items():
        answers[name] = []
        for gone in ("fs", "old"):
            ask(url, "DELETE", "/" + gone)
        for method, *rest in steps:
            if method == "WAIT":
                time.sleep(rest[0] / (10 if quick else 1))
            elif method == "RESTART":
                restart()
            elif rest[0].endswith(("_flush", "_refresh")):
                if not quick or rest[0].endswith("_refresh"):
                    ask(url, method, *rest)
            else:
                answers[name].append(ask(url, method, *rest))
    return answers


class Recorded(unittest.TestCase):
    def test_each_clause(self):
        standin = Standin().start()
        self.addCleanup(standin.close)

        def restart():
            standin.kill()
            standin.start()
        with open(RECORDING, encoding="utf-8") as file:
            recorded = json.load(file)
        answered = play(standin.url, restart, True)
        self.assertEqual(sorted(recorded), sorted(answered))
        for name, answers in answered.items():
            for i, answer in enumerate(answers):
                with self.subTest((name, i)):
                    self.assertEqual(answer, recorded[name][i])


class Target(Standin, replicate_test.Server):
    """The stand-in, asked as a server of ours is."""
    def __init__(self):
        Standin.__init__(self)
        self.connection = self.tls = self.process = None

    def kill(self):
        self.hang_up()
        Standin.kill(self)

    stop = close = kill


class RandomRuns(replicate_test.Seeds):
    """As there, into a target that keeps deletes for a second, and is killed."""
    OPTIONS = ("--suspect-time", "4s", "--leave-settings")
    TOMBSTONES = False
    FORGETS = True

    new_target = Target

    def setUp(self):
        super().setUp()
        self.target.template = {"gc_deletes": "1s", "number_of_shards": "3"}

    def pause(self, process, seconds):
        if process is not None:
            super().pause(process, seconds)

    def disturb(self, chance):
        self.target.busy = chance.choice([0, 0, 3])
        super().disturb(chance)


class Routings(replicate_test.Copy):
    """Documents whose routing changes, into a target whose shards keep documents of one id apart."""
    new_target = Target
    TOMBSTONES = False
    SHARDS = 5

    def setUp(self):
        super().setUp()
        self.source.must("PUT", "/fs", {"settings": {"number_of_shards": self.SHARDS}})

    def command(self, *options, to=None):
        return super().command(*options, *(("--tombstones",) if self.TOMBSTONES else ()), to=to)

    def put(self, id, routing, n=1):
        self.source.must("PUT", "/fs/_doc/%s%s" % (id, "" if routing is None else "?routing=" + routing), {"n": n})

    def delete(self, id, routing):
        self.source.must("DELETE", "/fs/_doc/%s%s" % (id, "" if routing is None else "?routing=" + routing))

    def there(self):
        """Returns: each version that the target has of a document, by id, as often as it has them."""
        self.target.must("POST", "/_refresh")
        return sorted((hit["_id"], hit.get("_routing"), hit["_source"]["n"]) for hit in self.target.must(
            "POST", "/fs-copy/_search" if self.TOMBSTONES else "/fs/_search", {"size": 1000})["hits"]["hits"] if "n" in hit["_source"])

    def here(self):
        return sorted((hit["_id"], hit.get("_routing"), hit["_source"]["n"]) for hit in self.source.must("POST", "/fs/_search", {"size": 1000})["hits"]["hits"])

    def assert_same(self):
        self.assertEqual(self.there(), self.here())
        self.assertEqual(self.verify("--verify").split()[0], "equal:")

    def verify(self, *options, expect=0):
        run = subprocess.run(self.command("--quiet", *options), capture_output=True, text=True, env=replicate_test.without_rests())
        self.assertEqual(run.returncode, expect, run.stdout + run.stderr)
        return run.stdout

    def test_moved(self):
        """The version under the former routing is gone, wherever the new one leads, and however often it has changed."""
        for i in range(20):
            self.put("d%d" % i, [None, "a", "b"][i % 3])
        self.once()
        for i in range(20):
            for routing in (["c"], [None, "x", "y"], ["a"], ["b", "z", None])[i % 4]:
                self.put("d%d" % i, routing, i)
        self.once()
        self.assert_same()

    def test_deleted(self):
        """Deletes of each place where a document was, also where it was made again elsewhere in the same page, commit, or before it was read."""
        for i in range(8):
            self.put("d%d" % i, "a")
        self.once()
        for i in range(8):
            self.put("d%d" % i, "b", 2)
        self.delete("d1", "b")
        self.delete("d2", "b")
        self.put("d2", None)
        self.delete("d3", "b")
        self.put("d3", "c")
        self.delete("d3", "c")
        self.source.must("POST", "/fs/_bulk?atomic=true", '{"index":{"_id":"d4","routing":"q"}}\n{"n":9}\n{"delete":{"_id":"d4","routing":"q"}}\n')
        self.once()
        self.assert_same()

    def test_deleted_in_a_later_page(self):
        """A document that was read as deleted, before the page with the delete was read, is deleted under its routing."""
        self.put("d", "a")
        self.put("e", "a")
        self.once()
        self.put("d", "a", 2)
        self.put("e", "b", 2)
        for page in range(3):
            self.source.must("POST", "/fs/_bulk", "".join('{"index":{"_id":"%d"}}\n{"n":%d}\n' % (i, page) for i in range(1000)))
        self.delete("d", "a")
        self.delete("e", "b")
        self.put("e", "c", 3)
        self.once()
        self.assertEqual([it for it in self.there() if it[0] in "de"], [("e", "c", 3)])

    def test_copy_over_existing_documents(self):
        """A target that has documents under other routings, when it is copied first."""
        self.put("d", "a")
        self.put("e", None)
        self.target.must("PUT", "/fs%s" % ("-copy" if self.TOMBSTONES else ""), {"settings": {"number_of_shards": self.SHARDS}})
        for routing in "abcdefg":
            self.target.must("PUT", "/fs%s/_doc/d?routing=%s" % ("-copy" if self.TOMBSTONES else "", routing), {"n": 7})
            self.target.must("PUT", "/fs%s/_doc/e?routing=%s" % ("-copy" if self.TOMBSTONES else "", routing), {"n": 7})
        self.once("--take-over")
        self.assert_same()

    def test_copy_over_versions_above_the_commit(self):
        """Another program's versions of a document under other routings are above its commit, and below the source's timestamp: they are deleted, too."""
        self.put("d", "a")
        self.put("e", None)
        between = self.source.must("GET", "/fs/_doc/d?routing=a&version_history=true")["versions"][0]["from"] + 1
        self.put("f", None)  # now the source's timestamp is above that
        name = "fs-copy" if self.TOMBSTONES else "fs"
        self.target.must("PUT", "/" + name, {"settings": {"number_of_shards": self.SHARDS}})
        for id in "de":
            for routing in "abcdefg":
                self.target.must("PUT", "/%s/_doc/%s?routing=%s&version_type=external_gte&version=%d" % (name, id, routing, between), {"n": 7})
        self.once("--take-over")
        self.assert_same()

    def test_found_and_mended(self):
        """--verify reports a document under another routing as extra, once, and one that only has another routing as different."""
        shards = self.target.indices
        for id in ("d", "e", "f"):
            self.put(id, "a")
        self.once()
        name = "fs-copy" if self.TOMBSTONES else "fs"
        other = next(r for r in "bcdefgh" if shards[name].key("d", r) != shards[name].key("d", "a"))
        same = next("s%d" % i for i in range(100) if shards[name].key("e", "s%d" % i) == shards[name].key("e", "a"))
        self.target.must("PUT", "/%s/_doc/d?routing=%s" % (name, other), {"n": 1})
        version = self.target.must("GET", "/%s/_doc/e?routing=a" % name)["_version"]
        self.target.must("PUT", "/%s/_doc/e?routing=%s&version_type=external_gte&version=%d" % (name, same, version), {"n": 1})
        self.assertEqual(sorted(" ".join(line.split()) for line in self.verify("--verify", expect=1).splitlines()),
                         ["different fs/e", "extra fs/d, with the routing %s" % other, "not equal: of 3 documents 0 are missing, 0 older, 1 different, 0 newer, and 1 extra"])
        self.verify("--repair")
        self.assert_same()

    def test_history_gone(self):
        """The feed is longer than the history: it does not have a document's former routing, which is found by comparing."""
        for i in range(5):
            self.put("d%d" % i, "a")
        self.once()
        for i in range(5):
            self.put("d%d" % i, "b", 2)
        self.restart_source("--history", "1s", "--feed", "1h")

        def is_gone():
            self.put("other", None)
            lines = self.source.request("GET", "/_changes?since=%d&previous_routing=true" % self.target.must("GET", "/.tidelock-replicate/_doc/default")["_version"]).body
            return b'"later":true' in lines.splitlines()[0]
        replicate_test.until(is_gone, "the history is gone")
        self.once()
        self.restart_source(*self.SOURCE)
        self.assert_same()


class RoutingsWithTombstones(Routings):
    TOMBSTONES = True
    test_deleted_in_a_later_page = test_history_gone = test_copy_over_existing_documents = None  # as without


class Refusals(replicate_test.Copy):
    new_target = Target

    def test_oversized_document_is_refused_alone(self):
        """413 halves a request; a single document that is too large is recorded as refused, and the others are copied."""
        self.target.most_bytes = 10000
        self.fill(500)
        self.source.must("PUT", "/fs/_doc/large", {"t": "x" * 20000})
        self.assertIn("the target has refused 1", self.once(expect=1))
        self.assertEqual(len(replicate_test.documents(self.target.must)), 500)
        aside = self.target.must("GET", "/.tidelock-replicate-refused/_doc/default:fs:large")["_source"]
        self.assertEqual((aside["index"], aside["id"]), ("fs", "large"))
        self.target.most_bytes = 1 << 30
        self.source.must("PUT", "/fs/_doc/large", {"t": "x" * 20001})
        self.once()
        self.assert_equal()

    def test_small_result_window(self):
        """A comparison reads smaller pages where the target's index has a max_result_window below its own."""
        self.source.must("PUT", "/fs", {"settings": {"max_result_window": 600}})
        self.fill(1500)
        self.once()
        self.assertEqual(self.target.indices["fs"].settings["max_result_window"], "600")
        self.target.must("DELETE", "/fs/_doc/1")

        def compare(what):
            return subprocess.run(self.command("--quiet", what), capture_output=True, text=True, env=replicate_test.without_rests())
        found = compare("--verify")
        self.assertEqual((found.returncode, found.stdout.splitlines()[0]), (1, "missing    fs/1"), found.stderr)
        self.assertEqual(compare("--repair").returncode, 0)
        self.assertEqual(compare("--verify").stdout, "equal: 1500 documents\n")

    def test_blocked(self):
        """The whole target is read-only, or full: documents, indices and the place wait, until that has ended."""
        self.fill(20)
        process = self.follow(fast=True)
        self.await_equal()
        for number, status in enumerate((403, 429, 507)):
            self.target.blocked = status
            before = self.messages(process).count("ing again") + self.messages(process).count("waiting for the target")
            self.source.must("PUT", "/fs/_doc/blocked", {"n": status})
            self.source.must("PUT", "/new-%d/_doc/1" % status, {"n": status})
            replicate_test.until(lambda: self.messages(process).count("ing again") + self.messages(process).count("waiting for the target") > before or process.poll() is not None, "it waits")
            self.assertIsNone(process.poll(), self.messages(process))
            self.target.blocked = None
            self.await_equal()

    def test_mappings_larger_than_an_answer(self):
        """Of the target's mappings only what the copy has put there is read."""
        self.fill(3)
        self.once("--delete-indices")
        self.target.must("PUT", "/large", {"mappings": {"_meta": {"text": "x" * (65 << 20)}}})
        self.source.must("DELETE", "/fs")
        self.cut_feed()
        self.once("--delete-indices")
        self.assertEqual(self.target.ask("GET", "/fs")[0], 404)

    def test_liar(self):
        """Acknowledged items that were dropped, one that was sent with another version, one with another content, and a deleted document that came back: all are named, and mended."""
        self.fill(3000)
        lost, older, changed = {"999", "1999", "2999"}, "1500", "1234"

        class Liar(replicate_test.Meddler):
            def forward(self, method, path, body, headers):
                if not path.startswith("/_bulk"):
                    return super().forward(method, path, body, headers)
                lines, kept, dropped = body.decode().splitlines(), [], []
                for number in range(0, len(lines), 2):
                    it = json.loads(lines[number])["index"]
                    if it["_id"] in lost:
                        dropped.append((number // 2, it))
                        continue
                    if it["_id"] == older:
                        lines[number] = json.dumps({"index": {**it, "version": it["version"] - 1}})
                    kept += [lines[number], '{"n":-1}' if it["_id"] == changed else lines[number + 1]]
                status, kind, answer = super().forward(method, path, "".join(line + "\n" for line in kept).encode(), headers)
                answer = json.loads(answer)
                for at, it in dropped:
                    answer["items"].insert(at, {"index": {"_index": it["_index"], "_id": it["_id"], "status": 201}})
                return status, kind, json.dumps(answer).encode()
        with Liar(self.target.port) as liar:
            self.once(to=liar.url)
        self.source.must("DELETE", "/fs/_doc/7")
        self.once()
        self.target.indices["fs"].documents[self.target.indices["fs"].key("7", None)].source = {"n": 7, "t": "a b"}

        def compare(*options):
            return subprocess.run(self.command("--quiet", *options), capture_output=True, text=True, env=replicate_test.without_rests())
        named = ["missing fs/" + id for id in lost] + ["older fs/" + older, "extra fs/7"]
        for options, more, different in ((), [], 0), (("--content",), ["different fs/" + changed], 1):
            found = compare("--verify", *options)
            self.assertEqual((found.returncode, sorted(" ".join(line.split()) for line in found.stdout.splitlines())),
                             (1, sorted(named + more + ["not equal: of 2999 documents 3 are missing, 1 older, %d different, 0 newer, and 1 extra" % different])))
        self.assertEqual(compare("--repair").returncode, 0)
        self.assertEqual(compare("--verify").stdout, "equal: 2999 documents\n")
        self.assertEqual(compare("--repair", "--content").returncode, 0)
        self.assertEqual(compare("--verify", "--content").stdout, "equal: 2999 documents\n")
        self.assert_equal()


def fill_beyond_limit(source):
    """More documents than a comparison holds (DOUBTS_MAX)."""
    for begin in range(0, 100500, 25125):
        source.must("POST", "/_bulk", "".join('{"index":{"_index":"fs","_id":"%d"}}\n{}\n' % i for i in range(begin, begin + 25125)))


class Forgets(Target):
    """Acknowledges the documents of `fs`, and keeps none of them."""
    def write(self, operation, index, id, routing, version, kind, source):
        if index.name != "fs":
            return super().write(operation, index, id, routing, version, kind, source)
        return {"_index": index.name, "_type": "_doc", "_id": id, "_version": version, "result": "created", "status": 201}


@unittest.skipUnless(os.environ.get("TIDELOCK_TEST_LONG"), "half a minute; part of make test-long")
class MoreThanItHolds(replicate_test.Copy):
    new_target = Forgets

    def test_more_differences_than_limit(self):
        """More documents than a comparison holds differ, whatever is sent: the copy says so, and ends with 1."""
        fill_beyond_limit(self.source)
        self.once()
        self.cut_feed()
        said = self.once(expect=1)
        self.assertIn("everything is compared", said)
        self.assertIn("more than 100000 documents are not equal, and most of them were sent in vain", said)
        self.assertNotIn("the copy is complete", said)
        repair = subprocess.run(self.command("--repair"), capture_output=True, text=True, env=replicate_test.without_rests())
        self.assertEqual(repair.returncode, 1)
        self.assertIn("run --repair again", repair.stderr)


class Late(Target):
    """Shows no documents of `fs` until both sides have been walked twice."""
    walks = 0

    def search(self, name, query, body):
        if name == "fs":
            self.walks += 1
            if self.walks <= 2:
                return super().search("none-*", query, body)
        return super().search(name, query, body)

    def get_one(self, name, id, routing):
        found = super().get_one(name, id, routing)
        return found if name != "fs" or self.walks >= 2 else {**found, "found": False}


@unittest.skipUnless(os.environ.get("TIDELOCK_TEST_LONG"), "half a minute; part of make test-long")
class MoreThanItChecksAgain(replicate_test.Copy):
    new_target = Late

    def test_unchecked_differences_are_not_equality(self):
        """More documents than a comparison holds differ for a while: those that it holds have become equal, and of the others nothing is known."""
        fill_beyond_limit(self.source)
        self.once()
        self.target.walks = 0
        run = subprocess.run(self.command("--quiet", "--verify", "--json"), capture_output=True, text=True, env=replicate_test.without_rests())
        found = json.loads(run.stdout)
        self.assertEqual((run.returncode, found["equal"], found["missing"], found["more"]), (1, False, 0, True), run.stderr)
        self.assertIn("only 100000 of them were checked again", run.stderr)


class RandomRunsWithTombstones(RandomRuns):
    TOMBSTONES = True


if __name__ == "__main__":
    if sys.argv[1:2] == ["--record"]:
        played = play(sys.argv[2], lambda: subprocess.run(os.environ["TIDELOCK_TARGET_RESTART"], shell=True, check=True), False)
        os.makedirs(os.path.dirname(RECORDING), exist_ok=True)
        with open(RECORDING, "w", encoding="utf-8") as file:
            json.dump(played, file, indent=1, ensure_ascii=True)
            file.write("\n")
    else:
        replicate_test.main()
