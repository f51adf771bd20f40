#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program is built so that an error in it is hard to use: what readelf and objdump see in the file itself."""
import os
import platform
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import PROGRAM  # noqa: E402


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ, LC_ALL="C")).stdout


class Hardening(unittest.TestCase):
    def test_loaded_anywhere_and_bound_at_once(self):
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


if __name__ == "__main__":
    unittest.main()
