/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of the interface: they check their arguments and pass to the implementation. */
#include "cmdlog/cmdlog_shared.h"

#include <string.h>

#include "base/check.h"

int cmdlog_append(struct cmdlog *log, const struct slice *parts, size_t count, cmdlog_position *ret_position)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += parts[i].len;
    REQUIRE(len > 0);
    return log->functions->append(log, parts, count, ret_position);
}

int cmdlog_sync(struct cmdlog *log, cmdlog_position position)
{
    return log->functions->sync(log, position);
}

void cmdlog_head(struct cmdlog *log, struct cmdlog_head *ret_head)
{
    log->functions->head(log, ret_head);
    ENSURE(ret_head->durable <= ret_head->appended && ret_head->oldest <= ret_head->appended + 1);
}

int cmdlog_lineage(struct cmdlog *log, cmdlog_position position, struct cmdlog_lineage *ret_lineage)
{
    *ret_lineage = (struct cmdlog_lineage){.history_crc = 0};
    return log->functions->lineage == NULL ? 0 : log->functions->lineage(log, position, ret_lineage);
}

bool cmdlog_lineage_fits(const struct cmdlog_lineage *a, const struct cmdlog_lineage *b)
{
    static const char unknown[CMDLOG_IDENTITY_BYTES];
    if (memcmp(a->identity, unknown, sizeof unknown) == 0 || memcmp(b->identity, unknown, sizeof unknown) == 0)
        return true;
    return memcmp(a->identity, b->identity, sizeof unknown) == 0 &&
           (a->history_crc == 0 || b->history_crc == 0 || a->history_crc == b->history_crc);
}

int cmdlog_follow(struct cmdlog *log, cmdlog_position from, struct cmdlog_cursor **ret_cursor)
{
    REQUIRE(from > 0);
    return log->functions->follow(log, from, ret_cursor);
}

int cmdlog_next(struct cmdlog_cursor *cursor, struct cmdlog_entry *ret_entry)
{
    return cursor->functions->next(cursor, ret_entry);
}

uint64_t cmdlog_unread_bytes(struct cmdlog_cursor *cursor)
{
    return cursor->functions->unread_bytes == NULL ? 0 : cursor->functions->unread_bytes(cursor);
}

void cmdlog_unfollow(struct cmdlog_cursor *cursor)
{
    if (cursor != NULL)
        cursor->functions->unfollow(cursor);
}

int cmdlog_trim(struct cmdlog *log, cmdlog_position before)
{
    char place[CMDLOG_LOCATOR_MAX];
    struct cmdlog_checkpoint newest;
    int r = log->functions->get_checkpoint(log, 0, place, &newest);
    if (r < 0)
        return tl_trace(r);
    if (r == CMDLOG_UNREACHABLE)
        return CMDLOG_UNREACHABLE;
    if (r == CMDLOG_NOT_FOUND && log->shared != NULL) /* other hosts may forget this one at any time */
        return 0;
    REQUIRE(r == 0 && (log->shared != NULL || before <= newest.position + 1));
    if (before > newest.position + 1) /* it was forgotten and is known again, with an older one */
        before = newest.position + 1;
    return log->functions->trim(log, before);
}

int cmdlog_preallocate(struct cmdlog *log)
{
    return log->functions->preallocate(log);
}

int cmdlog_shrink(struct cmdlog *log)
{
    return log->functions->shrink(log);
}

int cmdlog_put_checkpoint(struct cmdlog *log, const struct cmdlog_checkpoint *checkpoint)
{
    REQUIRE(checkpoint->locator.len <= CMDLOG_LOCATOR_MAX);
    return log->functions->put_checkpoint(log, checkpoint);
}

int cmdlog_get_checkpoint(struct cmdlog *log, unsigned back, char *buffer, struct cmdlog_checkpoint *ret_checkpoint)
{
    REQUIRE(back < 2);
    return log->functions->get_checkpoint(log, back, buffer, ret_checkpoint);
}

int cmdlog_seal(struct cmdlog *log)
{
    return log->functions->seal(log);
}

void cmdlog_close(struct cmdlog *log)
{
    if (log != NULL)
        log->functions->close(log);
}

/* --- Shared logs -------------------------------------------------------------------------------------------------- */

struct slice cmdlog_copy_to_tail(char **tail, struct slice bytes)
{
    struct slice kept = slice_make(*tail, bytes.len);
    if (bytes.len > 0)
        memcpy(*tail, bytes.data, bytes.len);
    *tail += bytes.len;
    return kept;
}

bool cmdlog_is_host_name(struct slice name)
{
    if (name.len == 0 || name.len > CMDLOG_HOST_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
              c == '-'))
            return false;
    }
    return true;
}

int cmdlog_join(struct cmdlog *log, struct slice about, uint64_t until, uint64_t *ret_life)
{
    REQUIRE(about.len <= CMDLOG_ABOUT_MAX);
    return log->shared->join(log, about, until, ret_life);
}

int cmdlog_leave(struct cmdlog *log, uint64_t until)
{
    REQUIRE(log->shared != NULL);
    return log->shared->leave(log, until);
}

int cmdlog_expel(struct cmdlog *log, struct slice name, uint64_t life, uint64_t until)
{
    REQUIRE(cmdlog_is_host_name(name) && life > 0);
    return log->shared->expel(log, name, life, until);
}

void cmdlog_lease(struct cmdlog *log, struct cmdlog_lease *ret_lease)
{
    REQUIRE(log->shared != NULL);
    log->shared->lease(log, ret_lease);
}

int cmdlog_list_hosts(struct cmdlog *log, uint64_t version, uint64_t until, struct cmdlog_hosts **ret_hosts)
{
    REQUIRE(log->shared != NULL);
    return log->shared->list_hosts(log, version, until, ret_hosts);
}

int cmdlog_submit(struct cmdlog *log, const struct slice *parts, size_t count, uint64_t until, uint64_t *ret_number)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += parts[i].len;
    REQUIRE(len > 0 && len <= CMDLOG_SHARED_ENTRY_MAX);
    return log->shared->submit(log, parts, count, until, ret_number);
}

int cmdlog_await_slot(struct cmdlog *log, uint64_t until)
{
    REQUIRE(log->shared != NULL);
    return log->shared->await_slot(log, until);
}

int cmdlog_outcome(struct cmdlog *log, uint64_t number, uint64_t until, cmdlog_position *ret_position)
{
    REQUIRE(number > 0); /* 0: the entry was not submitted */
    return log->shared->outcome(log, number, until, ret_position);
}

int cmdlog_await(struct cmdlog_cursor *cursor, uint64_t until)
{
    REQUIRE(cursor->shared != NULL);
    return cursor->shared->await(cursor, until);
}

void cmdlog_interrupt(struct cmdlog_cursor *cursor)
{
    REQUIRE(cursor->shared != NULL);
    cursor->shared->interrupt(cursor);
}

cmdlog_position cmdlog_cursor_position(const struct cmdlog_cursor *cursor)
{
    REQUIRE(cursor->shared != NULL);
    return cursor->shared->cursor_position(cursor);
}

int cmdlog_read_head(struct cmdlog *log, uint64_t until, cmdlog_position *ret_position)
{
    REQUIRE(log->shared != NULL);
    return log->shared->read_head(log, until, ret_position);
}

int cmdlog_read_genesis(struct cmdlog *log, uint64_t until, struct buf *bytes, cmdlog_position *ret_position)
{
    REQUIRE(log->shared != NULL);
    return log->shared->read_genesis(log, until, bytes, ret_position);
}

int cmdlog_create_genesis(struct cmdlog *log, struct slice bytes, uint64_t until)
{
    REQUIRE(bytes.len > 0 && bytes.len <= CMDLOG_GENESIS_MAX);
    return log->shared->create_genesis(log, bytes, until);
}

int cmdlog_list_checkpoints(struct cmdlog *log, uint64_t until, struct cmdlog_known_hosts **ret_hosts)
{
    REQUIRE(log->shared != NULL);
    return log->shared->list_checkpoints(log, until, ret_hosts);
}

int cmdlog_forget_host(struct cmdlog *log, struct slice name, uint64_t until)
{
    REQUIRE(cmdlog_is_host_name(name));
    return log->shared->forget_host(log, name, until);
}

int cmdlog_halt(struct cmdlog *log, cmdlog_position position, uint64_t until)
{
    REQUIRE(position > 0);
    return log->shared->halt(log, position, until);
}

int cmdlog_resume(struct cmdlog *log, uint64_t until)
{
    REQUIRE(log->shared != NULL);
    return log->shared->halt(log, 0, until);
}

int cmdlog_skip(struct cmdlog *log, cmdlog_position position, uint64_t until, struct cmdlog_skip_refusal *ret_refusal)
{
    REQUIRE(position > 0);
    return log->shared->skip(log, position, until, ret_refusal);
}

int cmdlog_list_skips(struct cmdlog *log, uint64_t until, struct cmdlog_skips **ret_skips)
{
    REQUIRE(log->shared != NULL);
    return log->shared->list_skips(log, until, ret_skips);
}

bool cmdlog_is_skipped(const struct cmdlog_skips *skips, cmdlog_position position)
{
    for (size_t i = 0; skips != NULL && i < skips->count; i++)
        if (skips->positions[i] == position)
            return true;
    return false;
}

void cmdlog_space(struct cmdlog *log, struct cmdlog_space *ret_space)
{
    REQUIRE(log->shared != NULL);
    log->shared->space(log, ret_space);
}

cmdlog_position cmdlog_trim_bound(const struct cmdlog_known_hosts *known, uint64_t catch_up, bool tight)
{
    const struct cmdlog_checkpoint *newest = NULL, *second = NULL;
    cmdlog_position bound;
    for (size_t i = 0; i < known->count; i++) {
        const struct cmdlog_checkpoint *checkpoint = &known->hosts[i].newest;
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
        const struct cmdlog_checkpoint *checkpoint = &known->hosts[i].newest;
        uint64_t lag = newest->log_bytes > checkpoint->log_bytes ? newest->log_bytes - checkpoint->log_bytes : 0;
        if (checkpoint->position < bound && lag <= catch_up)
            bound = checkpoint->position;
    }
    ENSURE(bound <= newest->position); /* guarantee 5 */
    return bound;
}
