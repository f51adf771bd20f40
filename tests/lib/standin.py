# SPDX-License-Identifier: Apache-2.0
"""A stand-in for an Elasticsearch 7.10 as the target of a copy: the part of its API that `tidelock replicate` uses. It can produce conditions that are hard to produce with the original:
versions of deletes are forgotten after index.gc_deletes, and all of them at a restart. e2e/replicate_standin_test.py compares it with a recording of a real one."""
import fnmatch
import http.server
import json
import re
import socket
import threading
import time
import urllib.parse
import uuid
import zlib

UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(text):
    number, unit = re.fullmatch(r"([\d.]+)([a-z]+)", text).groups()
    return float(number) * UNITS[unit]


class Refused(Exception):
    def __init__(self, status, kind, reason=""):
        super().__init__(kind)
        self.status = status
        self.body = {"error": {"type": kind, "reason": reason or kind}, "status": status}
        if kind == "index_not_found_exception":
            self.body["error"]["index"] = re.search(r"\[(.*)\]|$", reason)[1]


class Index:
    def __init__(self, name, definition, template):
        self.name = name
        self.settings = {"number_of_shards": "1", **template}
        self.settings.update(flat(definition.get("settings") or {}))
        self.settings["uuid"] = uuid.uuid4().hex
        self.mappings = definition.get("mappings") or {}
        self.aliases = definition.get("aliases") or {}
        self.documents = {}  # by shard and id
        self.closed = False

    def key(self, id, routing):
        return zlib.crc32((routing or id).encode("utf-8", "surrogatepass")) % int(self.settings["number_of_shards"]), id

    def keeps(self):
        return seconds(self.settings.get("gc_deletes", "60s"))


def flat(settings, prefix=""):
    """{"index": {"a": {"b": 1}}} and {"index.a.b": 1} are the same; analysis stays as it is."""
    found = {}
    for key, value in settings.items():
        name = (prefix + key).removeprefix("index.")
        if name == "index" or (isinstance(value, dict) and not name.startswith("analysis")):
            found.update(flat(value, "" if name == "index" else name + "."))
        else:
            found[name] = value if isinstance(value, (dict, list)) else str(value).lower() if isinstance(value, bool) else str(value)
    return found


class Document:
    def __init__(self, version, source, routing):
        self.version, self.source, self.routing, self.since = version, source, routing, time.monotonic()


def filtered(value, paths):
    """A reply reduced to the members that filter_path names; each path is a list of patterns. A member without any of them is left out."""
    if isinstance(value, list):
        found = [filtered(member, paths) for member in value]
        return [member for member in found if member]
    found = {}
    for key, member in value.items() if isinstance(value, dict) else ():
        rests = [path[1:] for path in paths if fnmatch.fnmatchcase(key, path[0])]
        inside = member if [] in rests else filtered(member, rests)
        if [] in rests or inside:
            found[key] = inside
    return found


class Standin:
    def __init__(self):
        self.indices = {}
        self.template = {}
        self.scrolls = {}
        self.lock = threading.RLock()
        self.busy = 0  # so many bulks are answered 429
        self.blocked = None  # the status with which the whole cluster refuses what writes
        self.unknown_queries = {"nonsense"}  # in filters of aliases
        self.unlisted = set()  # indices that the list of all leaves out, as for a user without a privilege for them
        self.most_bytes = 100 << 20  # of a request; more is answered 413
        self.port = 0
        self.server = None

    # --- A server that can be killed and started again ---

    def start(self):
        standin = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, reply = (413, None) if len(body) > standin.most_bytes else standin.answer(self.command, self.path, body.decode("utf-8", "surrogatepass"))
                text = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(text)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any

            def log_message(self, *_):
                pass

        class Listener(http.server.ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True
            request_queue_size = 64

            def __init__(self, *arguments):
                self.open = set()
                super().__init__(*arguments)

            def process_request(self, request, address):
                self.open.add(request)
                super().process_request(request, address)

            def handle_error(self, *_):
                pass

        while True:
            try:
                self.server = Listener(("127.0.0.1", self.port), Handler)
                break
            except OSError:  # a connection of another process has the port for a while
                if self.port == 0:
                    raise
                time.sleep(0.05)
        self.port = self.server.server_address[1]
        self.url = "http://127.0.0.1:%d" % self.port
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()
        return self

    def kill(self):
        """Its documents stay, and nothing else."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
        for connection in list(self.server.open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        with self.lock:
            self.scrolls = {}
            for index in self.indices.values():
                index.documents = {key: document for key, document in index.documents.items() if document.source is not None}

    stop = close = kill

    # --- Requests ---

    def answer(self, method, path, body):
        path, _, query = path.partition("?")
        parts = [urllib.parse.unquote(part, errors="surrogatepass") for part in path.split("/")[1:]]
        query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        with self.lock:
            try:
                status, reply = self.route(method, parts, query, body)
                return status, filtered(reply, [path.split(".") for path in query["filter_path"].split(",")]) if "filter_path" in query else reply
            except Refused as refused:
                return refused.status, refused.body

    def route(self, method, parts, query, body):
        first, action = parts[0], parts[1] if len(parts) > 1 else ""
        if self.blocked is not None and method != "GET" and not {"_search", "_mget", "_refresh"} & set(parts):
            raise Refused(self.blocked, "cluster_block_exception")
        if parts == [""]:
            return 200, {"name": "standin", "cluster_uuid": "standin", "version": {"number": "7.10.2"}}
        if "_bulk" in parts:
            return self.bulk(body)
        if "_mget" in parts:
            hidden = ("_source",) if query.get("_source") == "false" else ()
            found = [self.get_one(it["_index"], it["_id"], it.get("routing")) for it in json.loads(body)["docs"]]
            return 200, {"docs": [{name: value for name, value in it.items() if name not in hidden} for it in found]}
        if first == "_search" and action == "scroll":
            return self.scroll(json.loads(body)) if method == "POST" else (200, {"succeeded": True, "num_freed": 1})
        if first == "_template":
            self.template = flat(json.loads(body)["settings"])
            return 200, {"acknowledged": True}
        if first == "_aliases":
            steps = json.loads(body)["actions"]
            for step in steps:  # all, or none
                if "add" in step:
                    self.check_alias(step["add"]["alias"], step["add"], step["add"]["index"])
            if not any("add" in step or step["remove"]["alias"] in self.index(step["remove"]["index"]).aliases for step in steps):
                raise Refused(404, "aliases_not_found_exception")
            for step in steps:
                for kind, it in step.items():
                    self.index(it["index"]).aliases.pop(it["alias"], None)
                    if kind == "add":
                        self.index(it["index"]).aliases[it["alias"]] = {key: it[key] for key in it if key not in ("index", "alias")}
            return 200, {"acknowledged": True}
        if "_refresh" in parts:
            if first != "_refresh":
                self.index(first)
            return 200, {"_shards": {"failed": 0}}
        if first == "_mapping":
            return 200, {name: {"mappings": index.mappings} for name, index in self.indices.items() if not index.closed}
        if first == "_alias":
            return 200, {name: {"aliases": index.aliases} for name, index in self.indices.items() if name not in self.unlisted}
        if first == "_settings":
            return 200, {name: {"settings": {"index": index.settings}} for name, index in self.indices.items()}
        if action == "_settings" and method == "GET":
            found = [index for index in self.indices.values() if not index.closed or "closed" in query.get("expand_wildcards", "")] if first == "*" else [self.index(name) for name in first.split(",")]
            return 200, {index.name: {"settings": {"index": index.settings}} for index in found}
        if action == "_search":
            return self.search(first, query, json.loads(body))
        if action == "_count":
            return 200, {"count": sum(document.source is not None for index in self.searched(first) for document in index.documents.values())}
        if action in ("_doc", "_create") and len(parts) > 2:
            return self.document(method, first, parts[2], query, body)
        if action == "":
            return self.whole(method, first, body)
        if method == "GET":
            found = {}
            for index in self.named(first):
                found.update(self.part(method, index, action, body)[1])
            return 200, found
        return self.part(method, self.index(first), action, body)

    def matching(self, pattern):
        return [index for name, index in self.indices.items() if re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), name)]

    def named(self, name):
        """Returns: the index of a name, or all that have it as an alias."""
        return [index for index in self.indices.values() if name in index.aliases] or [self.index(name)]

    def searched(self, name):
        """Returns: the open indices of a pattern; the index of a name, or all that have it as an alias, if they are open."""
        if "*" in name:
            return [index for index in self.matching(name) if not index.closed]
        if any(index.closed for index in self.named(name)):
            raise Refused(400, "index_closed_exception")
        return self.named(name)

    def index(self, name, makes=False):
        if name in self.indices:
            return self.indices[name]
        for index in self.indices.values():
            if name in index.aliases:
                return index
        if not makes:
            raise Refused(404, "index_not_found_exception", "no such index [%s]" % name)
        self.indices[name] = Index(name, {}, self.template)
        return self.indices[name]

    def check_alias(self, alias, terms, name):
        if alias in self.indices or alias.startswith("_"):
            raise Refused(400, "invalid_alias_name_exception", "Invalid alias name [%s], an index exists with the same name as the alias" % alias)
        if self.unknown_queries & set(terms.get("filter") or ()):
            raise Refused(400, "illegal_argument_exception", "failed to parse filter for alias [%s]" % alias)
        if terms.get("is_write_index") and any(index.aliases.get(alias, {}).get("is_write_index") for index in self.indices.values() if index.name != name):
            raise Refused(500, "illegal_state_exception", "alias [%s] has more than one write index" % alias)

    def whole(self, method, name, body):
        if method == "PUT":
            if name in self.indices:
                raise Refused(400, "resource_already_exists_exception")
            if name.startswith("_") or any(name in index.aliases for index in self.indices.values()):
                raise Refused(400, "invalid_index_name_exception", "Invalid index name [%s], already exists as alias" % name)
            for alias, terms in (json.loads(body or "{}").get("aliases") or {}).items():
                self.check_alias(alias, terms, name)
            self.indices[name] = Index(name, json.loads(body or "{}"), self.template)
            return 200, {"acknowledged": True, "shards_acknowledged": True, "index": name}
        index = self.index(name)
        if method == "DELETE":
            if index.name != name:
                raise Refused(400, "illegal_argument_exception", "The provided expression [%s] matches an alias, specify the corresponding concrete indices instead." % name)
            del self.indices[index.name]
            return 200, {"acknowledged": True}
        return 200, {index.name: {"aliases": index.aliases, "mappings": index.mappings, "settings": {"index": index.settings}}}

    def part(self, method, index, action, body):
        if action == "_open":
            index.closed = False
            return 200, {"acknowledged": True, "shards_acknowledged": True}
        if action == "_close":
            index.closed = True
            return 200, {"acknowledged": True, "shards_acknowledged": True, "indices": {index.name: {"closed": True}}}
        if method == "PUT" and action == "_mapping":
            changed = json.loads(body)
            for field, mapping in changed.get("properties", {}).items():
                known = index.mappings.get("properties", {}).get(field, mapping)
                if known.get("type") != mapping.get("type"):
                    raise Refused(400, "illegal_argument_exception", "mapper [%s] cannot be changed from type [%s] to [%s]" % (field, known.get("type"), mapping.get("type")))
            index.mappings = {**index.mappings, **changed, "properties": {**index.mappings.get("properties", {}), **changed.get("properties", {})}}
            if not index.mappings["properties"]:
                del index.mappings["properties"]
            return 200, {"acknowledged": True}
        if method == "PUT" and action == "_settings":
            index.settings.update(flat(json.loads(body)))
            return 200, {"acknowledged": True}
        shown = {"_mapping": {"mappings": index.mappings}, "_settings": {"settings": {"index": index.settings}}, "_alias": {"aliases": index.aliases}}
        if action not in shown:
            raise Refused(400, "illegal_argument_exception", "not here: " + action)
        return 200, {index.name: shown[action]}

    # --- Documents ---

    def parse(self, index, source):
        def refuse(field):
            raise Refused(400, "mapper_parsing_exception", "failed to parse field [%s]" % field)
        for field, mapping in index.mappings.get("properties", {}).items():
            value = source.get(field)
            if mapping.get("type") == "long" and isinstance(value, (str, dict)) and not re.fullmatch(r"-?\d+", str(value)):
                refuse(field)

    def write(self, operation, index, id, routing, version, kind, source):
        """Returns: the item of a bulk."""
        if index.closed:
            raise Refused(400, "index_closed_exception")
        if index.settings.get("blocks.write") == "true" or index.settings.get("blocks.read_only_allow_delete") == "true" and operation != "delete":
            raise Refused(403 if index.settings.get("blocks.write") == "true" else 429, "cluster_block_exception")
        key = index.key(id, routing)
        found = index.documents.get(key)
        if found is not None and found.source is None and time.monotonic() - found.since > index.keeps():
            found = None
        if operation != "delete":
            self.parse(index, source)
        if kind is None:
            version = 1 if found is None else found.version + 1
        elif found is not None and (found.version > version or (kind != "external_gte" and found.version == version)):
            raise Refused(409, "version_conflict_engine_exception")
        lives = found is not None and found.source is not None
        index.documents[key] = Document(version, source, routing)
        result, status = ("updated", 200) if lives else ("created", 201)
        if operation == "delete":
            result, status = ("deleted", 200) if lives else ("not_found", 404)
        return {"_index": index.name, "_type": "_doc", "_id": id, "_version": version, "result": result, "status": status}

    def bulk(self, body):
        if self.busy > 0:
            self.busy -= 1
            raise Refused(429, "es_rejected_execution_exception")
        items, lines = [], iter([line for line in body.split("\n") if line])
        if re.search(r'"_id": ?"[^"]{513}', body):  # one that cannot be at all, and all are refused
            raise Refused(400, "action_request_validation_exception")
        for line in lines:
            (operation, it), = json.loads(line).items()
            source = json.loads(next(lines)) if operation != "delete" else None
            try:
                item = self.write(operation, self.index(it["_index"], makes=True), it["_id"], it.get("routing"), it.get("version"), it.get("version_type"), source)
            except Refused as refused:
                item = {"_index": it["_index"], "_type": "_doc", "_id": it["_id"], "status": refused.status, "error": refused.body["error"]}
            items.append({operation: item})
        return 200, {"took": 0, "errors": any("error" in item for entry in items for item in entry.values()), "items": items}

    def document(self, method, name, id, query, body):
        if method in ("GET", "HEAD"):
            found = self.get_one(name, id, query.get("routing"))
            if "error" in found:
                raise Refused(404, "index_not_found_exception")
            return 200 if found["found"] else 404, found
        version = int(query["version"]) if "version" in query else None
        if query.get("op_type") == "create" and self.get_one(name, id, query.get("routing")).get("found"):
            raise Refused(409, "version_conflict_engine_exception")
        item = self.write("delete" if method == "DELETE" else "index", self.index(name, makes=True), id, query.get("routing"), version, query.get("version_type"),
                          None if method == "DELETE" else json.loads(body))
        return item.pop("status"), item

    def get_one(self, name, id, routing):
        try:
            index = self.index(name)
        except Refused as refused:
            return {"_index": name, "_type": "_doc", "_id": id, "error": refused.body["error"]}
        found = index.documents.get(index.key(id, routing))
        shown = {"_index": index.name, "_type": "_doc", "_id": id, "found": found is not None and found.source is not None}
        if shown["found"]:
            shown.update({"_version": found.version, "_source": found.source}, **({"_routing": found.routing} if found.routing is not None else {}))
        return shown

    def search(self, name, query, body):
        indices = self.searched(name)
        hits = [{"_index": index.name, "_type": "_doc", "_id": id, "_version": document.version, "_source": document.source,
                 **({"_routing": document.routing} if document.routing is not None else {})}
                for index in indices for (_, id), document in index.documents.items() if document.source is not None]
        if "query" in body:  # of tombstones, by their age
            (field, bounds), = body["query"]["range"].items()
            hits = [hit for hit in hits if field in hit["_source"] and hit["_source"][field] < bounds["lt"]]
        shown = body.get("_source", True)
        if isinstance(shown, list):
            hits = [{**hit, "_source": {field: value for field, value in hit["_source"].items() if field in shown}} for hit in hits]
        elif not shown:
            hits = [{name: value for name, value in hit.items() if name != "_source"} for hit in hits]
        size, total = body.get("size", 10), len(hits)
        if any(size > int(index.settings.get("max_result_window", 10000)) for index in indices):
            raise Refused(400, "search_phase_execution_exception")
        reply = {"timed_out": False, "_shards": {"failed": 0}, "hits": {"total": {"value": total}, "hits": hits[:size]}}
        if "scroll" in query:
            reply["_scroll_id"] = "scroll-%d-%f" % (len(self.scrolls), time.monotonic())
            self.scrolls[reply["_scroll_id"]] = (hits[size:], size, total)
        return 200, reply

    def scroll(self, body):
        if body["scroll_id"] not in self.scrolls:
            raise Refused(404, "search_context_missing_exception")
        hits, size, total = self.scrolls[body["scroll_id"]]
        self.scrolls[body["scroll_id"]] = (hits[size:], size, total)
        return 200, {"_scroll_id": body["scroll_id"], "timed_out": False, "_shards": {"failed": 0}, "hits": {"total": {"value": total}, "hits": hits[:size]}}
