# SPDX-License-Identifier: Apache-2.0
"""Transfers between accounts: one atomic bulk, and interactive transactions; 100,000 accounts and 10"""
from measure import rate_of
from peers import Postgres, Tidelock

# The same transfer in one round trip.
FUNCTION = """CREATE FUNCTION transfer(a int, b int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
PERFORM balance FROM accounts WHERE id IN (a, b) ORDER BY id FOR UPDATE;
UPDATE accounts SET balance = balance - 1 WHERE id = a;
UPDATE accounts SET balance = balance + 1 WHERE id = b; END $$"""


def accounts(t, pg, count, index):
    t.ask("PUT", "/" + index, {"settings": {"number_of_shards": 1}, "mappings": {"properties": {"balance": {"type": "long"}}}})
    for begin in range(0, count, 2000):
        body = "".join('{"index":{"_id":"a%d"}}\n{"balance":1000}\n' % i for i in range(begin, min(count, begin + 2000)))
        t.ask("POST", "/%s/_bulk?filter_path=errors" % index, body)
    if pg:
        pg.sql("DROP TABLE IF EXISTS accounts", "CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL)",
               "INSERT INTO accounts SELECT i, 1000 FROM generate_series(0, %d) i" % (count - 1), "VACUUM ANALYZE accounts")


def draw(count):
    return "\\set a random(0, %d)\n\\set b (:a + 1 + random(0, %d)) %% %d\n" % (count - 1, count - 2, count)


def script(count, locking):
    return draw(count) + "BEGIN;\n" \
        "SELECT balance FROM accounts WHERE id = :a%s;\nSELECT balance FROM accounts WHERE id = :b%s;\n" \
        "UPDATE accounts SET balance = balance - 1 WHERE id = :a;\n" \
        "UPDATE accounts SET balance = balance + 1 WHERE id = :b;\nCOMMIT;\n" % (locking, locking)


class Retries:
    """Measures a rate, and remembers how often it took another try."""

    def __init__(self, measure, seconds):
        self.measure = measure
        self.seconds = seconds
        self.done = self.retried = 0

    def __call__(self):
        results = self.measure()
        self.done += results.get("done", results["ops_per_s"] * self.seconds)
        self.retried += results["retries"]
        return results["ops_per_s"]

    def each(self):
        return self.retried / max(1, self.done)


def cold(bench, t, pg):
    accounts(t, pg, 100000, "bank")
    n = ("-n", 100000, "-i", "bank")
    six = (lambda: pg.pgbench(script(100000, " FOR UPDATE"), 64, "--max-tries=100")) if pg else None
    one = (lambda: pg.pgbench(draw(100000) + "SELECT transfer(:a, :b);\n", 64, "--max-tries=100")) if pg else None
    if pg:
        pg.sql(FUNCTION)
    bench.rates("transfer, one atomic bulk, 100,000 accounts", rate_of(t, "transfer", 64, *n),
                [("postgresql, six round trips", six, 1.5, None), ("postgresql, one function call", one, None, 1)])
    bench.rates("transfer, interactive, 100,000 accounts", rate_of(t, "interactive", 64, *n),
                [("postgresql, six round trips", six, 0.7, 1)])


def hot(bench, t, pg):
    accounts(t, pg, 10, "hot")
    h = ("-n", 10, "-i", "hot")
    for name, scenario in (("one atomic bulk", "transfer"), ("interactive", "interactive")):
        ours = Retries(lambda s=scenario: t.load(s, 64, *h), bench.seconds)
        theirs = Retries(lambda: pg.pgbench_figures(script(10, ""), 64, "--max-tries=1000", isolation="serializable"),
                         bench.seconds)
        bench.rates("transfer, %s, 10 hot accounts" % name, ours, [("postgresql serializable", theirs if pg else None, 1, 2)])
        if pg:
            bench.row("the same: tries again for each commit", ours.each(), "",
                      [("postgresql serializable", theirs.each(), ours.each() / max(0.01, theirs.each()), None, None)])


def run(bench):
    with bench.servers(Tidelock, Postgres) as (t, pg):
        cold(bench, t, pg)
        hot(bench, t, pg)
