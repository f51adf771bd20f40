/* SPDX-License-Identifier: Apache-2.0 */
/* Replays commits in the order of their timestamps; see commit_order.h. */
#include "commit_order.h"

#include <stdlib.h>
#include <string.h>

size_t commit_order_begin(struct commit_order *commit_order, uint32_t txn, uint64_t step)
{
    if (commit_order->count == commit_order->capacity) {
        commit_order->capacity = commit_order->capacity == 0 ? 256 : commit_order->capacity * 2;
        commit_order->records = realloc(commit_order->records, commit_order->capacity * sizeof(*commit_order->records));
    }
    commit_order->records[commit_order->count] =
        (struct commit_order_record){.txn = txn, .began = step, .began_at = commit_order->now};
    return commit_order->count++;
}

size_t commit_order_find(const struct commit_order *commit_order, uint32_t txn)
{
    for (size_t i = commit_order->count; i-- > 0;)
        if (commit_order->records[i].txn == txn)
            return commit_order->records[i].ended_at == 0 ? i : SIZE_MAX;
    return SIZE_MAX;
}

void commit_order_add(struct commit_order *commit_order, size_t record, enum commit_order_kind kind, int doc, int value)
{
    struct commit_order_record *to = &commit_order->records[record];

    if (to->count == to->capacity) {
        to->capacity = to->capacity == 0 ? 4 : to->capacity * 2;
        to->events = realloc(to->events, to->capacity * sizeof(*to->events));
    }
    to->events[to->count++] =
        (struct commit_order_event){commit_order->now, commit_order->op, (uint8_t)kind, (uint8_t)doc, (int32_t)value};
}

bool commit_order_has(const struct commit_order *commit_order, size_t record, uint64_t op)
{
    const struct commit_order_record *in = &commit_order->records[record];

    for (size_t i = 0; i < in->count; i++)
        if (in->events[i].op == op)
            return true;
    return false;
}

void commit_order_commit(struct commit_order *commit_order, size_t record, uint64_t ts, uint64_t step)
{
    commit_order->records[record].ts = ts;
    commit_order->records[record].answered = step;
    commit_order->records[record].ended_at = commit_order->now;
}

void commit_order_rollback(struct commit_order *commit_order, size_t record)
{
    commit_order->records[record].ended_at = commit_order->now;
}

void commit_order_crash(struct commit_order *commit_order, uint64_t ts)
{
    size_t kept = 0;

    for (size_t i = 0; i < commit_order->count; i++) {
        struct commit_order_record record = commit_order->records[i];
        if (record.began_at > ts) {
            free(record.events);
            continue;
        }
        if (record.ended_at > ts)
            record.ts = record.ended_at = 0;
        while (record.count > 0 && record.events[record.count - 1].at > ts)
            record.count--;
        commit_order->records[kept++] = record;
    }
    commit_order->count = kept;
    commit_order->now = ts;
}

/* By timestamp; of equal ones a snapshot reader follows the writer. */
static int compare_records(const void *a, const void *b)
{
    const struct commit_order_record *x = a, *y = b;

    if (x->ts != y->ts)
        return x->ts < y->ts ? -1 : 1;
    return (int)x->snapshot - (int)y->snapshot;
}

static void rename_all(const struct commit_order *commit_order, const struct commit_order_event *event,
                       int32_t *documents)
{
    int from = event->value / COMMIT_ORDER_DIRS, to = event->value % COMMIT_ORDER_DIRS;

    for (int i = 0; i < commit_order->index_docs; i++) {
        int dir = documents[i] < 0 ? -1 : documents[i] % COMMIT_ORDER_DIRS - 1;
        if (dir >= 0 && commit_order->is_within(from, dir))
            documents[i] += commit_order->moved(dir, from, to) - dir;
    }
}

static bool replay(const struct commit_order *commit_order, const struct commit_order_record *record,
                   int32_t *documents)
{
    for (size_t i = 0; i < record->count; i++) {
        const struct commit_order_event *event = &record->events[i];
        int32_t *document = &documents[event->doc];
        switch (event->kind) {
        case COMMIT_ORDER_READ:
            if (*document != event->value)
                return false;
            break;
        case COMMIT_ORDER_OUTSIDE:
            if (*document >= 0 && commit_order->is_within(event->value, *document % COMMIT_ORDER_DIRS - 1))
                return false;
            break;
        case COMMIT_ORDER_SET: *document = event->value; break;
        case COMMIT_ORDER_RENAME: rename_all(commit_order, event, document); break;
        default:
            *document = event->value / COMMIT_ORDER_DIRS * COMMIT_ORDER_DIRS + *document % COMMIT_ORDER_DIRS;
            break;
        }
    }
    return true;
}

/* Whether a record precedes one that was acknowledged before it began. Snapshot readers may. */
static bool real_time_holds(const struct commit_order *commit_order, size_t *ret_record)
{
    uint64_t answered = UINT64_MAX;

    for (size_t i = commit_order->count; i-- > 0;) {
        const struct commit_order_record *record = &commit_order->records[i];
        if (record->ts == 0 || record->snapshot)
            continue;
        *ret_record = i;
        if (answered < record->began)
            return false;
        answered = record->answered < answered ? record->answered : answered;
    }
    return true;
}

const char *commit_order_check(struct commit_order *commit_order, size_t *ret_record)
{
    int32_t documents[COMMIT_ORDER_DOCS];

    for (int i = 0; i < COMMIT_ORDER_DOCS; i++)
        documents[i] = -1;
    if (commit_order->count > 1)
        qsort(commit_order->records, commit_order->count, sizeof(*commit_order->records), compare_records);
    for (size_t i = 0; i < commit_order->count; i++) {
        *ret_record = i;
        if (commit_order->records[i].ts != 0 && !replay(commit_order, &commit_order->records[i], documents))
            return "a read found something else than the commits before it left";
    }
    return real_time_holds(commit_order, ret_record) ? NULL
                                                     : "a commit stands before one that was answered before it began";
}

void commit_order_free(struct commit_order *commit_order)
{
    for (size_t i = 0; i < commit_order->count; i++)
        free(commit_order->records[i].events);
    free(commit_order->records);
}
