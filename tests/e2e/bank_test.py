#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bank transfers while clients and the server are killed: the total stays the same in every state that a reader can see.

64 processes move money between accounts: by interactive transactions (two gets, two puts, commit) or by one `_bulk?atomic=true`
with if_seq_no, each writing a receipt in the same transaction. A few more compute the total, all the time: at a timestamp, in
query transactions, in update transactions. At the end the balances are those which the receipts explain, every
acknowledged transfer has its receipt and no refused one does, and the sum is right at every timestamp at which a transfer
was committed and just before it.

    bank_test.py [--seconds 12] [--clients 64] [--seed N]
"""
import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from fleet import Away, Fleet  # noqa: E402
from server import HANGS, Server, check  # noqa: E402

LONG = os.environ.get("TIDELOCK_TEST_LONG")
ACCOUNTS = 100
BEGINNING = 100  # on each account
TOTAL = ACCOUNTS * BEGINNING
READERS = 4
MOMENTS_MAX = 150  # timestamps looked at in the end

CONFLICTS = {"version_conflict_engine_exception", "lock_wait_timeout_exception", "deadlock_detected_exception",
             "transaction_aborted_exception", "transaction_missing_exception", "session_missing_exception"}


class Refused(Exception):
    pass


def ask(client, method, path, body=None):
    status, reply = client.ask(method, path, body)
    if status < 300:
        return reply
    if "error" in reply and reply["error"]["type"] in CONFLICTS or status == 409 and reply.get("rolled_back"):
        raise Refused(reply["error"]["type"] if "error" in reply else "condition")
    raise AssertionError("%s %s: %d %s" % (method, path, status, reply))


def begin(client):
    """An update transaction of the client's session, if it has one, or with a short lease of its own."""
    body = {"timeout": "1s"} if client.session is None else {"session": client.session}
    return ask(client, "POST", "/_transaction", body)["transaction"]


def receipt(source, target, amount):
    return {"from": source, "to": target, "amount": amount}


def transfer_interactively(client, name, source, target, amount):
    transaction = begin(client)
    inside = "?timeout=3s&transaction=" + transaction
    balances = [ask(client, "GET", "/bank/_doc/%d%s" % (account, inside))["_source"]["balance"] for account in (source, target)]
    if balances[0] < amount:
        ask(client, "POST", "/_transaction/%s/_rollback" % transaction)
        raise Refused()
    ask(client, "PUT", "/bank/_doc/%d%s" % (source, inside), {"balance": balances[0] - amount})
    ask(client, "PUT", "/bank/_doc/%d%s" % (target, inside), {"balance": balances[1] + amount})
    ask(client, "PUT", "/receipts/_create/%s%s" % (name, inside), receipt(source, target, amount))
    client.note("asked", name=name, transaction=transaction)
    return ask(client, "POST", "/_transaction/%s/_commit" % transaction)["timestamp"]


def transfer_at_once(client, name, source, target, amount):
    found = ask(client, "POST", "/bank/_mget", {"ids": [str(source), str(target)]})["docs"]
    if found[0]["_source"]["balance"] < amount:
        raise Refused()
    lines = []
    for document, change in zip(found, (-amount, amount)):
        condition = {"_index": "bank", "_id": document["_id"], "if_seq_no": document["_seq_no"], "if_primary_term": 1}
        lines += [{"index": condition}, {"balance": document["_source"]["balance"] + change}]
    lines += [{"create": {"_index": "receipts", "_id": name}}, receipt(source, target, amount)]
    client.note("asked", name=name)
    reply = ask(client, "POST", "/_bulk?atomic=true&timeout=3s", "".join(json.dumps(line) + "\n" for line in lines))
    assert not reply["errors"], reply
    return 0


def transfer(client):
    name = client.name()
    source, target = client.random.sample(range(ACCOUNTS), 2)
    how = transfer_interactively if client.number % 2 == 0 else transfer_at_once
    try:
        timestamp = how(client, name, source, target, client.random.randrange(1, 30))
        client.note("done", name=name, timestamp=timestamp)
    except Refused as refusal:
        client.note("refused", name=name, why=str(refusal))


# --- Adding up ----------------------------------------------------------------------------------------------------------------

def sum_of(hits, what):
    total = sum(hit["_source"]["balance"] for hit in hits)
    assert len(hits) == ACCOUNTS and total == TOTAL, "%s: %d on %d accounts, not %d on %d" % (what, total, len(hits), TOTAL, ACCOUNTS)


def read_at_timestamp(client):
    now = ask(client, "GET", "/_timestamp")["timestamp"]
    hits = ask(client, "GET", "/bank/_search?size=%d&timestamp=%d" % (ACCOUNTS + 1, now))["hits"]["hits"]
    sum_of(hits, "search at %d" % now)


def read_in_query_transaction(client):
    transaction = ask(client, "POST", "/_transaction", {"mode": "query", "timeout": "5s"})["transaction"]
    inside = "transaction=" + transaction
    found = [ask(client, "GET", "/bank/_doc/%d?%s" % (account, inside)) for account in range(ACCOUNTS)]
    sum_of(found, "gets in a query transaction")
    sum_of(ask(client, "POST", "/bank/_mget?" + inside, {"ids": [str(n) for n in range(ACCOUNTS)]})["docs"], "mget in a query transaction")
    ask(client, "POST", "/_transaction/%s/_commit" % transaction)


def read_in_update_transaction(client):
    transaction = begin(client)
    sum_of(ask(client, "GET", "/bank/_search?size=%d&timeout=3s&transaction=%s" % (ACCOUNTS + 1, transaction))["hits"]["hits"],
           "search in an update transaction")
    ask(client, "POST", "/_transaction/%s/_rollback" % transaction)


def read_by_scroll(client):
    page = ask(client, "POST", "/bank/_search?size=7&scroll=10s", {"query": {"match_all": {}}})
    hits = page["hits"]["hits"]
    while page["hits"]["hits"]:
        page = ask(client, "POST", "/_search/scroll", {"scroll": "10s", "scroll_id": page["_scroll_id"]})
        hits += page["hits"]["hits"]
    sum_of(hits, "scroll")
    ask(client, "DELETE", "/_search/scroll", {"scroll_id": page["_scroll_id"]})


def add_up(client):
    try:
        client.random.choice([read_at_timestamp, read_in_query_transaction, read_in_update_transaction, read_by_scroll])(client)
        client.note("read")
    except Refused:
        client.note("unread")
    except AssertionError as error:
        if "search_context_missing" not in str(error):  # the server was restarted in the middle of a scroll
            raise


def work(client):
    """The work of a client: three of four have a session with an attach stream, the last ones read."""
    client.session = None
    line = None
    while True:
        try:
            if client.number % 4 != 2 and line is None:
                status, reply = client.ask("POST", "/_session", {"ttl": "5s"})
                assert status == 201, reply
                client.session = reply["session"]
                line = client.attach(client.session)
            if client.number >= client.readers_from:
                add_up(client)
            else:
                transfer(client)
        except Away:
            if line is not None:
                line.close()
            line = client.session = None
            time.sleep(0.05)


# --- Judging --------------------------------------------------------------------------------------------------------------------

def balances(server, parameters=""):
    hits = server.must("GET", "/bank/_search?size=%d%s" % (ACCOUNTS + 1, parameters))["hits"]["hits"]
    sum_of(hits, "search " + parameters)
    return {int(hit["_id"]): hit["_source"]["balance"] for hit in hits}


def all_receipts(server):
    page = server.must("POST", "/receipts/_search?size=1000&scroll=1m", {"query": {"match_all": {}}})
    receipts = {}
    while page["hits"]["hits"]:
        receipts.update((hit["_id"], hit["_source"]) for hit in page["hits"]["hits"])
        page = server.must("POST", "/_search/scroll", {"scroll": "1m", "scroll_id": page["_scroll_id"]})
    return receipts


def check_outcomes(server, notes, receipts):
    """A client that was killed, or had no answer, can ask what became of its transaction. Returns: how many it found."""
    done = {note["name"] for note in notes if note["kind"] == "done"}
    open_ends = [note for note in notes if note["kind"] == "asked" and "transaction" in note and note["name"] not in done]
    for note in open_ends:
        state = server.must("GET", "/_transaction/" + note["transaction"])["state"]
        assert (state == "committed") == (note["name"] in receipts), (note, state)
    return len(open_ends)


def settle(server):
    """
    What clients asked for before they were killed is done or given up: no lock is held, and no request waits. Transactions without a session
    end when they have been idle; so long is waited for with TIDELOCK_TEST_LONG only.
    """
    until = time.monotonic() + HANGS
    for transaction in server.must("GET", "/_transaction")["transactions"]:
        if not LONG and "session" not in transaction:
            server.ask("POST", "/_transaction/%d/_rollback?force=true" % transaction["transaction"])
    while server.must("GET", "/_lock")["locks"] or server.must("GET", "/_transaction")["transactions"]:
        assert time.monotonic() < until, "locks or transactions of clients that are gone stay"
        time.sleep(0.1)


def judge(server, notes):
    """Returns: transfers acknowledged, transactions whose outcome was asked for."""
    receipts = all_receipts(server)
    expected = dict.fromkeys(range(ACCOUNTS), BEGINNING)
    for one in receipts.values():
        expected[one["from"]] -= one["amount"]
        expected[one["to"]] += one["amount"]
    assert balances(server) == expected, "the receipts do not explain the balances"
    done = {note["name"] for note in notes if note["kind"] == "done"}
    refused = {note["name"] for note in notes if note["kind"] == "refused"}
    assert done <= set(receipts), "acknowledged, but no receipt: %s" % sorted(done - set(receipts))
    assert not refused & set(receipts), "refused, but done: %s" % sorted(refused & set(receipts))
    asked_after = check_outcomes(server, notes, receipts)
    instants = [note["timestamp"] for note in notes if note["kind"] == "done" and note["timestamp"]]
    for instant in instants[::len(instants) // MOMENTS_MAX + 1]:
        balances(server, "&timestamp=%d" % instant)
        balances(server, "&timestamp=%d" % (instant - 1))
    return len(done), asked_after


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=12 if LONG else 4)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("TIDELOCK_SEED", "1")))
    args = parser.parse_args()

    def work_here(client):
        client.readers_from = args.clients
        work(client)

    with Server() as server:
        for number in range(ACCOUNTS):
            server.must("PUT", "/bank/_doc/%d" % number, {"balance": BEGINNING})
        server.must("PUT", "/receipts", {})
        with Fleet(server, args.seed) as fleet:
            fleet.start(args.clients + READERS, work_here)
            fleet.inject_faults(args.seconds, kills=6, stops=1, stop_seconds=lambda number: 0.3,
                       meanwhile=lambda: balances(server),
                       enough=lambda: fleet.count_of("done") > 10 * args.seconds and fleet.count_of("read") > args.seconds)
            fleet.end()
            settle(server)
            notes = fleet.notes()
            done, asked_after = judge(server, notes)
            reads = sum(note["kind"] == "read" for note in notes)
        transactions = server.must("GET", "/_transaction")["transactions"]
        assert not [t for t in transactions if "session" in t], "left behind: %s" % transactions
        server.stop()
        status, text = check(server.data)
        assert status == 0, text
        print("seed %d: %d clients, %d killed, server killed %d times: %d transfers, %d sums of everything, all right; "
              "%d transactions without an answer had the outcome they said" %
              (args.seed, args.clients, fleet.counts["kill"], fleet.counts["server"], done, reads, asked_after))


if __name__ == "__main__":
    main()
