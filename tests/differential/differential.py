#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random exchanges, recorded from a real Elasticsearch 7.10 and replayed against tidelock, or compared at once with shrinking.

    differential.py record --url http://127.0.0.1:9207 --scenarios 33 [GROUP...]     writes recorded/GROUP.jsonl.xz
    differential.py replay --program build/tidelock [--show N] recorded/*.jsonl.xz
    differential.py hunt --program build/tidelock --url http://127.0.0.1:9207 --seed 1000 --scenarios 20 [GROUP...]

replay fails when more than 0.5 % of the replies differ without a reason in reasons.tsv, or when a reason explains nothing any more.
hunt runs scenarios of other seeds on both servers, and shortens each that differs to the steps that it takes. Both servers lose
all that is on them. Compared are the status, every value of the body (scores to six digits, equal hits in any order), and of an
error its types; words of errors are not, they are soft here: tests/golden has those.
"""

import argparse
import collections
import http.client
import json
import lzma
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.parse
from pathlib import Path

import generate

HERE = Path(__file__).resolve().parent
SHARE_MAX = 0.005
ABSENT = "(absent)"
# Values that are another from run to run.
VARIES = {"took", "index_uuid", "uuid", "creation_date", "node", "cluster_uuid", "_scroll_id", "throttled_millis", "throttled_until_millis",
          "size_in_bytes", "script_stack", "position", "failed_shards", "line", "col", "batches"}


# --- Servers ---------------------------------------------------------------------------------------------------------

class Own:
    """A tidelock of its own, in a folder that goes with it."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="tidelock-differential-")
        self.process = subprocess.Popen([program, "serve", "--listen", "127.0.0.1:0", "--data", self.folder + "/data"],
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("ready on "):
            sys.exit("the server did not start: %r" % line)
        self.url = line.split()[2]

    def stop(self):
        os.kill(self.process.pid, signal.SIGTERM)
        status = self.process.wait()
        if status != 0:  # a sanitizer found something
            raise RuntimeError("the server ended with status %d" % status)
        shutil.rmtree(self.folder, ignore_errors=True)


class Connection:
    def __init__(self, url):
        self.host = urllib.parse.urlsplit(url).netloc
        self.http = None

    def send(self, step):
        body = step["body"].encode("utf-8") if step["body"] is not None else None
        headers = {"Content-Type": "application/json"} if body is not None else {}
        for attempt in (1, 2):
            try:
                if self.http is None:
                    self.http = http.client.HTTPConnection(self.host)
                self.http.request(step["method"], step["path"], body, headers)
                response = self.http.getresponse()
                data = response.read()
                break
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                self.http = None
                if attempt == 2:
                    raise
        try:
            return response.status, json.loads(data) if data else None
        except ValueError:
            return response.status, data.decode("utf-8", "replace")

    def clean(self):
        for path in ("/*?expand_wildcards=all", "/_template/*"):
            self.send({"method": "DELETE", "path": path, "body": None})

    def run(self, steps):
        self.clean()
        return [self.send(step) for step in steps]


# --- Comparing -------------------------------------------------------------------------------------------------------

def settled(value, key=""):
    """A reply without what varies, or is in no order."""
    if key in VARIES:
        return None
    if isinstance(value, dict):
        if key == "error":
            return {"type": value.get("type"), "root": sorted({str(c.get("type")) for c in value.get("root_cause", [])})}
        if "type" in value and "reason" in value and key in ("cause", "caused_by"):
            return {"type": value["type"]}
        return {k: settled(v, k) for k, v in value.items()}
    if isinstance(value, list):
        items = [settled(v) for v in value]
        if key == "hits":
            items = in_any_order(items)
        return items
    if isinstance(value, float) and math.isfinite(value):
        return float("%.6g" % value)
    return value


def in_any_order(hits):
    """Hits that are equal by what they are sorted by, by id."""
    def rank(hit):
        return json.dumps(hit.get("sort", hit.get("_score"))) if isinstance(hit, dict) else ""
    out, at = [], 0
    while at < len(hits):
        end = at
        while end < len(hits) and rank(hits[end]) == rank(hits[at]):
            end += 1
        out += sorted(hits[at:end], key=lambda h: json.dumps(h, sort_keys=True))
        at = end
    return out


def differences(want, have, pointer=""):
    if isinstance(want, dict) and isinstance(have, dict):
        for key in list(want) + [k for k in have if k not in want]:
            yield from differences(want.get(key, ABSENT), have.get(key, ABSENT), pointer + "/" + key)
    elif isinstance(want, list) and isinstance(have, list) and len(want) == len(have):
        for i, (a, b) in enumerate(zip(want, have)):
            yield from differences(a, b, "%s/%d" % (pointer, i))
    elif want != have or isinstance(want, bool) != isinstance(have, bool):
        yield pointer, want, have


def compare(want, have):
    """(status, body) of both. Returns: a list of (pointer, wanted, got)."""
    found = [] if want[0] == have[0] else [("status", want[0], have[0])]
    return found + list(differences(settled(want[1]), settled(have[1])))


# --- Reasons ---------------------------------------------------------------------------------------------------------

def read_reasons():
    """[(regular expression over `GROUP METHOD PATH BODY => POINTER: WANTED -> GOT`, reason)]"""
    reasons = []
    for line in (HERE / "reasons.tsv").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            pattern, reason = line.split("\t")
            reasons.append((re.compile(pattern, re.S), reason))
    return reasons


def text_of(group, step, difference):
    return "%s %s %s %s => %s: %s -> %s" % (group, step["method"], step["path"], step["body"] or "", difference[0],
                                            json.dumps(difference[1], ensure_ascii=False), json.dumps(difference[2], ensure_ascii=False))


def explained(group, step, found, reasons, used):
    """Whether one reason at least covers the reply: the first difference decides."""
    text = text_of(group, step, found[0])
    for number, (pattern, _) in enumerate(reasons):
        if pattern.search(text):
            used[number] += 1
            return True
    return False


# --- Commands --------------------------------------------------------------------------------------------------------

def record(args):
    connection = Connection(args.url)
    for group in args.groups or generate.GROUPS:
        lines = []
        for seed in range(args.seed, args.seed + args.scenarios):
            steps = generate.scenario(group, seed)
            replies = connection.run(steps)
            lines.append(json.dumps({"group": group, "seed": seed, "steps": steps, "replies": replies}, ensure_ascii=False))
        path = HERE / "recorded" / (group + ".jsonl.xz")
        path.write_bytes(lzma.compress("\n".join(lines).encode("utf-8"), preset=9))
        print("%s: %d scenarios" % (path, len(lines)))
    connection.clean()
    return 0


def show(group, seed, number, step, found):
    print("DIFFERS %s/%s/%d: %s %s" % (group, seed, number, step["method"], step["path"]))
    if step["body"]:
        print("    " + step["body"][:300].replace("\n", "\n    "))
    for pointer, want, have in found[:4]:
        print("    %s: recorded %s, now %s" % (pointer or "/", json.dumps(want, ensure_ascii=False)[:200],
                                              json.dumps(have, ensure_ascii=False)[:200]))


def replay(args):
    reasons, used, totals, shown = read_reasons(), collections.Counter(), collections.Counter(), 0
    server = Own(args.program)
    try:
        connection = Connection(server.url)
        for path in args.files:
            here = collections.Counter()
            for line in lzma.decompress(Path(path).read_bytes()).decode("utf-8").split("\n"):
                recorded = json.loads(line)
                replies = connection.run(recorded["steps"])
                for number, (step, want, have) in enumerate(zip(recorded["steps"], recorded["replies"], replies)):
                    found = compare(want, have)
                    here["all"] += 1
                    if not found:
                        continue
                    known = explained(recorded["group"], step, found, reasons, used)
                    here["reason" if known else "wrong"] += 1
                    if not known and shown < args.show:
                        shown += 1
                        show(recorded["group"], recorded["seed"], number, step, found)
            print("%5d replies, %d differ with a reason, %d without: %s" % (here["all"], here["reason"], here["wrong"], Path(path).name))
            totals.update(here)
    finally:
        server.stop()
    share = totals["wrong"] / max(totals["all"], 1)
    print("%d replies, %d differ with a reason, %d without (%.2f %%)" % (totals["all"], totals["reason"], totals["wrong"], 100 * share))
    idle = [reasons[n][0].pattern for n in range(len(reasons)) if not used[n]]
    for pattern in idle:
        print("IDLE " + pattern)
    return 1 if share > SHARE_MAX or (idle and not args.part) else 0


def differs(ours, theirs, steps):
    """Returns: (number of the step, its differences) of the first that differs, or None."""
    for number, (want, have) in enumerate(zip(theirs.run(steps), ours.run(steps))):
        found = compare(want, have)
        if found:
            return number, found
    return None


def shrink(ours, theirs, steps):
    """Drops steps, from the last before the one that differs to the first, as long as it still does."""
    first = differs(ours, theirs, steps)
    steps = steps[:first[0] + 1]
    for at in range(len(steps) - 2, -1, -1):
        shorter = steps[:at] + steps[at + 1:]
        found = differs(ours, theirs, shorter)
        if found and found[0] == len(shorter) - 1:
            steps, first = shorter, found
    return steps, first[1]


def hunt(args):
    reasons, count = read_reasons(), 0
    server = Own(args.program)
    try:
        ours, theirs = Connection(server.url), Connection(args.url)
        for group in args.groups or generate.GROUPS:
            for seed in range(args.seed, args.seed + args.scenarios):
                steps = generate.scenario(group, seed)
                found = differs(ours, theirs, steps)
                if found is None or explained(group, steps[found[0]], found[1], reasons, collections.Counter()):
                    continue
                steps, differing = shrink(ours, theirs, steps)
                count += 1
                for step in steps[:-1]:
                    print("        %s %s %s" % (step["method"], step["path"], (step["body"] or "")[:200]))
                show(group, seed, len(steps) - 1, steps[-1], differing)
    finally:
        server.stop()
    print("%d scenarios differ" % count)
    return 1 if count else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("record", "hunt"):
        p = commands.add_parser(name)
        p.add_argument("--url", required=True, help="an Elasticsearch 7.10, which loses all its indices")
        p.add_argument("--seed", type=int, default=1)
        p.add_argument("--scenarios", type=int, default=33, help="of each group")
        p.add_argument("groups", nargs="*", metavar="GROUP")
        if name == "hunt":
            p.add_argument("--program", required=True)
    p = commands.add_parser("replay")
    p.add_argument("--program", required=True)
    p.add_argument("--show", type=int, default=20, help="how many of those without a reason")
    p.add_argument("--part", action="store_true", help="not all recordings are given: idle reasons are fine")
    p.add_argument("files", nargs="+")
    args = parser.parse_args()
    return {"record": record, "replay": replay, "hunt": hunt}[args.command](args)


if __name__ == "__main__":
    sys.exit(main())
