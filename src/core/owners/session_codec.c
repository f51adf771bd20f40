/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codec of sessions, for checkpoints; owners_codec.h. The locks of a session and its transactions
 * are in other sections.
 */
#include "base/check.h"
#include "core/command/codec.h"
#include "core/command/command_codec.h"
#include "core/command/section.h"
#include "core/documents/action.h"
#include "core/owners/owners_codec.h"
#include "core/session/deadline.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/unit/unit.h"

enum { SESSION_END_COUNT = SESSION_END_DETACHED + 1 };

enum { COUNTER_BYTES_MIN = 3 };

static void codec_counters(struct codec *codec, struct session *session)
{
    size_t count = session->ephemeral_counter_count, sum = 0;

    codec_array(codec, NULL, &count, 0, COUNTER_BYTES_MIN);
    if (codec_reads(codec) && count > 0)
        session->ephemeral_counters = mem_zalloc(count * sizeof *session->ephemeral_counters);
    session->ephemeral_counter_count = count;
    for (size_t i = 0; i < count; i++) {
        struct ephemeral_counter *counter = &session->ephemeral_counters[i];
        uint64_t index = counter->index, type = counter->type;
        codec_number(codec, &index);
        codec_number(codec, &type);
        codec_size(codec, &counter->count);
        codec_require(codec, index <= UINT32_MAX && type <= UINT16_MAX && counter->count <= SIZE_MAX - sum);
        counter->index = (uint32_t)index;
        counter->type = (uint16_t)type;
        sum += counter->count;
    }
    if (codec_reads(codec))
        session->ephemeral_count = sum; /* session__find_orphans() moves orphans to orphan_count */
}

/* The progress of a session's cleanup. */
static void codec_progress(struct codec *codec, struct session *session)
{
    REQUIRE(session->cleanup_pending);
    struct slice reason = buf_as_slice(&session->first_failure);

    codec_number(codec, &session->script_steps_left);
    codec_size(codec, &session->actions_processed);
    codec_size(codec, &session->actions_done);
    codec_size(codec, &session->actions_deferred);
    codec_size(codec, &session->actions_set_aside);
    codec_bytes(codec, &reason);
    codec_require(codec, session->actions_processed <= SESSION_ACTIONS_MAX &&
                             session->actions_done <= session->actions_processed &&
                             session->actions_deferred <= session->actions_processed &&
                             session->actions_set_aside <= session->actions_processed);
    if (codec_reads(codec))
        buf_slice(&session->first_failure, reason);
}

/* The termination of a session; only flags if it is not terminating. */
static void codec_end(struct codec *codec, struct core *core, struct session *session)
{
    static const size_t flag_counts[SECTIONS_VERSION + 1] = {0, 3, 3, 3, 3, 5, 5, 6, 6, 6, 6, 6, 6, 6,
                                                             6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6};
    bool terminating = session->terminating, has_close = session->close_command != NULL;
    bool *const flags[] = {
        &terminating,      &session->locks_released, &has_close, &session->cleanup_pending, &session->actions_finished,
        &session->recorded};
    struct slice event = buf_as_slice(&session->end_report);

    if (codec_reads(codec))
        session->recorded = true; /* older versions kept its record to the end */
    codec_flags(codec, flags, flag_counts[codec->version]);
    codec_require(codec, terminating || session->recorded);
    codec_require(codec, terminating || (!session->locks_released && !has_close && !session->cleanup_pending));
    codec_require(codec, !session->locks_released || (!has_close && !session->cleanup_pending));
    codec_require(codec, session->cleanup_pending || !session->actions_finished);
    if (!terminating)
        return;
    session->end_kind = (enum session_end)codec_enum(codec, session->end_kind, SESSION_END_COUNT);
    codec_bytes(codec, &event);
    codec_size(codec, &session->removed_count);
    codec_size(codec, &session->deferred_count);
    if (codec_reads(codec)) {
        session__set_terminating(core, session);
        buf_slice(&session->end_report, event);
    }
    if (session->cleanup_pending)
        codec_progress(codec, session);
    if (has_close)
        codec_command(codec, &session->close_command);
    codec_require(codec, !has_close || codec->bad || session->close_command->type == COMMAND_SESSION_CLOSE);
}

static struct session *make_session(struct codec *codec, struct core *core)
{
    struct slice id = SLICE_NONE, name = SLICE_NONE;

    codec_bytes(codec, &id);
    codec_bytes(codec, &name);
    codec_require(codec, id.len > 0 && owners_session(core->owners, id) == NULL);
    if (codec->bad)
        return NULL;
    struct session *session = session__make(core, id, name, 0, 0);
    session__register(core, session);
    return session;
}

/* `in_piece`: without the lease, which each keepalive changes. */
static void codec_fields(struct codec *codec, struct core *core, struct session *session, bool in_piece)
{
    struct slice actions = session->on_expire;

    codec_number(codec, &session->ttl_us);
    codec_number(codec, &session->created);
    codec_number(codec, &session->attachment);
    codec_slice(codec, &actions);
    codec_require(codec, codec->bad || actions.len == 0 || action_all_valid(actions, SIZE_MAX));
    if (!in_piece)
        codec_deadline(codec, &core->owners->leases, &session->lease);
    codec_counters(codec, session);
    if (codec_reads(codec)) {
        session->on_expire = actions.data == NULL ? SLICE_NONE : mem_dup_slice(actions);
        core->owners->action_bytes += actions.len;
    }
    codec_end(codec, core, session);
    codec_require(codec, !session->terminating || session->lease.at == TL_TS_MAX);
}

void codec_session_fields(struct codec *codec, struct core *core, struct session *session, bool in_piece)
{
    REQUIRE(codec_reads(codec) == (session == NULL));
    if (codec_reads(codec)) {
        session = make_session(codec, core);
    } else {
        codec_bytes(codec, &session->id);
        codec_bytes(codec, &session->name);
    }
    if (session != NULL)
        codec_fields(codec, core, session, in_piece);
}
