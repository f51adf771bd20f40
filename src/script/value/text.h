/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts: Java strings, immutable sequences of UTF-16 code units; stored with one byte per unit if all are below 256.
 */
#ifndef TL_SCRIPT_TEXT_H
#define TL_SCRIPT_TEXT_H

#include "base/buf.h"
#include "script/value/run.h"

struct text {
    struct object object;
    uint32_t length; /* UTF-16 code units */
    int32_t hash;    /* Java's, when `hashed` */
    bool wide;       /* units are 16 bit; else Latin-1 */
    bool hashed;
    union {
        uint8_t narrow[0];
        uint16_t units[0];
    } data; /* `length` units */
};

#define TEXT_LENGTH_MAX ((size_t)64 << 20)

static inline uint16_t text_at(const struct text *text, size_t index)
{
    return text->wide ? text->data.units[index] : text->data.narrow[index];
}

/* Makes a text from UTF-8. Returns: NULL with a throwable if the budget is too small. */
struct text *text_new(struct run *run, struct slice utf8);
/*
 * Makes a constant in an arena. Its hash is computed at once, so that the text is read-only
 * afterwards.
 */
struct text *text_constant(struct arena *arena, struct slice utf8);

struct text *text_substring(struct run *run, struct text *text, size_t begin, size_t end);
struct text *text_concat(struct run *run, struct text *a, struct text *b);

int32_t text_hash(struct text *text);
/* Returns: the hash, charged to the run if it is not cached. */
static inline int32_t text_hash_of(struct run *run, struct text *text)
{
    if (!text->hashed)
        run_work(run, text->length);
    return text_hash(text);
}
bool text_equal(const struct text *a, const struct text *b);
bool text_is(const struct text *text, const char *ascii);
/* Returns: whether they are equal; charges the units compared. */
bool text_same(struct run *run, const struct text *a, const struct text *b);
/* Returns: whether `text` contains `part` at index `at`, which may be out of range. */
bool text_has_at(struct run *run, const struct text *text, const struct text *part, int64_t at);
/* Java's compareTo; charges the units compared. For searching see text_search.h. */
int text_compare(struct run *run, const struct text *a, const struct text *b);

/* A set of code units with constant-time lookup. */
struct text_set {
    const struct text *units;
    uint64_t *bits; /* bitmap; NULL: so few units that a lookup compares each */
};
bool text_set_init(struct text_set *set, struct run *run, const struct text *units);
static inline bool text_set_has(const struct text_set *set, uint16_t unit)
{
    bool has = set->bits != NULL && (set->bits[unit / 64] >> unit % 64 & 1) != 0;
    for (size_t i = 0; set->bits == NULL && !has && i < set->units->length; i++)
        has = text_at(set->units, i) == unit;
    return has;
}

/* Returns: UTF-8 in an arena, not charged; for the compiler. */
struct slice text_slice(struct arena *arena, const struct text *text);
/*
 * Returns: UTF-8 in the run's arena, charged; empty if the budget is too small, then the run fails
 * at its next step.
 */
struct slice text_utf8(struct run *run, const struct text *text);

/* A text under construction. */
struct text_buf {
    struct run *run;
    uint16_t *units;
    size_t length;
    size_t capacity;
    uint16_t all; /* bitwise OR of all units: decides whether the text is narrow */
    bool failed;  /* the budget was too small; further units are dropped */
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

/* Decodes one code point of UTF-8 and advances *at; U+FFFD for invalid bytes. */
uint32_t utf8_next(const char **at, const char *end);
/* Returns: the number of UTF-16 code units of a UTF-8 text. */
size_t utf8_units(struct slice utf8);
/* Returns: the part between two offsets in UTF-16 code units; "" if they are out of range. */
struct slice utf8_part(struct slice utf8, size_t from, size_t to);

#endif
