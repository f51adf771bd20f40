#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gate passes when all tests pass or one fails once, and fails otherwise.

Method: tools/run-tests in a small project of its own, whose tests fail in each way that the gate distinguishes.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# name: (suites, what the test does; `first` is whether it runs for the first time)
TESTS = {
    "sound": ("'e2e'", "pass"),
    "quick": ("'unit'", "pass"),
    "model": ("'sim'", "pass"),
    "bounds": ("'e2e', 'plain'", "assert os.environ['TIDELOCK_TEST_BUILD'] == 'plain'"),
    "by_itself": ("'e2e', 'alone'", "pass"),
    "race": ("'unit', 'threads'", "pass"),
    "measured": ("'e2e', 'long'", "sys.exit('not in the gate')"),
}

# Writes a report as a sanitizer does.
REPORT = "open(os.environ['ASAN_OPTIONS'].rpartition('log_path=')[2] + '.1', 'w').write('==1==ERROR: AddressSanitizer: leak\\n')"

# A test of two cases, of which one is skipped, and the other as `%s` says.
SKIPS = """sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'tests', 'lib'))
import skips, unittest
class Case(unittest.TestCase):
    @unittest.skipUnless(False, 'there is no target')
    def test_absent(self): pass
    @unittest.%s
    def test_other(self): pass
skips.main()"""

one_by_one = unittest.skipUnless(os.environ.get("TIDELOCK_TEST_LONG"), "each case is a run of its own; make test-long")

MESON = """project('small', 'c')
python = find_program('python3')
executable('tidelock', 'main.c')
"""


class Gate(unittest.TestCase):
    """One project for all cases: each lays its tests there anew."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="tidelock-gate-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        for name in ("tools/run-tests", "tools/run-measured", "tests/lib/process_guard.py", "tests/lib/skips.py"):
            os.makedirs(os.path.dirname(os.path.join(cls.folder, name)), exist_ok=True)
            shutil.copy(os.path.join(ROOT, name), os.path.join(cls.folder, name))
        os.makedirs(os.path.join(cls.folder, "src", "cli"))
        os.makedirs(os.path.join(cls.folder, "tests", "sim"))
        cls.write("main.c", "#include <limits.h>\nint main(int count, char **arguments)\n{\n    (void)arguments;\n    return count > 1 ? INT_MAX - 1 + count : 0;\n}\n")
        cls.write("meson_options.txt", "option('developer', type: 'feature')\noption('tests', type: 'feature', value: 'enabled')\n")

    @classmethod
    def write(cls, name, text):
        with open(os.path.join(cls.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def gate(self, without=(), parts=(), **more):
        """Runs the gate, or parts. Returns: (whether it is green, its output, passed, failed)."""
        tests = {name: test for name, test in {**TESTS, **more}.items() if name not in without}
        shutil.rmtree(os.path.join(self.folder, "runs"), ignore_errors=True)
        os.mkdir(os.path.join(self.folder, "runs"))
        meson = MESON.replace("executable('tidelock', 'main.c')\n", "subdir('src/cli')\nsubdir('tests/sim')\n")
        self.write("src/cli/meson.build", "executable('tidelock', '../../main.c')\n")
        self.write("tests/sim/meson.build", "executable('replicas', '../../main.c')\nexecutable('tree_sim', '../../main.c')\n")  # of part program
        for name, (suites, does) in tests.items():
            self.write(name + ".py", "import os, signal, sys, time\nmark = %r\nfirst = not os.path.exists(mark)\nopen(mark, 'w').close()\n%s\n" % (
                os.path.join(self.folder, "runs", name), does))
            meson += "test('%s', python, args: [files('%s.py')], suite: [%s], timeout: 5)\n" % (name, name, suites)
        self.write("meson.build", meson)
        run = subprocess.run([sys.executable, os.path.join(self.folder, "tools", "run-tests"), *parts], cwd=self.folder, stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, env={name: value for name, value in os.environ.items() if not name.startswith("TIDELOCK")})
        counts = re.fullmatch(r"(\d+) passed, (\d+) failed, (\d+) skipped", run.stdout.splitlines()[-1])
        self.assertIsNotNone(counts, run.stdout + run.stderr)
        self.assertEqual(run.returncode == 0, counts.group(2) == "0")
        return run.returncode == 0, run.stdout, int(counts.group(1)), int(counts.group(2))

    def green(self, *expected, without=(), parts=(), **more):
        green, output, passed, _ = self.gate(without, parts, **more)
        self.assertTrue(green, output)
        for text in expected:
            self.assertIn(text, output)
        return output, passed

    def red(self, *expected, without=(), **more):
        green, output, _, _ = self.gate(without, **more)
        self.assertFalse(green, output)
        for text in expected:
            self.assertIn(text, output)

    def test_sound(self):
        """A test's row has its processor time, including that of its child processes, next to its seconds; a part has the sum of its tests.
        A test of part program and one of part threads wait for each other: these parts run at the same time. So do the simulators and
        the end-to-end tests, which last until those parts run."""
        burn = "while time.process_time() < 0.3: pass"
        wait = "while not os.path.exists(os.path.join(os.path.dirname(mark), %r)): time.sleep(0.01)"
        race = "if os.environ['TIDELOCK_TEST_BUILD'] == 'tsan':\n    open(mark + '-tsan', 'w').close()\n    " + wait % "bounds"
        output, passed = self.green(
            "program, plain and threads, threads", bounds=("'e2e', 'plain'", wait % "race-tsan"), race=("'unit', 'threads'", race),
            sound=("'e2e'", wait % "bounds"), model=("'sim'", wait % "sound"),
            busy=("'e2e'", "import subprocess\nsubprocess.run([sys.executable, '-c', %r])\n%s" % ("import time\n" + burn, burn)))
        self.assertEqual(passed, 8, output)  # the one with threads runs twice
        self.assertNotIn("FLAKY", output)
        for line in (r"small:e2e / busy", r"e2e, e2e\+alone"):
            seconds = re.search(r"^ +[\d.]+ s +([\d.]+) s  .*%s$" % line, output, re.MULTILINE)
            self.assertGreaterEqual(float(seconds.group(1)), 0.6, output)

    def test_together(self):
        """Each kind of failure once, in one run: the other cases have them one by one. A test whose cases are all skipped counts as skipped. Undefined behaviour in the program is reported with
        function and line, although the test that runs into it looks at nothing."""
        output = self.gate(
            odd=("'e2e'", "sys.exit('too late' if first else 0)"), wrong=("'e2e'", "sys.exit('wrong')"), unit=("'unit'", "sys.exit(first)"),
            oracle=("'e2e', 'oracle'", "sys.exit(first)"), crash=("'e2e'", "if first: sys.exit('the server ended with status -6: ')"),
            absent=("'e2e'", SKIPS % "skipUnless(False, 'there is no target')"), part=("'e2e'", SKIPS % "skipIf(False, '')"),
            told=("'e2e'", "print('INSIST(x) failed at src/a.c:1')"), leaky=("'unit'", REPORT),
            overflow=("'e2e'", "import subprocess\nsubprocess.run([os.environ['TIDELOCK_BUILD'] + '/src/cli/tidelock', 'x'], stderr=subprocess.DEVNULL)"), without=["race"])[1]
        for text in ("FLAKY odd: too late", "FAILED e2e: small:e2e / wrong", "FAILED quick: small:unit / unit", "FAILED e2e: small:e2e+oracle / oracle",
                     "FAILED e2e: small:e2e / crash", "FAILED e2e: small:e2e / told", "== SANITIZER quick:", "== SANITIZER e2e:", "main.c:5 in main", "skipped e2e: small:e2e / absent: skipped: there is no target\n", "these tests of threads did not run: all"):
            self.assertIn(text, output)
        self.assertEqual(output.splitlines()[-1], "10 passed, 8 failed, 1 skipped", output)

    @one_by_one
    def test_accident(self):
        output, passed = self.green("FLAKY odd: too late", odd=("'e2e'", "sys.exit('too late' if first else 0)"))
        self.assertEqual(passed, 8, output)
        with open(os.path.join(self.folder, "build", "flaky"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "e2e\tsmall:e2e / odd\ttoo late\n")

    @one_by_one
    def test_too_many_accidents(self):
        self.red("more than 5 tests are flaky", **{"odd%d" % i: ("'e2e'", "sys.exit(first)") for i in range(6)})

    @one_by_one
    def test_failure(self):
        self.red("== FAILED e2e: small:e2e / wrong", "failed, and again when it ran alone", wrong=("'e2e'", "sys.exit('wrong')"))

    @one_by_one
    def test_repeated_for_no_reason(self):
        """Tests that repeat exactly, tests with an oracle, checks of the program, crashes, hangs."""
        once = "sys.exit(first)"
        for suites, does in (("'unit'", once), ("'sim'", once), ("'e2e', 'oracle'", once),
                             ("'e2e'", "if first: sys.exit('REQUIRE(a > 0) failed at src/a.c:1')"),
                             ("'e2e'", "if first: sys.exit('the server ended with status -6: ')"),
                             ("'e2e'", "if first: sys.exit('AssertionError: -11 != 0: status -11')"),
                             ("'e2e'", "if first: time.sleep(60)")):
            with self.subTest(suites=suites, does=does):
                self.red("== FAILED", odd=(suites, does))

    @one_by_one
    def test_sanitizers_count_always(self):
        self.red("== SANITIZER quick:", "ERROR: AddressSanitizer: leak", leaky=("'unit'", REPORT))
        self.red("== SANITIZER e2e:", leaky=("'e2e'", REPORT + "\nsys.exit(first)"))

    @one_by_one
    def test_failure_in_the_output_of_a_passed_test(self):
        self.red("passed, but its output", quiet=("'e2e'", "print('INSIST(x) failed at src/a.c:1')"))

    @one_by_one
    def test_suites_that_run_nothing(self):
        self.red("these tests of plain did not run: all", without=["bounds"])
        self.red("these tests of threads did not run: all", without=["race"])

    @one_by_one
    def test_long_part_without_tests_of_a_group(self):
        """No client library runs under a sanitizer."""
        _, passed = self.green(parts=["asan"], without=["measured"])
        self.assertEqual(passed, 5)

    @one_by_one
    def test_shipped(self):
        """The gate's tests, each once, against the program that is released."""
        self.write("tools/build-release", "#!/bin/sh\nset -e\n[ -e build-release ] || meson setup build-release --buildtype=release -Dtests=disabled\nninja -C build-release \"$@\"\n")
        os.chmod(os.path.join(self.folder, "tools", "build-release"), 0o755)
        _, passed = self.green(parts=["shipped"], sound=("'e2e'", "assert os.path.basename(os.environ['TIDELOCK_BUILD']) == 'build-release'\n"
                                                         "assert 'TIDELOCK_TEST_LONG' not in os.environ"))
        self.assertEqual(passed, 6)


if __name__ == "__main__":
    unittest.main()
