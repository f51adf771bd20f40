/* SPDX-License-Identifier: Apache-2.0 */
/* Rows and their changes; see frame.h. */
#include "api/page/frame.h"

#include <inttypes.h>
#include <stdlib.h>

void frame_section_deinit(struct frame_section *section)
{
    arena_deinit(&section->arena);
    *section = (struct frame_section){.arena = ARENA_INIT};
}

void frame_add(struct frame_section *section, struct slice key, struct slice text)
{
    section->rows =
        arena_grow(&section->arena, section->rows, section->count, &section->capacity, sizeof *section->rows);
    section->rows[section->count++] =
        (struct frame_row){arena_copy(&section->arena, key), arena_copy(&section->arena, text), 0, true};
}

static int by_key(const void *a, const void *b)
{
    const struct frame_row *left = a, *right = b;
    return slice_compare(left->key, right->key);
}

static void sort_rows(struct frame_section *section)
{
    size_t kept = 0;
    if (section->count > 1)
        qsort(section->rows, section->count, sizeof *section->rows, by_key);
    for (size_t i = 0; i < section->count; i++)
        if (kept == 0 || !slice_equal(section->rows[kept - 1].key, section->rows[i].key))
            section->rows[kept++] = section->rows[i];
    section->count = kept;
}

void frame_take(struct frame_section *section, struct frame_section *next)
{
    size_t old = 0;
    sort_rows(next);
    next->last_number = section->last_number;
    next->dropped = arena_alloc(&next->arena, (section->count + 1) * sizeof *next->dropped);
    for (size_t i = 0; i < next->count; i++) {
        struct frame_row *row = &next->rows[i];
        while (old < section->count && slice_compare(section->rows[old].key, row->key) < 0)
            next->dropped[next->dropped_count++] = section->rows[old++].number;
        bool known = old < section->count && slice_equal(section->rows[old].key, row->key);
        row->number = known ? section->rows[old].number : ++next->last_number;
        row->fresh = !known || !slice_equal(section->rows[old].text, row->text);
        old += known;
    }
    while (old < section->count)
        next->dropped[next->dropped_count++] = section->rows[old++].number;
    arena_deinit(&section->arena);
    *section = *next;
    *next = (struct frame_section){.arena = ARENA_INIT};
}

bool frame_changed(const struct frame_section *section)
{
    bool changed = section->dropped_count > 0;
    for (size_t i = 0; i < section->count && !changed; i++)
        changed = section->rows[i].fresh;
    return changed;
}

void frame_write(const struct frame_section *section, bool all, struct buf *to)
{
    const char *between = "";
    buf_lit(to, "{\"put\":[");
    for (size_t i = 0; i < section->count; i++) {
        if (!all && !section->rows[i].fresh)
            continue;
        buf_printf(to, "%s{\"row\":%" PRIu64 ",", between, section->rows[i].number);
        buf_slice(to, section->rows[i].text);
        buf_byte(to, '}');
        between = ",";
    }
    buf_lit(to, "],\"drop\":[");
    for (size_t i = 0; i < section->dropped_count && !all; i++)
        buf_printf(to, "%s%" PRIu64, i > 0 ? "," : "", section->dropped[i]);
    buf_lit(to, "]}");
}
