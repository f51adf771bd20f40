#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what a real Elasticsearch answers to a list of requests, in the form that replay.py reads.

    record.py --url http://127.0.0.1:9207 [--version 7.10] NAME < REQUESTS > NAME.jsonl

A request is a line `METHOD PATH`, or `METHOD PATH BODY` with the body on the same line; in a body of _bulk or _msearch \\n stands between lines.
Lines that begin with # and empty ones are passed over. All that is on the server is deleted first.
"""

import argparse
import http.client
import json
import sys
import urllib.parse

VARYING = {"took", "index_uuid", "uuid", "creation_date", "node", "cluster_uuid", "_scroll_id", "creation_date_in_millis"}
HEADERS = ("location", "content-type", "x-opaque-id")


def send(address, method, path, body):
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request(method, path, body=None if body is None else body.encode(), headers={"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()


def pointers(value, path=""):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        here = "%s/%s" % (path, str(key).replace("~", "~0").replace("/", "~1"))
        if key in VARYING:
            yield here
        else:
            yield from pointers(inner, here)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="a real server, which loses all that is on it")
    parser.add_argument("--version", default="7.10")
    parser.add_argument("name")
    args = parser.parse_args()
    address = urllib.parse.urlsplit(args.url).netloc
    for path in ("/*?expand_wildcards=all", "/_template/*", "/_index_template/*", "/_component_template/*"):
        send(address, "DELETE", path, None)
    number = 0
    for line in sys.stdin:
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        number += 1
        method, path, body = (line.split(" ", 2) + [None])[:3]
        if ("_bulk" in path or "_msearch" in path) and body is not None:
            body = body.replace("\\n", "\n") + "\n"
        status, headers, reply = send(address, method, path, body)
        text = reply.decode()
        exchange = {"id": "%s/%s/%02d" % (args.version, args.name, number), "method": method, "path": path}
        if body is not None:
            exchange["body"] = body
        exchange["status"] = status
        try:
            exchange["response"] = json.loads(text)
        except ValueError:
            exchange["response"] = text or None
        exchange["response_headers"] = {k: headers[k] for k in HEADERS if k in headers}
        exchange["varies"] = list(pointers(exchange.get("response", {})))
        print(json.dumps(exchange))


if __name__ == "__main__":
    main()
