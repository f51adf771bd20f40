/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that are told to who looks on: what there is by now, what of it is new, and what has gone since (events.h). Plain data, of one thread at a time.
 */
#ifndef TL_API_FRAME_H
#define TL_API_FRAME_H

#include "base/arena.h"
#include "base/buf.h"

struct frame_row {
    struct slice key;  /* by which it is the same row the next time; unique */
    struct slice text; /* members of a JSON object, without braces; not empty */
    uint64_t number;   /* under which it is told */
    bool fresh;        /* as such, or its text is, since the section before */
};

/* One list of them. All zero is an empty one. */
struct frame_section {
    struct arena arena; /* of the rows */
    struct frame_row *rows;
    size_t count, capacity;
    uint64_t last_number;
    uint64_t *dropped; /* the numbers of those that have gone, in the arena */
    size_t dropped_count;
};

/* Frees it. */
void frame_section_deinit(struct frame_section *section);

/* Adds a row to one that is being put together; key and text are copied. */
void frame_add(struct frame_section *section, struct slice key, struct slice text);

/*
 * The rows of `next` take the place of those of `section`, sorted by their keys: who was there keeps its number, and `fresh` and `dropped` say what has
 * changed. Of rows with one key the first counts. `next` is empty afterwards.
 */
void frame_take(struct frame_section *section, struct frame_section *next);

/* Returns: whether the last frame_take() changed anything. */
bool frame_changed(const struct frame_section *section);

/* Appends {"put": […], "drop": […]}: what has changed, or with `all` all there is. */
void frame_write(const struct frame_section *section, bool all, struct buf *to);

#endif
