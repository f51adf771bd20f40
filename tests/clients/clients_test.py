#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The client libraries for JavaScript, unmodified, as npm installs them from package-lock.json, used as their users do
(clients.mjs): Elasticsearch's 16 (which speaks 5.6), 7 and 8, and OpenSearch's.

They come from npm's registry, so only `make test-long` runs this (TIDELOCK_TEST_LONG=1). They are installed once for each build
folder. Without node, npm or a reachable registry the test prints the reason and exits with 77.
"""
import filecmp
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))
from server import BUILD, Server  # noqa: E402

LIBRARIES = ["elasticsearch-16", "elastic-7", "elastic-8", "opensearch"]
FOLDER = os.path.join(BUILD, "clients")
INSTALL_SECONDS = 300  # a registry that takes longer counts as one that cannot be reached
INSTALLED = os.path.join(FOLDER, "installed.json")  # the lock file that node_modules was made from


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


def install():
    lock = os.path.join(HERE, "package-lock.json")
    os.makedirs(FOLDER, exist_ok=True)
    for name in ("package.json", "package-lock.json", "clients.mjs"):
        shutil.copy(os.path.join(HERE, name), FOLDER)
    if os.path.exists(INSTALLED) and filecmp.cmp(lock, INSTALLED, shallow=False):
        return
    try:
        done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=FOLDER, timeout=INSTALL_SECONDS,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except subprocess.TimeoutExpired:
        skip("npm could not install the libraries within %d s" % INSTALL_SECONDS)
    if done.returncode != 0:
        skip("npm could not install the libraries: " + done.stdout.strip()[-500:])
    shutil.copy(lock, INSTALLED)


def main():
    if os.environ.get("TIDELOCK_TEST_LONG") != "1":
        skip("installs from npm's registry; make test-long")
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            skip(tool + " is not installed")
    install()
    failed = []
    with Server() as server:
        for library in LIBRARIES:
            status = subprocess.run(["node", "clients.mjs", library, server.url], cwd=FOLDER, stdin=subprocess.DEVNULL).returncode
            if status != 0:
                failed.append(library)
    assert not failed, "failed: " + ", ".join(failed)


if __name__ == "__main__":
    main()
