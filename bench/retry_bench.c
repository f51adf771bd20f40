/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlocks under contention: commits and retries of transactions that read two documents and then
 * write both, for each way to treat a deadlock victim that tries again. Uses only the lock table,
 * in rounds. In a round each client that does not wait sends one request, so a round represents a
 * round trip. The results do not depend on the machine.
 *
 * usage: retry_bench [--clients N] [--documents N] [--rounds N] [--readers PERCENT] [--seed N]
 *
 * --readers: share of the transactions that only read. Prints for each way, per 1,000 rounds (a
 * second of round trips of 1 ms), the commits and the victims, the share of tries that were
 * victims, and the most tries that one transaction took.
 */
#include "../tests/lib/arguments.h"
#include "base/rand.h"
#include "core/locks/lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENTS_MAX = 1000, STEPS = 4 };

/* How a transaction asks, and how old one is that tries again. */
struct way {
    const char *name;
    bool ages;         /* it is as old as its first try */
    bool update_first; /* it reads for update at once */
    bool update_again; /* it does so when it tries again */
};

static const struct way ways[] = {
    {"as it comes", false, false, false},
    {"ages", true, false, false},
    {"ages, reads for update when it tries again", true, false, true},
    {"reads for update at once", false, true, true},
};

struct retry_client {
    struct lock_owner owner;
    struct lock_request *request; /* of the current step; NULL: none */
    tl_ts first;                  /* timestamp of its first try, for its age */
    uint64_t documents[2];
    bool reads_only;
    int step; /* 0 and 1 read, 2 and 3 write, then it commits */
    uint64_t tries;
};

struct bench {
    const struct way *way;
    struct lock_table table;
    struct rng rng;
    struct retry_client clients[CLIENTS_MAX];
    uint64_t client_count, document_count, rounds, readers;
    uint64_t commits, victims, most_tries;
    tl_ts ts;
};

/* Another transaction begins, or the same tries again. */
static void begin(struct bench *bench, struct retry_client *client, bool again)
{
    lock_owner_init(&bench->table, &client->owner, NULL, client);
    if (!again) {
        client->documents[0] = rng_below(&bench->rng, bench->document_count);
        client->documents[1] =
            (client->documents[0] + 1 + rng_below(&bench->rng, bench->document_count - 1)) % bench->document_count;
        client->reads_only = rng_below(&bench->rng, 100) < bench->readers;
        client->tries = 0;
        client->first = client->owner.age;
    } else if (bench->way->ages) {
        client->owner.age = client->first;
    }
    client->tries++;
    client->step = 0;
}

static void end(struct bench *bench, struct retry_client *client, bool again)
{
    lock_request_free(client->request);
    client->request = NULL;
    lock_release_all(&bench->table, &client->owner);
    lock_owner_deinit(&client->owner);
    bench->commits += !again;
    bench->victims += again;
    if (client->tries > bench->most_tries)
        bench->most_tries = client->tries;
    begin(bench, client, again);
}

/* What a call has brought about besides: grants, and victims, whose ends bring about more. */
static void settle(struct bench *bench)
{
    struct lock_request *request;
    for (;;) {
        if ((request = lock_table_next_victim(&bench->table)) != NULL) {
            end(bench, lock_request_user(request), true);
        } else if ((request = lock_table_next_granted(&bench->table)) != NULL) {
            struct retry_client *client = lock_request_user(request);
            lock_request_free(request);
            client->request = NULL;
            client->step++;
        } else {
            return;
        }
    }
}

static enum lock_mode mode_of(const struct bench *bench, const struct retry_client *client)
{
    bool update = client->tries > 1 ? bench->way->update_again : bench->way->update_first;
    return client->step >= 2 ? LOCK_X : update ? LOCK_U : LOCK_S;
}

static void act(struct bench *bench, struct retry_client *client)
{
    char id[24];
    if (client->step == STEPS || (client->reads_only && client->step == 2)) {
        end(bench, client, false);
        return;
    }
    snprintf(id, sizeof id, "a%llu", (unsigned long long)client->documents[client->step % 2]);
    struct lock_spec want = {{.index = SLICE_LIT("bank"), .id = slice_from(id)}, mode_of(bench, client), false, false};
    client->request = lock_request_new(&bench->table, &client->owner, &want, 1, client);
    switch (lock_request_start(client->request, true)) {
    case LOCK_GRANTED:
        lock_request_free(client->request);
        client->request = NULL;
        client->step++;
        break;
    case LOCK_DEADLOCK: end(bench, client, true); break;
    default: break; /* it waits */
    }
}

static void go_round(struct bench *bench)
{
    uint64_t from = rng_below(&bench->rng, bench->client_count);
    bool ready[CLIENTS_MAX];
    for (uint64_t i = 0; i < bench->client_count; i++)
        ready[i] = bench->clients[i].request == NULL;
    for (uint64_t i = 0; i < bench->client_count; i++) {
        uint64_t at = (from + i) % bench->client_count;
        if (!ready[at] || bench->clients[at].request != NULL)
            continue;
        bench->ts = lock_table_last_ts(&bench->table) + 1;
        lock_table_set_ts(&bench->table, bench->ts);
        act(bench, &bench->clients[at]);
        settle(bench);
    }
}

static void measure(struct bench *bench, const struct way *way, uint64_t seed)
{
    const struct lock_hooks none = {0};
    bench->way = way;
    bench->commits = bench->victims = bench->most_tries = 0;
    rng_init(&bench->rng, seed);
    lock_table_init(&bench->table, &none);
    for (uint64_t i = 0; i < bench->client_count; i++) {
        bench->clients[i] = (struct retry_client){0};
        begin(bench, &bench->clients[i], false);
    }
    for (uint64_t i = 0; i < bench->rounds; i++)
        go_round(bench);
    double thousands = (double)bench->rounds / 1000, tries = (double)(bench->commits + bench->victims);
    printf("%-44s %9.1f commits %9.1f victims %6.1f %% of all tries %6llu tries at most\n", way->name,
           (double)bench->commits / thousands, (double)bench->victims / thousands,
           100 * (double)bench->victims / (tries > 0 ? tries : 1), (unsigned long long)bench->most_tries);
    for (uint64_t i = 0; i < bench->client_count; i++)
        lock_request_free(bench->clients[i].request);
    for (uint64_t i = 0; i < bench->client_count; i++) {
        lock_release_all(&bench->table, &bench->clients[i].owner);
        while (lock_table_next_granted(&bench->table) != NULL)
            continue;
        lock_owner_deinit(&bench->clients[i].owner);
    }
    lock_table_deinit(&bench->table);
}

int main(int argc, char **argv)
{
    static struct bench bench = {.client_count = 12, .document_count = 8, .rounds = 100000};
    uint64_t seed = 1;
    const struct argument arguments[] = {{"--clients", .number = &bench.client_count},
                                         {"--documents", .number = &bench.document_count},
                                         {"--rounds", .number = &bench.rounds},
                                         {"--readers", .number = &bench.readers},
                                         {"--seed", .number = &seed},
                                         {0}};
    arguments_take(argc, argv, arguments);
    if (bench.client_count < 1 || bench.client_count > CLIENTS_MAX || bench.document_count < 2 || bench.rounds < 1)
        arguments_refuse(argv, arguments, "at least one client, at most 1,000; two documents and one round", NULL);
    printf("%llu clients, %llu documents, %llu %% of the transactions only read; per 1,000 rounds:\n",
           (unsigned long long)bench.client_count, (unsigned long long)bench.document_count,
           (unsigned long long)bench.readers);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        measure(&bench, &ways[i], seed);
    return 0;
}
