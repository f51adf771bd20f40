# SPDX-License-Identifier: Apache-2.0
"""Clients that write until the server ends, and the comparison of the state afterwards with the acknowledged writes.

    state = create_documents(server)
    clients = [Writer(server, n, state, seed) for n in range(WRITERS)]     # each has start()
    …                                                                       # the server is killed
    acknowledged = end_clients(clients)
    server.start()
    verify_documents(server, state)

A write without a reply may or may not be applied: the state found must be the last acknowledged one or that one write later.
"""
import http.client
import json
import random
import threading

WRITERS = 6
DOCUMENTS = 8  # of each writer


class Client(threading.Thread):
    """Does step() until it is ended or the connection breaks."""

    def __init__(self, server, number):
        super().__init__()
        self.server, self.number = server, number
        self.ending = threading.Event()
        self.acknowledged = 0
        self.failure = None

    def run(self):
        self.connection = self.server.connect()
        try:
            while not self.ending.is_set():
                self.step()
        except (OSError, http.client.HTTPException):
            pass  # the end of the server
        except Exception as error:  # noqa: BLE001: whatever it is, the test must not continue without this client
            self.failure = error
        finally:
            self.connection.close()

    def ask(self, method, path, body=None):
        response = self.server.request(method, path, body, connection=self.connection)
        assert response.status in (200, 201), (method, path, response.status, response.body)
        return json.loads(response.body)


def raise_failure(clients):
    for client in clients:
        if client.failure:
            raise client.failure


def end_clients(clients):
    """Waits until the connections are broken, or the current steps are done. Returns: the number of acknowledged writes."""
    for client in clients:
        client.ending.set()
    for client in clients:
        client.join()
    raise_failure(clients)
    return sum(client.acknowledged for client in clients)


class Writer(Client):
    """Writes, deletes and writes by bulks documents of its own; each write has a greater number."""

    def __init__(self, server, number, state, seed):
        super().__init__(server, number)
        self.state = state  # id -> (version, counter, maybe): maybe is the write that was not answered, or None
        self.random = random.Random(seed)

    def step(self):
        if self.random.random() < 0.3:
            return self.bulk()
        name = "c%d-%d" % (self.number, self.random.randrange(DOCUMENTS))
        version, counter, _ = self.state[name]
        self.state[name] = (version, counter, counter + 1)
        deleting = counter >= 0 and self.random.random() < 0.1
        if deleting:
            reply = self.ask("DELETE", "/crash/_doc/" + name)
        else:
            reply = self.ask("PUT", "/crash/_doc/" + name, {"n": counter + 1, "who": "c%d" % self.number})
        assert reply["_version"] == version + 1, "%s: version %d after %d" % (name, reply["_version"], version)
        self.state[name] = (version + 1, -1 if deleting else counter + 1, None)
        self.acknowledged += 1

    def bulk(self):
        names = ["c%d-%d" % (self.number, i) for i in self.random.sample(range(DOCUMENTS), 4)]
        lines = []
        for name in names:
            version, counter, _ = self.state[name]
            self.state[name] = (version, counter, counter + 1)
            lines += [{"index": {"_index": "crash", "_id": name}}, {"n": counter + 1, "who": "c%d" % self.number}]
        reply = self.ask("POST", "/_bulk", "".join(json.dumps(line) + "\n" for line in lines))
        assert not reply["errors"], reply
        for name, item in zip(names, reply["items"]):
            version, counter, _ = self.state[name]
            assert item["index"]["_version"] == version + 1, (name, item)
            self.state[name] = (version + 1, counter + 1, None)
            self.acknowledged += 1


def create_documents(server):
    """Creates the writers' index. Returns: the state of their documents, none of which exists."""
    server.must("PUT", "/crash", {"mappings": {"properties": {"n": {"type": "long"}, "who": {"type": "keyword"}}}})
    return {"c%d-%d" % (writer, document): (0, -1, None) for writer in range(WRITERS) for document in range(DOCUMENTS)}


def verify_documents(server, state):
    """Compares every document with what its client knows, and takes over what an unanswered write turned out to be."""
    total = 0
    for name, (version, counter, maybe) in state.items():
        status, reply = server.ask("GET", "/crash/_doc/" + name)
        found = (reply["_version"], reply["_source"]["n"]) if status == 200 else None
        acknowledged = (version, counter) if counter >= 0 else None
        if found == acknowledged:
            if maybe is not None and found is None and version > 0:
                # Deleted before; an unanswered write may be a delete of nothing: the version may have gone on.
                status, reply = server.ask("PUT", "/crash/_doc/" + name, {"n": 0, "who": "x"})
                assert reply["_version"] in (version + 1, version + 2), (name, reply, version)
                state[name] = (reply["_version"], 0, None)
            else:
                state[name] = (version, counter, None)
        else:
            assert maybe is not None, "%s: acknowledged %s, found %s" % (name, acknowledged, found)
            if found is None:  # the unanswered write was the delete
                state[name] = (version + 1, -1, None)
            else:
                assert found == (version + 1, maybe), "%s: acknowledged %s, found %s" % (name, acknowledged, found)
                state[name] = (found[0], found[1], None)
        if state[name][1] >= 0:
            total += 1
    count = server.must("GET", "/crash/_count")["count"]
    assert count == total, "%d documents counted, %d there" % (count, total)
    hits = server.must("POST", "/crash/_search", {"size": 1000, "query": {"prefix": {"who": "c"}}})["hits"]["hits"]
    assert len({h["_id"] for h in hits}) == len(hits), "a document twice in a search"
    expected = {name for name, (_, counter, _) in state.items() if counter >= 0}
    assert {h["_id"] for h in hits} <= expected, "a deleted document in a search"
