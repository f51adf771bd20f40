#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replies compared with those of a 7.10.2, for cases where a recording would be too long, or the reply depends on earlier requests."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from server import Server  # noqa: E402

TERM_MAX = 32766


def immense(field, text):
    """The error of a term that an index cannot hold."""
    shown = ", ".join(str(byte - 256 if byte > 127 else byte) for byte in text.encode()[:30])
    cause = "bytes can be at most %d in length; got %d" % (TERM_MAX, len(text.encode()))
    return {"type": "illegal_argument_exception",
            "reason": "Document contains at least one immense term in field=\"%s\" (whose UTF8 encoding is longer than the max length %d), all of which "
                      "were skipped.  Please correct the analyzer to not produce such terms.  The prefix of the first immense term is: '[%s]...', "
                      "original message: %s" % (field, TERM_MAX, shown, cause),
            "caused_by": {"type": "max_bytes_length_exceeded_exception", "reason": cause}}


def too_large(field):
    return {"type": "illegal_argument_exception", "reason": "DocValuesField \"%s\" is too large, must be <= %d" % (field, TERM_MAX)}


class Immense(unittest.TestCase):
    """A keyword, or a token, that is too long for Lucene: all texts are those of a 7.10.2."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        fields = {"plain": {"type": "keyword"},
                  "above": {"type": "keyword", "ignore_above": 40000},
                  "below": {"type": "keyword", "ignore_above": 100},
                  "values": {"type": "keyword", "index": False},
                  "terms": {"type": "keyword", "doc_values": False},
                  "none": {"type": "keyword", "index": False, "doc_values": False},
                  "text": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
                  "low": {"type": "keyword", "normalizer": "low"},
                  "whole": {"type": "text", "analyzer": "keyword"},
                  "words": {"type": "text"},
                  "o": {"properties": {"k": {"type": "keyword"}}},
                  "copied": {"type": "keyword", "copy_to": "plain", "index": False, "doc_values": False},
                  "n": {"type": "long"}}
        analysis = {"normalizer": {"low": {"type": "custom", "filter": ["lowercase"]}}}
        cls.server.must("PUT", "/i", {"settings": {"analysis": analysis}, "mappings": {"properties": fields}})

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def put(self, document):
        status, reply = self.server.ask("PUT", "/i/_doc/1", document)
        if status < 300:
            return None
        error = reply["error"]
        self.assertEqual((status, error.pop("root_cause")), (400, [{key: error[key] for key in ("type", "reason")}]))
        return error

    def test_each_field(self):
        long, edge = "x" * (TERM_MAX + 1), "x" * TERM_MAX
        for field in ("plain", "above", "values", "terms", "low", "whole", "copied"):
            self.assertIsNone(self.put({field: edge}), field)
        for field, reported in (("plain", "plain"), ("above", "above"), ("terms", "terms"), ("text", "text.raw"), ("low", "low"), ("whole", "whole"),
                            ("copied", "plain")):
            self.assertEqual(self.put({field: long}), immense(reported, long), field)
        self.assertEqual(self.put({"values": long}), too_large("values"))
        for field in ("below", "none", "words"):
            self.assertIsNone(self.put({field: long}), field)

    def test_byte_counts_and_offsets(self):
        for text in ("é" * 16384, "€" * 10923, "a\U0001F600" * 8000):
            self.assertEqual(self.put({"plain": text}), immense("plain", text))
        self.assertIsNone(self.put({"plain": "é" * 16383}))
        long = "y" + "x" * TERM_MAX
        self.assertEqual(self.put({"o": {"k": ["short", long]}}), immense("o.k", long))
        self.assertEqual(self.put({"values": long, "plain": long}), too_large("values"))
        self.assertEqual(self.put({"plain": long, "n": "no number"})["type"], "mapper_parsing_exception")

    def test_calls(self):
        long = "x" * (TERM_MAX + 1)
        self.server.must("PUT", "/i/_doc/2", {"plain": "a"})
        status, reply = self.server.ask("POST", "/i/_update/2", {"doc": {"plain": long}})
        self.assertEqual((status, reply["error"]["reason"]), (400, immense("plain", long)["reason"]))
        lines = [{"index": {"_index": "i", "_id": "3"}}, {"plain": long}, {"index": {"_index": "i", "_id": "4"}}, {"plain": "a"}]
        items = self.server.must("POST", "/_bulk", "".join(json.dumps(line) + "\n" for line in lines))["items"]
        self.assertEqual(items[0]["index"]["error"], immense("plain", long))
        self.assertEqual(items[1]["index"]["status"], 201)
        self.assertEqual(self.server.ask("GET", "/i/_doc/3")[0], 404)
        self.assertEqual(self.server.must("GET", "/i/_doc/2")["_source"], {"plain": "a"})


class Reindex(unittest.TestCase):
    """What decides whether _reindex writes over documents: all as a 7.10.2 does."""

    def test_op_type(self):
        server = Server.of_class(self)
        server.must("PUT", "/from/_doc/1", {"n": 1})
        server.must("PUT", "/to/_doc/1", {"n": 2})
        call = {"source": {"index": "from"}, "dest": {"index": "to", "op_type": "CREATE"}, "conflicts": "proceed"}
        self.assertEqual(server.must("POST", "/_reindex", call)["version_conflicts"], 1)
        for other in ("update", "creat", ""):
            call["dest"]["op_type"] = other
            status, reply = server.ask("POST", "/_reindex", call)
            self.assertEqual((status, reply["error"]["caused_by"]["caused_by"]),
                             (400, {"type": "illegal_argument_exception", "reason": "opType must be 'create' or 'index', found: [%s]" % other}))
        self.assertEqual(server.must("GET", "/to/_source/1"), {"n": 2})
        call["dest"]["op_type"] = "Index"
        self.assertEqual(server.must("POST", "/_reindex", call)["updated"], 1)

    def test_version_type_of_create(self):
        server = Server.of_class(self)
        server.must("PUT", "/from/_doc/1", {"n": 1})
        call = {"source": {"index": "from"}, "dest": {"index": "versions", "op_type": "create", "version_type": "external"}}
        status, reply = server.ask("POST", "/_reindex", call)
        self.assertEqual((status, reply["error"]["type"], reply["error"]["reason"]),
                         (400, "action_request_validation_exception",
                          "Validation Failed: 1: create operations only support internal versioning. use index instead;"))
        call["script"] = {"source": "ctx._version = null"}
        self.assertEqual(server.must("POST", "/_reindex", call)["created"], 1)

    def test_routing(self):
        server = Server.of_class(self)
        server.must("PUT", "/from/_doc/1", {"n": 1})
        call = {"source": {"index": "from"}, "dest": {"index": "routed", "routing": "x"}}
        status, reply = server.ask("POST", "/_reindex", call)
        self.assertEqual((status, reply["error"]["type"], reply["error"]["reason"]),
                         (400, "action_request_validation_exception",
                          "Validation Failed: 1: routing must be unset, [keep], [discard] or [=<some new value>];"))
        for routing in ("", "=", "keep", "discard"):
            call["dest"]["routing"] = routing
            self.assertEqual(server.must("POST", "/_reindex", call)["total"], 1, routing)
        self.assertNotIn("_routing", server.must("GET", "/routed/_doc/1"))

    def test_values_of_dest(self):
        server = Server.of_class(self)
        for member, value, token in (("index", ["a"], "START_ARRAY"), ("routing", 1, "VALUE_NUMBER"), ("op_type", None, "VALUE_NULL"),
                                     ("version_type", {}, "START_OBJECT"), ("type", True, "VALUE_BOOLEAN"), ("pipeline", 1, "VALUE_NUMBER")):
            body = '{"dest": {"%s": %s}}' % (member, json.dumps(value))
            status, reply = server.ask("POST", "/_reindex", body)
            place = "[1:%d]" % (body.index('": ', 10) + 4)
            cause = {"type": "x_content_parse_exception", "reason": "%s [dest] %s doesn't support values of type: %s" % (place, member, token)}
            self.assertEqual((status, reply["error"]),
                             (400, {"root_cause": [cause], "type": "x_content_parse_exception",
                                    "reason": place + " [reindex] failed to parse field [dest]", "caused_by": cause}))
        status, reply = server.ask("POST", "/_reindex", '{"dest": [1]}')
        self.assertEqual((status, reply["error"]["reason"]), (400, "[1:10] [reindex] dest doesn't support values of type: START_ARRAY"))
        status, reply = server.ask("POST", "/_reindex", '{"dest": {"op_type": "x"}}')
        self.assertEqual((status, reply["error"]["root_cause"][0]["reason"]), (400, "[1:22] [dest] failed to parse field [op_type]"))


class Tasks(unittest.TestCase):
    """What GET /_tasks/ID has of a by-query call that has ended: as a 7.10.2."""

    def test_ended(self):
        server = Server.of_class(self)
        server.must("PUT", "/a/_doc/1", {"n": 1})
        for path, body, described in (("/_reindex", {"source": {"index": ["a", "a*"], "type": "_doc"}, "dest": {"index": "b"}},
                                       "reindex from [a, a*][_doc] to [b][_doc]"),
                                      ("/a/_update_by_query", None, "update-by-query [a]"), ("/a/_doc/_delete_by_query", {"query": {"match_none": {}}},
                                                                                             "delete-by-query [a][_doc]")):
            task = server.must("POST", path + "?wait_for_completion=false", body)["task"]
            ended = server.must("GET", "/_tasks/%s?wait_for_completion=true" % task)
            self.assertTrue(ended["completed"])
            self.assertEqual(ended["task"]["description"], described)
            self.assertNotIn("cancelled", ended["task"])
            counts = {"total", "updated", "created", "deleted", "batches", "version_conflicts", "noops", "retries", "throttled_millis", "requests_per_second",
                      "throttled_until_millis"}
            self.assertEqual(set(ended["task"]["status"]), counts)
            self.assertEqual(set(ended["response"]), counts | {"took", "timed_out", "throttled", "throttled_until", "failures"})
            self.assertEqual((ended["response"]["throttled"], ended["response"]["throttled_until"]), ("0s", "0s"))
            # the time in which it ran, also after its end, and in its stored result
            self.assertEqual(server.must("GET", "/_tasks/" + task), ended)
            self.assertEqual(server.must("GET", "/.tasks/_source/" + task)["task"]["running_time_in_nanos"], ended["task"]["running_time_in_nanos"])


class Mapping(unittest.TestCase):
    def test_missing_type(self):
        server = Server.of_class(self)
        server.must("PUT", "/i")
        for body in ({"properties": {"a": {"type": "long"}}}, {"_doc": {"properties": {"a": {"type": "long"}}}}, {}):
            status, reply = server.ask("PUT", "/i/_mapping?include_type_name=true", body)
            self.assertEqual((status, reply["error"]["type"], reply["error"]["reason"]),
                             (400, "action_request_validation_exception", "Validation Failed: 1: mapping type is missing;"))
        self.assertEqual(server.must("GET", "/i/_mapping"), {"i": {"mappings": {}}})
        server.must("PUT", "/i/_mapping/t?include_type_name=true", {"properties": {"a": {"type": "long"}}})


class Absent(unittest.TestCase):
    """Calls that look like others: a document of type `_block`, a node named `hot_threads`."""

    def test_calls_are_refused_by_name(self):
        server = Server.of_class(self)
        server.must("PUT", "/i/_doc/1", {"n": 1})
        for method, path, name in (("PUT", "/i/_block/write", "_block"), ("GET", "/_nodes/hot_threads", "_nodes/hot_threads"),
                                   ("GET", "/_nodes/usage", "_nodes/usage")):
            status, reply = server.ask(method, path)
            self.assertEqual((status, reply["error"]["reason"]), (400, "Elasticsearch's API [%s] is not supported by this server, see "
                                                                       "docs/http-api.md for those that are" % name))


if __name__ == "__main__":
    unittest.main()
