/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows that viewers see: the current ones, which of them are new, and which were dropped
 * (events.h). Plain data, used by one thread at a time.
 */
#ifndef TL_API_FRAME_H
#define TL_API_FRAME_H

#include "base/arena.h"
#include "base/buf.h"

struct frame_row {
    struct slice key;  /* by which it is the same row the next time; unique */
    struct slice text; /* members of a JSON object, without braces; not empty */
    uint64_t number;   /* of the row in frames */
    bool fresh;        /* the row or its text is new since the previous section */
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
 * The rows of `next` replace those of `section`, sorted by their keys: a row that existed keeps its
 * number, and `fresh` and `dropped` are the changes. Of rows with one key the first counts. `next`
 * is empty afterwards.
 */
void frame_take(struct frame_section *section, struct frame_section *next);

/* Returns: whether the last frame_take() changed anything. */
bool frame_changed(const struct frame_section *section);

/* Appends {"put": […], "drop": […]}: the changes, or with `all` all rows. */
void frame_write(const struct frame_section *section, bool all, struct buf *to);

#endif
