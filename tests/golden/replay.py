#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays recordings of real Elasticsearch servers against tidelock, and compares every answer.

    replay.py --program build/tidelock [--exceptions exceptions.tsv] FILE.jsonl...
    replay.py --url http://127.0.0.1:9200 [--diff] [--id REGEX] FILE.jsonl...

A file is one scenario: its exchanges run in order against an empty server. Without --url the tool starts a server of its
own on a free port, with the *.groovy files beside this script as file scripts, and ends it by its process id, or with itself.

An answer is equal when its status is and its JSON is: 1 and 1.0 differ, the order of an object's keys does not count. A
recording names pointers whose values `vary` from run to run; of those only the kind counts, or a `like` pattern.

exceptions.tsv lists exchanges that may differ: id, `status` or `body`, reason. The run fails when another exchange differs, when
a listed one is equal again, or when one listed as `body` differs in its status too. Standard library only.
"""

import argparse
import base64
import collections
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.parse
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
import process_guard  # noqa: E402,F401

ABSENT = object()
JAVA_FRAME = re.compile(r"\((\w+\.(java|groovy)(:\d+)?|Native Method|Unknown Source)\)$")


# --- A server ------------------------------------------------------------------------------------------------------

class Server:
    """A tidelock of its own, on a free port, in a folder that goes with it."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="tidelock-golden-")
        self.data = os.path.join(self.folder, "data")
        self.give_scripts()
        self.process = subprocess.Popen([program, "serve", "--listen", "127.0.0.1:0", "--data", self.data],
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("ready on "):
            sys.exit("the server did not start: %r" % line)
        self.url = line.split()[2]

    def give_scripts(self):
        """The server reads them when it starts; later it would look for them once a second."""
        folder = os.path.join(self.data, "scripts")
        os.makedirs(folder, exist_ok=True)
        for script in HERE.glob("*.groovy"):
            shutil.copy(script, folder)

    def stop(self):
        os.kill(self.process.pid, signal.SIGTERM)
        status = self.process.wait()
        if status != 0:  # a sanitizer found something
            raise RuntimeError("the server ended with status %d" % status)
        shutil.rmtree(self.folder, ignore_errors=True)


class Connection:
    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port = parts.hostname, parts.port or 80
        self.http = None

    def send(self, method, path, headers, body):
        """Returns (status, bytes)."""
        for attempt in (1, 2):
            try:
                return self.once(method, path, headers, body)
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                self.http = None
                if attempt == 2:
                    raise
        raise AssertionError

    def once(self, method, path, headers, body):
        if self.http is None:
            self.http = http.client.HTTPConnection(self.host, self.port)
        self.http.putrequest(method, path, skip_accept_encoding=True)
        sent = dict(headers or {})
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
            sent.setdefault("Content-Length", str(len(body)))
        elif method in ("POST", "PUT", "DELETE"):
            sent.setdefault("Content-Length", "0")
        for name, value in sent.items():
            if value is not None:
                self.http.putheader(name, value)
        self.http.endheaders(body)
        response = self.http.getresponse()
        data = response.read()
        if response.will_close:
            self.http.close()
            self.http = None
        return response.status, data


# --- One scenario ----------------------------------------------------------------------------------------------------

def load(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def clean(connection, exchanges):
    """No index, no template, none of the scripts that the scenario puts."""
    paths = ["/*?expand_wildcards=all", "/_template/*", "/_index_template/*", "/_component_template/*"]
    paths += sorted({e["path"].split("?")[0] for e in exchanges
                     if re.match(r"/_scripts/(?!painless/_execute)[^_]", e["path"])})
    for path in paths:
        connection.send("DELETE", path, None, None)


def perform(connection, exchange, captured):
    def fill(text):
        return re.sub(r"\$\{(\w+)\}", lambda m: str(captured.get(m[1], m[0])), text)
    body = None
    if "body_base64" in exchange:
        body = base64.b64decode(exchange["body_base64"])
    elif exchange.get("body") is not None:
        body = fill(exchange["body"]).encode("utf-8", "surrogatepass")
    try:
        status, data = connection.send(exchange["method"], fill(exchange["path"]), exchange.get("headers"), body)
    except (OSError, http.client.HTTPException) as error:
        connection.http = None
        return 0, "no answer: %r" % error
    answer = data.decode("utf-8", "replace") if data else None
    if answer is not None and exchange.get("as") != "text":
        try:
            answer = json.loads(answer)
        except ValueError:
            pass
    for name, pointer in exchange.get("capture", {}).items():
        captured[name] = value_at(answer, pointer)
    return status, answer


def value_at(value, pointer):
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        value = value[int(step)] if isinstance(value, list) else value.get(step) if isinstance(value, dict) else None
    return value


# --- Comparing -------------------------------------------------------------------------------------------------------

class Variation:
    """Which values may differ, and within what."""

    def __init__(self, exchange):
        self.patterns = [pointer.split("/") for pointer in exchange.get("varies", [])]
        self.like = exchange.get("like", {})

    def covers(self, pointer):
        steps = pointer.split("/")
        return any(len(pattern) == len(steps) and all(a in ("*", b) for a, b in zip(pattern, steps))
                   for pattern in self.patterns)


def step_to(pointer, key):
    return pointer + "/" + str(key).replace("~", "~0").replace("/", "~1")


def compare(want, have, pointer, variation):
    """Yields (pointer, wanted, got)."""
    if variation.covers(pointer):
        if pointer.endswith("/reason") and (want is None or have is None):
            return
        if type(want) is not type(have):
            yield pointer, want, have
        elif pointer in variation.like and isinstance(have, str):
            if not re.fullmatch(variation.like[pointer], have, re.S):
                yield pointer, "like " + variation.like[pointer], have
    elif type(want) is not type(have):
        yield pointer, want, have
    elif isinstance(want, dict):
        for key in list(want) + [k for k in have if k not in want]:
            yield from compare(want.get(key, ABSENT), have.get(key, ABSENT), step_to(pointer, key), variation)
    elif isinstance(want, list):
        if pointer.endswith("/script_stack"):
            want, have = ([f for f in stack if not JAVA_FRAME.search(str(f))] for stack in (want, have))
        for i in range(max(len(want), len(have))):
            yield from compare(want[i] if i < len(want) else ABSENT, have[i] if i < len(have) else ABSENT,
                               step_to(pointer, i), variation)
    elif want != have:
        yield pointer, want, have


def shown(value):
    text = "(absent)" if value is ABSENT else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else text[:300] + "…"


def show(exchange, status, differences):
    print("DIFFERS %s: %s %s" % (exchange["id"], exchange["method"], exchange["path"][:150]))
    if exchange.get("body"):
        print("    " + exchange["body"][:300].replace("\n", "\n    "))
    if status != exchange["status"]:
        print("    status: recorded %d, now %d" % (exchange["status"], status))
    for pointer, want, have in differences[:6]:
        print("    %s: recorded %s, now %s" % (pointer or "/", shown(want), shown(have)))


# --- The run ---------------------------------------------------------------------------------------------------------

def replay(connection, path, chosen, print_differences):
    """Returns {id: None, "body" or "status"}: how each exchange differs."""
    exchanges = load(path)
    clean(connection, exchanges)
    captured, outcome = {}, {}
    for exchange in exchanges:
        status, answer = perform(connection, exchange, captured)
        differences = list(compare(exchange["response"], answer, "", Variation(exchange)))
        how = "status" if status != exchange["status"] else "body" if differences else None
        outcome[exchange["id"]] = how
        if how and print_differences(exchange["id"], how) and re.search(chosen, exchange["id"]):
            show(exchange, status, differences)
    clean(connection, exchanges)
    return outcome


def read_exceptions(path):
    exceptions = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, how, reason = line.split("\t")
            if how not in ("status", "body") or not reason:
                sys.exit("%s: %r is no exception with a reason" % (path, line))
            exceptions[name] = how
    return exceptions


def judge(outcome, exceptions):
    """Returns what is wrong: differences that are not listed, and listed ones that are none."""
    wrong = []
    for name, how in outcome.items():
        listed = exceptions.get(name)
        if how and listed != how and not (listed == "status" and how == "body"):
            wrong.append("%s differs (%s) and is not listed so" % (name, how))
        elif not how and listed:
            wrong.append("%s is listed as an exception and is equal" % name)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", help="start this tidelock")
    parser.add_argument("--url", help="use this server, which loses all its indices")
    parser.add_argument("--exceptions", default=str(HERE / "exceptions.tsv"))
    parser.add_argument("--diff", action="store_true", help="show all differences, listed ones too")
    parser.add_argument("--list", action="store_true", help="print lines for exceptions.tsv of what differs")
    parser.add_argument("--id", default="", help="show only exchanges whose id this matches")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    exceptions = read_exceptions(args.exceptions) if Path(args.exceptions).exists() else {}
    server = None if args.url else Server(args.program)
    outcome, totals = {}, collections.Counter()
    try:
        connection = Connection(args.url or server.url)
        for path in args.files:
            result = replay(connection, path, args.id,
                            lambda name, how: args.diff or judge({name: how}, exceptions))
            equal = sum(how is None for how in result.values())
            print("%4d of %4d equal  %s" % (equal, len(result), path))
            totals["all"] += len(result)
            totals["equal"] += equal
            totals["status"] += sum(how == "status" for how in result.values())
            outcome.update(result)
    finally:
        if server:
            server.stop()
    if args.list:
        for name, how in outcome.items():
            if how and name not in exceptions:
                print("%s\t%s\t" % (name, how))
    wrong = judge(outcome, exceptions)
    for line in wrong:
        print("WRONG " + line)
    print("%d of %d equal (%.1f %%), %d with another status" %
          (totals["equal"], totals["all"], 100.0 * totals["equal"] / totals["all"], totals["status"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
