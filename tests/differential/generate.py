# SPDX-License-Identifier: Apache-2.0
"""Random exchanges with a server of Elasticsearch's API: from a seed, always the same ones.

A scenario is a list of exchanges that run in order on an empty server, each a dict of method, path and body (text, or None). Its
name, GROUP/SEED, makes it again. Values come from small pools, so that requests meet: the same few ids, fields, words and numbers.
Writes ask for a refresh, since here a search sees a write at once and there after one.
"""

import json
import random

IDS = ["1", "2", "3", "4", "5", "a b", "ü"]
WORDS = ["quick", "brown", "fox", "lazy", "dog", "jumps", "over", "red"]
KEYS = ["a", "b", "c", "dd", "A"]
DATES = ["2020-01-01", "2020-02-29T12:00:00Z", "2021-06-15T08:30:00.123Z", "1999-12-31T23:59:59+02:00"]
INDICES = ["i", "j"]
FIELDS = {"n": "long", "k": "keyword", "t": "text", "d": "double", "b": "boolean", "dt": "date", "ip": "ip"}
MAPPING = {"properties": {"n": {"type": "long"}, "k": {"type": "keyword"}, "t": {"type": "text"}, "d": {"type": "double"},
                          "b": {"type": "boolean"}, "dt": {"type": "date"}, "ip": {"type": "ip"},
                          "o": {"properties": {"p": {"type": "integer"}, "q": {"type": "keyword"}}}}}
GROUPS = ["documents", "search", "mappings", "broken", "by_query", "painless", "typed"]


class Source:
    """Random requests of one scenario."""

    def __init__(self, group, seed):
        self.r = random.Random("%s/%s" % (group, seed))
        self.steps = []

    def one(self, *items):
        return self.r.choice(items)

    def often(self, share):
        return self.r.random() < share

    def send(self, method, path, body=None, text=None):
        if body is not None:
            text = json.dumps(body, ensure_ascii=False)
        self.steps.append({"method": method, "path": path, "body": text})

    # --- Values ---

    def value(self, field):
        r = self.r
        return {"n": lambda: r.choice([0, 1, 2, 3, 5, 7, 100, -4]), "k": lambda: r.choice(KEYS),
                "t": lambda: " ".join(r.choices(WORDS, k=r.randint(1, 4))), "d": lambda: r.choice([0.5, 1.5, 2.25, -3.0, 1e3]),
                "b": lambda: r.choice([True, False]), "dt": lambda: r.choice(DATES),
                "ip": lambda: r.choice(["10.0.0.1", "10.0.0.7", "192.168.1.1", "::1"])}[field]()

    def document(self, most=5):
        fields = self.r.sample(sorted(FIELDS), self.r.randint(1, most))
        made = {f: [self.value(f), self.value(f)] if self.often(0.1) else self.value(f) for f in fields}
        if self.often(0.3):
            made["o"] = {"p": self.value("n"), "q": self.value("k")}
        if self.often(0.1):
            made["x" + self.one("1", "2")] = self.one(1, "text", True, None, [1, 2], {"y": 1})
        return made

    def id(self):
        return self.r.choice(IDS[:5]) if self.often(0.95) else self.r.choice(IDS)

    def quoted(self, text):
        from urllib.parse import quote
        return quote(text, safe="")

    # --- Queries ---

    def query(self, depth=0):
        r, field = self.r, self.r.choice(sorted(FIELDS))
        kinds = ["term", "term", "terms", "range", "exists", "match", "match_all", "ids", "prefix", "wildcard", "match_phrase",
                 "multi_match", "query_string"]
        if depth < 2:
            kinds += ["bool"] * 5 + ["constant_score", "dis_max"]
        kind = r.choice(kinds)
        if kind == "term":
            body = {field: self.value(field)} if self.often(0.8) else {field: {"value": self.value(field), "boost": 2}}
        elif kind == "terms":
            body = {field: [self.value(field) for _ in range(r.randint(0, 3))]}
        elif kind == "range":
            field = r.choice(["n", "d", "dt", "k"])
            body = {field: {r.choice(["gte", "gt"]): self.value(field)}}
            if self.often(0.5):
                body[field][r.choice(["lte", "lt"])] = self.value(field)
        elif kind == "exists":
            body = {"field": r.choice(sorted(FIELDS) + ["o", "o.p", "nope"])}
        elif kind == "match":
            field = r.choice(["t", "k", "n", "d"])
            body = {field: self.value(field)}
            if self.often(0.3):
                body = {"t": {"query": self.value("t"), "operator": r.choice(["and", "or"])}}
        elif kind == "match_all":
            body = {}
        elif kind == "ids":
            body = {"values": [self.id() for _ in range(r.randint(0, 3))]}
        elif kind == "prefix":
            body = {"k": r.choice(["a", "d", "A", ""])}
        elif kind == "wildcard":
            body = {"k": r.choice(["a*", "*d", "?", "*"])}
        elif kind == "match_phrase":
            body = {"t": " ".join(r.choices(WORDS, k=2))}
        elif kind == "multi_match":
            body = {"query": self.value("t"), "fields": ["t", "k"]}
        elif kind == "query_string":
            body = {"query": r.choice(["t:quick", "k:a OR k:b", "n:[1 TO 5]", "quick AND fox", "+k:a -n:1", "b:true", "_exists_:d"])}
        elif kind == "constant_score":
            body = {"filter": self.query(depth + 1)}
        elif kind == "dis_max":
            body = {"queries": [self.query(depth + 1) for _ in range(r.randint(1, 2))]}
        else:
            body = {}
            for clause in r.sample(["must", "should", "must_not", "filter"], r.randint(1, 3)):
                body[clause] = [self.query(depth + 1) for _ in range(r.randint(1, 2))]
            if "should" in body and self.often(0.3):
                body["minimum_should_match"] = 1
        return {kind: body}

    def aggregation(self, depth=0):
        field = self.r.choice(["n", "k", "d", "b", "dt", "ip", "nope", "_index"])
        kind = self.one("terms", "terms", "min", "max", "sum", "avg", "stats", "value_count", "cardinality")
        made = {kind: {"field": field}}
        if kind == "terms" and depth < 1 and self.often(0.5):
            made["aggs"] = {"z": self.aggregation(depth + 1)}
        return made

    def search_body(self):
        body = {"size": 50, "query": self.query()}
        if self.often(0.4):
            field = self.r.choice(["n", "k", "d", "dt", "b"])
            body["sort"] = [{field: self.one("asc", "desc")}, {"_id": "asc"}] if self.often(0.5) else [field, "_score"]
        if self.often(0.3):
            body["_source"] = self.one(False, True, ["n", "o.*"], "k", {"includes": ["*"], "excludes": ["t", "o"]}, [])
        if self.often(0.2):
            body["aggs"] = {"g": self.aggregation()}
        if self.often(0.15):
            body["docvalue_fields"] = self.r.sample(["n", "k", "d", "b", "dt", "ip", "o.p", "*"], 2)
        if self.often(0.1):
            body["track_total_hits"] = self.one(True, False, 2)
        if self.often(0.1):
            body["version"] = True
            body["seq_no_primary_term"] = True
        if self.often(0.1):
            body["post_filter"] = self.query(1)
        if self.often(0.08):
            body["from"] = self.r.randint(0, 3)
        if self.often(0.05):
            body["min_score"] = 0.5
        return body

    def fill(self, index="i", count=8, mapped=True):
        if mapped:
            self.send("PUT", "/" + index, {"mappings": MAPPING})
        lines = []
        for number in range(count):
            lines.append(json.dumps({"index": {"_id": str(number + 1)}}))
            lines.append(json.dumps(self.document(), ensure_ascii=False))
        self.send("POST", "/%s/_bulk?refresh=true" % index, text="\n".join(lines) + "\n")


# --- Groups ----------------------------------------------------------------------------------------------------------

def a_write(s, index, refresh="refresh=true"):
    kind = s.r.choice(["index"] * 5 + ["create", "delete", "delete", "update", "update", "update", "script", "bulk", "bulk"])
    doc_id = s.quoted(s.id())
    extra = ""
    if s.often(0.1):
        extra = s.one("&if_seq_no=%d&if_primary_term=1" % s.r.randint(0, 6), "&version=%d&version_type=external" % s.r.randint(1, 9),
                      "&routing=x", "&op_type=create", "&version=2", "&if_seq_no=1", "&version_type=external_gte&version=3")
    if kind == "index":
        s.send(s.one("PUT", "POST"), "/%s/_doc/%s?%s%s" % (index, doc_id, refresh, extra), s.document())
    elif kind == "create":
        s.send("PUT", "/%s/_create/%s?%s" % (index, doc_id, refresh), s.document())
    elif kind == "delete":
        s.send("DELETE", "/%s/_doc/%s?%s%s" % (index, doc_id, refresh, extra))
    elif kind == "update":
        body = {"doc": s.document(2)}
        if s.often(0.3):
            body["doc_as_upsert"] = True
        elif s.often(0.3):
            body["upsert"] = s.document(2)
        if s.often(0.2):
            body["detect_noop"] = s.one(True, False)
        if s.often(0.2):
            body["_source"] = s.one(True, False, ["n"])
        s.send("POST", "/%s/_update/%s?%s" % (index, doc_id, refresh), body)
    elif kind == "script":
        body = {"script": {"source": s.one("ctx._source.n = 5", "ctx._source.remove('k')", "ctx.op = 'none'", "ctx.op = 'delete'",
                                           "ctx._source.z = params.v"), "params": {"v": s.value("n")}}}
        if s.often(0.4):
            body["upsert"] = s.document(2)
        s.send("POST", "/%s/_update/%s?%s" % (index, doc_id, refresh), body)
    else:
        a_bulk(s, index)


def a_bulk(s, index):
    lines = []
    for _ in range(s.r.randint(1, 4)):
        op = s.one("index", "index", "create", "update", "delete")
        meta = {"_id": s.id()}
        if s.often(0.2):
            meta["_index"] = s.one(*INDICES)
        if s.often(0.05):
            meta["routing"] = "x"
        lines.append(json.dumps({op: meta}, ensure_ascii=False))
        if op == "update":
            lines.append(json.dumps({"doc": s.document(2)}, ensure_ascii=False))
        elif op != "delete":
            lines.append(json.dumps(s.document(), ensure_ascii=False))
    s.send("POST", "/%s/_bulk?refresh=true" % index, text="\n".join(lines) + "\n")


def documents(s):
    if s.often(0.5):
        s.send("PUT", "/i", {"mappings": MAPPING})
    for _ in range(14):
        index = s.one("i", "i", "i", "j")
        if s.often(0.55):
            a_write(s, index)
            continue
        doc_id = s.quoted(s.id())
        kind = s.r.choice(["get", "get", "source", "head", "mget", "count", "filtered"])
        if kind == "get":
            s.send("GET", "/%s/_doc/%s" % (index, doc_id))
        elif kind == "source":
            s.send("GET", "/%s/_source/%s" % (index, doc_id))
        elif kind == "head":
            s.send("HEAD", "/%s/_doc/%s" % (index, doc_id))
        elif kind == "mget":
            s.send("POST", "/%s/_mget" % index, {"ids": [s.id(), s.id()]} if s.often(0.6) else
                   {"docs": [{"_id": s.id(), "_source": s.one(True, False, ["n"])}, {"_index": "j", "_id": s.id()}]})
        elif kind == "count":
            s.send("GET", "/%s/_count" % index)
        else:
            s.send("GET", "/%s/_doc/%s?%s" % (index, doc_id, s.one("_source=n,k", "_source_excludes=t", "_source=false",
                                                                    "filter_path=_source.n,_id", "version=1", "routing=x")))


def search(s):
    s.fill()
    for _ in range(14):
        kind = s.r.choice(["search"] * 8 + ["count", "uri", "msearch"])
        if kind == "search":
            s.send("POST", "/i/_search" + s.one("", "", "", "?typed_keys=true", "?rest_total_hits_as_int=true"), s.search_body())
        elif kind == "count":
            s.send("POST", "/i/_count", {"query": s.query()})
        elif kind == "uri":
            s.send("GET", "/i/_search?size=50&" + s.one("q=k:a", "q=quick", "q=n:%3E2", "q=t:fox&sort=n:asc", "q=k:b&_source=n",
                                                        "q=*:*&sort=d:desc", "q=fox&df=t", "q=b:true&stored_fields=_none_"))
        else:
            s.send("POST", "/i/_msearch", text="{}\n%s\n{}\n%s\n" % (json.dumps({"size": 50, "query": s.query()}),
                                                                    json.dumps({"size": 50, "query": s.query()})))


def a_property(s, depth=0):
    kind = s.r.choice(["long", "keyword", "text", "date", "boolean", "double", "integer", "object", "ip", "multi"])
    if kind == "object":
        return {"properties": {f: a_property(s, depth + 1) for f in s.r.sample(["p", "q"], 1)}} if depth < 2 else {"type": "object"}
    if kind == "multi":
        return {"type": "text", "fields": {"raw": {"type": "keyword"}}}
    made = {"type": kind}
    if s.often(0.2):
        made[s.one("index", "doc_values" if kind != "text" else "index", "store")] = s.one(True, False)
    return made


def mappings(s):
    s.send("PUT", "/i", s.one({"mappings": MAPPING}, {"aliases": {"a": {}}}, {"settings": {"number_of_shards": 1}}, {}))
    for _ in range(14):
        index = s.one("i", "i", "j", "a", "x*")
        kind = s.r.choice(["put"] * 4 + ["get", "field", "alias", "alias", "aliases", "create", "delete", "doc", "settings",
                                         "exists", "template"])
        if kind == "put":
            s.send("PUT", "/%s/_mapping" % index, {"properties": {f: a_property(s) for f in s.r.sample(["n", "k", "t", "v", "w"], 2)}})
        elif kind == "get":
            s.send("GET", s.one("/%s/_mapping", "/%s/_alias", "/%s/_settings/index.number_of_shards", "/%s/_settings/index.refresh*") % index)
        elif kind == "field":
            s.send("GET", "/%s/_mapping/field/%s" % (index, s.one("n", "k,t", "o.*", "nope")))
        elif kind == "alias":
            s.send(s.one("PUT", "PUT", "DELETE", "GET", "HEAD"), "/%s/_alias/%s" % (index, s.one("a", "b")))
        elif kind == "aliases":
            actions = [{s.one("add", "add", "remove"): {"index": s.one("i", "j"), "alias": s.one("a", "b")}} for _ in range(s.r.randint(1, 3))]
            s.send("POST", "/_aliases", {"actions": actions})
        elif kind == "create":
            s.send("PUT", "/%s" % s.one("i", "j", "Big", "_x"), s.one({}, {"mappings": MAPPING}, {"settings": {"number_of_replicas": 0}}))
        elif kind == "delete":
            s.send("DELETE", "/%s" % s.one("j", "j", "nope", "a"))
        elif kind == "doc":
            s.send("PUT", "/%s/_doc/1?refresh=true" % s.one("i", "j", "a"), s.document())
        elif kind == "settings":
            s.send("PUT", "/%s/_settings" % index, {"index": s.one({"refresh_interval": "5s"}, {"number_of_replicas": 0},
                                                                   {"number_of_shards": 3}, {"bogus": 1})})
        elif kind == "exists":
            s.send("HEAD", s.one("/%s", "/%s/_alias/a") % index)
        else:
            s.send(s.one("PUT", "GET", "DELETE"), "/_template/q", {"index_patterns": ["q*"], "settings": {"number_of_shards": 2}}
                   if s.steps is None else None)
            if s.steps[-1]["method"] == "PUT":
                s.steps[-1]["body"] = json.dumps({"index_patterns": ["q*"], "settings": {"number_of_shards": 2}})


def spoil(s, text):
    """One small damage to a JSON text."""
    kind = s.r.choice(["cut", "drop", "double", "swap", "type"])
    at = s.r.randrange(len(text)) if text else 0
    if kind == "cut":
        return text[:at]
    if kind == "drop":
        return text[:at] + text[at + 1:]
    if kind == "double":
        return text[:at] + text[at:at + 1] * 2 + text[at + 1:]
    if kind == "swap":
        return text.replace("{", "[", 1).replace("}", "]", 1)
    return text.replace('"', "", 2)


def broken(s):
    s.fill(count=3)
    for _ in range(14):
        kind = s.r.choice(["search", "search", "doc", "update", "bulk", "mapping", "param", "value", "key", "method"])
        if kind == "search":
            s.send("POST", "/i/_search", text=spoil(s, json.dumps({"size": 50, "query": s.query()})))
        elif kind == "doc":
            s.send("PUT", "/i/_doc/1?refresh=true", text=spoil(s, json.dumps(s.document())))
        elif kind == "update":
            s.send("POST", "/i/_update/1?refresh=true", text=spoil(s, json.dumps({"doc": s.document(2)})))
        elif kind == "bulk":
            s.send("POST", "/i/_bulk?refresh=true", text=spoil(s, json.dumps({"index": {"_id": "1"}})) + "\n" + json.dumps(s.document()) + "\n")
        elif kind == "mapping":
            s.send("PUT", "/i/_mapping", text=spoil(s, json.dumps({"properties": {"v": a_property(s)}})))
        elif kind == "param":
            s.send("GET", "/i/%s" % s.one("_search?sise=1", "_count?df=k", "_doc/1?realtim=true", "_search?size=x", "_search?from=-1",
                                          "_search?sort=nope", "_doc/1?version=x", "_search?pretty=maybe", "_mapping?bogus=1",
                                          "_search?scroll=1x", "_search?timeout=5", "_search?q=n:x", "_search?track_total_hits=x"))
        elif kind == "value":
            field = s.one("n", "d", "b", "dt", "ip", "o", "k")
            s.send("PUT", "/i/_doc/2?refresh=true", {field: s.one("bad", {"a": 1}, [[1]], 1e300, "", None, True, 12345678901234567890)})
        elif kind == "key":
            s.send("POST", "/i/_search", s.one({"sise": 1}, {"query": {"nope": {}}}, {"query": {"term": {}}}, {"query": {"match": {"t": []}}},
                                               {"size": -1}, {"size": "x"}, {"from": -2}, {"sort": [{"nope": "asc"}]}, {"query": []},
                                               {"query": {"bool": {"musst": []}}}, {"query": {"range": {"n": {"gte": "x"}}}},
                                               {"query": {"term": {"n": "x"}}}, {"aggs": {"a": {}}}, {"aggs": {"a": {"nope": {}}}},
                                               {"_source": 5}, {"query": {"ids": {"values": "1"}}}, {"query": {"terms": {"k": "a"}}}))
        else:
            s.send(s.one("GET", "PUT", "POST", "DELETE"), s.one("/i/_serch", "/_bulk/x", "/i/_doc", "/_nope", "/i/_search/x", "/i/_update", "/i/_doc/1/x"))


def by_query(s):
    s.fill()
    for _ in range(10):
        kind = s.r.choice(["update", "update", "delete", "reindex", "count", "search"])
        script = {"script": {"source": s.one("ctx._source.n = 9", "ctx._source.z = ctx._source.n", "ctx.op = 'noop'", "ctx.op = 'delete'",
                                             "ctx._source.remove('t')", "if (ctx._source.k == 'a') ctx.op = 'noop'")}}
        if kind == "update":
            body = {"query": s.query()}
            if s.often(0.7):
                body.update(script)
            s.send("POST", "/i/_update_by_query?refresh=true" + s.one("", "", "&conflicts=proceed", "&max_docs=100", "&scroll_size=2"), body)
        elif kind == "delete":
            s.send("POST", "/i/_delete_by_query?refresh=true", {"query": {"bool": {"must": [s.query(1), {"term": {"k": s.value("k")}}]}}})
        elif kind == "reindex":
            body = {"source": {"index": "i", "query": s.query()}, "dest": {"index": s.one("k", "l")}}
            if s.often(0.3):
                body["source"]["_source"] = s.one(["n", "k"], {"excludes": ["t"]}, "o")
            if s.often(0.3):
                body.update(script)
            if s.often(0.2):
                body["dest"][s.one("op_type")] = "create"
                body["conflicts"] = "proceed"
            s.send("POST", "/_reindex?refresh=true", body)
        elif kind == "count":
            s.send("GET", "/%s/_count" % s.one("i", "k", "l"))
        else:
            s.send("POST", "/%s/_search" % s.one("i", "k"), {"size": 50, "query": s.query(), "sort": ["_id"]})


def an_expression(s, depth=0):
    leaf = s.r.choice(["1", "2", "3L", "1.5", "'a'", "true", "null", "ctx._source.n", "ctx._source.k", "params.p", "[1, 2]", "[:]"])
    if depth > 2 or s.often(0.3):
        return leaf
    a, b = an_expression(s, depth + 1), an_expression(s, depth + 1)
    return s.r.choice(["(%s + %s)", "(%s == %s)", "(%s != null ? 1 : %s)", "[%s, %s].size()", "(%s) instanceof List ? 1 : (%s)",
                       "Math.max(2, 5) + (%s == %s ? 1 : 0)", "String.valueOf(%s) + (%s)", "Objects.equals(%s, %s)"]) % (a, b)


def painless(s):
    s.fill(count=4)
    for _ in range(14):
        source = s.r.choice([
            lambda: "ctx._source.z = %s" % an_expression(s),
            lambda: "def x = %s; ctx._source.z = x" % an_expression(s),
            lambda: "int c = 0; for (int i = 0; i < %d; ++i) { c += i } ctx._source.z = c" % s.r.randint(0, 5),
            lambda: "def l = new ArrayList(); for (def v : [3, 1, 2]) { l.add(v + %d) } Collections.sort(l); ctx._source.z = l" % s.r.randint(0, 3),
            lambda: "Map m = new HashMap(); m.put('x', %s); ctx._source.z = m" % an_expression(s, 2),
            lambda: "if (ctx._source.containsKey('%s')) { ctx._source.z = 1 } else { ctx.op = 'none' }" % s.one("n", "k", "t"),
            lambda: "ctx._source.z = ctx._source.%s.%s" % (s.one("k", "t", "n"), s.one("length()", "toUpperCase()", "size()", "nope")),
            lambda: "String s = 'abc'; ctx._source.z = s.substring(%d, %d)" % (s.r.randint(0, 2), s.r.randint(0, 3)),
            lambda: "ctx._source.z = %s / %s" % (s.one("7", "7.0", "1L"), s.one("2", "0", "2.0")),
            lambda: "try { %s } catch (Exception e) { ctx._source.z = 'caught' }" % s.one("ctx._source.q.r()", "Integer.parseInt('x')", "ctx._source.z = 1"),
            lambda: "def f = x -> x * 2; ctx._source.z = f.apply(%d)" % s.r.randint(1, 9),
            lambda: "ctx._source.z = [5, 3, 8].stream().mapToInt(x -> x).%s" % s.one("sum()", "max().getAsInt()", "count()"),
        ])()
        s.send("POST", "/i/_update/%s?refresh=true&_source=true" % s.r.randint(1, 4), {"script": {"source": source, "params": {"p": s.one(1, "x", [1])}}})


def typed(s):
    """Calls with the type _doc in the place of a type, as clients of 6.x and 7.x send them."""
    s.fill()
    for _ in range(12):
        doc_id = s.quoted(s.id())
        kind = s.r.choice(["search", "count", "mget", "bulk", "update", "create", "source", "query", "mapping", "msearch"])
        if kind == "search":
            s.send("POST", "/i/_doc/_search", {"size": 50, "query": s.query()})
        elif kind == "count":
            s.send("POST", "/i/_doc/_count", {"query": s.query()})
        elif kind == "mget":
            s.send("POST", "/i/_doc/_mget", {"ids": [s.id(), s.id()]})
        elif kind == "bulk":
            s.send("POST", "/i/_doc/_bulk?refresh=true", text=json.dumps({"index": {"_id": s.id()}}, ensure_ascii=False) + "\n" + json.dumps(s.document()) + "\n")
        elif kind == "update":
            s.send("POST", "/i/_doc/%s/_update?refresh=true" % doc_id, {"doc": s.document(2)})
        elif kind == "create":
            s.send("PUT", "/i/_doc/%s/_create?refresh=true" % doc_id, s.document())
        elif kind == "source":
            s.send("GET", "/i/_doc/%s/_source" % doc_id)
        elif kind == "query":
            s.send("POST", "/i/_doc/%s?refresh=true" % s.one("_update_by_query", "_delete_by_query"), {"query": {"term": {"k": s.value("k")}}})
        elif kind == "mapping":
            s.send("GET", "/i/_doc/_mapping" + s.one("", "?include_type_name=true"))
        else:
            s.send("POST", "/i/_doc/_msearch", text="{}\n%s\n" % json.dumps({"size": 50, "query": s.query()}))


def scenario(group, seed):
    source = Source(group, seed)
    globals()[group](source)
    return source.steps
