#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real tree whose directories are renamed at all levels, while other clients write and read, and the server is killed meanwhile.

Part of this machine's /usr is imported. One client renames at random, some write (fields of documents, new files), some read
(documents, searches, listings). Every acknowledged operation has a timestamp. In that order the same operations are applied to a
plain map of paths, and every read must equal the map at its timestamp. After each kill -9 all acknowledged operations are
applied, and each other one completely or not at all.

    tree_real_test.py [--seed N] [--rounds N] [--seconds N] [--documents N] [--clients N] [--verbose]
"""
import argparse
import http.client
import itertools
import json
import os
import random
import subprocess
import sys
import threading
import time
import unittest
from urllib.parse import quote

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import PROGRAM, Server, check_sound  # noqa: E402

OPTIONS = None
NAMES = ["bin", "doc", "a", "b", "new dir", "\u00e4\"\\"]


def within(path, directory):
    return path == directory or path.startswith(directory + "/")


def import_some(server, wanted):
    """Folders of /usr/share, none of them large, until there are enough."""
    count = 0
    for name in sorted(os.listdir("/usr/share")) + [".."]:
        folder = os.path.join("/usr/share", name)
        if not os.path.isdir(folder) or os.path.islink(folder):
            continue
        entries = sum(len(folders) + len(files) for _, folders, files in os.walk(folder))
        if entries > wanted // 2 or name == "..":
            continue
        subprocess.run([PROGRAM, "import", folder, "--index", "fs", "--root", "/usr/share/" + name, "--quiet", "--url", server.url], check=True, capture_output=True)
        count += 1 + entries
        if count >= wanted:
            break


class Stopped(Exception):
    """The server was killed during a request, whose outcome is unknown."""


KINDS = {"rename": 4, "update": 20, "put": 8, "read": 30, "list": 10}  # requests, and how many of a round have to be answered


class Client(threading.Thread):
    """Sends requests until it is stopped or the server has ended. Its results: `log`, and `unknown`, the request without a reply."""

    def __init__(self, test, seed):
        super().__init__(daemon=True)
        self.test = test
        self.random = random.Random(seed)
        self.connection = test.server.connect()
        self.number = 0  # over all rounds
        self.log = []
        self.unknown = None
        self.failure = None

    def ask(self, method, path, body=None):
        try:
            response = self.test.server.request(method, path, body, connection=self.connection)
        except (OSError, http.client.HTTPException) as error:
            raise Stopped from error
        return response.status, json.loads(response.body), int(response.getheader("Tidelock-Timestamp"))

    def run(self):
        try:
            while not self.test.stopping:
                self.step()
        except Stopped:
            pass
        except Exception as failure:  # pylint: disable=broad-except
            self.failure = failure

    def some_path(self):
        """Of a document, or a directory of it, as it was a while ago."""
        names = self.test.model[self.random.choice(self.test.ids)].split("/")
        return "/".join(names[:self.random.randint(2, len(names))])


class Renamer(Client):
    def step(self):
        source = self.some_path() if self.random.random() < 0.6 else self.test.last_target or self.some_path()
        above = os.path.dirname(self.some_path()) or "/usr"
        target = above + "/" + self.random.choice(NAMES)
        if target.count("/") > 30:
            target = "/" + self.random.choice(NAMES)
        self.unknown = ("rename", source, target)
        status, reply, _ = self.ask("POST", "/fs/_rename", {"from": source, "to": target})
        self.unknown = None
        if status == 200:
            self.log.append((reply["timestamp"], "rename", source, target))
            self.test.last_target = target
            with self.test.mutex:
                for id in self.test.ids:
                    path = self.test.model[id]
                    if within(path, source):
                        self.test.model[id] = target + path[len(source):]
        elif status not in (400, 404, 409):
            raise AssertionError((status, reply))


class Writer(Client):
    made = 0  # documents

    def step(self):
        if self.random.random() < 0.7:
            id = self.random.choice(self.test.ids)
            self.unknown = ("update", id)
            status, reply, ts = self.ask("POST", "/fs/_update/%s?retry_on_conflict=5" % quote(id, safe=""), {"doc": {"n": self.random.random()}})
            kind = ("update", id)
        else:
            id = "new-%d-%d" % (self.number, self.made)
            self.made += 1
            path = os.path.dirname(self.some_path()) + "/" + id
            self.unknown = ("put", id, (path,))
            status, reply, ts = self.ask("PUT", "/fs/_doc/" + id, {"path": path})
            kind = ("put", id, (path,))
        self.unknown = None
        if status not in (200, 201):
            raise AssertionError((status, reply))
        self.log.append((ts, *kind))


class Reader(Client):
    """Its log: (timestamp, request, id -> path or names)."""

    def step(self):
        what = self.random.random()
        directory = self.some_path()
        if what < 0.4:
            id = self.random.choice(self.test.ids)
            status, reply, ts = self.ask("GET", "/fs/_doc/" + quote(id, safe=""))
            self.log.append((ts, "read", {id: reply["_source"]["path"]}, None))
        elif what < 0.7:
            status, reply, ts = self.ask("POST", "/fs/_search", {"query": {"term": {"path.tree": directory}}, "size": 300, "_source": ["path"], "sort": ["_doc"]})
            if status == 200 and reply["hits"]["total"]["value"] <= 300:
                self.log.append((ts, "read", {hit["_id"]: hit["_source"]["path"] for hit in reply["hits"]["hits"]}, directory))
        else:
            status, reply, ts = self.ask("GET", "/fs/_tree?size=10000&path=" + quote(directory))
            if status == 404:
                self.log.append((ts, "list", set(), directory))
                status = 200
            elif "after" not in reply:
                self.log.append((ts, "list", {entry["name"] for entry in reply["directories"] + reply["documents"]}, directory))
        if status != 200:
            raise AssertionError((status, reply))


class RealTree(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(OPTIONS.seed)
        self.server = Server().start()
        self.addCleanup(self.server.close)
        import_some(self.server, OPTIONS.documents)
        self.model = self.paths()  # a recent state, to choose names from; judge() has its own model
        self.ids = sorted(self.model)
        self.mutex = threading.Lock()
        self.last_target = None
        self.started = 0

    def paths(self):
        """id -> path of every document."""
        paths = {}
        page = self.server.must("POST", "/fs/_search?scroll=1m", {"size": 5000, "_source": ["path"], "sort": ["_doc"]})
        while page["hits"]["hits"]:
            paths.update((hit["_id"], hit["_source"]["path"]) for hit in page["hits"]["hits"])
            page = self.server.must("POST", "/_search/scroll", {"scroll": "1m", "scroll_id": page["_scroll_id"]})
        return paths

    def play(self, judge):
        """One round: all clients send requests until the kill. Returns: their logs, and the requests without a reply."""
        self.stopping = False
        clients = [Renamer(self, self.random.random())]
        for _ in range(OPTIONS.clients):
            clients += [Writer(self, self.random.random()), Reader(self, self.random.random())]
        for client in clients:
            self.started += 1
            client.number = self.started
            client.start()
        while not self.is_enough(clients) and not any(client.failure for client in clients):
            time.sleep(0.02)
        time.sleep(OPTIONS.seconds * self.random.random())
        self.server.kill()
        for client in clients:
            client.join()
            if client.failure:
                raise client.failure
        self.server.start()
        log = sorted((entry for client in clients for entry in client.log), key=lambda entry: (entry[0], entry[1] in ("read", "list")))
        if OPTIONS.verbose:
            print({kind: sum(entry[1] == kind for entry in log) for kind in ("rename", "update", "put", "read", "list")})
        unknown = [client.unknown for client in clients if client.unknown and client.unknown[0] in ("rename", "put")]
        self.replay(judge, log, unknown)
        return unknown

    @staticmethod
    def is_enough(clients):
        """Whether each kind of request was answered often enough for a round."""
        kinds = [entry[1] for client in clients for entry in list(client.log)]
        return all(kinds.count(kind) >= enough for kind, enough in KINDS.items())

    @staticmethod
    def seen(judge, kind, what, where):
        """Returns: what a read would have shown, were everything as in `judge`."""
        if kind == "list":
            return {path[len(where) + 1:].split("/")[0] for path in judge.values() if path.startswith(where + "/")}
        if where is None:
            return {id: judge.get(id) for id in what}
        return {id: path for id, path in judge.items() if within(path, where)}

    def learn(self, judge, unknown, entry):
        """
        What had no answer may have been done before the kill, and then others may have seen it. Where a read shows that some of it was, it is done in
        `judge` from then on, and unknown no more.
        """
        ts, kind, what, where = entry
        for some in itertools.chain.from_iterable(itertools.combinations(unknown, count) for count in range(1, len(unknown) + 1)):
            renames = [request for request in some if request[0] == "rename"]
            puts = [request for request in some if request[0] == "put"]
            ways = [self.may_be_at(put, renames) for put in puts]
            for renamed, paths in itertools.product(self.after(judge, renames), list(itertools.product(*ways))):
                candidate = dict(renamed, **{put[1]: path for put, path in zip(puts, paths)})
                if what != self.seen(candidate, kind, what, where):
                    continue
                if OPTIONS.verbose:
                    print("seen at %d, though never answered: %r" % (ts, some))
                either = self.put_about(judge, renames)
                judge.clear()
                judge.update(candidate)
                unknown[:] = either + [("put", request[1], self.may_be_at(request, renames)) if request[0] == "put" else request for request in unknown if request not in some]
                return

    @staticmethod
    def may_be_at(put, renames):
        """Returns: the possible paths of a put document, since each of the renames may have been before or after it."""
        paths = list(put[2])
        for _, source, target in renames:
            paths += [target + path[len(source):] for path in paths if within(path, source)]
        return tuple(paths)

    def put_about(self, judge, renames):
        """
        Returns: the puts of documents below the source of the rename without an answer, if there is one (one client renames, so it is that client's last
        request). They had an answer, but were before the rename, which moved them, or after it: (put, id, (path, path if moved)).
        """
        moved = dict(judge)
        for request in renames:
            self.do(moved, request)
        return [("put", id, (path, moved[id])) for id, path in self.put if judge[id] == path != moved[id]]

    def after(self, judge, renames):
        """Yields: the possible states after that rename. The puts before it are the first ones."""
        moved = dict(judge)
        for request in renames:
            self.do(moved, request)
        puts = self.put_about(judge, renames)
        for before in range(len(puts), -1, -1):
            yield dict(moved, **{id: path for _, id, (path, _) in puts[before:]})

    @staticmethod
    def do(judge, request):
        if request[0] == "rename":
            source, target = request[1:]
            judge.update({id: target + path[len(source):] for id, path in judge.items() if within(path, source)})
        elif request[0] == "put":
            judge[request[1]], = request[2]

    def replay(self, judge, log, unknown):
        """Applies the acknowledged operations to `judge`, in their order, and checks the reads. Removes from `unknown` the operations that the reads show as done."""
        self.put = []  # (id, path) of the documents put so far, in order
        for entry in ((*entry, None)[:4] for entry in log):
            ts, kind, what, where = entry
            if kind in ("read", "list"):
                if what != self.seen(judge, kind, what, where):
                    self.learn(judge, unknown, entry)
                self.assertEqual(what, self.seen(judge, kind, what, where), (ts, where))
            else:
                self.do(judge, entry[1:])
                if kind == "put":
                    self.put.append((what, *where))

    def settle(self, judge, unknown):
        """What had no answer has been done wholly, or not at all: finds which, and in which order."""
        found = self.paths()
        renames = [request for request in unknown if request[0] == "rename"]
        for candidate in (dict(judge), *self.after(judge, renames)):
            if all(found.get(id) == path for id, path in candidate.items()):
                judge.update(candidate)
                break
        for request in unknown:
            if request[0] == "put" and request[1] in found:
                self.assertIn(found[request[1]], self.may_be_at(request, renames))
                judge[request[1]] = found[request[1]]
        self.assertEqual({id: (judge.get(id), found.get(id)) for id in {*judge, *found} if judge.get(id) != found.get(id)}, {})

    def test_renames_of_real_tree_match_model(self):
        judge = dict(self.model)
        for _ in range(OPTIONS.rounds):
            unknown = self.play(judge)
            self.settle(judge, unknown)
            self.model.update(judge)
        self.server.stop()
        check_sound(self.server.data)
        self.server.start()
        self.assertEqual(self.paths(), judge)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5 if os.environ.get("TIDELOCK_TEST_LONG") else 0.2)
    parser.add_argument("--documents", type=int, default=3000 if os.environ.get("TIDELOCK_TEST_LONG") else 1000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--verbose", action="store_true")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=sys.argv[:1] + rest)
