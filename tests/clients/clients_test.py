#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Client libraries, unmodified, as their registries have them, used as their users do.

For JavaScript (clients.mjs) Elasticsearch's 16, which speaks 5.6, 7 and 8, and OpenSearch's, by npm from package-lock.json. For Go (go/)
Elasticsearch's 7 and 8, by the Go module proxy from go.sum.

They come from registries, so only `make test-long` runs this (TIDELOCK_TEST_LONG=1). They are installed once for each build
folder. A language whose tools or registry are absent is left out, with the reason; if both are, the test exits with 77.
"""
import filecmp
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))
from server import BUILD, Server  # noqa: E402

GO_VERSIONS = ["v7", "v8"]
LIBRARIES = ["elasticsearch-16", "elastic-7", "elastic-8", "opensearch"]
FOLDER = os.path.join(BUILD, "clients")
INSTALL_SECONDS = 300  # a registry that takes longer counts as one that cannot be reached
INSTALLED = os.path.join(FOLDER, "installed.json")  # the lock file that node_modules was made from


class Absent(Exception):
    """The libraries of a language cannot be had; says why."""


def need(*tools):
    for tool in tools:
        if shutil.which(tool) is None:
            raise Absent(tool + " is not installed")


def fetch(registry, *command, folder):
    """Runs a command that downloads."""
    try:
        done = subprocess.run(command, cwd=folder, timeout=INSTALL_SECONDS, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except subprocess.TimeoutExpired as error:
        raise Absent("%s could not install the libraries within %d s" % (registry, INSTALL_SECONDS)) from error
    if done.returncode != 0:
        raise Absent("%s could not install the libraries: %s" % (registry, done.stdout.strip()[-500:]))


def install_javascript():
    """Returns: the commands to run, each without the server's address."""
    need("node", "npm")
    lock = os.path.join(HERE, "package-lock.json")
    os.makedirs(FOLDER, exist_ok=True)
    for name in ("package.json", "package-lock.json", "clients.mjs"):
        shutil.copy(os.path.join(HERE, name), FOLDER)
    if not (os.path.exists(INSTALLED) and filecmp.cmp(lock, INSTALLED, shallow=False)):
        fetch("npm", "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", folder=FOLDER)
        shutil.copy(lock, INSTALLED)
    return [["node", os.path.join(FOLDER, "clients.mjs"), library] for library in LIBRARIES]


def install_go():
    """Returns: the commands to run, each without the server's address."""
    need("go")
    sources = os.path.join(HERE, "go")
    programs = [os.path.join(FOLDER, "go-" + version) for version in GO_VERSIONS]
    os.makedirs(FOLDER, exist_ok=True)
    fetch("the Go module proxy", "go", "mod", "download", folder=sources)
    for version, program in zip(GO_VERSIONS, programs):
        subprocess.run(["go", "build", "-o", program, "./" + version], cwd=sources, check=True)
    return [[program] for program in programs]


def main():
    if os.environ.get("TIDELOCK_TEST_LONG") != "1":
        print("skipped: installs from registries; make test-long")
        sys.exit(77)
    commands = []
    for install in (install_javascript, install_go):
        try:
            commands += install()
        except Absent as error:
            print("left out: %s" % error)
    if not commands:
        sys.exit(77)
    with Server() as server:
        failed = [command for command in commands if subprocess.run([*command, server.url], stdin=subprocess.DEVNULL).returncode != 0]
    assert not failed, "failed: " + ", ".join(" ".join(command) for command in failed)


if __name__ == "__main__":
    main()
