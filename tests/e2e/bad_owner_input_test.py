#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Invalid input to the calls about sessions, locks and transactions, and clients that disconnect between any two of them.

Every field of every call is given invalid values: the reply has the right status and names the error. Input that could be read
as a larger target (an empty id, a null instead of a path, a transaction that is not a string) is refused. After each case the
document written first is unchanged, and no locks are held.
"""
import json
import os
import socket
import sys
import unittest
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from clock import ClockedServer  # noqa: E402
from server import HANGS, Server  # noqa: E402
from waiting import until  # noqa: E402

NOT_TEXTS = (1, -1, 1.5, True, [], {}, ["a"])
BAD_TIMES = ("", "abc", "-5s", "1fortnight", "10", "300000d", "\u0000", "s")
TOO_LONG = "9" * 30 + "h"
UNKNOWN_IDS = ("nope", "x" * 600, "%00", "%ff", "..%2f", "*", "_all", "a%2fb")
HUGE = "9" * 30


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.server.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}, "n": {"type": "long"}}}})
        cls.server.must("PUT", "/fs/_doc/1", {"path": "/a/b", "n": 1})

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def setUp(self):
        self.session = self.server.must("POST", "/_session")["session"]

    def tearDown(self):
        self.server.end_owners()
        self.assertEqual(self.server.must("GET", "/_lock")["locks"], [])
        self.assertEqual(self.server.must("GET", "/fs/_doc/1")["_source"], {"path": "/a/b", "n": 1}, "the document was changed")

    def refused(self, status, method, path, body=None, headers=None, says=None):
        """Asserts the status, the envelope and a word of the reason."""
        found, reply = self.server.ask(method, path, body, headers)
        what = "%s %s %.200s: %s" % (method, path[:100], body, str(reply)[:300])
        self.assertEqual(found, status, what)
        self.assertTrue(reply["error"]["type"] and reply["error"]["reason"], what)
        self.assertEqual(reply["error"]["root_cause"][0]["type"], reply["error"]["type"], what)
        self.assertEqual(reply["status"], status)
        if says:
            self.assertIn(says, json.dumps(reply, ensure_ascii=False), what)
        return reply["error"]

    def begin(self, **members):
        return self.server.must("POST", "/_transaction", members)["transaction"]


class Sessions(Case):
    def test_fields(self):
        for value in NOT_TEXTS:
            self.refused(400, "POST", "/_session", {"ttl": value}, says="[ttl]")
            self.refused(400, "POST", "/_session", {"name": value}, says="[name]")
        for value in BAD_TIMES + ("0s", "999ms", "86401s"):
            self.refused(400, "POST", "/_session", {"ttl": value}, says="ttl")
        self.refused(400, "POST", "/_session", {"ttl": TOO_LONG}, says=TOO_LONG)
        self.refused(400, "POST", "/_session", {"name": "x" * 1025}, says="1024")
        self.refused(400, "POST", "/_session", {"tll": "1s"}, says="did you mean [ttl]?")
        self.refused(400, "POST", "/_session?ttl=1s", says="[ttl]")
        for body in ([1], '"text"', "{", "nul", "[", '{"ttl":"1s","ttl":"2s"}', b"\xff{}"):
            self.refused(400, "POST", "/_session", body)

    def test_on_expire(self):
        action, source = {"index": {"_index": "fs", "_id": "2"}}, {"n": 1}
        for value in (1, True, {}, "x", [1], [None], [[]], [{}], [{"nonsense": {}}, source], [{**action, "delete": {}}, source],
                      [action, [1]], [action, None], [source], [{"delete": {"_index": "fs", "_id": "1"}}, source]):
            self.refused(400, "POST", "/_session", {"on_expire": value}, says="on_expire")
        self.refused(400, "POST", "/_session", {"on_expire": [{"delete": {"_index": "fs", "_id": "1"}}, action]}, says="no source")
        self.refused(400, "POST", "/_session", {"on_expire": [{"index": {}}, source]}, says="index is missing")
        self.refused(400, "POST", "/_session", {"on_expire": [{"index": {"_index": "fs", "x": 1}}, source]}, says="[x]")
        self.refused(400, "POST", "/_session", {"on_expire": [{"update": {"_index": "fs", "_id": "1"}}, {"dok": {}}]}, says="dok")
        self.refused(400, "POST", "/_session", {"on_expire": [action, source] * 1001}, says="1000")
        self.refused(400, "POST", "/_session", {"on_expire": [action, {"a": "x" * (2 << 20)}]}, says="1048576")

    def test_unknown_ids(self):
        for name in UNKNOWN_IDS:
            for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/_keepalive"), ("GET", "/_attach")):
                self.refused(404, method, "/_session/%s%s" % (name, path), says="it has ended, or never existed")
            self.refused(404, "PUT", "/fs/_doc/2?session=" + name, {"n": 2}, says="it has ended, or never existed")
            self.refused(404, "PUT", "/fs/_doc/2?lease=" + name, {"n": 2}, says="it has ended, or never existed")
            for method, path, body in (("GET", "/fs/_doc/1", None), ("POST", "/fs/_search", {}), ("POST", "/fs/_count", {}),
                                       ("POST", "/fs/_mget", {"ids": ["1"]})):
                self.refused(404, method, path + "?session=" + name, body, says="it has ended, or never existed")
        self.refused(404, "POST", "/_transaction", {"session": "nope"})
        self.refused(404, "POST", "/_transaction", headers={"Tidelock-Session": "nope"})
        self.refused(404, "POST", "/_lock", {"session": "nope", "locks": [{"mode": "shared"}]})
        self.refused(404, "POST", "/_unlock", {"session": "nope"})

    def test_numbers(self):
        """A public number, which lists and errors show, is no id; the error says so."""
        number = self.server.must("GET", "/_session/" + self.session)["number"]
        for method, path, body in (("POST", "/_session/%d/_keepalive" % number, None), ("GET", "/_session/%d/_attach" % number, None),
                                   ("DELETE", "/_session/%d" % number, None),
                                   ("PUT", "/fs/_doc/2?session=%d" % number, {"n": 2}), ("PUT", "/fs/_doc/2?lease=%d" % number, {"n": 2}),
                                   ("GET", "/fs/_doc/1?session=%d" % number, None), ("POST", "/_transaction", {"session": str(number)}),
                                   ("POST", "/_lock", {"session": str(number), "locks": [{"mode": "shared"}]}),
                                   ("POST", "/_unlock", {"session": str(number)})):
            self.refused(404, method, path, body, says="no session [%d]: it has ended, or never existed; its public number is" % number)
        self.assertNotIn("public number", self.refused(404, "GET", "/_session/nope")["reason"])

    def test_ended(self):
        ended = self.server.must("POST", "/_session")["session"]
        self.server.must("DELETE", "/_session/" + ended)
        for method, path, body in (("GET", "/_session/" + ended, None), ("DELETE", "/_session/" + ended, None),
                                   ("POST", "/_session/%s/_keepalive" % ended, None), ("GET", "/_session/%s/_attach" % ended, None),
                                   ("POST", "/_lock", {"session": ended, "locks": [{"mode": "shared"}]}),
                                   ("PUT", "/fs/_doc/1?session=" + ended, {"n": 5}), ("DELETE", "/fs/_doc/1?session=" + ended, None),
                                   ("POST", "/fs/_update/1?session=" + ended, {"doc": {"n": 5}}),
                                   ("POST", "/_bulk?session=" + ended, '{"delete":{"_index":"fs","_id":"1"}}\n')):
            self.refused(404, method, path, body, says="it has ended, or never existed")

    def test_parameters(self):
        self.refused(400, "DELETE", "/_session/%s?force=maybe" % self.session, says="maybe")
        self.refused(400, "DELETE", "/_session/%s?forse=true" % self.session, says="did you mean [force]?")
        self.refused(400, "POST", "/_session/%s/_keepalive" % self.session, {"ttl": "1h"}, says="[ttl]")
        for name in ("session", "transaction"):
            self.refused(400, "PUT", "/fs/_doc/1?%s=" % name, {"n": 2}, says="[%s] must not be empty" % name)
            self.refused(400, "PUT", "/fs/_doc/1", {"n": 2}, {"Tidelock-" + name.capitalize(): ""}, says="must not be empty")
        self.refused(400, "PUT", "/fs/_doc/1?lease=", {"n": 2}, says="[lease]")


class Locks(Case):
    def lock(self, status, locks=({"mode": "shared", "index": "fs"},), says=None, **members):
        body = {"session": self.session, "locks": list(locks) if isinstance(locks, tuple) else locks, **members}
        return self.refused(status, "POST", "/_lock", {k: v for k, v in body.items() if v != "absent"}, says=says)

    def test_unlock_of_no_lock_releases_none(self):
        """Only a body without the member releases all locks of the session."""
        locks = [{"mode": "shared", "index": "fs"}]
        self.server.must("POST", "/_lock", {"session": self.session, "locks": locks})
        for nothing in ([], None):
            self.refused(400, "POST", "/_unlock", {"session": self.session, "locks": nothing}, says="at least one lock in [locks]; such a body is")
        self.refused(400, "POST", "/_unlock", {"session": self.session, "locks": {}}, says="[locks] must be a list")
        self.assertEqual(self.server.must("POST", "/_unlock", {"session": self.session}), {"released": 1})

    def test_owner(self):
        for value in NOT_TEXTS:
            self.lock(400, session=value, says="[session]")
            self.lock(400, session="absent", transaction=value, says="[transaction]")
        for value in ("absent", None):
            self.lock(400, session=value, says="must name its [session]")
        self.lock(400, session="", says="[session] of a lock request must not be empty")
        self.lock(404, session="absent", transaction="nope", says="no transaction [nope]")
        self.lock(400, transaction=self.begin(), says="does not belong to session")
        self.lock(400, session="absent", transaction=self.begin(mode="query"), says="it takes no locks")

    def test_wait(self):
        for value in NOT_TEXTS:
            self.lock(400, wait=value, says="[wait] of a lock request must be a text; such a body is")
        for value in BAD_TIMES:
            self.lock(400, wait=value, says="wait")
        self.lock(400, wait=TOO_LONG, says=TOO_LONG)
        self.lock(400, waitt="1s", says="did you mean [wait]?")

    def test_list(self):
        for value in (1, True, {}, "x"):
            self.lock(400, locks=value, says="[locks] must be a list; such a body is")
        for value in ("absent", [], None):
            self.lock(400, locks=value, says="at least one lock")
        for value in ([1], ["x"], [None], [[]]):
            self.lock(400, locks=value, says="[locks] must hold objects")
        self.lock(429, locks=[{"mode": "shared", "index": "fs", "id": str(n)} for n in range(100001)], says="100000")

    def test_mode(self):
        for value in (1, True, [], {}, "", "X", "EXCLUSIVE", "write", None):
            self.lock(400, locks=[{"mode": value, "index": "fs"}], says="[mode] of a lock")
        self.lock(400, locks=[{"index": "fs"}], says="a lock must name its [mode]: [shared], [update] or [exclusive]")
        self.refused(400, "POST", "/_unlock", {"session": self.session, "locks": [{"mode": "x", "index": "fs"}]}, says="[mode] of a lock")

    def test_targets(self):
        """What a mistake could make larger than it was meant is refused."""
        for name in ("index", "path", "id", "type"):
            for value in NOT_TEXTS + ("", None):
                target = {"mode": "shared", "index": "fs", **({"id": "1"} if name == "type" else {}), name: value}
                self.lock(400, locks=[target], says="[%s] of a lock must be a text that is not empty" % name)
        for name in ("*", "f*", "_all", "fs,other", "<fs-{now/d}>", "-fs", "UPPER", "a b", ".", "..", "a/b", "x" * 300, "-"):
            self.lock(400, locks=[{"mode": "shared", "index": name}], says="Invalid index name")
        for name in ("id", "type"):
            self.lock(400, locks=[{"mode": "shared", "index": "fs", "id": "1", name: "x" * 513}], says="512")
        self.lock(400, locks=[{"mode": "shared", "index": "fs", "path": "/a", "id": "1"}], says="not on both")
        self.lock(400, locks=[{"mode": "shared", "index": "fs", "type": "t"}], says="must name the [id]")
        self.lock(400, locks=[{"mode": "shared", "path": "/a"}], says="must name its [index]")
        self.lock(400, locks=[{"mode": "shared", "id": "1"}], says="must name its [index]")
        self.lock(400, locks=[{"mode": "shared", "indx": "fs"}], says="did you mean [index]?")
        self.lock(400, locks=[{"mode": "shared", "index": "fs", "path": "/" + "a" * 65536}], says="65536")
        self.lock(400, locks=[{"mode": "shared", "index": "fs", "path": "/a" * 4097}], says="4096")

    def test_aliases(self):
        self.server.must("PUT", "/one")
        self.server.must("PUT", "/two")
        self.server.must("POST", "/_aliases", {"actions": [{"add": {"index": name, "alias": "both"}} for name in ("one", "two")]})
        self.lock(400, locks=[{"mode": "shared", "index": "both"}], says="both")

    def test_unlock(self):
        for body in ({}, {"session": None}, None):
            self.refused(400, "POST", "/_unlock", body, says="must name its [session]")
        self.refused(400, "POST", "/_unlock", {"session": self.session, "wait": "1s"}, says="[wait]")
        self.refused(400, "POST", "/_unlock", {"transaction": self.begin()}, says="keeps its locks until it ends")
        # Giving back what one does not have is no mistake: the answer to the first time may have
        # been lost.
        self.assertEqual(self.server.must("POST", "/_unlock", {"session": self.session, "locks": [{"index": "fs"}]}), {"released": 0})

    def test_missing_and_unknown_body_members(self):
        """What a body must have is named, and shown."""
        example = '"locks\\": [{\\"mode\\": \\"exclusive\\"'
        error = self.refused(400, "POST", "/_lock", {"index": "fs"}, says="unknown member [index] in the body of a lock request")
        self.assertIn('such a body is {"session": "ID", "wait": "10s", "locks": [', error["reason"])
        for body in (None, {}, {"session": None}):
            self.refused(400, "POST", "/_lock", body, says="a lock request must name its [session]; such a body is")
        self.refused(400, "POST", "/_lock", {"session": self.session}, says="at least one lock in [locks]; such a body is")
        self.refused(400, "POST", "/_lock", [], says=example)
        self.refused(400, "POST", "/_lock", {"session": self.session, "locks": [{"document": "1"}]}, says="on an [index], on a directory")
        self.refused(400, "POST", "/_unlock", {"index": "fs"}, says="without [locks] for all of the session's")
        self.refused(400, "POST", "/_session", {"lease": "1m"}, says='such a body is {\\"ttl\\"')
        self.refused(400, "POST", "/_transaction", {"kind": "query"}, says='such a body is {\\"mode\\"')
        self.refused(400, "POST", "/_session/%s/_keepalive" % self.session, {"ttl": "1m"}, says="it takes none")

    def near_miss(self, method, path, says, body=None):
        reply = self.server.ask(method, path, body)[1]
        self.assertIn(says, json.dumps(reply), path)

    def test_misspelled_paths(self):
        """A misspelled path of Tidelock's own is reported as such, not as an index or type with that name."""
        self.near_miss("POST", "/_sesion", "; did you mean [/_session]?", {})
        self.near_miss("GET", "/_sessions", "; did you mean [/_session]?")
        self.near_miss("POST", "/_locks", "; did you mean [/_lock]?", {})
        self.near_miss("POST", "/_sesion/abc/_keepaliv", "; did you mean [/_session/abc/_keepalive]?")
        self.near_miss("POST", "/_transactions/abc/_comit", "; did you mean [/_transaction/abc/_commit]?")
        self.near_miss("GET", "/_cat/lock", "; did you mean [/_cat/locks]?")
        self.near_miss("GET", "/_timestmp", "; did you mean [/_timestamp]?")
        self.near_miss("GET", "/fs/_changes", "; did you mean [/_changes]?")
        self.near_miss("POST", "/fs/_changes", "; did you mean [/_changes]?", {})
        self.near_miss("POST", "/fs/_lock", "; did you mean [/_lock]?", {})
        self.near_miss("POST", "/fs/_session/abc/_keepalive", "; did you mean [/_session/abc/_keepalive]?")
        self.near_miss("GET", "/fs/_tre", "; did you mean [/fs/_tree]?")
        self.near_miss("POST", "/fs/_rename/a", "; did you mean [/fs/_rename]?", {})
        self.near_miss("GET", "/fs/_tree/a/b", "; did you mean [/fs/_tree]?")
        for method, path in (("GET", "/_unlock"), ("PUT", "/_session"), ("GET", "/_bogus"), ("PUT", "/_cat/indices"), ("DELETE", "/_bulk"),
                             ("PUT", "/fs/_tree"), ("GET", "/fs/_rename"), ("DELETE", "/fs/_bulk"), ("PUT", "/fs/_search"),
                             ("POST", "/fs/_stats"), ("POST", "/fs/_type/x"), ("GET", "/fs/_doc/x/y/z")):
            self.assertNotIn("did you mean", json.dumps(self.server.ask(method, path)[1]), path)

    def test_misspelled_parameters(self):
        for slip, meant in (("sesion", "session"), ("transction", "transaction"), ("timestmp", "timestamp"), ("asof", "as_of")):
            self.refused(400, "GET", "/fs/_doc/1?%s=1" % slip, says="[%s] -> did you mean [%s]?" % (slip, meant))
        self.refused(400, "PUT", "/fs/_doc/1?fencing_tokn=1", {"n": 2}, says="did you mean [fencing_token]?")
        self.refused(400, "PUT", "/fs/_doc/1?leas=1", {"n": 2}, says="did you mean [lease]?")
        locks = {"session": self.session, "locks": [{"mode": "shared", "index": "fs"}]}
        self.refused(400, "POST", "/_lock?wait=10s", locks, says="[wait] -> it is a member of the body")
        self.refused(400, "PUT", "/fs/_doc/1?wait=1s", {"n": 2}, says="[wait] -> did you mean [timeout]?")
        self.refused(400, "GET", "/_session?wait=1s", says="unrecognized parameter: [wait]\"")

    def test_lock_status_parameters(self):
        self.refused(400, "GET", "/_lock?path=/a", says="name the [index], too")
        self.refused(400, "GET", "/_cat/locks?path=/a", says="name the [index], too")
        self.refused(400, "GET", "/_lock?indx=fs", says="did you mean [index]?")
        self.refused(400, "GET", "/_lock/_events?x=1", says="[x]")
        self.assertEqual(self.server.must("GET", "/_lock?session=nope")["locks"], [])

    def test_fencing_tokens(self):
        for value in ("", "x", "-1", "0", "1.5", HUGE):
            self.refused(400, "PUT", "/fs/_doc/1?fencing_token=" + value, {"n": 2}, says="[fencing_token]")
        self.refused(409, "PUT", "/fs/_doc/1?fencing_token=1", {"n": 2}, says="and is held by a session: the request must name its [session], too")
        elsewhere = self.server.must("POST", "/_lock", {"session": self.session, "locks": [{"mode": "exclusive", "index": "fs", "id": "2"}]})
        self.refused(409, "PUT", "/fs/_doc/1?fencing_token=%d" % elsewhere["fencing_token"], {"n": 2}, says="covers")


class Names(Case):
    """Names are what they are: nothing in them is taken for structure that it is not."""

    def holds(self, target, method, path, body=None):
        """A lock on the target keeps this write out, and only while it is held."""
        target = {"mode": "exclusive", **target}
        self.server.must("POST", "/_lock", {"session": self.session, "locks": [target]})
        self.refused(409, method, path + "timeout=0s", body, says="holders")
        self.assertEqual(self.server.must("POST", "/_unlock", {"session": self.session, "locks": [target]}), {"released": 1})
        self.assertLess(self.server.ask(method, path + "timeout=0s", body)[0], 300, (target, path))

    def test_ids(self):
        for name in ("a/b", "%2f", "..", ".", " ", "a b", "é", "\u65e5\u672c", "\U0001f512", "\u0000", "a\nb", "*", "_all", "x" * 512):
            self.holds({"index": "names", "id": name}, "PUT", "/names/_doc/%s?" % urllib.parse.quote(name, safe=""), {"n": 1})

    def test_paths(self):
        for path, document in (("/a", "/a/b"), ("/a/", "//a//b"), ("/a/b", "a/b//c"), ("/", "/./x"), ("/", "/x"), ("/%2f", "/%2f/x"),
                               ("/...", "/.../x"), ("/é", "/é/x"), ("/a b", "/a b/c"), ("/\u0000", "/\u0000/x"),
                               ("/a", "/a/../b"), ("/a", "/a/*/b"), ("/deep" * 4096, "/deep" * 4096), ("/deep" * 4000, "/deep" * 4096)):
            self.holds({"index": "fs", "path": path}, "PUT", "/fs/_doc/2?", {"path": document})
        for path, document in (("/a", "/ab"), ("/a", "/*"), ("/a", "/../a"), ("/%61", "/a")):
            self.server.must("POST", "/_lock", {"session": self.session, "locks": [{"mode": "exclusive", "index": "fs", "path": path}]})
            self.server.must("PUT", "/fs/_doc/3?timeout=0s", {"path": document})
            self.server.must("POST", "/_unlock", {"session": self.session})

    def test_session_names(self):
        for name in ("", "\u0000", "a\nb", "x" * 1024, '"', "\\", "\u2028", "</script>"):
            session = self.server.must("POST", "/_session", {"name": name})["session"]
            self.assertEqual(self.server.must("GET", "/_session/" + session).get("name", ""), name)
            self.assertEqual(self.server.request("GET", "/_cat/sessions").status, 200)

    def test_broken_utf8(self):
        for raw in (b"\xff", b"\xc3", b"a\x80"):
            for field in (b"index", b"path", b"id"):
                body = b'{"session":"%s","locks":[{"mode":"shared","index":"fs","%s":"%s"}]}' % (self.session.encode(), field, raw)
                status, reply = self.server.ask("POST", "/_lock", body)
                self.assertEqual(status, 400, (field, raw, reply))


class Transactions(Case):
    def test_fields(self):
        for value in NOT_TEXTS:
            self.refused(400, "POST", "/_transaction", {"mode": value}, says="[mode]")
            self.refused(400, "POST", "/_transaction", {"session": value}, says="[session]")
            self.refused(400, "POST", "/_transaction", {"timeout": value}, says="[timeout]")
        for value in ("", "x", "UPDATE"):
            self.refused(400, "POST", "/_transaction", {"mode": value}, says="[update] or [query]")
        for value in BAD_TIMES + ("0s", "86401s"):
            self.refused(400, "POST", "/_transaction", {"timeout": value}, says="timeout")
        for value in (0, -1, 1.5, "x", True, [], {}, 1 << 53, 1 << 64, 10 ** 30):
            self.refused(400, "POST", "/_transaction", {"mode": "query", "timestamp": value}, says="[timestamp]")
        self.refused(400, "POST", "/_transaction", {"mode": "query", "timestamp": (1 << 53) - 1}, says="future")
        self.refused(410, "POST", "/_transaction", {"mode": "query", "timestamp": 1}, says="oldest")
        self.refused(400, "POST", "/_transaction", {"timestamp": self.server.must("GET", "/_timestamp")["timestamp"]}, says="[query]")
        self.refused(400, "POST", "/_transaction", {"session": ""}, says="[session]")
        self.refused(400, "POST", "/_transaction", {"mod": "query"}, says="did you mean [mode]?")
        self.refused(400, "POST", "/_transaction?mode=query", says="[mode]")

    def test_unknown_ids(self):
        for name in UNKNOWN_IDS:
            for method, path, body in (("GET", "/_transaction/" + name, None), ("POST", "/_transaction/%s/_commit" % name, None),
                                       ("POST", "/_transaction/%s/_rollback" % name, None),
                                       ("GET", "/fs/_doc/1?transaction=" + name, None), ("PUT", "/fs/_doc/1?transaction=" + name, {"n": 2}),
                                       ("POST", "/fs/_search?transaction=" + name, {}), ("POST", "/fs/_mget?transaction=" + name, {"ids": ["1"]}),
                                       ("POST", "/_bulk?transaction=" + name, '{"delete":{"_index":"fs","_id":"1"}}\n')):
                self.refused(404, method, path, body, says="never existed")

    def test_committed(self):
        transaction = self.begin()
        first = self.server.must("POST", "/_transaction/%s/_commit" % transaction)
        self.assertEqual(self.server.must("POST", "/_transaction/%s/_commit" % transaction), first, "asked again, it answers the same")
        self.refused(404, "POST", "/_transaction/%s/_rollback" % transaction, says="was committed at [%d]" % first["timestamp"])
        self.refused(404, "PUT", "/fs/_doc/1?transaction=" + transaction, {"n": 2}, says="was committed at")
        self.refused(404, "GET", "/fs/_doc/1?transaction=" + transaction, says="was committed at")
        self.assertEqual(self.server.must("GET", "/_transaction/" + transaction)["state"], "committed")

    def test_rolled_back(self):
        transaction = self.begin()
        self.server.must("PUT", "/fs/_doc/1?transaction=" + transaction, {"n": 2})
        self.server.must("POST", "/_transaction/%s/_rollback" % transaction)
        self.assertEqual(self.server.must("POST", "/_transaction/%s/_rollback" % transaction), {"rolled_back": True})
        for method, path, body in (("POST", "/_transaction/%s/_commit" % transaction, None),
                                   ("PUT", "/fs/_doc/1?transaction=" + transaction, {"n": 2}), ("GET", "/fs/_doc/1?transaction=" + transaction, None)):
            self.refused(409, method, path, body, says="its owner asked for it")

    def test_idle(self):
        transaction = self.begin(timeout="50ms")
        self.server.must("PUT", "/fs/_doc/1?transaction=" + transaction, {"n": 2})
        until(lambda: self.server.must("GET", "/_transaction/" + transaction)["state"] != "active", "it is rolled back")
        self.refused(409, "POST", "/_transaction/%s/_commit" % transaction, says="nothing was done with it for 50 ms")

    def test_query_transactions_write_nothing(self):
        query = self.begin(mode="query")
        for method, path, body in (("PUT", "/fs/_doc/1", {"n": 2}), ("DELETE", "/fs/_doc/1", None), ("POST", "/fs/_update/1", {"doc": {"n": 2}}),
                                   ("POST", "/_bulk", '{"delete":{"_index":"fs","_id":"1"}}\n'), ("POST", "/fs/_delete_by_query", {"query": {"match_all": {}}}),
                                   ("POST", "/fs/_update_by_query", {}), ("PUT", "/fs/_create/2", {"n": 2}), ("POST", "/fs/_doc", {"n": 2})):
            self.refused(400, method, path + "?transaction=" + query, body, says="it reads only")

    def test_catalog_changes_are_refused_in_transaction(self):
        """The catalog changes at once; that must not look as if it could be rolled back."""
        for transaction in (self.begin(), self.begin(mode="query")):
            for method, path, body in (("PUT", "/other", {}), ("DELETE", "/fs", None), ("PUT", "/fs/_mapping", {"properties": {"z": {"type": "long"}}}),
                                       ("PUT", "/fs/_settings", {"index": {"refresh_interval": "2s"}}), ("POST", "/fs/_close", None),
                                       ("POST", "/_aliases", {"actions": []}), ("PUT", "/fs/_alias/x", None), ("PUT", "/_template/x", {}),
                                       ("PUT", "/_scripts/x", {}), ("PUT", "/_cluster/settings", {}), ("DELETE", "/_template/x", None)):
                self.refused(400, method, path + "?transaction=" + transaction, body, says="cannot be part of a transaction")
                self.refused(400, method, path, body, {"Tidelock-Transaction": transaction}, says="cannot be part of a transaction")
        self.assertEqual(self.server.ask("HEAD", "/other")[0], 404)

    def test_timestamps_are_refused_in_transaction(self):
        now = self.server.must("GET", "/_timestamp")["timestamp"]
        for when in ("timestamp=%d" % now, "as_of=2026-11-20T10:00:00Z"):
            self.refused(400, "GET", "/fs/_doc/1?transaction=%s&%s" % (self.begin(), when), says="its own timestamp")

    def test_transaction_of_another_session(self):
        other = self.server.must("POST", "/_session")["session"]
        transaction = self.begin(session=self.session)
        for method, path, body in (("PUT", "/fs/_doc/1?transaction=%s&" % transaction, {"n": 2}), ("GET", "/fs/_doc/1?transaction=%s&" % transaction, None),
                                   ("POST", "/fs/_search?transaction=%s&" % transaction, {}),
                                   ("POST", "/_transaction/%s/_commit?" % transaction, None), ("POST", "/_transaction/%s/_rollback?" % transaction, None)):
            self.refused(400, method, path + "session=" + other, body, says="does not belong to session")
        self.assertEqual(self.server.must("GET", "/_transaction/" + transaction)["state"], "active")

    def test_ends_with_its_session(self):
        transaction = self.begin(session=self.session)
        self.server.must("PUT", "/fs/_doc/1?transaction=" + transaction, {"n": 2})
        number = self.server.number(self.session)
        self.server.must("DELETE", "/_session/" + self.session)
        self.refused(409, "POST", "/_transaction/%s/_commit" % transaction, says="its session #%d was closed" % number)

    def test_bodies_and_parameters(self):
        transaction = self.begin()
        self.refused(400, "POST", "/_transaction/%s/_commit" % transaction, {"force": True}, says="[force]")
        self.refused(400, "POST", "/_transaction/%s/_commit?force=true" % transaction, says="[force]")
        self.refused(400, "POST", "/_transaction/%s/_rollback" % transaction, {"a": 1}, says="[a]")
        self.refused(400, "POST", "/_bulk?atomic=maybe", '{"delete":{"_index":"fs","_id":"1"}}\n', says="maybe")


class Limits(unittest.TestCase):
    def test_sessions(self):
        with Server("--max-sessions", "3") as server:
            sessions = [server.must("POST", "/_session")["session"] for _ in range(3)]
            status, reply = server.ask("POST", "/_session")
            self.assertEqual((status, reply["error"]["type"]), (429, "limit_exceeded_exception"))
            server.must("DELETE", "/_session/" + sessions[0])
            server.must("POST", "/_session")

    def test_locks_of_a_session(self):
        with Server() as server:
            session = server.must("POST", "/_session")["session"]
            for part in range(4):
                server.must("POST", "/_lock", {"session": session, "locks": [
                    {"mode": "shared", "index": "fs", "id": "%d-%d" % (part, n)} for n in range(25000)]})
            status, reply = server.ask("POST", "/_lock", {"session": session, "locks": [{"mode": "shared", "index": "fs", "id": "more"}]})
            self.assertEqual((status, reply["error"]["type"]), (429, "limit_exceeded_exception"))
            self.assertEqual(server.must("POST", "/_unlock", {"session": session}), {"released": 100000})

    def test_a_transaction(self):
        with Server() as server:
            transaction = server.must("POST", "/_transaction")["transaction"]
            lines = "".join('{"index":{"_index":"fs","_id":"%d"}}\n{"n":1}\n' % n for n in range(50000))
            server.must("POST", "/_bulk?transaction=" + transaction, lines)
            status, reply = server.ask("POST", "/_bulk?transaction=" + transaction,
                                       "".join('{"index":{"_index":"fs","_id":"b%d"}}\n{"n":1}\n' % n for n in range(50001)))
            errors = [item["index"]["error"]["type"] for item in reply.get("items", []) if "error" in item["index"]] or [reply["error"]["type"]]
            self.assertEqual(set(errors), {"transaction_too_large_exception"}, (status, errors[:3]))
            server.must("POST", "/_transaction/%s/_rollback" % transaction)
            self.assertEqual(server.must("GET", "/fs/_count")["count"], 0)

    def test_an_atomic_bulk(self):
        with Server() as server:
            lines = "".join('{"index":{"_index":"fs","_id":"%d"}}\n{"n":1}\n' % n for n in range(100001))
            status, reply = server.ask("POST", "/_bulk?atomic=true", lines)
            self.assertEqual((status, reply["error"]["type"]), (413, "transaction_too_large_exception"))
            self.assertEqual(server.ask("GET", "/fs/_count")[0], 404)
            status, reply = server.ask("POST", "/_bulk?atomic=true&filter_path=errors", lines[:lines.rindex('{"index"')])
            self.assertEqual((status, reply), (200, {"errors": False}))


class Disconnects(unittest.TestCase):
    """A client does the first n steps of its work and is gone, for every n, by closing its connection or by resetting it."""

    def send(self, line, method, path, body=None, wait=True):
        data = b"" if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
        line.sendall(("%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" %
                      (method, path, len(data))).encode() + data)
        if not wait:
            return None
        answer = line.recv(65536)
        while b"\r\n\r\n" not in answer:
            answer += line.recv(65536)
        head, _, rest = answer.partition(b"\r\n\r\n")
        length = int([h for h in head.split(b"\r\n") if h.lower().startswith(b"content-length:")][0].split(b":")[1])
        while len(rest) < length:
            rest += line.recv(65536)
        self.assertLess(int(head.split()[1]), 300, rest)
        return json.loads(rest)

    def live(self, server, steps, reset):
        """Goes so many steps. The last one's answer is not waited for."""
        done = 0

        def step(method, path, body=None):
            nonlocal done
            done += 1
            if done > steps:
                raise StopIteration
            return self.send(line, method, path, body, wait=done < steps)

        with socket.create_connection(("127.0.0.1", server.port), HANGS) as line:
            if reset:
                line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            try:
                session = step("POST", "/_session", {"ttl": "1m", "on_expire": [{"delete": {"_index": "fs", "_id": "never"}}]})
                step("POST", "/_lock", {"session": session["session"], "locks": [{"mode": "exclusive", "index": "fs", "path": "/a"}]})
                step("PUT", "/fs/_doc/mine?lease=%s&session=%s" % (session["session"], session["session"]), {"path": "/a"})
                transaction = step("POST", "/_transaction", {"session": session["session"]})
                inside = "?transaction=" + transaction["transaction"]
                step("GET", "/fs/_doc/1" + inside)
                step("PUT", "/fs/_doc/1" + inside, {"path": "/a/b", "n": 2})
                step("POST", "/fs/_search" + inside, {"query": {"match_all": {}}})
                step("POST", "/_bulk" + inside, '{"index":{"_index":"fs","_id":"2"}}\n{"path":"/a"}\n')
                step("POST", "/fs/_update/1" + inside, {"doc": {"n": 3}})
                step("POST", "/_transaction/%s/_rollback" % transaction["transaction"])
                step("POST", "/_unlock", {"session": session["session"]})
                step("DELETE", "/_session/" + session["session"])
            except (StopIteration, TypeError):
                return done <= steps  # TypeError: the answer that was not waited for
        return True

    def test_disconnect_between_any_two_calls(self):
        with ClockedServer() as server:
            server.must("PUT", "/fs", {"mappings": {"properties": {"path": {"type": "path"}, "n": {"type": "long"}}}})
            server.must("PUT", "/fs/_doc/1", {"path": "/a/b", "n": 1})
            for steps in range(1, 13):
                self.live(server, steps, steps % 2 == 0)
                # The next session gets the lock at the latest when the lease has expired, and the
                # document is unchanged. The ephemeral documents are deleted when the session has
                # ended.
                server.pass_time(61)
                session = server.must("POST", "/_session", {"ttl": "1h"})["session"]
                server.must("POST", "/_lock", {"session": session, "wait": "10m", "locks": [{"mode": "exclusive"}]})
                self.assertEqual(server.must("GET", "/fs/_doc/1")["_source"], {"path": "/a/b", "n": 1}, steps)
                server.must("DELETE", "/_session/" + session)
                self.wait_for_the_end(server)
                self.assertEqual(server.must("GET", "/fs/_count")["count"], 1, steps)

    def wait_for_the_end(self, server):
        until(lambda: not server.must("GET", "/_session")["sessions"] and not server.must("GET", "/_transaction")["transactions"],
              "nothing is left behind")


if __name__ == "__main__":
    unittest.main()
