#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scripts apart from their language: files that are watched, and the limits set by options.

A file is created, changed, made invalid and deleted while the server runs. Each change is effective a few seconds later, and a
call always uses one complete version of the file. Then each limit is set so low that a script exceeds it which the default
permits: the refusal names the option, and the document is unchanged.
"""
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402

STEPS = "int n = 0; for (int i = 0; i < 5000; i++) { n += i } ctx._source.n = n"
MEMORY = "List l = new ArrayList(); for (int i = 0; i < 20000; i++) { l.add(i) } ctx._source.n = l.size()"
DEPTH = "int down(int n) { return n == 0 ? 0 : 1 + down(n - 1) } ctx._source.n = down(100)"


def innermost(error):
    while "caused_by" in error:
        error = error["caused_by"]
    return error


class FileScripts(unittest.TestCase):
    def write(self, name, text):
        """As editors do: the whole file at once, under its name."""
        folder = os.path.join(self.server.data, "scripts")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "." + name), "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(os.path.join(folder, "." + name), os.path.join(folder, name))

    def call(self):
        return self.server.ask("POST", "/fs/file/1/_update?_source=true",
                               {"script": {"file": "add", "lang": "groovy", "params": {"by": 4}}})

    def until(self, wanted):
        """Calls until the reply is as wanted; returns it. The server looks for changed files once a second."""
        while True:
            status, reply = self.call()
            if wanted(status, reply):
                return reply
            time.sleep(0.02)

    def test_file_scripts_are_reloaded(self):
        with Server() as self.server:
            self.server.must("PUT", "/fs/file/1", {"n": 1})
            self.assertEqual(self.call()[0], 400)
            self.write("add.groovy", "ctx._source.n = 10 + by")
            self.until(lambda status, reply: status == 200 and reply["get"]["_source"] == {"n": 14})
            self.write("add.groovy", "ctx._source.n = 20 + by + 0")
            self.until(lambda status, reply: status == 200 and reply["get"]["_source"] == {"n": 24})
            self.write("add.groovy", "ctx._source.n = (")
            broken = self.until(lambda status, reply: status != 200)
            self.assertIn("add", str(broken))
            self.write("add.groovy", "ctx._source.n = 30 + by")
            self.until(lambda status, reply: status == 200 and reply["get"]["_source"] == {"n": 34})
            self.server.restart()
            self.assertEqual(self.call()[0], 200)
            os.unlink(os.path.join(self.server.data, "scripts", "add.groovy"))
            gone = self.until(lambda status, reply: status != 200)
            self.assertIn("unable to find file script [add]", str(gone))
            self.assertEqual(self.server.must("GET", "/fs/file/1")["_source"], {"n": 34})


class Execute(unittest.TestCase):
    def test_parameters_without_effect_are_refused(self):
        with Server() as server:
            run = {"script": {"source": "params.a + 1", "params": {"a": 1}}}
            self.assertEqual(server.must("POST", "/_scripts/painless/_execute", dict(run, context="painless_test"))["result"], "2")
            setup = {"index": "docs", "document": {"a": 1}}
            for more, reason in (({"context_setup": setup}, "[context_setup]"), ({"context_setup": {}}, "[context_setup]"),
                                 ({"context": "filter"}, "[filter] is not served"), ({"context": "score"}, "[score] is not served"),
                                 ({"context": "score", "context_setup": setup}, "not served"),
                                 ({"context": "painless_test", "context_setup": setup}, "[context_setup]")):
                status, reply = server.ask("POST", "/_scripts/painless/_execute", dict(run, **more))
                self.assertEqual((status, reply["error"]["type"]), (400, "illegal_argument_exception"), more)
                self.assertIn(reason, reply["error"]["reason"])


class Bounds(unittest.TestCase):
    def check(self, option, value, source, error, reason):
        for options, expected in (((), 200), ((option, value), 400)):
            with Server(*options) as server:
                server.must("PUT", "/docs/_doc/1", {"n": 1})
                status, reply = server.ask("POST", "/docs/_update/1", {"script": {"source": source}})
                self.assertEqual(status, expected, reply)
                if expected == 200:
                    continue
                self.assertEqual(innermost(reply["error"])["type"], error)
                self.assertIn(reason, str(innermost(reply["error"]).get("reason")))
                self.assertEqual(server.must("GET", "/docs/_doc/1")["_source"], {"n": 1})

    def test_steps(self):
        self.check("--script-steps", "2000", STEPS, "limit_exceeded_exception", "steps")

    def test_memory(self):
        self.check("--script-memory", "64k", MEMORY, "limit_exceeded_exception", "memory")

    def test_depth(self):
        self.check("--script-depth", "20", DEPTH, "stack_overflow_error", "")


if __name__ == "__main__":
    unittest.main()
