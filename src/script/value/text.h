/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts: Java strings. Immutable, UTF-16 in meaning; stored in one byte a unit where all are below 256.
 */
#ifndef TL_SCRIPT_TEXT_H
#define TL_SCRIPT_TEXT_H

#include "base/buf.h"
#include "script/value/run.h"

struct text {
    struct object object;
    uint32_t length; /* UTF-16 units */
    int32_t hash;    /* Java's, when `hashed` */
    bool wide;       /* units are 16 bit; else Latin-1 */
    bool hashed;
    union {
        uint8_t narrow[0];
        uint16_t units[0];
    } data; /* really `length` of them */
};

#define TEXT_LENGTH_MAX ((size_t)64 << 20)

static inline uint16_t text_at(const struct text *text, size_t index)
{
    return text->wide ? text->data.units[index] : text->data.narrow[index];
}

/* From UTF-8. Returns: NULL and a throwable when the budget is too small. */
struct text *text_new(struct run *run, struct slice utf8);
/* The same in an arena, for constants; the hash is computed at once, so that the text is never written to again. */
struct text *text_constant(struct arena *arena, struct slice utf8);

struct text *text_substring(struct run *run, struct text *text, size_t begin, size_t end);
struct text *text_concat(struct run *run, struct text *a, struct text *b);

int32_t text_hash(struct text *text);
/* The same in a run, charged when it is not known yet. */
static inline int32_t text_hash_of(struct run *run, struct text *text)
{
    if (!text->hashed)
        run_work(run, text->length);
    return text_hash(text);
}
bool text_equal(const struct text *a, const struct text *b);
bool text_is(const struct text *text, const char *ascii);
/* The same in a run, charged by what is compared. */
bool text_same(struct run *run, const struct text *a, const struct text *b);
/* Whether `part` stands in `text` at `at`, which may be any number. */
bool text_has_at(struct run *run, const struct text *text, const struct text *part, int64_t at);
/* Java's compareTo, charged by what is compared. Searching: text_search.h. */
int text_compare(struct run *run, const struct text *a, const struct text *b);

/* Units to be looked for one by one; however many, each look takes the same. */
struct text_set {
    const struct text *units;
    uint64_t *bits; /* NULL: few enough to be compared with */
};
bool text_set_init(struct text_set *set, struct run *run, const struct text *units);
static inline bool text_set_has(const struct text_set *set, uint16_t unit)
{
    bool has = set->bits != NULL && (set->bits[unit / 64] >> unit % 64 & 1) != 0;
    for (size_t i = 0; set->bits == NULL && !has && i < set->units->length; i++)
        has = text_at(set->units, i) == unit;
    return has;
}

/* As UTF-8 in an arena, for the compiler. */
struct slice text_slice(struct arena *arena, const struct text *text);
/* As UTF-8 in the run's arena, charged; empty when there is no memory for it, which ends the run at its next step. */
struct slice text_utf8(struct run *run, const struct text *text);

/* A text under construction. */
struct text_buf {
    struct run *run;
    uint16_t *units;
    size_t length;
    size_t capacity;
    uint16_t all; /* or of all units: tells whether the text is narrow */
    bool failed;  /* the budget was too small; what follows is dropped */
    uint16_t small[64];
};

void text_buf_init(struct text_buf *buf, struct run *run);
void text_buf_unit(struct text_buf *buf, uint16_t unit);
void text_buf_code_point(struct text_buf *buf, uint32_t point);
void text_buf_text(struct text_buf *buf, const struct text *text);
void text_buf_range(struct text_buf *buf, const struct text *text, size_t begin, size_t end);
void text_buf_ascii(struct text_buf *buf, const char *ascii);
void text_buf_slice(struct text_buf *buf, struct slice utf8);
/* Returns: the text, or NULL and a throwable. */
struct text *text_buf_done(struct text_buf *buf);

/* Decodes one code point of UTF-8 and moves on; U+FFFD for what is none. */
uint32_t utf8_next(const char **at, const char *end);
/* UTF-16 units in UTF-8. */
size_t utf8_units(struct slice utf8);
/* Returns: the part between two places counted in UTF-16 units; "" where it has none. */
struct slice utf8_part(struct slice utf8, size_t from, size_t to);

#endif
