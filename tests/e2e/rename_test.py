#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renames against a plain map of full paths: documents, versions, sequence numbers, searches, past timestamps, transactions, restarts.

The model renames every document below a directory individually. After each step every document is read, and some searches are
compared. The earlier states are kept with their timestamps and compared again at the end, after a restart and a crash, too.

    rename_test.py [--seed N] [--steps N]
"""
import argparse
import copy
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import unittest
from urllib.parse import quote

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import PROGRAM, Server, check_sound  # noqa: E402
from waiting import Waiting, until  # noqa: E402

INDEX = {
    "settings": {"analysis": {"analyzer": {"paths": {"tokenizer": "path_hierarchy"}},
                              "normalizer": {"low": {"type": "custom", "filter": ["lowercase"]}}}},
    "mappings": {"properties": {
        "path": {"type": "keyword", "fields": {"tree": {"type": "text", "analyzer": "paths"}, "low": {"type": "keyword", "normalizer": "low"}}},
        "n": {"type": "long"}}}}
NAMES = ["a", "b", "c", "A", "ab", "ä \"x\\", "d.txt"]
DOCUMENTS = 30
OPTIONS = None


def within(path, directory):
    return path == directory or path.startswith(directory + "/")


class Model:
    """id -> [path, n, version, seq_no]"""

    def __init__(self):
        self.documents = {}
        self.versions = {}

    def below(self, directory):
        return sorted(id for id, (path, _, _) in self.documents.items() if path is not None and within(path, directory))

    def rename(self, source, target, seq_no):
        for id in self.below(source):
            path, n, _ = self.documents[id]
            self.documents[id] = (target + path[len(source):], n, seq_no)
            self.versions[id] += 1


class Rename(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(OPTIONS.seed)
        self.server = Server.of_class(self)
        self.server.must("PUT", "/fs", INDEX)
        self.model = Model()
        self.past = []

    def path(self):
        return "/" + "/".join(self.random.choice(NAMES) for _ in range(self.random.randint(1, 4)))

    def some_path(self, model):
        """One that is there, or a directory of it, as a rule."""
        paths = [path for path, _, _ in model.documents.values() if path]
        if not paths or self.random.random() < 0.1:
            return self.path()
        parts = self.random.choice(paths).split("/")
        return "/".join(parts[:self.random.randint(2, len(parts))])

    # --- Steps ---

    def source(self, path, n):
        return {"n": n} if path is None else {"n": n, "path": path}

    def note(self, model, id, path, n, reply):
        model.documents[id] = (path, n, reply["_seq_no"])
        model.versions[id] = model.versions.get(id, 0) + 1
        self.assertEqual(reply["_version"], model.versions[id], (id, path))

    def put(self, model, headers):
        id, n = str(self.random.randrange(DOCUMENTS)), self.random.randrange(1000)
        path = None if self.random.random() < 0.1 else self.some_path(model) if self.random.random() < 0.3 else self.path()
        self.note(model, id, path, n, self.server.must("PUT", "/fs/_doc/" + id, self.source(path, n), headers))

    def update(self, model, headers):
        if not model.documents:
            return
        id = self.random.choice(sorted(model.documents))
        path, n, seq_no = model.documents[id]
        reply = self.server.must("POST", "/fs/_update/%s?if_seq_no=%d&if_primary_term=1" % (id, seq_no), {"doc": {"n": n + 1}}, headers)
        self.note(model, id, path, n + 1, reply)

    def delete(self, model, headers):
        if not model.documents:
            return
        id = self.random.choice(sorted(model.documents))
        reply = self.server.must("DELETE", "/fs/_doc/" + id, None, headers)
        del model.documents[id]
        model.versions[id] += 1
        self.assertEqual(reply["_version"], model.versions[id])

    def bulk(self, model, headers):
        lines, wanted = [], []
        for i in self.random.sample(range(DOCUMENTS + 20), 40):
            id, path, n = str(i), self.path(), self.random.randrange(1000)
            lines += [json.dumps({"index": {"_index": "fs", "_id": id}}), json.dumps(self.source(path, n))]
            wanted.append((id, path, n))
        reply = self.server.must("POST", "/_bulk", "\n".join(lines) + "\n", dict(headers, **{"Content-Type": "application/x-ndjson"}))
        self.assertFalse(reply["errors"], reply)
        for (id, path, n), item in zip(wanted, reply["items"]):
            self.note(model, id, path, n, item["index"])

    def rename(self, model, headers):
        source, target = self.some_path(model), self.path()
        there, taken = model.below(source), model.below(target)
        seq_no = max([model.documents[id][2] for id in there if model.documents[id][0] == source], default=-1)
        asked = self.random.choice([None, None, None, seq_no, seq_no, seq_no - 1])
        condition = "" if asked is None or asked < 0 else "?if_seq_no=%d&if_primary_term=1" % asked
        status, reply = self.server.ask("POST", "/fs/_rename" + condition, {"from": source, "to": target}, headers)
        wanted = 400 if within(target, source) else 404 if not there else 409 if taken or (condition and asked != seq_no) else 200
        self.assertEqual(status, wanted, (source, target, reply))
        if status == 200:
            self.assertEqual(reply["documents"], int(any(model.documents[id][0] == source for id in there)))
            self.assertEqual(reply["directories"], int(any(model.documents[id][0] != source for id in there)))
            stale = [(id, model.documents[id]) for id in there]
            model.rename(source, target, reply["_seq_no"])
            for id, (path, n, seq_no) in stale[:2]:  # a condition read before the rename is stale
                status, reply = self.server.ask("PUT", "/fs/_doc/%s?if_seq_no=%d&if_primary_term=1" % (id, seq_no), self.source(path, n), headers)
                self.assertEqual(status, 409, reply)

    def step(self, model, headers):
        what = self.random.random()
        (self.rename if what < 0.4 else self.put if what < 0.75 else self.update if what < 0.85 else self.delete if what < 0.93 else self.bulk)(model, headers)

    # --- Comparing ---

    def search(self, query, options, headers, sort=None):
        body = {"query": query, "size": 1000, "version": True, "seq_no_primary_term": True}
        if sort:
            body["sort"] = sort
        hits = self.server.must("POST", "/fs/_search" + options, body, headers)["hits"]["hits"]
        for hit in hits:
            self.assertEqual(hit["_source"], json.loads(json.dumps(self.source(*self.seen.documents[hit["_id"]][:2]))))
            self.assertEqual((hit["_version"], hit["_seq_no"]), (self.seen.versions[hit["_id"]], self.seen.documents[hit["_id"]][2]))
        return [hit["_id"] for hit in hits]

    def found(self, query, headers={}):
        return sorted(hit["_id"] for hit in self.server.must("POST", "/fs/_search", {"query": query}, headers)["hits"]["hits"])

    def compare(self, model, options="", headers={}):
        self.seen = model
        paths = {id: path for id, (path, _, _) in model.documents.items() if path is not None}
        self.assertEqual(sorted(self.search({"match_all": {}}, options, headers)), sorted(model.documents))
        if not options:
            for id in self.random.sample(sorted(model.documents), min(5, len(model.documents))):
                got = self.server.must("GET", "/fs/_doc/" + id, None, headers)
                path, n, seq_no = model.documents[id]
                self.assertEqual((got["_source"], got["_version"], got["_seq_no"]), (self.source(path, n), model.versions[id], seq_no))
        path = self.some_path(model)
        for query, fits in [
                ({"term": {"path": path}}, lambda p: p == path),
                ({"terms": {"path": [path, path + "/a"]}}, lambda p: p in (path, path + "/a")),
                ({"term": {"path.tree": path}}, lambda p: within(p, path)),
                ({"prefix": {"path": path + "/"}}, lambda p: p.startswith(path + "/")),
                ({"prefix": {"path": path[:-1]}}, lambda p: p.startswith(path[:-1])),
                ({"prefix": {"path.tree": path}}, lambda p: p.startswith(path)),
                ({"wildcard": {"path": path.replace("\\", "\\\\")[:-1].rstrip("\\") + "*"}}, lambda p: p.startswith(path[:-1].rstrip("\\"))),
                ({"range": {"path": {"gte": path}}}, lambda p: p.encode() >= path.encode()),
                ({"term": {"path.low": path.lower()}}, lambda p: p.lower() == path.lower()),
                ({"exists": {"field": "path"}}, lambda p: True)]:
            self.assertEqual(sorted(self.search(query, options, headers)), sorted(id for id, p in paths.items() if fits(p)), (query, options))
        self.compare_listing(paths, options, headers)
        got = self.search({"exists": {"field": "path"}}, options, headers, [{"path": "asc"}, {"n": "asc"}])
        self.assertEqual([paths[id] for id in got], sorted(paths.values(), key=lambda p: p.encode()))

    def listing(self, directory, options, headers):
        """The names in a directory, page by page: those of directories, and of documents with their ids."""
        directories, documents, after = [], [], ""
        while True:
            status, page = self.server.ask("GET", "/fs/_tree%spath=%s&size=%d&after=%s&_source=path" % (
                options + "&" if options else "?", quote(directory), self.random.choice([1, 2, 100]), quote(after)), None, headers)
            if status == 404:
                return [], []
            self.assertEqual(status, 200, page)
            directories += [entry["name"] for entry in page["directories"]]
            documents += [(entry["name"], entry["_id"]) for entry in page["documents"]]
            for entry in page["documents"]:
                self.assertEqual(entry["_source"]["path"], directory + "/" + entry["name"])
                self.assertEqual((entry["_version"], entry["_seq_no"]), (self.seen.versions[entry["_id"]], self.seen.documents[entry["_id"]][2]))
            after = page.get("after")
            if not after:
                return directories, documents

    def compare_listing(self, paths, options, headers):
        directory = self.random.choice(["", "/a", os.path.dirname(self.some_path(self.seen)).rstrip("/")])
        below = [(path[len(directory) + 1:], id) for id, path in paths.items() if path.startswith(directory + "/")]
        directories, documents = self.listing(directory, options, headers)
        self.assertEqual(sorted(directories), sorted({rest.split("/")[0] for rest, _ in below if "/" in rest}), (directory, options))
        self.assertEqual(sorted(documents), sorted((rest, id) for rest, id in below if "/" not in rest), (directory, options))

    def now(self):
        return "?timestamp=%d" % self.server.must("GET", "/_timestamp")["timestamp"]

    def test_single_renames(self):
        for step in range(OPTIONS.steps):
            self.step(self.model, {})
            self.compare(self.model)
            if step % 4 == 0:
                self.past.append((self.now(), copy.deepcopy(self.model)))
            if step % 20 == 19:
                (self.server.kill if step % 40 == 39 else self.server.stop)()
                self.server.start()
        for options, model in self.past:
            self.compare(model, options)
        self.server.stop()
        check_sound(self.server.data)
        self.server.start()

    def test_renames_in_transactions(self):
        for step in range(OPTIONS.steps // 4):
            transaction = self.server.must("POST", "/_transaction", {"mode": "update"})["transaction"]
            headers = {"Tidelock-Transaction": transaction}
            own = copy.deepcopy(self.model)
            for _ in range(self.random.randint(1, 4)):
                self.step(own, headers)
                self.compare(own, "", headers)
            self.compare(self.model, self.now())
            commit = self.random.random() < 0.6
            self.server.must("POST", "/_transaction/%s/%s" % (transaction, "_commit" if commit else "_rollback"))
            if commit:
                self.model = own
            self.compare(self.model)
            self.past.append((self.now(), copy.deepcopy(self.model)))
        for options, model in self.past:
            self.compare(model, options)
        self.server.stop()
        check_sound(self.server.data)
        self.server.start()

    def test_rename_back_to_original_path_and_away(self):
        """What a transaction writes where it has renamed something home and away again is found, by itself and when it has committed."""
        self.server.must("PUT", "/fs/_doc/1", {"path": "/p/one"})
        self.server.must("POST", "/fs/_rename", {"from": "/p", "to": "/q"})
        own = {"Tidelock-Transaction": self.server.must("POST", "/_transaction", {"mode": "update"})["transaction"]}
        self.server.must("POST", "/fs/_rename", {"from": "/q", "to": "/p"}, own)
        self.server.must("POST", "/fs/_rename", {"from": "/p", "to": "/z"}, own)
        self.server.must("PUT", "/fs/_doc/3", {"path": "/p/three"}, own)

        def found(headers):
            return [self.found(query, headers) for query in
                    ({"term": {"path": "/p/three"}}, {"prefix": {"path": "/p/"}}, {"term": {"path.tree": "/p"}}, {"term": {"path.tree": "/z"}})]
        self.assertEqual(found(own), [["3"], ["3"], ["3"], ["1"]])
        self.server.must("POST", "/_transaction/%s/_commit" % own["Tidelock-Transaction"])
        self.assertEqual(found({}), [["3"], ["3"], ["3"], ["1"]])
        self.server.must("POST", "/fs/_rename", {"from": "/p", "to": "/w"})
        self.assertEqual(self.server.must("GET", "/fs/_doc/3")["_source"], {"path": "/w/three"})

    def test_invalid_renames(self):
        self.server.must("PUT", "/fs/_doc/1", {"path": "/a/b"})
        for body, status, word in [
                ({"to": "/x"}, 400, "from"), ({"from": "/a"}, 400, "to"), ({"from": "/", "to": "/x"}, 400, "root"), ({"from": "/a", "to": "/"}, 400, "root"),
                ({"from": "/a", "to": "/a"}, 400, "itself"), ({"from": "/a", "to": "/a/b/c"}, 400, "below"), ({"from": "/x", "to": "/y"}, 404, "nothing is"),
                ({"from": "/a/b/", "to": "/y"}, 400, "not a directory"), ({"from": "/a//b", "to": "/y"}, 400, "empty"), ({"from": "a", "to": "/y"}, 400, "begin"),
                ({"from": "/a/../a", "to": "/y"}, 400, ".."), ({"from": "/a*", "to": "/y"}, 404, "nothing is"), ({"from": "/a", "to": "/y", "why": 1}, 400, "why")]:
            got, reply = self.server.ask("POST", "/fs/_rename", body)
            self.assertEqual(got, status, (body, reply))
            self.assertIn(word, reply["error"]["reason"], body)
        self.server.must("PUT", "/fs/_doc/2", {"path": "/c"})
        self.assertEqual(self.server.ask("POST", "/fs/_rename", {"from": "/a", "to": "/c"})[1]["error"]["type"], "path_exists_exception")
        self.assertEqual(self.server.ask("POST", "/none/_rename", {"from": "/a", "to": "/c"})[0], 404)
        self.server.must("PUT", "/plain/_doc/2", {"path": "/c"})
        self.assertIn("no path field", self.server.ask("POST", "/plain/_rename", {"from": "/c", "to": "/d"})[1]["error"]["reason"])
        self.server.must("PUT", "/late", {"settings": INDEX["settings"], "mappings": {"properties": {"path": {"type": "keyword"}}}})
        self.server.must("PUT", "/late/_mapping", {"properties": {"path": INDEX["mappings"]["properties"]["path"]}})
        self.assertIn("_reindex", self.server.ask("POST", "/late/_rename", {"from": "/c", "to": "/d"})[1]["error"]["reason"])
        for query, word in [("if_seq_no=3", "primary term is [0]"), ("if_primary_term=1", "ifSeqNo is unassigned"), ("if_seq_no=-1&if_primary_term=1", "non negative"),
                            ("if_seq_no=x&if_primary_term=1", "if_seq_no")]:
            status, reply = self.server.ask("POST", "/fs/_rename?" + query, {"from": "/a", "to": "/d"})
            self.assertEqual((status, word in reply["error"]["reason"]), (400, True), reply)
        self.assertEqual(self.server.ask("POST", "/fs/_rename?timestamp=5", {"from": "/a", "to": "/d"})[0], 400)

    def test_optimistic(self):
        """A condition that was read before a rename is refused, of a write and of a rename; alone and in transactions."""
        for transactions in [False, True]:
            self.server.ask("DELETE", "/fs")
            self.server.must("PUT", "/fs", INDEX)
            for id, path in [("d", "/a"), ("1", "/a/b"), ("2", "/a/b/c"), ("3", "/z"), ("4", "/q/r")]:
                self.server.must("PUT", "/fs/_doc/" + id, {"path": path})
            seen = {id: self.server.must("GET", "/fs/_doc/" + id) for id in "d1234"}
            before = self.now()
            headers = {"Tidelock-Transaction": self.server.must("POST", "/_transaction", {"mode": "update"})["transaction"]} if transactions else {}

            def refused(method, path, body, seq_no, word="current document has seqNo"):
                status, reply = self.server.ask(method, "%s?if_seq_no=%d&if_primary_term=1" % (path, seq_no), body, headers)
                self.assertEqual((status, reply["error"]["type"]), (409, "version_conflict_engine_exception"), reply)
                self.assertIn(word, reply["error"]["reason"])

            refused("POST", "/fs/_rename", {"from": "/a", "to": "/x"}, seen["2"]["_seq_no"])
            refused("POST", "/fs/_rename", {"from": "/q", "to": "/x"}, seen["4"]["_seq_no"], "no document was found")
            if not transactions:
                self.assertEqual(self.server.must("GET", "/fs/_doc/4"), seen["4"])
                status, reply = self.server.ask("POST", "/fs/_rename?if_seq_no=0&if_primary_term=2", {"from": "/a", "to": "/x"})
                self.assertEqual(status, 409, reply)
            reply = self.server.must("POST", "/fs/_rename?if_seq_no=%d&if_primary_term=1" % seen["d"]["_seq_no"], {"from": "/a", "to": "/x"}, headers)
            self.assertEqual((reply["directories"], reply["documents"]), (1, 1))
            for id in "d12":
                got = self.server.must("GET", "/fs/_doc/" + id, None, headers)
                self.assertEqual((got["_version"], got["_seq_no"]), (seen[id]["_version"] + 1, reply["_seq_no"]))
                self.assertEqual(got["_source"]["path"], "/x" + seen[id]["_source"]["path"][2:])
                refused("PUT", "/fs/_doc/" + id, {"path": "/x/n"}, seen[id]["_seq_no"])
                refused("DELETE", "/fs/_doc/" + id, None, seen[id]["_seq_no"])
                refused("POST", "/fs/_update/" + id, {"doc": {"n": 1}}, seen[id]["_seq_no"])
            refused("POST", "/fs/_rename", {"from": "/x", "to": "/a"}, seen["d"]["_seq_no"])
            self.assertEqual(self.server.must("GET", "/fs/_doc/3", None, headers)["_seq_no"], seen["3"]["_seq_no"])
            for id in "1":
                reply = self.server.must("PUT", "/fs/_doc/%s?if_seq_no=%d&if_primary_term=1" % (id, reply["_seq_no"]), {"path": "/x/b"}, headers)
                self.assertEqual(reply["_version"], seen[id]["_version"] + 2)
            self.server.must("POST", "/fs/_rename?if_seq_no=%d&if_primary_term=1" % reply["_seq_no"], {"from": "/x/b", "to": "/y"}, headers)
            if transactions:
                self.server.must("POST", "/_transaction/%s/_commit" % headers["Tidelock-Transaction"])
            self.assertEqual(self.server.must("GET", "/fs/_doc/2")["_source"]["path"], "/y/c")
            versions = self.server.must("GET", "/fs/_doc/2?version_history=true")["versions"]
            self.assertEqual([version["_version"] for version in versions], [3, 1] if transactions else [3, 2, 1])
            self.assertEqual(self.server.must("GET", "/fs/_doc/2" + before)["_source"]["path"], "/a/b/c")
            self.assertEqual(self.server.must("GET", "/fs/_doc/2?timestamp=%d" % versions[0]["from"])["_source"]["path"], "/y/c")
            self.assertEqual(self.server.must("GET", "/fs/_doc/2?timestamp=%d" % (versions[0]["from"] - 1))["_source"]["path"], "/a/b/c" if transactions else "/x/b/c")

    def test_locks(self):
        self.server.must("PUT", "/fs/_doc/1", {"path": "/a/b/c"})
        holder = self.server.must("POST", "/_session", {"ttl": "1h"})["session"]
        self.server.must("POST", "/_lock", {"session": holder, "locks": [{"mode": "shared", "index": "fs", "path": "/a/b"}]})
        rename = {"from": "/a", "to": "/x"}
        status, reply = self.server.ask("POST", "/fs/_rename?timeout=50ms", rename)
        self.assertEqual((status, reply["error"]["type"]), (409, "lock_wait_timeout_exception"))
        self.server.must("POST", "/_unlock", {"session": holder})
        self.server.must("POST", "/_lock", {"session": holder, "locks": [{"mode": "exclusive", "index": "fs", "path": "/x/y"}]})
        self.assertEqual(self.server.ask("POST", "/fs/_rename?timeout=50ms", rename)[0], 409)
        self.server.must("POST", "/fs/_rename", rename, {"Tidelock-Session": holder})
        self.assertEqual(self.server.must("GET", "/fs/_doc/1")["_source"], {"path": "/x/b/c"})

    def test_longest_path(self):
        """No rename makes a path longer than the limit of written paths; its documents stay in the tree."""
        deep, most = ("/" + "y" * 249) * 32, 16384
        self.server.must("PUT", "/fs/_doc/1", {"path": "/a" + deep, "n": 1})
        self.server.must("PUT", "/fs/_doc/2", {"path": "/s/t", "n": 1})

        def refused(source, target, word, headers={}):
            status, reply = self.server.ask("POST", "/fs/_rename", {"from": source, "to": target}, headers)
            self.assertEqual(status, 400)
            self.assertIn(word, reply["error"]["reason"])

        refused("/a", "/" + "b" * (most - len(deep)), "would have [%d] bytes" % (most + 1))
        self.server.must("POST", "/fs/_rename", {"from": "/a", "to": "/" + "b" * (most - len(deep) - 1)})
        self.server.must("POST", "/fs/_update/1", {"doc": {"n": 2}})
        self.server.must("POST", "/fs/_rename", {"from": "/" + "b" * (most - len(deep) - 1), "to": "/c"})
        self.assertEqual(self.server.must("GET", "/fs/_doc/1")["_source"], {"path": "/c" + deep, "n": 2})
        own = {"Tidelock-Transaction": self.server.must("POST", "/_transaction", {"mode": "update"})["transaction"]}
        for headers in [own, {}]:  # moved down repeatedly, and then its parent renamed to the original name
            for _ in range(2):
                self.server.must("POST", "/fs/_rename", {"from": "/s", "to": "/u" + deep[:7000] + "/s"}, headers)
                self.server.must("POST", "/fs/_rename", {"from": "/u", "to": "/s"}, headers)
            refused("/s", "/u" + deep[:7000] + "/s", "would have", headers)
            if headers:
                self.server.must("POST", "/_transaction/%s/_rollback" % own["Tidelock-Transaction"])
        lines = [json.dumps(line) for i in range(1001) for line in ({"index": {"_id": "m%d" % i}}, {"path": "/m/%d" % i})]
        self.server.must("POST", "/fs/_bulk", "\n".join(lines) + "\n", {"Content-Type": "application/x-ndjson"})
        self.server.must("POST", "/fs/_rename", {"from": "/m", "to": "/n/m"})
        refused("/n", "/" + "n" * 16000, "too many to check")
        self.server.must("POST", "/fs/_rename", {"from": "/n/m", "to": "/n/o"})
        refused("/c", "/" + "x" * 9000, "would have")

    def test_longest_origin(self):
        """A directory created below a long path, with long paths created below it, cannot be renamed any more."""
        deep = ("/" + "l" * 249) * 64
        self.server.must("PUT", "/fs/_doc/1", {"path": deep + "/f"})
        self.server.must("POST", "/fs/_rename", {"from": deep, "to": "/d"})
        self.server.must("PUT", "/fs/_doc/2", {"path": "/d" + deep + "/f"})
        status, reply = self.server.ask("POST", "/fs/_rename", {"from": "/d" + deep, "to": "/e"})
        self.assertEqual((status, "too often" in reply["error"]["reason"], "_reindex" in reply["error"]["reason"]), (400, True, True))
        self.server.must("POST", "/fs/_rename", {"from": "/d", "to": "/e"})
        self.assertEqual(self.server.must("GET", "/fs/_doc/2")["_source"]["path"], "/e" + deep + "/f")

    def test_two_hierarchies(self):
        """A family that is cut in two ways is found by both; a copy of the path is refused, since it would not move."""
        fields = {"paths": {"type": "text", "analyzer": "paths"}, "zdots": {"type": "text", "analyzer": "dots"}}
        settings = {"analysis": {"analyzer": {"paths": {"tokenizer": "path_hierarchy"}, "dots": {"tokenizer": "dots"}},
                                 "tokenizer": {"dots": {"type": "path_hierarchy", "delimiter": "."}}}}
        wanted = [({"term": {"path.zdots": path}}, ids) for path, ids in
                  [("/a", []), ("/a.b/c", []), ("/a.b/c.d", []), ("/e", ["1", "2"]), ("/e.f/c", ["1", "2"]), ("/e.f/c.d", ["1"]), ("/e.f", [])]]
        wanted += [({"terms": {"path.zdots": ["/e"]}}, ["1", "2"]), ({"match": {"path.zdots": "/e.f/c.d"}}, ["1", "2"]), ({"prefix": {"path.zdots": "/e.f/"}}, ["1", "2"]),
                   ({"bool": {"filter": {"term": {"path.zdots": "/e"}}}}, ["1", "2"]), ({"term": {"path.paths": "/e.f"}}, ["1", "2"]), ({"term": {"path.paths": "/e"}}, [])]
        for late in [False, True]:
            self.server.must("DELETE", "/fs")
            first = {name: field for name, field in fields.items() if name == "paths" or not late}
            self.server.must("PUT", "/fs", {"settings": settings, "mappings": {"properties": {"path": {"type": "keyword", "fields": first}}}})
            self.server.must("PUT", "/fs/_doc/1", {"path": "/a.b/c.d"})
            self.server.must("PUT", "/fs/_mapping", {"properties": {"path": {"type": "keyword", "fields": fields}}})
            self.server.must("PUT", "/fs/_doc/2", {"path": "/a.b/c.e"})
            self.server.must("POST", "/fs/_rename", {"from": "/a.b", "to": "/e.f"})
            for query, ids in wanted:
                self.assertEqual(self.found(query), ids, query)
        self.server.must("PUT", "/fs/_mapping", {"properties": {"path": {"type": "keyword", "fields": fields, "copy_to": "all"}, "all": {"type": "keyword"}}})
        self.server.must("PUT", "/fs/_doc/3", {"path": "/e.f/n"})
        status, reply = self.server.ask("POST", "/fs/_rename", {"from": "/e.f", "to": "/g"})
        self.assertEqual((status, "copy_to" in reply["error"]["reason"]), (400, True))
        self.assertEqual(self.found({"term": {"all": "/e.f/n"}}), ["3"])

    def test_import_after_renames(self):
        """`tidelock import` finds a file's document by its path, whatever was renamed: none is made twice, pulled back, or left out, also of names that are no UTF-8, of which two are one in documents."""
        with tempfile.TemporaryDirectory() as folder:
            tree = os.path.realpath(folder)
            for name in ("a", "b\udcff", "b\udcfe", "sub/c"):
                os.makedirs(os.path.dirname(os.path.join(tree, name)), exist_ok=True)
                with open(os.path.join(tree, name), "w", encoding="utf-8") as file:
                    file.write("text")
            names = ["", "/a", "/b\ufffd", "/b\ufffd", "/sub", "/sub/c"]

            def load(root, *options):
                done = subprocess.run([PROGRAM, "import", "--quiet", "--url", self.server.url, "--index", "files", "--root", root, *options, tree],
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
                self.assertEqual(done.returncode, 0, done.stdout)
                return [int(number) for number in re.findall(rb"(\d+) (?:documents created|updated|already there)", done.stdout)]

            def listed():
                hits = self.server.must("POST", "/files/_search", {"size": 100})["hits"]["hits"]
                return sorted((hit["_source"]["path"], hit["_id"]) for hit in hits)
            self.assertEqual(load("/src"), [6, 0, 0])
            self.assertEqual(load("/src"), [0, 0, 6])
            self.server.must("POST", "/files/_rename", {"from": "/src", "to": "/dst"})
            moved = listed()
            self.assertEqual(load("/dst"), [0, 0, 6])
            self.assertEqual(listed(), moved)
            self.assertEqual(load("/src"), [6, 0, 0])
            before = listed()
            self.assertEqual([path for path, _ in before], ["/dst" + name for name in names] + ["/src" + name for name in names])
            for root in ("/src", "/dst"):
                self.assertEqual(load(root, "--update"), [0, 6, 0])
                self.assertEqual(load(root), [0, 0, 6])
            self.assertEqual(listed(), before)

    def test_token_of_a_commit(self):
        """Renames count as changes of their transaction; a commit's token covers them."""
        self.server.must("PUT", "/fs/_doc/1", {"path": "/t/x"})
        session = self.server.must("POST", "/_session", {"ttl": "1h"})["session"]

        def locked(*paths):
            return self.server.must("POST", "/_lock", {"session": session, "locks": [{"mode": "exclusive", "index": "fs", "path": path} for path in paths]})["fencing_token"]

        def begin():
            return self.server.must("POST", "/_transaction", {"mode": "update", "session": session})["transaction"]
        tokens = [locked("/elsewhere"), locked("/t"), locked("/t", "/u")]
        transaction = begin()
        own = {"Tidelock-Transaction": transaction}
        self.server.must("POST", "/fs/_rename", {"from": "/t", "to": "/u"}, own)
        self.assertEqual(self.server.must("GET", "/_transaction/" + transaction)["changes"], 1)
        for token in tokens[:2]:
            status, reply = self.server.ask("POST", "/_transaction/%s/_commit?fencing_token=%d" % (transaction, token))
            self.assertEqual((status, reply["error"]["type"]), (409, "stale_fencing_token_exception"))
        self.assertEqual(self.server.must("POST", "/_transaction/%s/_commit?fencing_token=%d" % (transaction, tokens[2]))["changes"], 1)

    def test_waiting_lock_after_rollback_has_original_path(self):
        """A request that waited for a document renamed by a transaction locks its original path after the rollback."""
        self.server.must("PUT", "/fs/_doc/1", {"path": "/a/x"})
        transaction = self.server.must("POST", "/_transaction", {"mode": "update"})["transaction"]
        own = {"Tidelock-Transaction": transaction}
        self.server.must("POST", "/fs/_rename", {"from": "/a", "to": "/b"}, own)
        self.server.must("GET", "/fs/_doc/1", None, own)
        self.server.must("PUT", "/fs/_doc/1", {"path": "/b/x", "n": 2}, own)
        holder, other = (self.server.must("POST", "/_session", {"ttl": "1h"})["session"] for _ in range(2))
        waiting = Waiting(self.server, "POST", "/_lock", {"session": holder, "wait": "10m", "locks": [{"mode": "exclusive", "index": "fs", "id": "1"}]})
        until(lambda: any(lock["waiters"] for lock in self.server.must("GET", "/_lock")["locks"]), "it waits")
        self.server.must("POST", "/_transaction/%s/_rollback" % transaction)
        waiting.join()
        self.assertEqual(waiting.status, 200, waiting.reply)
        self.assertEqual([lock["path"] for lock in self.server.must("GET", "/_lock")["locks"]], ["/a/x"])
        for path, status in [("/a", 409), ("/b", 200)]:
            self.assertEqual(self.server.ask("POST", "/_lock", {"session": other, "wait": "0s", "locks": [{"mode": "exclusive", "index": "fs", "path": path}]})[0],
                             status, path)

    def test_history(self):
        self.server.must("PUT", "/fs/_doc/1", {"path": "/a/b"})
        self.server.must("POST", "/fs/_rename", {"from": "/a", "to": "/c"})
        self.server.must("PUT", "/fs/_doc/1", {"path": "/c/b", "n": 1})
        last = self.server.must("POST", "/fs/_rename", {"from": "/c", "to": "/d"})["timestamp"]
        versions = self.server.must("GET", "/fs/_doc/1?version_history=true")["versions"]
        self.assertEqual([version["_version"] for version in versions], [4, 3, 2, 1])
        self.assertEqual(versions[0]["from"], last)
        paths = [self.server.must("GET", "/fs/_doc/1?timestamp=%d" % version["from"])["_source"]["path"] for version in versions]
        self.assertEqual(paths, ["/d/b", "/c/b", "/c/b", "/a/b"])

    def test_history_of_an_ended_session(self):
        """A rename moves no ephemeral document that a session's end has removed and that is yet to be purged: such a document has no version of then."""
        session = self.server.must("POST", "/_session", {"ttl": "1h"})["session"]
        for first in range(0, 3000, 1000):
            self.server.must("POST", "/fs/_bulk?lease=" + session,
                             "".join('{"index":{"_id":"%d"}}\n{"path":"/a/%d"}\n' % (id, id) for id in range(first, first + 1000)))
        self.server.must("PUT", "/fs/_doc/kept", {"path": "/a/kept"})
        end = self.server.must("DELETE", "/_session/" + session)["timestamp"]
        self.server.must("POST", "/fs/_rename", {"from": "/a", "to": "/b"})
        for id in range(999, 900, -1):  # purged last
            versions = self.server.must("GET", "/fs/_doc/%d?version_history=true" % id)["versions"]
            self.assertEqual([(it["_version"], it["to"]) for it in versions if not it["deleted"]], [(1, end)])

    def test_highest_version(self):
        """A version that a client made the highest there is cannot be raised: no rename of it, alone or in a transaction."""
        highest = 2 ** 63 - 1
        self.server.must("PUT", "/fs/_doc/1?version_type=external&version=%d" % (highest - 1), {"path": "/a/b"})
        self.server.must("PUT", "/fs/_doc/2", {"path": "/z/b"})
        self.server.must("POST", "/fs/_rename", {"from": "/a", "to": "/c"})
        own = {"Tidelock-Transaction": self.server.must("POST", "/_transaction", {"mode": "update"})["transaction"]}
        for headers in [{}, own]:
            for source, target in [("/c", "/d"), ("/c/b", "/d")]:
                status, reply = self.server.ask("POST", "/fs/_rename", {"from": source, "to": target}, headers)
                self.assertEqual((status, reply["error"]["reason"]), (400, "the version of [1] cannot be raised any more"))
            self.assertEqual(self.server.must("GET", "/fs/_doc/1", None, headers)["_version"], highest)
        self.server.must("PUT", "/fs/_doc/3?version_type=external&version=%d" % highest, {"path": "/y/b"}, own)
        self.assertEqual(self.server.ask("POST", "/fs/_rename", {"from": "/y", "to": "/x"}, own)[0], 400)
        self.server.must("POST", "/fs/_rename", {"from": "/z", "to": "/y/z"}, own)
        self.server.must("POST", "/_transaction/%s/_commit" % own["Tidelock-Transaction"])
        self.server.stop()
        self.server.start()
        self.assertEqual(self.server.ask("POST", "/fs/_rename", {"from": "/y", "to": "/x"})[0], 400)
        self.assertEqual(self.server.ask("PUT", "/fs/_doc/1", {"path": "/a/b"})[0], 400)
        self.server.must("PUT", "/fs/_doc/3?version_type=external_gte&version=%d" % highest, {"n": 1})
        self.server.must("POST", "/fs/_rename", {"from": "/y", "to": "/x"})
        self.server.must("DELETE", "/fs/_doc/1?version_type=external_gte&version=%d" % highest)
        self.server.must("PUT", "/fs/_doc/4", {"path": "/c/e"})
        self.server.must("POST", "/fs/_rename", {"from": "/c", "to": "/d"})
        self.server.stop()
        check_sound(self.server.data)

    def test_rename_of_emptied_directory(self):
        """Renames to and of a directory that was emptied document by document, during writes into it."""
        lay = [json.dumps(line) for i in range(400) for line in ({"index": {"_id": "b%d" % i}}, {"path": "/big/%d/f" % i})]
        gone = [json.dumps({"delete": {"_id": "b%d" % i}}) for i in range(400)]
        for turn in range(30):
            for lines in (lay, gone):
                self.server.must("POST", "/fs/_bulk", "\n".join(lines) + "\n", {"Content-Type": "application/x-ndjson"})
            self.assertEqual(self.server.ask("POST", "/fs/_rename", {"from": "/big", "to": "/y"})[0], 404)
            self.server.must("PUT", "/fs/_doc/x", {"path": "/x/y"})
            own = self.server.connect()
            writer = threading.Thread(target=self.server.request, args=("PUT", "/fs/_doc/new", {"path": "/big/new"}), kwargs={"connection": own})
            if turn % 3 > 0:
                writer.start()
            status, reply = self.server.ask("POST", "/fs/_rename", {"from": "/x", "to": "/big"})
            if turn % 3 > 0:
                writer.join()
                own.close()
                self.assertEqual(self.server.must("GET", "/fs/_doc/new")["_source"]["path"], "/big/new")
            self.assertIn((status, reply.get("error", {}).get("type")), ((200, None), (409, "path_exists_exception")), reply)
            self.assertTrue(status == 200 or turn % 3 > 0)
            self.assertEqual(self.server.must("GET", "/fs/_doc/x")["_source"]["path"], "/big/y" if status == 200 else "/x/y")
            below = self.server.must("POST", "/fs/_count", {"query": {"term": {"path.tree": "/big"}}})["count"]
            self.assertEqual(below, (status == 200) + (turn % 3 > 0))
            for id in ("x", "new")[:1 + (turn % 3 > 0)]:
                self.server.must("DELETE", "/fs/_doc/" + id)
        self.server.stop()
        check_sound(self.server.data)

    def test_tree(self):
        """Listing of a directory, page by page: long names, several documents at one path, several levels, past timestamps, transactions."""
        long = ["x" * 300 + str(i) for i in range(6)]
        paths = {"1": "/a", "2": "/a/b", "3": "/a/b/c", "4": "/a/b!x", "5": "/a/b!x/y", "6": "/a/b", "7": "/z/", "8": "relative", "9": None}
        paths.update(("l%d" % i, "/long/" + name) for i, name in enumerate(long))
        paths.update(("m%d" % i, "/long/%s/deep" % name) for i, name in enumerate(long[:3]))
        paths.update(("n%d" % i, "/%s/%s/n" % (long[0], name)) for i, name in enumerate(long))
        for id, path in paths.items():
            self.server.must("PUT", "/fs/_doc/" + id, {} if path is None else {"path": path})
        self.seen = Model()
        for id, path in paths.items():
            self.seen.documents[id], self.seen.versions[id] = (path, 0, list(paths).index(id)), 1
        before = self.now()
        for _ in range(5):
            self.assertEqual(self.listing("", "", {}), ([*sorted(["a", "long", long[0], "z"])], [("a", "1")]))
            self.assertEqual(self.listing("/long", "", {}), (long[:3], [(name, "l%d" % i) for i, name in enumerate(long)]))
            self.assertEqual(self.listing("/" + long[0], "", {}), (long, []))
            self.assertEqual(self.listing("/a", "", {}), (["b!x", "b"], [("b", "2"), ("b", "6"), ("b!x", "4")]))
        self.assertEqual(self.server.must("GET", "/fs/_tree?path=/z/")["documents"][0]["name"], "")
        transaction = {"Tidelock-Transaction": self.server.must("POST", "/_transaction", {"mode": "update"})["transaction"]}
        self.server.must("POST", "/fs/_rename", {"from": "/long", "to": "/a/b/d"}, transaction)
        self.server.must("POST", "/fs/_rename", {"from": "/" + long[0], "to": "/q/r"}, transaction)
        self.assertEqual([entry["name"] for entry in self.server.must("GET", "/fs/_tree", None, transaction)["directories"]], ["a", "q", "z"])
        self.assertEqual([entry["name"] for entry in self.server.must("GET", "/fs/_tree")["directories"]], ["a", "long", long[0], "z"])
        self.server.must("POST", "/_transaction/%s/_commit" % transaction["Tidelock-Transaction"])
        for id in [*("l%d" % i for i in range(6)), *("m%d" % i for i in range(3))]:
            self.seen.versions[id], self.seen.documents[id] = 2, (0, 0, self.server.must("GET", "/fs/_doc/" + id)["_seq_no"])
        self.assertEqual(self.listing("/a/b/d", "", {}), (long[:3], [(name, "l%d" % i) for i, name in enumerate(long)]))
        self.assertEqual(self.listing("/q/r", "", {}), (long, []))
        reply = self.server.must("GET", "/fs/_tree?depth=3&path=/q")
        self.assertEqual([entry["name"] for entry in reply["directories"][0]["directories"]], long)
        self.assertEqual(reply["directories"][0]["directories"][0]["documents"][0]["_id"], "n0")
        self.assertEqual(len(self.server.must("GET", "/fs/_tree%s&path=/long" % before)["documents"]), 6)
        for asked, status, word in [
                ("path=/long", 404, "nothing is"), ("path=a", 400, "begins with"), ("depth=0", 400, "depth"), ("depth=17", 400, "depth"),
                ("size=0", 400, "size"), ("size=10001", 400, "size"), ("depth=2&after=a", 400, "after"), ("depth=4&size=3", 400, "are in"), ("deep=1", 400, "deep")]:
            got, reply = self.server.ask("GET", "/fs/_tree?" + asked)
            self.assertEqual((got, word in reply["error"]["reason"]), (status, True), (asked, reply))
        self.server.must("DELETE", "/fs/_doc/3")
        self.assertEqual(self.server.must("GET", "/fs/_tree?path=/a/b")["documents"], [])
        self.server.must("PUT", "/plain/_doc/2", {"path": "/c"})
        self.assertIn("has no tree", self.server.ask("GET", "/plain/_tree")[1]["error"]["reason"])

    def test_spelling(self):
        """The source stays as it was written, byte for byte, but for a path that is another one."""
        first = '{ "path" :  "\\/a\\u002fb" , "n":1.0e1 }'
        self.server.must("PUT", "/fs/_doc/1", first, {"Content-Type": "application/json"})
        self.server.must("PUT", "/fs/_doc/2", {"path": "/z/q"})
        self.server.must("POST", "/fs/_rename", {"from": "/z", "to": "/y"})
        read = lambda: self.server.request("GET", "/fs/_source/1").body  # noqa: E731
        self.assertEqual(read(), first.encode())
        self.server.must("POST", "/fs/_rename", {"from": "/a", "to": "/c \"d\""})
        self.assertEqual(read(), b'{ "path" :  "/c \\"d\\"/b" , "n":1.0e1 }')
        self.server.must("POST", "/fs/_rename", {"from": "/c \"d\"", "to": "/a"})
        self.assertEqual(read(), first.encode())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=60)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=sys.argv[:1] + rest)
