/* SPDX-License-Identifier: Apache-2.0 */
#include "reply.h"

#include <inttypes.h>

#include "store/view.h"

static void print_problem(const struct problem *problem, struct buf *text)
{
    for (; problem != NULL && problem->type != PROBLEM_NONE; problem = problem->caused_by)
        buf_printf(text, " %s %d %.*s: %.*s {%.*s}", problem_name(problem->type), problem_status(problem),
                   SLICE_ARG(problem->name), SLICE_ARG(problem->reason), SLICE_ARG(problem->details));
}

static void print_results(const struct write_command *write, struct buf *text)
{
    buf_printf(text, " rolled back %d\n", write->rolled_back);
    for (size_t i = 0; write->results != NULL && i < write->item_count; i++) {
        const struct write_result *result = &write->results[i];
        buf_printf(text, "  %d %d %d %.*s %.*s %.*s %u v%" PRId64 " #%" PRId64 " %.*s %.*s", result->outcome,
                   result->conflict, result->script_long, SLICE_ARG(result->index), SLICE_ARG(result->type),
                   SLICE_ARG(result->index_uuid), result->shard_count, result->version, result->seq_no,
                   SLICE_ARG(result->routing), SLICE_ARG(result->source));
        print_problem(&result->problem, text);
        buf_lit(text, "\n");
    }
}

static void print_written(void *context, struct slice key, struct slice value)
{
    buf_printf(context, " %016" PRIx64, slice_hash(key) ^ slice_hash(value) * 3);
}

static void print_read(const struct txn_lock_command *lock, struct buf *text)
{
    buf_printf(text, " at %" PRIu64, lock->read_ts);
    for (int space = 0; lock->overlay != NULL && space < SPACE_COUNT; space++)
        overlay_each(lock->overlay, (enum store_space)space, print_written, text);
}

static void print_missing(const struct lock_command *lock, struct buf *text)
{
    for (size_t i = 0; lock->index_missing != NULL && i < lock->target_count; i++)
        buf_printf(text, " %d", lock->index_missing[i]);
}

static void print_outputs(const struct command *command, struct buf *text)
{
    switch (command->type) {
    case COMMAND_WRITE: print_results(&command->write, text); break;
    case COMMAND_SESSION_OPEN:
    case COMMAND_SESSION_KEEPALIVE:
    case COMMAND_SESSION_ATTACH:
    case COMMAND_SESSION_CLOSE:
        buf_printf(text, " %.*s until %" PRIu64 " number %" PRIu64, SLICE_ARG(command->session.id),
                   command->session.expires_at, command->session.number);
        break;
    case COMMAND_LOCK:
    case COMMAND_UNLOCK:
        buf_printf(text, " %" PRIu64 " %" PRIu64 " us %zu %zu of %zu", command->lock.fencing_token,
                   command->lock.waited_us, command->lock.queue_position, command->lock.released, command->lock.done);
        print_missing(&command->lock, text);
        break;
    case COMMAND_TXN_BEGIN:
    case COMMAND_TXN_COMMIT:
        buf_printf(text, " %" PRIu64 " %" PRIu64 " %" PRIu64, command->txn.number, command->txn.commit_ts,
                   command->txn.changes);
        break;
    case COMMAND_TXN_LOCK:
        print_read(&command->txn_lock, text);
        if (command->problem.type ==
            PROBLEM_NONE) /* else it has no meaning: a wait may be of before the state was saved */
            buf_printf(text, " %zu done", command->txn_lock.done);
        break;
    case COMMAND_RENAME:
        buf_printf(text, " %d %d %" PRId64 "%s", command->rename.directory, command->rename.document,
                   command->rename.seq_no, command->rename.unknown ? " unknown" : "");
        break;
    case COMMAND_PLACES_WATCH: buf_printf(text, " %d %d", command->places.empty[0], command->places.empty[1]); break;
    case COMMAND_JOIN: buf_printf(text, " host %" PRIu64, command->join.number); break;
    case COMMAND_MAINTAIN: buf_printf(text, " %zu", command->maintain.removed); break;
    default: break;
    }
}

void reply_print(const struct command *command, struct buf *text)
{
    buf_printf(text, "%s #%" PRIu64 " @%" PRIu64 ":", command_name(command->type), command->request, command->ts);
    print_problem(&command->problem, text);
    print_outputs(command, text);
    buf_lit(text, "\n");
}
