#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the data directories of format 1 next to this file; README.md.

usage: make.py PROGRAM    a program that writes format 1
"""
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


class Old:
    """A server of the old program."""

    def __init__(self, program, data):
        self.process = subprocess.Popen([program, "serve", "--data", data, "--listen", "127.0.0.1:0", "--write-buffer", "1m", "--cache", "1m"],
                                        stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().split("http://")[1].strip()

    def ask(self, method, path, body=None, lines=None):
        connection = http.client.HTTPConnection(self.address)
        text = "".join(json.dumps(line) + "\n" for line in lines) if lines else json.dumps(body) if body is not None else None
        connection.request(method, path, text, {"Content-Type": "application/x-ndjson" if lines else "application/json"})
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        assert response.status < 300 and not answer.get("errors"), (method, path, answer)
        return answer

    def end(self, number):
        self.process.send_signal(number)
        self.process.wait()
        self.process.stdout.close()


def fill(server):
    ask = server.ask
    ask("PUT", "/fs", {
        "settings": {"analysis": {"analyzer": {"paths": {"tokenizer": "path_hierarchy"}}}},
        "mappings": {"properties": {"name": {"type": "keyword"}, "size": {"type": "long"}, "changed": {"type": "date"}, "note": {"type": "text"},
                                    "path": {"type": "keyword", "fields": {"tree": {"type": "text", "analyzer": "paths"}}}}}})
    for number, path in enumerate(("/a/b/one", "/a/b/two", "/a/c/three", "/d/four"), 1):
        ask("PUT", "/fs/_doc/%d" % number, {"name": path.rsplit("/", 1)[1], "path": path, "size": number, "changed": "2026-01-0%d" % number,
                                            "note": "Some words about %s" % path})
    ask("PUT", "/fs/_doc/5", {"name": "gone", "path": "/d/gone"})
    ask("DELETE", "/fs/_doc/5")
    ask("POST", "/fs/_doc/4/_update", {"doc": {"size": 40}})
    ask("PUT", "/books/novel/1", {"title": "Walden", "year": 1854})
    ask("PUT", "/books/poem/1", {"title": "Leaves of Grass", "year": 1855})
    ask("POST", "/_bulk", lines=[line for number in range(20) for line in ({"index": {"_index": "many", "_id": str(number)}}, {"n": number, "even": number % 2 == 0})])
    ask("POST", "/_aliases", {"actions": [{"add": {"index": "fs", "alias": "files"}},
                                          {"add": {"index": "many", "alias": "even", "filter": {"term": {"even": True}}}}]})
    ask("PUT", "/_template/logs", {"index_patterns": ["log-*"], "mappings": {"properties": {"at": {"type": "date"}}}})
    ask("PUT", "/_scripts/add", {"script": {"lang": "painless", "source": "ctx._source.n += params.by"}})
    ask("PUT", "/_cluster/settings", {"persistent": {"action.auto_create_index": "-private-*,*"}})
    editor = ask("POST", "/_session", {"ttl": "24h", "name": "editor", "on_expire": [{"delete": {"_index": "many", "_id": "19"}}]})["session"]
    reader = ask("POST", "/_session", {"ttl": "24h", "name": "reader"})["session"]
    ask("POST", "/_lock", {"session": editor, "locks": [{"mode": "exclusive", "index": "fs", "path": "/a/b"}]})
    ask("POST", "/_lock", {"session": reader, "locks": [{"mode": "shared", "index": "books", "type": "novel", "id": "1"}, {"mode": "update", "index": "many"}]})
    ask("PUT", "/presence/_doc/reader?lease=" + reader, {"since": "2026-01-01"})
    open_one = ask("POST", "/_transaction", {"mode": "update", "timeout": "1h"})["transaction"]
    ask("PUT", "/books/novel/2?transaction=" + open_one, {"title": "Never seen"})
    done = ask("POST", "/_transaction", {"mode": "update"})["transaction"]
    ask("PUT", "/books/novel/3?transaction=" + done, {"title": "Typee", "year": 1846})
    ask("POST", "/_transaction/%s/_commit" % done)
    # Last: if it is there, all is.
    ask("PUT", "/known/_doc/ids", {"editor": editor, "reader": reader, "open": open_one, "committed": done})


def main():
    program = sys.argv[1]
    for name, number in (("stopped", signal.SIGTERM), ("killed", signal.SIGKILL)):
        folder = tempfile.mkdtemp(prefix="tidelock-format1-")
        data = os.path.join(folder, "data")
        server = Old(program, data)
        fill(server)
        server.end(number)
        with tarfile.open(os.path.join(HERE, name + ".tar.gz"), "w:gz") as archive:
            archive.add(data, "data", filter=anonymous)
        shutil.rmtree(folder)


def anonymous(member):
    """Leaves out what the directory's use does not need: its owner, and RocksDB's diary."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    name = os.path.basename(member.name)
    return None if name.startswith(("LOG", "OPTIONS")) or name == "LOCK" else member


main()
