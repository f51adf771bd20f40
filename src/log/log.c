/* SPDX-License-Identifier: Apache-2.0 */
/* The interface's calls: what they check, whatever the implementation. */
#include "log/log_shared.h"

#include <string.h>

#include "base/check.h"

int log_append(struct log *log, const struct slice *parts, size_t count, log_position *ret_position)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += parts[i].len;
    REQUIRE(len > 0);
    return log->functions->append(log, parts, count, ret_position);
}

int log_sync(struct log *log, log_position position)
{
    return log->functions->sync(log, position);
}

void log_head(struct log *log, struct log_head *ret_head)
{
    log->functions->head(log, ret_head);
    ENSURE(ret_head->durable <= ret_head->appended && ret_head->oldest <= ret_head->appended + 1);
}

int log_lineage(struct log *log, log_position position, struct log_lineage *ret_lineage)
{
    *ret_lineage = (struct log_lineage){.chain = 0};
    return log->functions->lineage == NULL ? 0 : log->functions->lineage(log, position, ret_lineage);
}

bool log_lineage_fits(const struct log_lineage *a, const struct log_lineage *b)
{
    static const char unknown[LOG_IDENTITY_BYTES];
    if (memcmp(a->identity, unknown, sizeof unknown) == 0 || memcmp(b->identity, unknown, sizeof unknown) == 0)
        return true;
    return memcmp(a->identity, b->identity, sizeof unknown) == 0 &&
           (a->chain == 0 || b->chain == 0 || a->chain == b->chain);
}

int log_follow(struct log *log, log_position from, struct log_cursor **ret_cursor)
{
    REQUIRE(from > 0);
    return log->functions->follow(log, from, ret_cursor);
}

int log_next(struct log_cursor *cursor, struct log_entry *ret_entry)
{
    return cursor->functions->next(cursor, ret_entry);
}

void log_unfollow(struct log_cursor *cursor)
{
    if (cursor != NULL)
        cursor->functions->unfollow(cursor);
}

int log_trim(struct log *log, log_position before)
{
    char place[LOG_PLACE_MAX];
    struct log_checkpoint newest;
    int r = log->functions->get_checkpoint(log, 0, place, &newest);
    if (r < 0)
        return tl_trace(r);
    if (r == LOG_AWAY)
        return LOG_AWAY;
    REQUIRE(r == 0 && before <= newest.position + 1);
    return log->functions->trim(log, before);
}

int log_prepare(struct log *log)
{
    return log->functions->prepare(log);
}

int log_shrink(struct log *log)
{
    return log->functions->shrink(log);
}

int log_put_checkpoint(struct log *log, const struct log_checkpoint *checkpoint)
{
    REQUIRE(checkpoint->place.len <= LOG_PLACE_MAX);
    return log->functions->put_checkpoint(log, checkpoint);
}

int log_get_checkpoint(struct log *log, unsigned back, char *buffer, struct log_checkpoint *ret_checkpoint)
{
    REQUIRE(back < 2);
    return log->functions->get_checkpoint(log, back, buffer, ret_checkpoint);
}

int log_seal(struct log *log)
{
    return log->functions->seal(log);
}

void log_close(struct log *log)
{
    if (log != NULL)
        log->functions->close(log);
}

/* --- Where hosts share it --------------------------------------------------------------------------------------------- */

bool log_is_host_name(struct slice name)
{
    if (name.len == 0 || name.len > LOG_HOST_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
              c == '-'))
            return false;
    }
    return true;
}

int log_join(struct log *log, struct slice about, uint64_t until, uint64_t *ret_life)
{
    REQUIRE(about.len <= LOG_ABOUT_MAX);
    return log->shared->join(log, about, until, ret_life);
}

int log_leave(struct log *log, uint64_t until)
{
    return log->shared->leave(log, until);
}

int log_expel(struct log *log, struct slice name, uint64_t life, uint64_t until)
{
    REQUIRE(log_is_host_name(name) && life > 0);
    return log->shared->expel(log, name, life, until);
}

void log_lease(struct log *log, struct log_lease *ret_lease)
{
    log->shared->lease(log, ret_lease);
}

int log_list_hosts(struct log *log, uint64_t version, uint64_t until, struct log_hosts **ret_hosts)
{
    return log->shared->list_hosts(log, version, until, ret_hosts);
}

int log_submit(struct log *log, const struct slice *parts, size_t count, uint64_t until, uint64_t *ret_number)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += parts[i].len;
    REQUIRE(len > 0 && len <= LOG_SHARED_ENTRY_MAX);
    return log->shared->submit(log, parts, count, until, ret_number);
}

int log_answer(struct log *log, uint64_t number, uint64_t until, log_position *ret_position)
{
    return log->shared->answer(log, number, until, ret_position);
}

int log_await(struct log_cursor *cursor, uint64_t until)
{
    return cursor->shared->await(cursor, until);
}

void log_interrupt(struct log_cursor *cursor)
{
    cursor->shared->interrupt(cursor);
}

log_position log_passed(const struct log_cursor *cursor)
{
    return cursor->shared->passed(cursor);
}

int log_ask_head(struct log *log, uint64_t until, log_position *ret_position)
{
    return log->shared->ask_head(log, until, ret_position);
}

int log_read_genesis(struct log *log, uint64_t until, struct buf *bytes, log_position *ret_position)
{
    return log->shared->read_genesis(log, until, bytes, ret_position);
}

int log_create_genesis(struct log *log, struct slice bytes, uint64_t until)
{
    REQUIRE(bytes.len > 0 && bytes.len <= LOG_GENESIS_MAX);
    return log->shared->create_genesis(log, bytes, until);
}

int log_list_checkpoints(struct log *log, uint64_t until, struct log_known_hosts **ret_hosts)
{
    return log->shared->list_checkpoints(log, until, ret_hosts);
}

int log_forget_host(struct log *log, struct slice name, uint64_t until)
{
    REQUIRE(log_is_host_name(name));
    return log->shared->forget_host(log, name, until);
}

void log_space(struct log *log, struct log_space *ret_space)
{
    log->shared->space(log, ret_space);
}

log_position log_trim_bound(const struct log_known_hosts *known, uint64_t catch_up, bool tight)
{
    const struct log_checkpoint *newest = NULL, *second = NULL;
    log_position bound;
    for (size_t i = 0; i < known->count; i++) {
        const struct log_checkpoint *checkpoint = &known->hosts[i].newest;
        if (newest == NULL || checkpoint->position > newest->position) {
            second = newest;
            newest = checkpoint;
        } else if (second == NULL || checkpoint->position > second->position) {
            second = checkpoint;
        }
    }
    if (newest == NULL)
        return 0;
    bound = second == NULL ? newest->position : second->position;
    for (size_t i = 0; i < known->count && !tight; i++) {
        const struct log_checkpoint *checkpoint = &known->hosts[i].newest;
        if (checkpoint->position < bound && newest->log_bytes - checkpoint->log_bytes <= catch_up)
            bound = checkpoint->position;
    }
    return bound;
}
