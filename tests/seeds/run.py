#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the transcripts (README.md), each on a server of its own.

    run.py [FILE.http...]
"""
import glob
import json
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from server import Server  # noqa: E402


class Step:
    def __init__(self, line):
        self.line = line
        self.method = self.path = self.status = None
        self.body = []
        self.expected = []
        self.captures = []


def read(path):
    """Returns: the steps of a transcript."""
    steps, step = [], None
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            line = line.rstrip("\n")
            if not line or line.startswith("#"):
                step = None
            elif step is None:
                step = Step(number)
                step.method, step.path = line.strip().split(" ", 1)
                steps.append(step)
            elif line.startswith("=> "):
                step.status = int(line[3:])
            elif line.startswith("<= "):
                step.captures.append(line[3:].split())
            elif step.status is None:
                step.body.append(line)
            else:
                step.expected.append(line)
    return steps


def difference(expected, actual, at=""):
    """Returns: what of `expected` is not in `actual`, or None."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key, value in expected.items():
            if key not in actual:
                return "%s/%s is missing" % (at, key)
            found = difference(value, actual[key], "%s/%s" % (at, key))
            if found:
                return found
        return None
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for i, (e, a) in enumerate(zip(expected, actual)):
            found = difference(e, a, "%s/%d" % (at, i))
            if found:
                return found
        return None
    if type(expected) is type(actual) and expected == actual:
        return None
    return "%s is %s, not %s" % (at or "the reply", json.dumps(actual), json.dumps(expected))


def pointer(value, path):
    for part in path.strip("/").split("/"):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def run(path):
    """Returns: how many steps ran; raises AssertionError at the first that went wrong."""
    values = {}
    fill = lambda text: re.sub(r"\$\{(\w+)\}", lambda m: values[m.group(1)], text)
    steps = read(path)
    with Server() as server:
        server.stop()
        shutil.copytree(os.path.join(HERE, "scripts"), os.path.join(server.data, "scripts"), dirs_exist_ok=True)
        server.start()
        for step in steps:
            body = fill("\n".join(step.body)) if step.body else None
            if body and "_bulk" in step.path:
                body += "\n"
            status, reply = server.ask(step.method, fill(step.path), body)
            where = "%s:%d: %s %s" % (os.path.basename(path), step.line, step.method, step.path)
            assert status == step.status, "%s: %d instead of %d: %s" % (where, status, step.status, json.dumps(reply, default=str))
            if step.expected:
                found = difference(json.loads("\n".join(step.expected)), reply)
                assert not found, "%s: %s in %s" % (where, found, json.dumps(reply))
            for name, path_in_reply in step.captures:
                values[name] = str(pointer(reply, path_in_reply))
    return len(steps)


def main():
    failed = 0
    for path in sys.argv[1:] or sorted(glob.glob(os.path.join(HERE, "*.http"))):
        try:
            print("ok    %s: %d requests" % (os.path.basename(path), run(path)))
        except AssertionError as error:
            failed += 1
            print("FAIL  %s" % error)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
