#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files that packaging/install puts below a given root work from there: the server notifies systemd that it is ready, and all
files are removed again. Man pages and completions agree with the program's help. Checks whose programs are not installed are
skipped by name.
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import PROGRAM, ROOT, Server  # noqa: E402

COMMANDS = re.findall(r"^  ([a-z]+) +\S", subprocess.run([PROGRAM, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n`tidelock COMMAND")[0], re.M)


def files(root):
    return sorted(os.path.relpath(os.path.join(folder, name), root) for folder, _, names in os.walk(root) for name in names)


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix="tidelock-root-")
        cls.install(cls.root, "/usr", PROGRAM)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root)

    @staticmethod
    def install(root, prefix, *arguments):
        environment = dict(os.environ, DESTDIR=root, PREFIX=prefix)
        subprocess.run([os.path.join(ROOT, "packaging", "install"), *arguments], check=True, env=environment)

    def text(self, *path):
        with open(os.path.join(self.root, *path), encoding="utf-8") as file:
            return file.read()

    def help(self, command):
        return subprocess.run([PROGRAM, command, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout

    def options(self, command):
        """Returns: the options of a command, from its help; examples below them begin with options, too."""
        options, end, _ = self.help(command).partition("--version")
        return set(re.findall(r"^(?:  -., |      )(--[a-z-]+)", options + end, re.M))

    def test_installed_files(self):
        found = files(self.root)
        for name in ("usr/bin/tidelock", "usr/share/man/man1/tidelock.1", "usr/share/bash-completion/completions/tidelock",
                     "usr/share/zsh/site-functions/_tidelock", "lib/systemd/system/tidelock.service", "usr/lib/sysusers.d/tidelock.conf",
                     "usr/share/doc/tidelock/docs/upgrading.md", *("usr/share/man/man1/tidelock-%s.1" % command for command in COMMANDS)):
            self.assertIn(name, found)
        said = subprocess.run([os.path.join(self.root, "usr/bin/tidelock"), "--version"], stdout=subprocess.PIPE, text=True, check=True)
        self.assertTrue(said.stdout.startswith("tidelock "))

    def test_removed(self):
        root = tempfile.mkdtemp(prefix="tidelock-root-")
        self.addCleanup(shutil.rmtree, root)
        kept = os.path.join(root, "var", "lib", "tidelock")
        os.makedirs(kept)
        with open(os.path.join(kept, "data"), "w", encoding="utf-8"):
            pass
        for prefix in ("/usr", "/usr/local", "/opt/tidelock"):
            self.install(root, prefix, PROGRAM)
            self.install(root, prefix, PROGRAM)  # over the installed files
            self.install(root, prefix, "--remove")
            self.assertEqual(files(root), ["var/lib/tidelock/data"])
        self.install(root, "/usr", "--remove")

    def test_configuration(self):
        """The installed file has every option and is valid. A modified file is kept by an upgrade and by a removal."""
        text = self.text("etc/tidelock/tidelock.conf")
        options = set(re.findall(r"^(?:  -., |      )--([a-z-]+)\[?=", self.help("serve"), re.M)) - {"config"}
        self.assertEqual(set(re.findall(r"^#?([a-z-]+) = ", text, re.M)), options)
        path = os.path.join(self.root, "etc/tidelock/tidelock.conf")
        done = subprocess.run([PROGRAM, "serve", "--config", path, "--check-config"], stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual(done.stdout, "all options are valid\n")
        root = tempfile.mkdtemp(prefix="tidelock-root-")
        self.addCleanup(shutil.rmtree, root)
        self.install(root, "/usr", PROGRAM)
        mine = os.path.join(root, "etc/tidelock/tidelock.conf")
        with open(mine, "a", encoding="utf-8") as file:
            file.write("history = 2h\n")
        self.install(root, "/usr", PROGRAM)
        self.install(root, "/usr", "--remove")
        with open(mine, encoding="utf-8") as file:
            self.assertIn("history = 2h\n", file.read())

    def test_pages_name_every_option(self):
        for command in COMMANDS:
            page = self.text("usr/share/man/man1/tidelock-%s.1" % command).replace("\\-", "-")
            options = self.options(command)
            self.assertGreaterEqual(len(options), 3)
            self.assertEqual(set(re.findall(r"^\.TP\n.*?\\fB(--[a-z-]+)\\fR", page, re.M)), options)

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed: the man pages are not read")
    def test_pages_are_sound(self):
        for name in ("tidelock", *("tidelock-" + command for command in COMMANDS)):
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", os.path.join(self.root, "usr/share/man/man1", name + ".1")],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)

    def complete(self, *words):
        script = os.path.join(self.root, "usr/share/bash-completion/completions/tidelock")
        done = subprocess.run(["bash", "-c", '. "$0"; shift 0; COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tidelock 2>/dev/null; '
                               'printf "%s\\n" "${COMPREPLY[@]}"', script, "tidelock", *words], stdout=subprocess.PIPE, text=True, check=True)
        return set(done.stdout.split())

    def test_bash_completes(self):
        self.assertEqual(self.complete("lo"), {"lock", "locks"})
        self.assertEqual(self.complete("help", "st"), {"status"})
        self.assertEqual(self.complete("locks", "--w"), {"--watch"})
        self.assertEqual(self.complete("serve", "--max-s"), {"--max-sessions="})
        self.assertEqual(self.complete(""), {*COMMANDS, "help", "--help", "--version"})
        for command in COMMANDS:
            options = self.options(command)
            self.assertEqual({word.rstrip("=") for word in self.complete(command, "--")}, options, command)

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed: its completion is not read")
    def test_zsh_completes(self):
        subprocess.run(["zsh", "-n", os.path.join(self.root, "usr/share/zsh/site-functions/_tidelock")], check=True)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd is not installed: the unit is not checked")
    def test_unit_is_hardened(self):
        unit = os.path.join(self.root, "lib/systemd/system/tidelock.service")
        done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--threshold=20", "--no-pager", unit], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_readiness_is_reported_to_systemd(self):
        folder = tempfile.mkdtemp(prefix="tidelock-notify-")
        self.addCleanup(shutil.rmtree, folder)
        for name in (os.path.join(folder, "socket"), "@tidelock-test-%d" % os.getpid()):
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
                notified.bind(name.replace("@", "\0"))
                with Server(environment={"NOTIFY_SOCKET": name}) as server:
                    self.assertEqual(notified.recv(100), b"READY=1")
                    self.assertEqual(server.ask("GET", "/")[0], 200)
                    server.stop(signal.SIGTERM)
                    self.assertEqual(notified.recv(100), b"STOPPING=1")
        with Server(environment={"NOTIFY_SOCKET": "nowhere"}) as server:
            server.stop()
            self.assertIn("cannot notify NOTIFY_SOCKET of READY=1: it names no socket", server.errors())


if __name__ == "__main__":
    unittest.main()
