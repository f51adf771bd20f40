#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the requests of the table of write conditions: every operation under every condition, on documents in every state.

    conditions.py 5.6|7.10 FOLDER

makes FOLDER/conditions-OPERATION.requests, to be recorded from a real server of that version. A document is live (written
twice), deleted (written twice, then deleted), or has never been; each request has one of its own, written by the first request
of the file, so that its version and sequence number are known. Then each condition in a _bulk, with a document of each state.
The last request reads what has become of all of them.
"""
import json
import os
import sys

STATES = ("live", "deleted", "never")
VERSIONS = {"live": 2, "deleted": 3, "never": 0}

# What is asked, with {v} for the document's version, {s} for its sequence number, and {v+1} and so on.
CONDITIONS_7 = [
    {}, {"if_seq_no": "{s}", "if_primary_term": 1}, {"if_seq_no": "{s-1}", "if_primary_term": 1},
    {"if_seq_no": 99999, "if_primary_term": 1}, {"if_seq_no": "{s}", "if_primary_term": 2}, {"if_seq_no": 0, "if_primary_term": 1},
    {"if_seq_no": "{s}"}, {"if_primary_term": 1}, {"if_seq_no": -1, "if_primary_term": 1}, {"if_seq_no": -2, "if_primary_term": 0},
    {"if_seq_no": "{s}", "if_primary_term": 0}, {"if_seq_no": "x", "if_primary_term": 1},
    {"if_seq_no": "{s}", "if_primary_term": 1, "version": "{v}"},
    {"if_seq_no": "{s}", "if_primary_term": 1, "version": "{v+1}", "version_type": "external"},
    {"version_type": "internal"}, {"version_type": "force", "version": 9},
]
CONDITIONS = [
    {"version": "{v}"}, {"version": "{v+1}"}, {"version": 0}, {"version": -1}, {"version": -3}, {"version": "x"},
    {"version": "{v}", "version_type": "internal"},
    {"version": "{v-1}", "version_type": "external"}, {"version": "{v}", "version_type": "external"},
    {"version": "{v+1}", "version_type": "external"}, {"version": 0, "version_type": "external"},
    {"version": -5, "version_type": "external"}, {"version_type": "external"},
    {"version": "{v-1}", "version_type": "external_gte"}, {"version": "{v}", "version_type": "external_gte"},
    {"version": "{v+1}", "version_type": "external_gte"}, {"version": 9000000000000000000, "version_type": "external"},
    {"version": "{v+1}", "version_type": "bogus"},
]
CREATE = [{"op_type": "create"}, {"op_type": "create", "version": "{v}"}, {"op_type": "create", "version": "{v+1}", "version_type": "external"},
          {"op_type": "create", "version": 0, "version_type": "external"}, {"op_type": "index"}, {"op_type": "bogus"}]
CREATE_7 = [{"op_type": "create", "if_seq_no": "{s}", "if_primary_term": 1},
            {"op_type": "create", "version": "{v+1}", "version_type": "external_gte"}]
RETRY = [{"retry_on_conflict": 3}, {"retry_on_conflict": 3, "version": "{v}"}]
RETRY_7 = [{"retry_on_conflict": 3, "if_seq_no": "{s}", "if_primary_term": 1}]


def operations(seven):
    """Returns: name -> (kind, body, further conditions)."""
    def script(source):
        return {"source": source} if seven else {"inline": source, "lang": "groovy"}

    add, delete, none = script("ctx._source.n = 7"), script("ctx.op = 'delete'"), script("ctx.op = 'none'")
    updates = {
        "doc": {"doc": {"n": 7}},
        "doc-same": {"doc": {"n": 2}},
        "doc-upsert": {"doc": {"n": 7}, "upsert": {"u": 1}},
        "doc-as-upsert": {"doc": {"n": 7}, "doc_as_upsert": True},
        "script": {"script": add},
        "script-delete": {"script": delete},
        "script-none": {"script": none},
        "script-upsert": {"script": add, "upsert": {"u": 1}},
        "scripted-upsert": {"script": add, "upsert": {"u": 1}, "scripted_upsert": True},
        "scripted-upsert-empty": {"script": add, "upsert": {}, "scripted_upsert": True},
        "scripted-upsert-alone": {"script": add, "scripted_upsert": True},
        "scripted-upsert-none": {"script": none, "upsert": {}, "scripted_upsert": True},
    }
    result = {"index": ("index", {"n": 7}, CREATE + (CREATE_7 if seven else [])), "create": ("create", {"n": 7}, []), "delete": ("delete", None, [])}
    result.update({"update-" + name: ("update", body, RETRY + (RETRY_7 if seven else [])) for name, body in updates.items()})
    return result


class Table:
    def __init__(self, version, name, kind, body, conditions):
        self.seven = version != "5.6"
        self.kind, self.body = kind, body
        self.prefix = "%s/conditions/%s" % (version, name)
        self.index = "conditions-" + name
        self.setup, self.requests, self.documents = [], [], []
        self.sequence = 0
        for number, condition in enumerate(conditions):
            for state in STATES:
                self.add("%02d/%s" % (number, state), *self.single(self.document("s%02d-%s" % (number, state), state), condition))
        for number, condition in enumerate(conditions):
            lines = []
            for state in STATES:
                lines += self.lines(self.document("b%02d-%s" % (number, state), state), condition)
            self.add("%02d/bulk" % number, "POST", "/%s/%s_bulk" % (self.index, "" if self.seven else "d/"), "".join(lines))

    def add(self, name, method, path, body):
        self.requests.append({"id": "%s/%s" % (self.prefix, name), "method": method, "path": path, "body": body})

    def document(self, name, state):
        """Brings it about. Returns: (id, version, sequence number)."""
        for n in (1, 2) if state != "never" else ():
            self.setup += [json.dumps({"index": {"_id": name}}), json.dumps({"n": n})]
            self.sequence += 1
        if state == "deleted":
            self.setup.append(json.dumps({"delete": {"_id": name}}))
            self.sequence += 1
        self.documents.append(name)
        return name, VERSIONS[state], self.sequence - 1

    @staticmethod
    def fill(condition, document):
        values = {}
        for key, value in condition.items():
            if isinstance(value, str) and value.startswith("{"):
                value = max(0, {"v": document[1], "s": document[2]}[value[1]] + int(value[2:-1] or 0))
            values[key] = value
        return values

    def single(self, document, condition):
        parameters = "&".join("%s=%s" % item for item in self.fill(condition, document).items())
        kind, name = self.kind, document[0]
        if self.seven:
            path = "/%s/%s/%s" % (self.index, {"create": "_create", "update": "_update"}.get(kind, "_doc"), name)
        else:
            path = "/%s/d/%s%s" % (self.index, name, {"create": "/_create", "update": "/_update"}.get(kind, ""))
        method = {"delete": "DELETE", "update": "POST"}.get(kind, "PUT")
        return method, path + ("?" + parameters if parameters else ""), None if self.body is None else json.dumps(self.body)

    def lines(self, document, condition):
        action = {self.kind: {"_id": document[0], **self.fill(condition, document)}}
        return [json.dumps(part) + "\n" for part in (action, self.body) if part is not None]

    def all(self):
        type_part = "" if self.seven else "/d"
        first = {"id": self.prefix + "/before", "method": "POST", "path": "/%s%s/_bulk?filter_path=errors" % (self.index, type_part),
                 "body": "".join(line + "\n" for line in self.setup)}
        fields = ",".join("docs." + key for key in ["_id", "_version", "found", "_source"] + (["_seq_no"] if self.seven else []))
        last = {"id": self.prefix + "/after", "method": "POST", "path": "/%s%s/_mget?filter_path=%s" % (self.index, type_part, fields),
                "body": json.dumps({"ids": self.documents})}
        return [first, *self.requests, last]


def main():
    version, folder = sys.argv[1:]
    seven = version != "5.6"
    for name, (kind, body, further) in operations(seven).items():
        conditions = (CONDITIONS_7 if seven else [{}, {"version_type": "internal"}, {"version_type": "force", "version": 9}]) + CONDITIONS + further
        with open(os.path.join(folder, "conditions-%s.requests" % name), "w", encoding="utf-8") as file:
            for request in Table(version, name, kind, body, conditions).all():
                file.write(json.dumps(request) + "\n")


if __name__ == "__main__":
    main()
