#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Extreme trees: very wide, very deep, with every possible name, renamed many times, emptied document by document.

    tree_extremes_test.py [--full]

--full: 1,000,000 files in one directory, 100,000 directories in one, 100,000 renames there and back; minutes in place of seconds.
"""
import json
import os
import sys
import unittest
from urllib.parse import quote

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server, check_sound  # noqa: E402

FULL = "--full" in sys.argv
LONG = bool(os.environ.get("TIDELOCK_TEST_LONG"))
FILES = 1000000 if FULL else 10000 if LONG else 4000
DIRECTORIES = 100000 if FULL else 5000 if LONG else 2000
RENAMES = 100000 if FULL else 1000 if LONG else 300
DEPTH = 4096  # of names in a path; what a lock, and so a rename, goes down to
INDEX = {"mappings": {"properties": {"path": {"type": "path"}, "n": {"type": "integer"}}}}


class Extremes(unittest.TestCase):
    def setUp(self):
        history = "1s" if self.id().endswith("test_renames_back_and_forth") else "10m"  # the pages of a long listing have one timestamp
        self.server = Server("--history", history).start()
        self.addCleanup(self.server.close)
        self.server.must("PUT", "/fs", INDEX)

    def load(self, paths):
        """A document for each path; its id is its place in the list."""
        for begin in range(0, len(paths), 5000):
            lines = []
            for id in range(begin, min(begin + 5000, len(paths))):
                lines += ['{"index": {"_id": "%d"}}' % id, json.dumps({"path": paths[id], "n": id})]
            reply = self.server.must("POST", "/fs/_bulk?filter_path=errors,items.*.error", "\n".join(lines) + "\n", {"Content-Type": "application/x-ndjson"})
            self.assertFalse(reply["errors"], str(reply)[:500])

    def rename(self, source, target):
        return self.server.must("POST", "/fs/_rename", {"from": source, "to": target})

    def path(self, id):
        return self.server.must("GET", "/fs/_doc/%s" % id)["_source"]["path"]

    def listing(self, directory):
        """All names in a directory. Returns: those of directories, those of documents."""
        directories, documents, after, instant = [], [], "", ""
        while True:
            page = self.server.must("GET", "/fs/_tree?size=10000&path=%s&after=%s%s" % (quote(directory), quote(after), instant))
            directories += [entry["name"] for entry in page["directories"]]
            documents += [entry["name"] for entry in page["documents"]]
            after, instant = page.get("after", ""), "&timestamp=%d" % page["timestamp"]
            if not after:
                return directories, documents

    def count(self, query):
        return self.server.must("POST", "/fs/_count", {"query": query})["count"]

    def sound(self):
        self.server.stop()
        check_sound(self.server.data)

    # --- Wide ---

    def test_many_files(self):
        names = ["f%07d" % i for i in range(FILES)]
        self.load(["/a/" + name for name in names])
        self.assertEqual(self.listing("/a"), ([], names))
        reply = self.rename("/a", "/b/c")
        self.assertEqual((reply["directories"], reply["documents"]), (1, 0))
        self.assertEqual(self.listing("/b/c"), ([], names))
        self.assertEqual(self.listing("/b"), (["c"], []))
        self.assertEqual(self.count({"prefix": {"path": "/b/"}}), FILES)
        self.assertEqual(self.count({"prefix": {"path": "/a/"}}), 0)
        self.rename("/b/c/f0000007", "/b/c/g")
        self.rename("/b/c/f0000008", "/h")
        self.assertEqual(self.listing("/b/c"), ([], sorted(set(names) - {"f0000007", "f0000008"} | {"g"})))
        self.assertEqual([self.path(id) for id in (6, 7, 8)], ["/b/c/f0000006", "/b/c/g", "/h"])
        self.sound()

    def test_many_directories(self):
        names = ["d%06d" % i for i in range(DIRECTORIES)]
        self.load(["/a/%s/f" % name for name in names])
        self.assertEqual(self.listing("/a"), (names, []))
        moved = names[::DIRECTORIES // 200]
        for name in moved:
            self.rename("/a/" + name, "/z/e" + name)
        self.assertEqual(self.listing("/z"), (["e" + name for name in moved], []))
        self.assertEqual(self.listing("/a"), (sorted(set(names) - set(moved)), []))
        self.rename("/z", "/a/z")
        self.assertEqual(self.count({"prefix": {"path": "/a/"}}), DIRECTORIES)
        self.assertEqual(self.count({"prefix": {"path": "/a/z/"}}), len(moved))
        self.assertEqual(self.path(0), "/a/z/ed000000/f")
        self.sound()

    # --- Deep ---

    def test_depth(self):
        names = ["%x" % (i % 16) for i in range(DEPTH)]

        def down(depth, first="/"):
            return first + "/".join(names[1:depth])

        self.load([down(DEPTH), down(DEPTH // 2) + "/side", down(DEPTH) + "/deeper"])
        self.rename(down(3), "/x/y")
        self.assertEqual(self.path(0), "/x/y" + down(DEPTH)[len(down(3)):])
        self.rename("/x/y", down(3))
        self.rename(down(DEPTH // 2), "/half")
        half = "/half" + down(DEPTH)[len(down(DEPTH // 2)):]
        self.assertEqual([self.path(id) for id in (0, 1, 2)], [half, "/half/side", half + "/deeper"])
        deepest = half.rsplit("/", 1)[0]
        self.rename(half, deepest + "/new")
        self.assertEqual([self.path(id) for id in (0, 2)], [deepest + "/new", deepest + "/new/deeper"])
        self.rename("/half", down(DEPTH // 2))
        self.assertEqual(self.path(2), down(DEPTH - 1) + "/new/deeper")
        status, reply = self.server.ask("POST", "/fs/_rename", {"from": down(DEPTH) + "/deeper", "to": down(DEPTH) + "/deeper/and/deeper"})
        self.assertEqual((status, "itself" in reply["error"]["reason"] or "levels" in reply["error"]["reason"]), (400, True), reply)
        status, reply = self.server.ask("POST", "/fs/_rename", {"from": "/1", "to": "/y" * (DEPTH + 1)})
        self.assertEqual((status, "[4096] levels" in reply["error"]["reason"]), (400, True), reply)
        below = "/d" * 4000 + "/f"
        for i in range(40):  # renames can move descendants deeper than the limit of written paths
            self.server.must("PUT", "/fs/_doc/t%d" % i, {"path": "/t%d" % i + ("/d/d/d/f" if i > 0 else below)})
        for i in range(1, 40):
            self.rename("/t%d" % (i - 1), "/t%d" % i + "/d" * 3 + "/t%d" % (i - 1))
        self.assertEqual(self.path("t0"), "".join("/t%d/d/d/d" % k for k in range(39, 0, -1)) + "/t0" + below)
        self.sound()

    # --- Names ---

    def test_names(self):
        """Every character of a byte but NUL and the slash, alone and among others; and some that take more bytes."""
        names = [chr(c) for c in range(1, 128) if chr(c) not in "/."] + ["a%sb" % chr(c) for c in range(1, 256) if chr(c) != "/"]
        names += ["\u00e4", "\u20ac", "\U0001f600", "\ufffd", "...", ".a", " ", "a b", "%2F", "a\\b", "*?", "\u202e", "x" * 4000]
        names = sorted(set(names), key=lambda name: name.encode())
        self.load(["/n/" + name for name in names] + ["/d/%s/f" % name for name in names])
        self.assertEqual(sorted(self.listing("/n")[1], key=str.encode), names)
        self.assertEqual(sorted(self.listing("/d")[0], key=str.encode), names)
        for i, name in enumerate(names):
            self.assertEqual(self.count({"term": {"path": "/n/" + name}}), 1, name)
            self.rename("/n/" + name, "/m/" + name)
            self.rename("/d/" + name, "/e/" + name + "!")
            self.assertEqual((self.path(i), self.path(len(names) + i)), ("/m/" + name, "/e/%s!/f" % name))
        self.assertEqual(sorted(self.listing("/m")[1], key=str.encode), names)
        self.assertEqual(self.server.ask("GET", "/fs/_tree?path=/n")[0], 404)
        self.rename("/m", "/n")
        self.assertEqual(self.path(0), "/n/" + names[0])
        self.sound()

    def test_empty_and_dot_names(self):
        """Empty names, '.' and '..' are plain in documents, move along, are listed; and cannot be named in a rename."""
        paths = ["/a//b", "/a/./c", "/a/../d", "/a/", "//", "/", "", "a/b", "/a//", "/a/e\u0000f"]
        self.load(paths)
        for id, path in enumerate(paths):
            self.assertEqual(self.path(id), path)
        self.rename("/a", "/z")
        for id, path in enumerate(paths):
            self.assertEqual(self.path(id), "/z" + path[2:] if path.startswith("/a/") else path)
        self.assertEqual(self.listing("/z"), (sorted(["", ".", ".."], key=lambda name: name + "/"), ["", "e\u0000f"]))
        self.assertEqual(self.listing("/z//"), ([], ["", "b"]))
        for path in ["/z//b", "/z/./c", "/z/../d", "//", "z"]:
            for body in ({"from": path, "to": "/q"}, {"from": "/z", "to": path + "x" if path == "//" else path}):
                status, reply = self.server.ask("POST", "/fs/_rename", body)
                self.assertEqual(status, 400, (body, reply))
        self.sound()

    # --- Again and again ---

    def test_renames_back_and_forth(self):
        """Each rename raises versions by one; the store does not grow with renames whose history has been purged."""
        self.load(["/a/f%d" % i for i in range(100)] + ["/a/sub/g"])
        seen = self.server.must("GET", "/fs/_doc/0")
        for i in range(RENAMES):
            reply = self.rename("/a" if i % 2 == 0 else "/b/a", "/b/a" if i % 2 == 0 else "/a")
            if i % 100 == 0 or i == RENAMES - 1:
                got = self.server.must("GET", "/fs/_doc/0")
                self.assertEqual((got["_version"], got["_seq_no"]), (seen["_version"] + i + 1, reply["_seq_no"]))
        self.assertEqual(self.server.ask("PUT", "/fs/_doc/0?if_seq_no=%d&if_primary_term=1" % seen["_seq_no"], {})[0], 409)
        self.assertEqual(self.count({"prefix": {"path": "/a/"}}), 101)
        names = ["/a", "/b/a", "/c", "/d/e/f", "/g"]  # and through other directories
        for i in range(RENAMES // 10):
            self.rename(names[i % 5], names[(i + 1) % 5])
        self.assertEqual(self.server.must("GET", "/fs/_doc/100")["_version"], 1 + RENAMES + RENAMES // 10)
        self.assertEqual(self.path(100), "/a/sub/g")
        self.sound()

    def test_directory_emptied_by_single_deletes(self):
        """A directory whose documents were all deleted, or moved one by one, is free until a document is written there."""
        paths = ["/a/f%d" % i for i in range(500)]
        self.load(paths)
        self.load(["/b" + path[2:] for path in paths])
        self.server.must("PUT", "/fs/_doc/x", {"path": "/x/y"})
        self.rename("/x", "/a")
        self.server.must("POST", "/fs/_delete_by_query?refresh=true", {"query": {"prefix": {"path": "/b/"}}})
        self.rename("/a", "/b")
        for body, status in [({"from": "/a", "to": "/c"}, 404), ({"from": "/a/y", "to": "/c"}, 404), ({"from": "/b", "to": "/a/y"}, 200), ({"from": "/a", "to": "/b"}, 200)]:
            self.assertEqual(self.server.ask("POST", "/fs/_rename", body)[0], status, body)
        for where in ("", "transaction"):
            headers = {}
            if where:
                headers = {"Tidelock-Transaction": self.server.must("POST", "/_transaction", {"mode": "update"})["transaction"]}
            self.assertEqual(self.server.ask("POST", "/fs/_rename", {"from": "/a", "to": "/c"})[0], 404)
            self.server.must("PUT", "/fs/_doc/n", {"path": "/a/f1"}, headers)
            if where:
                self.server.must("POST", "/_transaction/%s/_commit" % headers["Tidelock-Transaction"])
            self.assertEqual(self.server.ask("POST", "/fs/_rename", {"from": "/b", "to": "/a"})[0], 409)
            self.rename("/a/f1", "/q")
            self.server.must("DELETE", "/fs/_doc/n")
        self.rename("/b", "/a")
        self.assertEqual(self.path("x"), "/a/y/y")
        self.sound()


if __name__ == "__main__":
    unittest.main(argv=[arg for arg in sys.argv if arg != "--full"])
