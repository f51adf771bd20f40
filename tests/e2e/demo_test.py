#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make demo`: its steps on a small tree, and that it ends with the reason when a step fails.

The steps are made to fail by a program that replaces tidelock: it calls the real one, and does something else before or
instead. It is this file, called by a link; TIDELOCK_BUILD of the demo is the folder of the link.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.request

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from server import BUILD, HANGS, PROGRAM, ROOT  # noqa: E402


def make_tree(root, parts):
    """A README and 50 files in each of so many directories: with 40, three pages of a scroll."""
    for number in range(parts):
        folder = os.path.join(root, "project%d" % (number % 8), "part%d" % number)
        os.makedirs(folder)
        for name in ["README"] + ["file%d" % k for k in range(50)]:
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(name)


class Demo(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tidelock-demo-test-")
        self.tree = os.path.join(self.folder, "tree")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def run_demo(self, build=BUILD, trouble="", root=None):
        environment = dict(os.environ, TIDELOCK_BUILD=build, TROUBLE=trouble, REAL_PROGRAM=PROGRAM,
                           SERVER_PID_FILE=os.path.join(self.folder, "pid"))
        return subprocess.run([os.path.join(ROOT, "tools", "demo"), "--root", root or self.tree], env=environment,
                             capture_output=True, text=True, timeout=HANGS)

    def run_with(self, trouble, parts=4):
        """Runs it with the stand-in on some files, and expects it to fail soon. Returns: its standard error."""
        make_tree(self.tree, parts)
        program = os.path.join(self.folder, "build", "src", "cli", "tidelock")
        os.makedirs(os.path.dirname(program))
        os.symlink(os.path.abspath(__file__), program)
        run = self.run_demo(os.path.join(self.folder, "build"), trouble)
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertTrue(run.stderr.startswith("demo: "), run.stderr)
        self.assertNotIn("Traceback", run.stderr)
        return run.stderr

    def test_demo_steps(self):
        make_tree(self.tree, 40)
        run = self.run_demo()
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("B's change is LOST", run.stdout)
        self.assertIn("both changes are kept", run.stdout)
        moved, total = (int(part.replace(",", "")) for part in re.search(r"moved ([\d,]+) of the ([\d,]+) documents in a", run.stdout).groups())
        self.assertLess(abs(moved - total / 2), total / 20, "half-way is half of this tree")
        self.assertIn("A was killed with -9.", run.stdout)
        self.assertIn("nothing is left of A's half-done change", run.stdout)
        self.assertIn("its version rose by 303: by 101 renames of A and 202 changes of B.", run.stdout)
        self.assertIn("nothing is lost in either", run.stdout)
        self.assertEqual(run.stderr, "")

    def test_nothing_built(self):
        run = self.run_demo(os.path.join(self.folder, "nowhere"))
        self.assertEqual(run.returncode, 1)
        self.assertIn("`make` builds it", run.stderr)

    def test_no_such_tree(self):
        run = self.run_demo(root=os.path.join(self.folder, "nowhere"))
        self.assertEqual(run.returncode, 1)
        self.assertIn("No such file or directory", run.stderr)

    def test_server_does_not_start(self):
        self.assertIn("the server did not start: out of order", self.run_with("serve"))

    def test_import_fails(self):
        self.assertIn("tidelock import ended with status 9: out of order", self.run_with("import"))

    def test_lock_refused(self):
        """As it once was: an index of 7.x has one type."""
        said = self.run_with("one-type")
        self.assertIn("PUT /fs/lock/global/_create: 400", said)
        self.assertIn("more than 1 type", said)

    def test_holder_fails(self):
        self.assertIn("A did not move anything under its lock: out of order", self.run_with("lock"))

    def test_documents_refused(self):
        self.assertIn("a document could not be moved", self.run_with("write-block", parts=40))

    def test_server_dies(self):
        self.assertIn("no answer", self.run_with("dies"))


# --- The stand-in -------------------------------------------------------------------------------------------------------


def put(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="PUT")
    urllib.request.urlopen(request).close()


def stand_in(arguments):
    """Does what the real program does, but for the trouble that the test asks for."""
    trouble, command, program = os.environ["TROUBLE"], arguments[0], os.environ["REAL_PROGRAM"]
    if trouble == command:
        print("out of order", file=sys.stderr)
        return 9
    if command == "serve":
        with open(os.environ["SERVER_PID_FILE"], "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
        os.execv(program, [program, *arguments])
    url = arguments[arguments.index("--url") + 1]
    if trouble == "one-type":
        put(url + "/fs?include_type_name=true", {"mappings": {"file": {"properties": {"path": {
            "type": "keyword", "fields": {"tree": {"type": "text", "analyzer": "paths"}}}, "type": {"type": "keyword"},
            "name": {"type": "keyword"}}}}, "settings": {"analysis": {"analyzer": {"paths": {"tokenizer": "path_hierarchy"}}}}})
    status = subprocess.run([program, *arguments]).returncode
    if trouble == "write-block":
        put(url + "/fs/_settings", {"index.blocks.write": True})
    if trouble == "dies":
        with open(os.environ["SERVER_PID_FILE"], encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGKILL)
    return status


if __name__ == "__main__":
    if os.path.basename(sys.argv[0]) == "tidelock":
        sys.exit(stand_in(sys.argv[1:]))
    unittest.main()
