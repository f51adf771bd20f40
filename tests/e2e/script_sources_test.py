#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inline, stored and file scripts, in every call that accepts scripts: each runs and has its effect.

The folder of file scripts is watched: a created, changed, invalid or deleted file is detected without a restart.
"""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402
from waiting import until  # noqa: E402

PARAMS = {"params": {"d": 5}}
SCRIPTS = [
    {"lang": "groovy", "inline": "ctx._source.n += d"},
    {"lang": "painless", "inline": "ctx._source.n += params.d"},
    {"lang": "groovy", "stored": "add"},
    {"lang": "groovy", "id": "add"},
    {"id": "add-too"},
    {"lang": "groovy", "file": "add"},
    {"lang": "painless", "file": "add-too"},
]
QUERIES = [{"lang": "groovy", "inline": "doc['n'].value > m"}, {"lang": "painless", "stored": "above"}, {"lang": "groovy", "file": "above"}]


class Case(unittest.TestCase):
    def setUp(self):
        self.server = Server().start()
        self.folder = os.path.join(self.server.data, "scripts")
        os.mkdir(self.folder)
        self.write("add.groovy", "ctx._source.n += d")
        self.write("add-too.painless", "ctx._source.n += params.d")
        self.write("above.groovy", "doc['n'].value > m")
        self.server.must("PUT", "/_scripts/groovy/add", {"script": "ctx._source.n += d"})
        self.server.must("PUT", "/_scripts/add-too", {"script": {"lang": "painless", "source": "ctx._source.n += params.d"}})
        self.server.must("PUT", "/_scripts/painless/above", {"script": "doc['n'].value > params.m"})
        self.server.must("PUT", "/books/book/1", {"n": 0})
        until(lambda: self.update({"lang": "groovy", "file": "above", "params": {"m": 1}}) != "unable to find file script [above] using lang [groovy]",
              "the files are read")

    def tearDown(self):
        self.server.close()

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def update(self, script):
        """Returns: None, or why not."""
        status, reply = self.server.ask("POST", "/books/book/1/_update", {"script": script})
        return None if status == 200 else reply["error"].get("caused_by", reply["error"])["reason"]

    def value(self, path="/books/book/1"):
        return self.server.must("GET", path + "/_source")["n"]


class Places(Case):
    def test_updates(self):
        for script in SCRIPTS:
            before = self.value()
            script = {**script, **PARAMS}
            self.assertIsNone(self.update(script))
            self.assertEqual(self.value(), before + 5, script)
            reply = self.server.must("POST", "/books/book/_bulk", '{"update":{"_id":"1"}}\n%s\n' % json.dumps({"script": script}))
            self.assertFalse(reply["errors"], reply)
            self.assertEqual(self.value(), before + 10, script)

    def test_by_query(self):
        for script in SCRIPTS:
            before = self.value()
            for query in ("", "?atomic=true"):
                reply = self.server.must("POST", "/books/book/_update_by_query" + query, {"script": {**script, **PARAMS}})
                self.assertEqual(reply["updated"], 1)
            self.assertEqual(self.value(), before + 10, script)

    def test_reindex(self):
        for script in SCRIPTS:
            for query in ("", "?atomic=true"):
                self.server.must("POST", "/_reindex" + query, {"source": {"index": "books"}, "dest": {"index": "copies"}, "script": {**script, **PARAMS}})
                self.assertEqual(self.value("/copies/book/1"), self.value() + 5, script)
                self.server.must("DELETE", "/copies")

    def test_search(self):
        self.server.must("PUT", "/books/book/2", {"n": 10})
        for script in QUERIES:
            script = {**script, "params": {"m": 7}}
            hits = self.server.must("POST", "/books/_search", {"query": {"script": {"script": script}}, "script_fields": {"x": {"script": script}}})["hits"]["hits"]
            self.assertEqual([(hit["_id"], hit["fields"]["x"]) for hit in hits], [("2", [True])], script)

    def test_missing_script_is_refused(self):
        """It is not passed over: a change that was not made must not look as if it were."""
        missing = {"lang": "groovy", "file": "nope"}
        for method, path, body in (("POST", "/books/book/1/_update", {"script": missing}), ("POST", "/books/book/_update_by_query", {"script": missing}),
                                   ("POST", "/_reindex", {"source": {"index": "books"}, "dest": {"index": "copies"}, "script": missing}),
                                   ("POST", "/books/_search", {"query": {"script": {"script": missing}}})):
            status, reply = self.server.ask(method, path, body)
            self.assertEqual((status, "unable to find file script [nope] using lang [groovy]" in str(reply)), (400, True), (path, reply))


class Watched(Case):
    def test_changes(self):
        script = {"lang": "groovy", "file": "add", **PARAMS}

        def does(value):
            self.server.must("PUT", "/books/book/1", {"n": 1})
            return self.update(script) is None and self.value() == value
        self.assertTrue(does(6))
        self.write("add.groovy", "ctx._source.n -= d  // changed")
        until(lambda: does(-4), "the change is seen")
        self.write("add.groovy", "ctx._source.n = (((")
        until(lambda: "Error compiling script" in str(self.update(script)), "what does not compile is refused")
        self.write("add.groovy", "ctx._source.n = 100 * d")
        until(lambda: does(500), "and mended")
        os.unlink(os.path.join(self.folder, "add.groovy"))
        until(lambda: self.update(script) == "unable to find file script [add] using lang [groovy]", "it is gone")

    def test_difference_at_the_start_is_logged(self):
        """The folder is not watched while the server does not run."""
        def differences():
            first = os.path.getsize(self.server.data + ".log")
            self.server.start()
            return sorted(line.split("file scripts: ")[1] for line in self.server.errors(first).splitlines() if "file scripts: " in line)
        self.server.stop(replay=False)
        self.write("add.groovy", "ctx._source.n -= d")
        self.write("new.groovy", "ctx._source.n = 7")
        os.unlink(os.path.join(self.folder, "above.groovy"))
        self.assertEqual(differences(), ["groovy/above was removed, or made unreadable, since the server last ran",
                                         "groovy/add was changed since the server last ran", "groovy/new was added since the server last ran"])
        self.assertIsNone(self.update({"lang": "groovy", "file": "new"}))
        self.assertEqual(self.value(), 7)
        self.server.kill()
        self.assertEqual(differences(), [], "the log has the scripts of the last start")

    def test_script_names_cannot_leave_folder(self):
        with open(os.path.join(self.server.data, "outside.groovy"), "w", encoding="utf-8") as file:
            file.write("ctx._source.n = 666")
        for name in ("../outside", "/etc/passwd", "add.groovy", "", ".", "a/../add", "a\0"):
            self.assertIn("unable to find file script", str(self.update({"lang": "groovy", "file": name})), name)


if __name__ == "__main__":
    unittest.main()
