/* SPDX-License-Identifier: Apache-2.0 */
/* The interface's calls: what they check, whatever the implementation. */
#include "log/log.h"

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
    REQUIRE(r == 0 && before <= newest.position + 1);
    return log->functions->trim(log, before);
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
