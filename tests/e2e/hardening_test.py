#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program is built so that memory errors are hard to exploit.

readelf and objdump examine the executable, which is built here with the flags of a release. Each file of a release has these
flags: that is read from Meson's commands for one, set up in a temporary folder.
"""
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import PROGRAM, ROOT  # noqa: E402


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ, LC_ALL="C")).stdout


class Hardening(unittest.TestCase):
    def test_position_independent_with_immediate_binding(self):
        self.assertIn("DYN (Position-Independent Executable file)", run("readelf", "-hW", PROGRAM))
        flags = run("readelf", "-dW", PROGRAM)
        self.assertRegex(flags, r"FLAGS_1\).*NOW.*PIE")
        self.assertNotIn("TEXTREL", flags)
        segments = run("readelf", "-lW", PROGRAM)
        self.assertIn("GNU_RELRO", segments)
        stack, = [line for line in segments.splitlines() if "GNU_STACK" in line]
        self.assertNotIn("E", stack.split()[6], "the stack is not executable")
        for line in segments.splitlines():
            if line.split()[:1] == ["LOAD"]:
                self.assertNotIn("WE", line.replace(" ", ""), "nothing is both writable and executable")

    def test_checked_calls(self):
        symbols = run("readelf", "--dyn-syms", "-W", PROGRAM)
        self.assertIn("__stack_chk_fail", symbols)
        for name in ("__snprintf_chk", "__memcpy_chk"):
            self.assertIn(name, symbols)

    @unittest.skipUnless(platform.machine() == "x86_64", "endbr64 is of x86-64")
    def test_branches_have_targets(self):
        code = run("objdump", "-d", "--no-show-raw-insn", "--disassemble=command_serve", PROGRAM)
        first = [line for line in code.splitlines() if line.startswith(" ")][0]
        self.assertIn("endbr64", first)


class Release(unittest.TestCase):
    COMPILED = ("-O3", "-D_FORTIFY_SOURCE=3", "-fstack-protector-strong", "-fstack-clash-protection")
    LINKED = ("-Wl,-z,relro", "-Wl,-z,now", "-pie")

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="tidelock-release-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        run("meson", "setup", "--buildtype=release", "-Dtests=disabled", cls.folder, ROOT)

    def test_every_file(self):
        with open(os.path.join(self.folder, "compile_commands.json"), encoding="utf-8") as file:
            units = [unit for unit in json.load(file) if unit["output"].startswith("src" + os.sep)]
        self.assertGreater(len(units), 100)
        for unit in units:
            words = unit["command"].split()
            for flag in self.COMPILED + (("-fcf-protection",) if platform.machine() == "x86_64" else ()):
                self.assertIn(flag, words, unit["output"])
            self.assertEqual([word for word in words if word.startswith("-D_FORTIFY_SOURCE")], ["-D_FORTIFY_SOURCE=3"])
            self.assertTrue("-fPIE" in words or "-fPIC" in words, unit["output"])

    def test_the_link(self):
        with open(os.path.join(self.folder, "build.ninja"), encoding="utf-8") as file:
            rules = file.read().split("\n\n")
        program, = [rule for rule in rules if rule.startswith("build src/cli/tidelock:")]
        for flag in self.LINKED:
            self.assertIn(flag, program.split())


if __name__ == "__main__":
    unittest.main()
