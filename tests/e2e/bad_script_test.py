#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hostile scripts: each is refused with its error, and other clients are served meanwhile.

Each script of the table is sent as an update, in an update by query, and in a bulk. The reply must be 400 with the cause that
the table names; the document is unchanged. Meanwhile another client, a separate process, reads and writes: each of its requests
must succeed, and the longest latency is printed. The latency is limited only with TIDELOCK_TEST_LONG. Then names of stored
scripts, with a context and with a language.

    bad_script_test.py [--patience SECONDS]
"""
import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402
from neighbour import MEASURING, Neighbour  # noqa: E402

DOCUMENT = {"n": 1, "list": [3, 1, 2], "map": {"k": "v"}}

SCRIPTS = [
    # lang, source, cause of the cause (or of the failure itself)
    ("painless", "while (true) { ctx._source.n++ }", "painless_error"),
    ("painless", "for (;;) { int a = 1; a++; a++; a++; a++; a++; a++; a++ }", "limit_exceeded_exception"),
    ("painless", "for (int i = 0; i < 10; ) { int j = i }", "painless_error"),
    ("groovy", "while (true) {}", "limit_exceeded_exception"),
    ("groovy", "def l = []; while (true) { l << 1 }", "limit_exceeded_exception"),
    ("painless", "int f(int x) { return f(x + 1) } f(1)", "stack_overflow_error"),
    ("groovy", "def f; f = { x -> f(x + 1) }; f(1)", "stack_overflow_error"),
    ("painless", "String s = 'x'; while (true) { s = s + s }", "limit_exceeded_exception"),
    ("groovy", "def s = 'x'; while (true) { s = \"${s}${s}\" }", "limit_exceeded_exception"),
    ("groovy", "ctx._source.n = 'abc' * 1000000000", "limit_exceeded_exception"),
    ("painless", "List l = new ArrayList(); while (true) { l.add(new int[10000]) }", "limit_exceeded_exception"),
    ("painless", "ctx._source.n = new int[2147483647].length", "limit_exceeded_exception"),
    ("painless", "BigInteger b = BigInteger.valueOf(3); while (true) { b = b.multiply(b) }", "limit_exceeded_exception"),
    ("painless", "ctx._source.n = /(a+)+b/.matcher('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac').matches()",
     "limit_exceeded_exception"),
    ("painless", "List l = new ArrayList(); for (int i = 0; i < 900000; i++) { l.add(0, i) }", "limit_exceeded_exception"),
    ("painless", "Map m = new HashMap(); m.m = m; ctx._source.m = m", "illegal_argument_exception"),
    ("groovy", "def l = []; l << l; ctx._source.l = l", "illegal_argument_exception"),
    ("painless", "ctx._source.n = params.a.b", "null_pointer_exception"),
    ("painless", "int z = 0; ctx._source.n = 1 / z", "arithmetic_exception"),
    ("painless", "ctx._source.n = Math.addExact(2147483647, (int)ctx._source.n)", "illegal_argument_exception"),
    ("painless", "ctx._source.n = ctx._source.list.get(9)", "index_out_of_bounds_exception"),
    ("painless", "(" * 60000, "stack_overflow_error"),
    ("painless", "!" * 60000 + "x", "stack_overflow_error"),
    ("groovy", "[" * 60000, "stack_overflow_error"),
    ("painless", "ctx._source.n = [", "illegal_argument_exception"),
    ("painless", "(" * 1000000, "illegal_argument_exception"),
    ("groovy", "[" * 1000000, "illegal_argument_exception"),
]


def deepest(error):
    while "caused_by" in error:
        error = error["caused_by"]
    if error["type"] in ("no_viable_alt_exception", "lexer_no_viable_alt_exception"):
        return "illegal_argument_exception"
    return error["type"]


def ways(lang, source):
    """Yields (method, path, body) of the requests that a script comes by."""
    script = {"lang": lang, "source": source}
    yield "POST", "/docs/_update/1", {"script": script}
    yield "POST", "/docs/_update_by_query", {"script": script, "query": {"term": {"n": 1}}}
    yield "POST", "/docs/_bulk", (json.dumps({"update": {"_id": "1"}}) + "\n" + json.dumps({"script": script}) + "\n").encode()


def check(server, lang, source, cause, patience):
    shown = "%s: %s" % (lang, source[:80])
    for method, path, body in ways(lang, source):
        begin = time.monotonic()
        status, reply = server.ask(method, path, body)
        seconds = time.monotonic() - begin
        if path.endswith("_bulk"):
            assert status == 200, (status, reply)
            status, reply = reply["items"][0]["update"]["status"], reply["items"][0]["update"]
        assert status == 400, "%s\n%s: %d %s" % (shown, path, status, reply)
        assert deepest(reply["error"]) == cause, "%s\n%s: %s" % (shown, path, reply)
        assert not MEASURING or seconds < patience, "%s\n%s took %.1f s" % (shown, path, seconds)
    found = server.must("GET", "/docs/_doc/1")
    assert found["_version"] == 1 and found["_source"] == DOCUMENT, "%s\nleft %s" % (shown, found)


def check_stored(server):
    """A stored script's path in later versions has the context after the id, in 5.x the language before it."""
    good, bad = {"script": {"lang": "painless", "source": "ctx._source.n++"}}, {"script": {"lang": "painless", "source": "ctx._source.n +"}}
    assert server.must("PUT", "/_scripts/count/update", good) == {"acknowledged": True}
    status, reply = server.ask("PUT", "/_scripts/count/update", bad)
    assert status == 400 and reply["error"]["type"] == "script_exception", reply
    status, reply = server.ask("PUT", "/_scripts/count/score", good)
    assert status == 400 and "cannot resolve symbol" in str(reply), reply
    assert server.ask("PUT", "/_scripts/count/search", bad)[0] == 500
    assert server.must("PUT", "/_scripts/ingested/ingest", bad) == {"acknowledged": True}
    assert server.must("GET", "/_scripts/count")["script"]["source"] == "ctx._source.n++"
    assert server.must("PUT", "/_scripts/groovy/old", {"script": "ctx._source.n++"}) == {"acknowledged": True}
    assert server.must("GET", "/_scripts/groovy/old")["lang"] == "groovy"
    status, reply = server.ask("PUT", "/_scripts/cobol/old", {"script": "ADD 1 TO N"})
    assert status == 400 and "unsupported lang [cobol]" in str(reply), reply
    assert server.must("POST", "/docs/_update/1", {"script": {"id": "count"}})["result"] == "updated"


def check_bulk_of_endless(server, patience):
    """Many endless scripts in one bulk: together they take little more than one alone (MEASURING), and the other items are executed."""
    endless, good = {"script": {"lang": "groovy", "source": "while (true) {}"}}, {"script": {"source": "ctx._source.n++"}}
    body = "".join(json.dumps({"update": {"_id": "2"}}) + "\n" + json.dumps(script) + "\n" for script in [endless] * 300 + [good])
    server.must("PUT", "/docs/_doc/2", {"n": 1})
    begin = time.monotonic()
    items = server.must("POST", "/docs/_bulk", body.encode())["items"]
    seconds = time.monotonic() - begin
    assert [item["update"]["status"] for item in items] == [400] * 300 + [200], items[-1]
    assert not MEASURING or seconds < patience, "300 endless scripts took %.1f s" % seconds


def check_long_but_good(server):
    """A script that takes long and succeeds is run, once."""
    reply = server.must("POST", "/docs/_update/2?_source=true", {"script": {"source": "for (int i = 0; i < 300000; i++) { ctx._source.n++ }"}})
    assert reply["get"]["_source"] == {"n": 300002} and reply["_version"] == 3, reply


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--patience", type=float, default=20 if os.environ.get("TIDELOCK_TEST_BUILD", "plain") == "plain" else 100,
                        help="what one bad request may take, with TIDELOCK_TEST_LONG")
    args = parser.parse_args()
    with Server() as server:
        server.must("PUT", "/docs/_doc/1", DOCUMENT)
        neighbour = Neighbour(server, "/neighbour/_doc/1")
        begin = time.monotonic()
        try:
            for lang, source, cause in SCRIPTS:
                check(server, lang, source, cause, args.patience)
            check_stored(server)
            check_bulk_of_endless(server, args.patience)
            check_long_but_good(server)
        finally:
            neighbour.stop()
        assert neighbour.failures == [], neighbour.failures
        print("%d scripts in %.1f s; %s" % (len(SCRIPTS), time.monotonic() - begin, neighbour.report()))


if __name__ == "__main__":
    main()
