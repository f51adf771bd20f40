#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs examples of docs/cluster.md as they are written, but for the addresses, on one etcd and loopback. Skipped without etcd.

The page has no output to compare, so a command must succeed. The sections run are those of SECTIONS, in one cluster. Not run: what needs files of
TLS (cluster_transport_test.py), other machines, containers or systemd, or ends etcd (cluster_etcd_test.py, cluster_members_test.py), and commands
with an id of an earlier reply, written as "…".
"""
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster_test import LEASE, Etcd, free_port  # noqa: E402
from server import BUILD, ROOT, Server  # noqa: E402
from waiting import until  # noqa: E402

SECTIONS = ["Three hosts", "From one host to three", "Inspecting", "Any host takes any request", "Time and reading"]
HOST = re.compile(r"10\.0\.0\.([123]):9200")
ETCD = re.compile(r"(http://10\.0\.0\.[123]:2379,?)+")


def examples(section):
    """Returns: the commands of a section, which are indented; without the notes that some have at their end."""
    with open(os.path.join(ROOT, "docs", "cluster.md"), encoding="utf-8") as page:
        text = page.read().split("\n## %s\n" % section, 1)[1].split("\n## ", 1)[0]
    lines = [line.strip() for line in text.split("\n") if re.match(r" {4,}(curl|tidelock|etcd) ", line)]
    return [re.sub(r" {5,}.*", "", line) for line in lines if "…" not in line and "..." not in line]


@unittest.skipUnless(shutil.which("etcd") and shutil.which("curl"), "there is no etcd, or no curl")
class Page(unittest.TestCase):
    def setUp(self):
        self.etcd = Etcd()
        self.addCleanup(self.etcd.close)
        self.ports = {number: free_port() for number in "123"}
        self.servers = {}

    def here(self, command):
        """Returns: the command with addresses of this machine."""
        return HOST.sub(lambda found: "127.0.0.1:%d" % self.ports[found.group(1)], ETCD.sub(self.etcd.url, command))

    def serve(self, command):
        """Starts a host with the options of the page, but for its directory and its lease."""
        words = shlex.split(command)[2:]
        options = [self.here(word) for i, word in enumerate(words) if word not in ("--data", "--listen") and (i == 0 or words[i - 1] not in ("--data", "--listen"))]
        number = HOST.search(command).group(1)
        self.servers[number] = Server(*options, *LEASE, port=self.ports[number])
        self.addCleanup(self.servers[number].close)
        self.servers[number].start()

    def run_command(self, command):
        """Runs curl, so that it fails with an error of the server, or the program."""
        words = self.here(command).replace("curl ", "curl -sS --fail-with-body ", 1).replace("tidelock ", os.path.join(BUILD, "src", "cli", "tidelock") + " ", 1)
        run = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=False, cwd=tempfile.gettempdir())
        self.assertEqual(run.returncode, 0, "%s\n%s%s" % (command, run.stdout, run.stderr))
        return run.stdout

    def test_examples_of_the_page(self):
        count = 0
        for section in SECTIONS:
            commands = examples(section)
            self.assertNotEqual(commands, [], section)
            for command in commands:
                if command.startswith("tidelock serve"):
                    if HOST.search(command).group(1) not in self.servers:
                        self.serve(command)
                elif not command.startswith("etcd "):  # it runs
                    self.run_command(command)
                    count += 1
        self.assertGreaterEqual(count, 11)
        hosts = self.servers["1"].must("GET", "/_cluster/hosts")["hosts"]
        self.assertEqual([host["name"] for host in hosts], ["a", "b", "c"])
        until(lambda: self.servers["3"].ask("GET", "/x/_doc/2")[0] == 200, "the document of the page is on each host")


if __name__ == "__main__":
    unittest.main(verbosity=2)
