#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/run keeps what a part measured before it failed, and names a program that is not built before it measures. All parts can be loaded.

Method: a copy of bench/run with parts of its own, which need no server; and the real one, which lists its parts.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

PARTS = {
    "whole": "    bench.row('whole', 1, 'us', None)\n",
    "fails": "    bench.row('first', 2, 'us', None)\n    raise OSError('the server ended')\n",
    "fails_first": "    raise OSError('no row')\n",
    "unbuilt": "    bench.row('measured', 3, 'us', None)\n    bench.program('hello')\n",
    "named": "    bench.row('never', 4, 'us', None)\n",
}


class Run(unittest.TestCase):
    """One copy for each case."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tidelock-bench-run-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.build = os.path.join(self.folder, "build")
        os.makedirs(os.path.join(self.build, "bench"))
        os.makedirs(os.path.join(self.folder, "bench", "parts"))
        for name in ("run", "measure.py", "peers.py"):
            shutil.copy(os.path.join(ROOT, "bench", name), os.path.join(self.folder, "bench"))
        self.write("loads.py", "def make(*_):\n    pass\n")
        for name, body in PARTS.items():
            self.write("parts/%s.py" % name, '"""A part"""\n%s\n\ndef run(bench):\n%s' % ("PROGRAMS = ['save_bench']\n" if name == "named" else "", body))
        self.add_program("load")

    def write(self, name, text):
        with open(os.path.join(self.folder, "bench", name), "w", encoding="utf-8") as out:
            out.write(text)

    def add_program(self, name):
        path = os.path.join(self.build, "bench", name)
        with open(path, "w", encoding="ascii"):
            pass
        os.chmod(path, 0o755)

    def bench(self, *args):
        return subprocess.run([sys.executable, os.path.join(self.folder, "bench", "run"), *args], capture_output=True, text=True, check=False,
                              env={**os.environ, "TIDELOCK_BUILD": self.build})

    def kept(self, name):
        with open(os.path.join(self.build, "bench-results", name + ".json"), encoding="utf-8") as kept:
            return json.load(kept)

    def test_rows_before_a_failure_are_kept(self):
        run = self.bench("fails", "whole")
        self.assertEqual(run.returncode, 1)
        self.assertIn("fails is incomplete: OSError: the server ended", run.stderr)
        self.assertEqual([r["work"] for r in self.kept("fails")["rows"]], ["first"])
        self.assertIn("the server ended", self.kept("fails")["incomplete"])
        self.assertIsNone(self.kept("whole")["incomplete"])
        table = self.bench("--table")
        self.assertIn("| first |", table.stdout)
        self.assertIn("fails: incomplete", table.stderr)

    def test_a_failure_without_rows_leaves_those_of_the_last_run(self):
        os.makedirs(os.path.join(self.build, "bench-results"))
        with open(os.path.join(self.build, "bench-results", "fails_first.json"), "w", encoding="utf-8") as out:
            json.dump({"at": "earlier", "rows": []}, out)
        self.assertEqual(self.bench("fails_first").returncode, 1)
        self.assertEqual(self.kept("fails_first")["at"], "earlier")

    def test_the_target_to_build_is_named(self):
        run = self.bench("unbuilt")
        self.assertEqual(run.returncode, 1)
        self.assertIn("bench/hello`", run.stderr)
        self.assertNotIn("Traceback", run.stderr)
        self.assertEqual([r["work"] for r in self.kept("unbuilt")["rows"]], ["measured"])

    def test_nothing_is_measured_if_a_program_is_missing(self):
        run = self.bench("whole", "named")
        self.assertEqual(run.returncode, 1)
        self.assertIn("bench/save_bench`", run.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.build, "bench-results")))
        self.add_program("save_bench")
        self.assertEqual(self.bench("whole", "named").returncode, 0)


class Sources(unittest.TestCase):
    """The Python files of bench: what they import exists, and the others compile."""

    def test_parts_load(self):
        run = subprocess.run([sys.executable, os.path.join(ROOT, "bench", "run"), "--list"], capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        names = {name[:-3] for name in os.listdir(os.path.join(ROOT, "bench", "parts")) if name.endswith(".py")}
        self.assertEqual({line.split()[0] for line in run.stdout.splitlines()}, names)

    def test_other_files_compile(self):
        for path in glob.glob(os.path.join(ROOT, "bench", "*.py")):
            with self.subTest(path), open(path, encoding="utf-8") as source:
                compile(source.read(), path, "exec")


if __name__ == "__main__":
    unittest.main()
