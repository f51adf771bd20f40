/* SPDX-License-Identifier: Apache-2.0 */
/* Replaying in witness order; see commit_order.h. */
#include "commit_order.h"

#include <stdlib.h>
#include <string.h>

size_t witness_begin(struct witness *witness, uint32_t txn, uint64_t step)
{
    if (witness->count == witness->capacity) {
        witness->capacity = witness->capacity == 0 ? 256 : witness->capacity * 2;
        witness->records = realloc(witness->records, witness->capacity * sizeof(*witness->records));
    }
    witness->records[witness->count] = (struct witness_record){.txn = txn, .began = step};
    return witness->count++;
}

size_t witness_find(const struct witness *witness, uint32_t txn)
{
    for (size_t i = witness->count; i-- > 0;)
        if (witness->records[i].txn == txn)
            return witness->records[i].ts == 0 ? i : SIZE_MAX;
    return SIZE_MAX;
}

void witness_tell(struct witness *witness, size_t record, enum witness_kind kind, int doc, int value)
{
    struct witness_record *to = &witness->records[record];

    if (to->count == to->capacity) {
        to->capacity = to->capacity == 0 ? 4 : to->capacity * 2;
        to->events = realloc(to->events, to->capacity * sizeof(*to->events));
    }
    to->events[to->count++] = (struct witness_event){(uint8_t)kind, (uint8_t)doc, (int32_t)value};
}

void witness_commit(struct witness *witness, size_t record, uint64_t ts, uint64_t step)
{
    witness->records[record].ts = ts;
    witness->records[record].answered = step;
}

void witness_forget(struct witness *witness, size_t record)
{
    free(witness->records[record].events);
    memmove(&witness->records[record], &witness->records[record + 1],
            (--witness->count - record) * sizeof(*witness->records));
}

void witness_crash(struct witness *witness, uint64_t ts)
{
    size_t kept = 0;

    for (size_t i = 0; i < witness->count; i++)
        if (witness->records[i].ts == 0 || witness->records[i].ts > ts)
            free(witness->records[i].events);
        else
            witness->records[kept++] = witness->records[i];
    witness->count = kept;
}

/* By timestamp; at the same one the reader of a snapshot follows the writer. */
static int compare_records(const void *a, const void *b)
{
    const struct witness_record *x = a, *y = b;

    if (x->ts != y->ts)
        return x->ts < y->ts ? -1 : 1;
    return (int)x->snapshot - (int)y->snapshot;
}

static void rename_all(const struct witness *witness, const struct witness_event *event, int32_t *documents)
{
    int from = event->value / WITNESS_DIRS, to = event->value % WITNESS_DIRS;

    for (int i = 0; i < witness->index_docs; i++) {
        int dir = documents[i] < 0 ? -1 : documents[i] % WITNESS_DIRS - 1;
        if (dir >= 0 && witness->lies_in(from, dir))
            documents[i] += witness->moved(dir, from, to) - dir;
    }
}

static bool replay(const struct witness *witness, const struct witness_record *record, int32_t *documents)
{
    for (size_t i = 0; i < record->count; i++) {
        const struct witness_event *event = &record->events[i];
        int32_t *document = &documents[event->doc];
        switch (event->kind) {
        case WITNESS_READ:
            if (*document != event->value)
                return false;
            break;
        case WITNESS_OUTSIDE:
            if (*document >= 0 && witness->lies_in(event->value, *document % WITNESS_DIRS - 1))
                return false;
            break;
        case WITNESS_SET: *document = event->value; break;
        case WITNESS_RENAME: rename_all(witness, event, document); break;
        default: *document = event->value / WITNESS_DIRS * WITNESS_DIRS + *document % WITNESS_DIRS; break;
        }
    }
    return true;
}

/* Whether any stands before one that was answered before it began. Readers of snapshots may look back. */
static bool real_time_holds(const struct witness *witness, size_t *ret_record)
{
    uint64_t answered = UINT64_MAX;

    for (size_t i = witness->count; i-- > 0;) {
        const struct witness_record *record = &witness->records[i];
        if (record->ts == 0 || record->snapshot)
            continue;
        *ret_record = i;
        if (answered < record->began)
            return false;
        answered = record->answered < answered ? record->answered : answered;
    }
    return true;
}

const char *witness_check(struct witness *witness, size_t *ret_record)
{
    int32_t documents[WITNESS_DOCS];

    for (int i = 0; i < WITNESS_DOCS; i++)
        documents[i] = -1;
    if (witness->count > 1)
        qsort(witness->records, witness->count, sizeof(*witness->records), compare_records);
    for (size_t i = 0; i < witness->count; i++) {
        *ret_record = i;
        if (witness->records[i].ts != 0 && !replay(witness, &witness->records[i], documents))
            return "a read found something else than the commits before it left";
    }
    return real_time_holds(witness, ret_record) ? NULL : "a commit stands before one that was answered before it began";
}

void witness_free(struct witness *witness)
{
    for (size_t i = 0; i < witness->count; i++)
        free(witness->records[i].events);
    free(witness->records);
}
