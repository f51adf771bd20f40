# SPDX-License-Identifier: Apache-2.0
"""Transfers between accounts: one atomic bulk, and interactive transactions, cold and hot"""
from measure import rate_of
from peers import Postgres, Tidelock


def accounts(t, pg, count, index):
    t.ask("PUT", "/" + index, {"settings": {"number_of_shards": 1}, "mappings": {"properties": {"balance": {"type": "long"}}}})
    for begin in range(0, count, 2000):
        body = "".join('{"index":{"_id":"a%d"}}\n{"balance":1000}\n' % i for i in range(begin, min(count, begin + 2000)))
        t.ask("POST", "/%s/_bulk?filter_path=errors" % index, body)
    if pg:
        pg.sql("DROP TABLE IF EXISTS accounts", "CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL)",
               "INSERT INTO accounts SELECT i, 1000 FROM generate_series(0, %d) i" % (count - 1), "VACUUM ANALYZE accounts")


def script(count, locking):
    return "\\set a random(0, %d)\n\\set b (:a + 1 + random(0, %d)) %% %d\nBEGIN;\n" \
           "SELECT balance FROM accounts WHERE id = :a%s;\nSELECT balance FROM accounts WHERE id = :b%s;\n" \
           "UPDATE accounts SET balance = balance - 1 WHERE id = :a;\nUPDATE accounts SET balance = balance + 1 WHERE id = :b;\n" \
           "COMMIT;\n" % (count - 1, count - 2, count, locking, locking)


def run(bench):
    with bench.servers(Tidelock, Postgres) as (t, pg):
        def postgres(count, locking, *more, **settings):
            return (lambda: pg.pgbench(script(count, locking), 64, *more, **settings)) if pg else None

        accounts(t, pg, 100000, "bank")
        n = ("-n", 100000, "-i", "bank")
        locked = postgres(100000, " FOR UPDATE", "--max-tries=100")
        bench.rates("transfer, one atomic bulk, 100,000 accounts", rate_of(t, "transfer", 64, *n),
                    [("postgresql BEGIN .. COMMIT", locked, 1.5, None)])
        bench.rates("transfer, interactive, 100,000 accounts", rate_of(t, "interactive", 64, *n),
                    [("postgresql BEGIN .. COMMIT", locked, 0.7, 1)])
        accounts(t, pg, 10, "hot")
        h = ("-n", 10, "-i", "hot")
        hot = postgres(10, "", "--max-tries=1000", isolation="serializable")
        bench.rates("transfer, interactive, 10 hot accounts", rate_of(t, "interactive", 64, *h),
                    [("postgresql serializable", hot, 1, 2)])
        bench.rates("transfer, one atomic bulk, 10 hot accounts", rate_of(t, "transfer", 64, *h),
                    [("postgresql serializable", hot, None, None)])
