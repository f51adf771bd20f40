#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests that would take excessive time or stack: each ends soon with a reply, and no other request is delayed.

Each row is one or several requests that once ended the server or blocked it; the sizes are such that missing limits show. While
a row executes another client, a separate process, requests GET / and puts a document: each of its requests succeeds, and with
TIDELOCK_TEST_LONG within half a second (tests/lib/neighbour.py; alone on a machine it is a few ms). The server is started with a
small limit of the stack, which must not matter.

    request_limits_test.py [--patience SECONDS] [ROW…]
"""
import argparse
import json
import os
import resource
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402
from waiting import until  # noqa: E402
from neighbour import Neighbour  # noqa: E402

SMALL_STACK_BYTES = 256 << 10
SLOW_BUILD = os.environ.get("TIDELOCK_TEST_BUILD") == "tsan"  # a thread sanitizer makes it all up to fifty times slower
NATIVES_STEP = {"tsan": 5, "asan": 2}.get(os.environ.get("TIDELOCK_TEST_BUILD"), 1)
SLOWNESS = {"tsan": 20, "asan": 4}.get(os.environ.get("TIDELOCK_TEST_BUILD"), 1)
PATIENCE = 15 if SLOW_BUILD else 5


def script(source, lang="painless"):
    return {"script": {"lang": lang, "source": source}}


def refused(server, path, body, cause, method="POST"):
    """Asserts that the request is refused with 400, and that the reply contains `cause`."""
    status, reply = server.ask(method, path, body)
    assert status == 400 and cause in json.dumps(reply), (path, status, str(reply)[:600])


# --- The native stack ---

DEEP = [
    ("painless", "Comparator c = Comparator.naturalOrder(); for (int i = 0; i < 250000; i++) { c = c.reversed(); } c.compare(1, 2)"),
    ("painless", "Comparator c = Comparator.reverseOrder(); for (int i = 0; i < 100000; i++) { c = Comparator.nullsFirst(c); } "
                 "ctx._source.l.sort(c)"),
    ("painless", "Function f = Function.identity(); for (int i = 0; i < 100000; i++) { f = f.andThen(Function.identity()); } f.apply(1)"),
    ("groovy", "def c = { it }; for (int i = 0; i < 50000; i++) { c = c >> { it } }; c(1)"),
    ("groovy", "def l = []; for (int i = 0; i < 50000; i++) { l = [l] }; ctx._source.n = l.flatten()"),
]


def row_stack_of_scripts(server):
    server.must("PUT", "/stack/_doc/1", {"l": [3, 1, 2]})
    for lang, source in DEEP:
        refused(server, "/stack/_update/1", script(source, lang), "stack_overflow_error")
    lists = "List l = ctx._source.l; for (int i = 0; i < 200000; i++) { l = l.subList(0, l.size()); } l.add(4)"
    server.must("POST", "/stack/_update/1", script(lists))
    assert server.must("GET", "/stack/_doc/1")["_source"] == {"l": [3, 1, 2, 4]}


def row_stack_in_on_expire(server):
    """The same as a dead session's last will, and again at the next start."""
    server.must("PUT", "/stack/_doc/will", {"n": 1})
    actions = [{"update": {"_index": "stack", "_id": "will"}}, script(DEEP[0][1]),
               {"index": {"_index": "stack", "_id": "heir"}}, {"n": 2}]
    server.must("POST", "/_session", {"ttl": "1s", "on_expire": actions})
    until(lambda: server.ask("GET", "/stack/_doc/heir")[0] == 200, "the session has ended")
    assert server.must("GET", "/stack/_doc/will")["_source"] == {"n": 1}


def nested(before, after, depth, middle="{}"):
    return (before * depth + middle + after * depth).encode()


def row_stack_of_bodies(server):
    """Nesting of every kind of body: any reply, and the server continues."""
    deep = 990
    for path, body in [
            ("/stack/_doc", nested('{"a":', "}", deep)),
            ("/stack/_doc", b'{"a":' + nested("[", "]", deep, "1") + b"}"),
            ("/stack/_doc?filter_path=**.b", nested('{"a":', "}", deep)),
            ("/stack/_search", b'{"query":' + nested('{"bool":{"must":', "}}", 400, '{"match_all":{}}') + b"}"),
            ("/stack/_search", b'{"query":' + nested('{"constant_score":{"filter":', "}}", 190, '{"match_all":{}}') + b"}"),
            ("/stack/_search", b'{"query":{"query_string":{"query":"' + nested("(", ")", 5000, "a") + b'"}}}'),
            ("/stack/_search", b'{"query":{"simple_query_string":{"query":"' + nested("(", ")", 5000, "a") + b'"}}}'),
            ("/stack/_search", b'{"query":{"regexp":{"a":"' + nested("(", ")", 900, "a") + b'"}}}'),
            ("/stack/_search", b'{"size":0,"aggs":' + nested('{"a":{"terms":{"field":"x"},"aggs":', "}}", 300) + b"}"),
            ("/stack/_search", b'{"sort":' + nested("[", "]", deep, '"a"') + b"}"),
    ]:
        assert server.request("POST", path, body).status < 500
    for depth in (10, 300, 900):
        server.ask("PUT", "/stack-%d" % depth, b'{"mappings":{"properties":' + nested('{"a":{"properties":', "}}", depth) + b"}}")
        server.ask("PUT", "/stack-s%d" % depth, b'{"settings":' + nested('{"a":', "}", depth, "1") + b"}")
        server.ask("PUT", "/stack-d%d" % depth, {"settings": {".".join(["a"] * depth): 1}})
    server.must("PUT", "/stack/_doc/deep", nested('{"b":', "}", 19))
    assert server.request("GET", "/stack/_doc/deep?pretty").status == 200


# --- Lists and answers ---

def row_list_of_locks(server):
    """Many locks, listed again and again: the writer is asked in pieces. The answers are not parsed here, since that would keep the
    neighbour waiting by itself."""
    locks, owners = 6000, 2 if SLOW_BUILD else 5
    sessions = [server.must("POST", "/_session", {"ttl": "10m"})["session"] for _ in range(owners)]
    for number, session in enumerate(sessions):
        for begin in range(0, locks, 1000):
            server.must("POST", "/_lock", {"session": session, "locks": [
                {"mode": "shared", "index": "listed", "id": "%d-%d" % (number, i)} for i in range(begin, begin + 1000)]})
    for _ in range(2):
        assert server.request("GET", "/_lock").body.count(b'"holders"') >= owners * locks
    assert server.request("GET", "/_session").status == 200
    for session in sessions:
        assert server.request("GET", "/_session/" + session).body.count(b'"fencing_token"') == locks
        server.must("DELETE", "/_session/" + session)


def row_large_answers(server):
    """Replies that are formatted again: pretty, as YAML, by filter_path; a filtered document."""
    many = {"a": [{"b%d" % (i % 300): [{"c": str(i)}]} for i in range(2000 if SLOW_BUILD else 10000)]}
    server.must("PUT", "/large/_doc/1", many)
    for query in ("?pretty", "?format=yaml", "?filter_path=**.c", "?_source_includes=a.b7*.c", "?_source_excludes=*.b1*&pretty"):
        assert server.request("GET", "/large/_doc/1" + query).status == 200
        assert server.request("POST", "/large/_mget" + query, {"ids": ["1"] * 5}).status == 200
    for i in range(300):
        server.must("PUT", "/large/_doc/often", {"n": i})
    assert len(server.must("GET", "/large/_doc/often?version_history=true")["versions"]) == 300


# --- Natives: work is charged by the bytes and elements they examine ---

LONG = "String a = 'a'; while (a.length() < 131072) { a = a + a } String b = a + a; "
NATIVES = [
    LONG + "for (int i = 0; i < 900000; i++) { (b + 'x').indexOf(a + 'b') }",
    LONG + "String c = b + 'x', d = a + 'b'; for (int i = 0; i < 900000; i++) { c.indexOf(d) }",
    LONG + "String c = a + 'x', d = a + 'y'; for (int i = 0; i < 900000; i++) { c.equals(d) }",
    LONG + "String c = a + 'x', d = a + 'y'; for (int i = 0; i < 900000; i++) { c.compareTo(d) }",
    LONG + "for (int i = 0; i < 900000; i++) { b.startsWith(a) }",
    LONG + "for (int i = 0; i < 900000; i++) { b.endsWith(a) }",
    LONG + "for (int i = 0; i < 900000; i++) { b.contains('b') }",
    LONG + "for (int i = 0; i < 900000; i++) { b.lastIndexOf('b' + a) }",
    LONG + "for (int i = 0; i < 900000; i++) { try { new BigDecimal(b + b + b) } catch (Exception e) { } }",
    LONG + "for (int i = 0; i < 900000; i++) { try { Integer.parseInt(b) } catch (Exception e) { } }",
]


def row_natives(server):
    server.must("PUT", "/natives/_doc/1", {"n": 1})
    for source in NATIVES[::NATIVES_STEP]:
        refused(server, "/natives/_update/1", script(source), "limit_exceeded_exception")
    sub_lists = ("List l = [1, 2, 3]; for (int i = 0; i < 100000; i++) { l = l.subList(0, 3) } int n = 0; "
                 "for (int i = 0; i < 200000; i++) { n += l.get(i % 3) } ctx._source.n = n")
    server.must("POST", "/natives/_update/1", script(sub_lists))
    assert server.must("GET", "/natives/_doc/1")["_source"] == {"n": 399999}
    status, _ = server.ask("POST", "/natives/_update/1", script("Arrays.sort([3, 1])", "groovy"))
    assert status == 400, status


def row_regex_of_many_ranges(server):
    """A class of many ranges, written in the script, each time another script that is kept."""
    ranges = "".join("%s-%s" % (chr(0x100 + 3 * i), chr(0x101 + 3 * i)) for i in range(6000))
    for i in range(20):
        source = "ctx._source.n = /[" + ranges + "x]*/.matcher('xxxxxxxxxxxxxxxxxxxxxxxx').matches() ? %d : -1" % i
        status, reply = server.ask("POST", "/natives/_update/1", script(source))
        assert status == 200, str(reply)[-600:]
    assert server.must("GET", "/natives/_doc/1")["_source"] == {"n": 19}


# --- Searches: an account is drawn on inside of one document, too ---

def row_terms_of_one_document(server):
    """65,000 values: each is counted once, and found by hashing."""
    server.must("PUT", "/terms", {"mappings": {"properties": {"v": {"type": "long"}}}})
    server.must("PUT", "/terms/_doc/1", {"v": list(range(9000)) + list(range(9000)) + [7] * 50000})
    for field in ("terms", "cardinality"):
        server.must("POST", "/terms/_search", {"size": 0, "aggs": {"a": {field: {"field": "v"}}}})
    found = server.must("POST", "/terms/_search", {"size": 0, "aggs": {"a": {"terms": {"field": "v"}}}})
    assert [bucket["doc_count"] for bucket in found["aggregations"]["a"]["buckets"]] == [1] * 10, found


def row_wildcard(server):
    server.must("PUT", "/wild", {"mappings": {"properties": {"k": {"type": "wildcard"}}}})
    server.must("PUT", "/wild/_doc/1", {"k": "a" * 400000})
    for pattern in ("*" + "a" * 200000 + "b", "*" + "a*" * 5000 + "b", "*" + "a" * 5000 + "b*"):
        found = server.must("POST", "/wild/_search", {"query": {"wildcard": {"k": pattern}}})
        assert found["hits"]["total"]["value"] == 0
    found = server.must("POST", "/wild/_search", {"query": {"wildcard": {"k": "*" + "a" * 200000 + "*a"}}})
    assert found["hits"]["total"]["value"] == 1, found["hits"]["total"]


def row_bodies_of_the_catalog(server):
    """A body that a step would parse, however little it says, is refused; one of a usual size is carried out."""
    large, usual = "x" * (5 << 20), "x" * (1 << 20)
    server.must("PUT", "/bodies", {})
    for method, path, body in [
            ("PUT", "/large-body", lambda text: {"mappings": {"_meta": {"x": text}}}),
            ("PUT", "/bodies/_mapping", lambda text: {"_meta": {"x": text}}),
            ("PUT", "/_template/t", lambda text: {"index_patterns": ["none"], "mappings": {"_meta": {"x": text}}}),
            ("PUT", "/_index_template/t", lambda text: {"index_patterns": ["none"], "_meta": {"x": text}}),
            ("PUT", "/_component_template/t", lambda text: {"template": {}, "_meta": {"x": text}}),
            ("PUT", "/bodies/_alias/a", lambda text: {"filter": {"term": {"x": text}}}),
            ("POST", "/_aliases", lambda text: {"actions": [{"add": {"index": "bodies", "alias": "b", "filter": {"term": {"x": text}}}}]})]:
        status, reply = server.ask(method, path, body(large))
        assert status == 413 and reply["error"]["type"] == "content_too_long_exception", (path, status, str(reply)[:300])
        server.must(method, path, body(usual))
    for path, body in [("/bodies/_settings", {"index.routing.allocation.include.x": large}),
                       ("/_cluster/settings", {"transient": {"action.auto_create_index": large}}), ("/_scripts/s", script(large))]:
        status, reply = server.ask("PUT", path, body)
        assert status == 413, (path, status, str(reply)[:300])


def row_wildcards_of_indices(server):
    """An expression is compared with so many names at most; a body has any number of them."""
    for i in range(50):
        server.must("PUT", "/many%d" % i, {"aliases": {"manifold": {}}})
    status, reply = server.ask("POST", "/_aliases", {"actions": [{"remove": {"indices": ["many*"] * 100000, "alias": "none"}}]})
    assert status == 400 and "use fewer" in json.dumps(reply), (status, str(reply)[:300])
    lines = json.dumps({"index": ["manifold"] * 20000}) + "\n{}\n"
    reply = server.must("POST", "/_msearch", lines.encode())
    assert "use fewer" in json.dumps(reply), str(reply)[:300]
    assert server.must("GET", "/many*,-many1*,manifold/_count")["count"] == 0


def row_filter_path(server):
    server.must("PUT", "/paths/_doc/1", {"a": {"b": {"c": {"d": {"e": [{"f%d" % i: {"g": {"h": i}}} for i in range(300)]}}}}})
    for path in ("**." * 1300 + "x", "**.*." * 700 + "x", "**.a.b." * 500 + "x"):
        server.request("GET", "/paths/_search?filter_path=" + path)
    found = server.must("GET", "/paths/_doc/1?filter_path=" + "**." * 1000 + "f7.**.h")
    assert found == {"_source": {"a": {"b": {"c": {"d": {"e": [{"f7": {"g": {"h": 7}}}]}}}}}}, str(found)[:300]


def row_paths_of_pieces(server):
    """path_hierarchy with reverse and replacement: the pieces of a text of 1 MB are as long as its square, and more are copied."""
    tokenizer = {"type": "path_hierarchy", "reverse": True, "replacement": "-"}
    analysis = {"analyzer": {"p": {"tokenizer": "q", "filter": ["lowercase"]}}, "tokenizer": {"q": tokenizer}}
    server.must("PUT", "/pieces", {"settings": {"analysis": analysis},
                                   "mappings": {"properties": {"p": {"type": "text", "analyzer": "p"}}}})
    for name in ("/a", "/A", "/\u00c4"):
        server.must("PUT", "/pieces/_doc/1", {"p": name * 500000})
    server.must("PUT", "/pieces/_doc/2", {"p": "/A/B/C"})
    found = server.must("POST", "/pieces/_search", {"query": {"term": {"p": "b-c"}}})
    assert [hit["_id"] for hit in found["hits"]["hits"]] == ["2"], found


def row_match_phrase(server):
    server.must("PUT", "/phrase/_doc/1", {"t": "a " * 20000})
    for slop in (0, 3):
        words = 250 if SLOW_BUILD else 8000
        query = {"match_phrase": {"t": {"query": "a " * words + "b", "slop": slop}}}
        server.request("POST", "/phrase/_search", {"query": query})
    found = server.must("POST", "/phrase/_search", {"query": {"match_phrase": {"t": "a " * 900}}})
    assert found["hits"]["total"]["value"] == 1, found


LOOP = "int n = 0; for (int i = 0; i < %d; i++) { n += i } return n > 0" % (90000 if SLOW_BUILD else 900000)
SLOW = {"query": {"bool": {"filter": {"script": {"script": {"source": LOOP}}}}}}


def fill(server, index, count):
    lines = "".join('{"index":{"_id":"%d"}}\n{"n":%d}\n' % (i, i) for i in range(count))
    server.must("POST", "/%s/_bulk" % index, lines, {"Content-Type": "application/x-ndjson"})


def searches(server):
    """The searches at work, by the names of their tasks."""
    nodes = server.must("GET", "/_tasks?actions=*search")["nodes"]
    return {name for node in nodes.values() for name in node["tasks"]}


def leave_behind(server, index):
    """Sends a search that takes long, and waits until it is at work. Returns: its connection."""
    body = json.dumps(SLOW).encode()
    before = searches(server)
    s = socket.create_connection(("127.0.0.1", server.port))
    s.sendall(b"POST /%s/_search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" %
              (index.encode(), len(body)) + body)
    until(lambda: searches(server) - before, "the search is at work")
    return s


def row_abandoned_searches(server):
    """Scripts over 900 documents, from clients that leave: their searches end, although one that began before them still runs."""
    fill(server, "slow", 900)
    fill(server, "quick", 20)
    with leave_behind(server, "slow"):
        stays = searches(server)
        for _ in range(4):
            leave_behind(server, "slow").close()
        until(lambda: not searches(server) - stays, "the searches of the clients that left have ended")
        assert searches(server) == stays, "the search whose client stayed has ended, too"
    small = {"query": {"script": {"script": {"source": "doc['n'].value == 7"}}}}
    assert server.must("POST", "/quick/_search", small)["hits"]["total"]["value"] == 1
    until(lambda: not searches(server), "none is at work")


ROWS = {name[4:]: function for name, function in list(globals().items()) if name.startswith("row_")}


def run(server, name, patience):
    neighbour = Neighbour(server, "/neighbour/_doc/1", SLOWNESS)
    begin = time.monotonic()
    try:
        ROWS[name](server)
    finally:
        neighbour.stop()
    print("%-28s %5.1f s; %s" % (name, time.monotonic() - begin, neighbour.report()), flush=True)
    neighbour.judge(patience)


def stop_while_at_work(server):
    """SIGTERM ends the server during searches, after their grace: the exit status shows that all of them were ended."""
    with leave_behind(server, "slow"), leave_behind(server, "slow"):
        assert server.stop() == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--patience", type=float, default=PATIENCE, help="what the neighbour may have to wait, with TIDELOCK_TEST_LONG")
    parser.add_argument("rows", nargs="*", default=list(ROWS))
    args = parser.parse_args()
    server = Server("--grace=1s")
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (SMALL_STACK_BYTES, hard))
    try:
        server.start()
    finally:
        resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))
    try:
        for name in args.rows:
            run(server, name, args.patience)
        if "abandoned_searches" in args.rows:
            stop_while_at_work(server)
    finally:
        server.close()


if __name__ == "__main__":
    main()
