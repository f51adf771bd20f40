#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every call takes every parameter that Elasticsearch 7.10 takes on it.

Method: parameters.tsv has the calls of 7.10's REST specifications with their parameters. Each call that is served is sent once
for each of its parameters, and must not answer "contains unrecognized parameter". Calls that are not served are refused by name,
and a parameter that no client of 7.10's time could want here may be refused by name too: those are listed below with the reason.

    parameters.py --program build/tidelock
"""

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import shutil
from pathlib import Path
from urllib.parse import quote

HERE = Path(__file__).resolve().parent
PARTS = {"index": "i", "type": "_doc", "id": "1", "name": "n", "metric": "_all", "fields": "a", "node_id": "_all", "task_id": "x:1",
         "scroll_id": "x", "lang": "painless", "context": "score", "target": "j", "alias": "a", "new_index": "j", "block": "write",
         "index_metric": "_all", "repository": "r", "snapshot": "s", "target_index": "j"}
BODIES = {"bulk": '{"index":{"_index":"i","_id":"9"}}\n{"a":1}\n', "msearch": "{}\n{}\n", "update": '{"doc":{"a":1}}',
          "reindex": '{"source":{"index":"i"},"dest":{"index":"k"}}', "mget": '{"docs":[{"_index":"i","_id":"1"}]}',
          "delete_by_query": '{"query":{"match_none":{}}}', "put_script": '{"script":{"lang":"painless","source":"1"}}',
          "indices.update_aliases": '{"actions":[{"add":{"index":"i","alias":"a"}}]}', "cluster.put_settings": '{"transient":{}}',
          "indices.put_template": '{"index_patterns":["q*"]}', "indices.put_settings": '{"refresh_interval":"5s"}',
          "indices.put_mapping": '{"properties":{}}', "clear_scroll": '{"scroll_id":["x"]}', "scroll": '{"scroll_id":"x"}',
          "scripts_painless_execute": '{"script":{"source":"1"}}'}
WITH_DOCUMENT = {"index", "create"}
# Parameters that 7.10 takes beside q alone.
WITH_QUERY = {"df", "analyzer", "analyze_wildcard", "default_operator", "lenient"}
# Names of these calls or parameters are refused, and why.
REFUSED = {
    ("get_source", "version"): "so does 7.10", ("get_source", "version_type"): "so does 7.10",
    ("update_by_query", "version_type"): "so does 7.10",
    ("update", "lang"): "so does 7.10",
    ("*", "suggest_field"): "suggesters are not supported", ("*", "suggest_mode"): "suggesters are not supported",
    ("*", "suggest_size"): "suggesters are not supported", ("*", "suggest_text"): "suggesters are not supported",
}


class Server:
    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="tidelock-parameters-")
        self.process = subprocess.Popen([program, "serve", "--listen", "127.0.0.1:0", "--data", self.folder + "/data"],
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("ready on "):
            sys.exit("the server did not start: %r" % line)
        self.http = http.client.HTTPConnection(line.split()[2].split("//")[1])

    def send(self, method, path, body):
        self.http.request(method, path, body.encode() if body else None, {"Content-Type": "application/json"} if body else {})
        response = self.http.getresponse()
        return response.status, response.read().decode("utf-8", "replace")

    def stop(self):
        os.kill(self.process.pid, signal.SIGTERM)
        status = self.process.wait()
        if status != 0:  # a sanitizer found something
            raise RuntimeError("the server ended with status %d" % status)
        shutil.rmtree(self.folder, ignore_errors=True)


def calls():
    for line in (HERE / "parameters.tsv").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, methods, path, parameters = line.split("\t")
            yield name, methods.split(","), path, parameters.split()


def is_served(method, path, name):
    """The specification has rows that 7.10 itself reads otherwise: POST /_mapping/x writes a document of the type x."""
    return not (name == "indices.put_mapping" and path in ("/_mapping/{type}", "/_mappings/{type}") and method == "POST") and \
        not (name == "put_script" and path.endswith("/{context}"))


def filled(path):
    for part, value in PARTS.items():
        path = path.replace("{%s}" % part, quote(value, safe=""))
    return path


def check(server, name, method, path, parameter, wrong, counts):
    body = BODIES.get(name) or ('{"a":1}' if name in WITH_DOCUMENT else None)
    also = "&q=a" if parameter.split("=")[0] in WITH_QUERY else ""
    status, text = server.send(method, filled(path) + "?" + parameter.replace(">", "%3E") + also, body)
    counts["sent"] += 1
    if "contains unrecognized parameter" not in text:
        return
    key = parameter.split("=")[0]
    if (name, key) in REFUSED or ("*", key) in REFUSED:
        counts["refused"] += 1
    elif "[%s]" % key in text:
        wrong.append("%s %s (%s) does not take %s" % (method, path, name, parameter))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", required=True)
    args = parser.parse_args()
    server = Server(args.program)
    wrong, counts = [], {"sent": 0, "refused": 0}
    try:
        for name, methods, path, parameters in calls():
            server.send("PUT", "/i/_doc/1", '{"a":1}')
            for method in (m for m in methods if is_served(m, path, name)):
                for parameter in parameters:
                    check(server, name, method, path, parameter, wrong, counts)
    finally:
        server.stop()
    for line in wrong:
        print("WRONG " + line)
    print("%d sent, %d refused with a reason, %d wrong" % (counts["sent"], counts["refused"], len(wrong)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
