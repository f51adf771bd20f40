#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renames against a plain map of full paths: documents, versions, sequence numbers, searches, the past, transactions, restarts.

The model renames every document below by hand. After each step every document is read, and some searches are compared; the states of
before are kept with their timestamps and compared again at the end, after a restart and a crash, too.

    rename_test.py [--seed N] [--steps N]
"""
import argparse
import copy
import json
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server, check  # noqa: E402

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
        self.server = Server().start()
        self.addCleanup(self.server.close)
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
        status, reply = self.server.ask("POST", "/fs/_rename", {"from": source, "to": target}, headers)
        wanted = 400 if within(target, source) else 404 if not there else 409 if taken else 200
        self.assertEqual(status, wanted, (source, target, reply))
        if status == 200:
            self.assertEqual(reply["documents"], int(any(model.documents[id][0] == source for id in there)))
            self.assertEqual(reply["directories"], int(any(model.documents[id][0] != source for id in there)))
            stale = [(id, model.documents[id]) for id in there]
            model.rename(source, target, reply["_seq_no"])
            for id, (path, n, seq_no) in stale[:2]:  # whoever read before the rename is not believed
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
        got = self.search({"exists": {"field": "path"}}, options, headers, [{"path": "asc"}, {"n": "asc"}])
        self.assertEqual([paths[id] for id in got], sorted(paths.values(), key=lambda p: p.encode()))

    def now(self):
        return "?timestamp=%d" % self.server.must("GET", "/_timestamp")["timestamp"]

    def test_alone(self):
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
        self.assertEqual(check(self.server.data)[0], 0, check(self.server.data)[1])
        self.server.start()

    def test_in_transactions(self):
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
        self.assertEqual(check(self.server.data)[0], 0, check(self.server.data)[1])
        self.server.start()

    def test_what_is_refused(self):
        self.server.must("PUT", "/fs/_doc/1", {"path": "/a/b"})
        for body, status, word in [
                ({"to": "/x"}, 400, "from"), ({"from": "/a"}, 400, "to"), ({"from": "/", "to": "/x"}, 400, "root"), ({"from": "/a", "to": "/"}, 400, "root"),
                ({"from": "/a", "to": "/a"}, 400, "itself"), ({"from": "/a", "to": "/a/b/c"}, 400, "below"), ({"from": "/x", "to": "/y"}, 404, "nothing lies"),
                ({"from": "/a/b/", "to": "/y"}, 400, "not a directory"), ({"from": "/a//b", "to": "/y"}, 400, "empty"), ({"from": "a", "to": "/y"}, 400, "begin"),
                ({"from": "/a/../a", "to": "/y"}, 400, ".."), ({"from": "/a*", "to": "/y"}, 400, "*"), ({"from": "/a", "to": "/y", "why": 1}, 400, "why")]:
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
        self.assertEqual(self.server.ask("POST", "/fs/_rename?timestamp=5", {"from": "/a", "to": "/d"})[0], 400)

    def test_locks(self):
        self.server.must("PUT", "/fs/_doc/1", {"path": "/a/b/c"})
        holder = self.server.must("POST", "/_session", {})["session"]
        self.server.must("POST", "/_lock", {"session": holder, "locks": [{"mode": "shared", "index": "fs", "path": "/a/b"}]})
        rename = {"from": "/a", "to": "/x"}
        status, reply = self.server.ask("POST", "/fs/_rename?timeout=50ms", rename)
        self.assertEqual((status, reply["error"]["type"]), (409, "lock_wait_timeout_exception"))
        self.server.must("POST", "/_unlock", {"session": holder})
        self.server.must("POST", "/_lock", {"session": holder, "locks": [{"mode": "exclusive", "index": "fs", "path": "/x/y"}]})
        self.assertEqual(self.server.ask("POST", "/fs/_rename?timeout=50ms", rename)[0], 409)
        self.server.must("POST", "/fs/_rename", rename, {"Tidelock-Session": holder})
        self.assertEqual(self.server.must("GET", "/fs/_doc/1")["_source"], {"path": "/x/b/c"})

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
