/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sections: what a saved core is made of. Each is checked by itself, so that damage is told with its place. README.md, "Checkpoints",
 * has the form. As with coders, one function goes both ways:
 *
 *     struct coder coder = section_begin(sections, SECTION_NUMBERS);
 *     codec_number(&coder, &number);
 *     section_end(sections, &coder);
 *
 * Sections stand in one order. Where one is not what it should be, the sections are *bad*: from then on coders read zeros.
 */
#ifndef TL_CORE_SECTION_H
#define TL_CORE_SECTION_H

#include "core/step/codec.h"

/* Their numbers stay for ever. */
enum section_kind {
    SECTION_END = 0,
    SECTION_NUMBERS = 1,
    SECTION_OWNERS = 2,      /* how many there are, and the orders that they stand in */
    SECTION_SESSION = 3,     /* one each */
    SECTION_TRANSACTION = 4, /* one each */
    SECTION_DEFERRED = 5,        /* all that ended sessions left */
    SECTION_WAIT = 6,        /* one each */
    SECTION_LOCKS = 7,
    SECTION_LOCK_EVENTS = 8,
    SECTION_TERMINATING = 9, /* sessions whose end goes on */
    SECTION_HOSTS = 10,  /* of a cluster */
    SECTION_KIND_COUNT
};

/* 2: what was kept may be put aside, and what was tried is counted. 3: requests that wait are commands of version 2. 4: the hosts.
 * 5: sessions end in pieces; items of a write that waits may have been postponed; requests that wait are commands of version 3, and
 * items that are kept have their dialect. 6: what was granted may be ready to go on with a later step, or have ended and be yet to be answered; transactions that
 * are a host's own, and those that are abandoned; commands of version 4. */
enum { SECTIONS_VERSION = 6 };

struct sections {
    struct buf *out;     /* of those that are written; NULL: they are read */
    struct slice in;     /* what is left to read */
    struct slice all;    /* as it was at first */
    struct arena *arena; /* of those that are read: as a coder's */
    unsigned version;
    uint32_t crc;           /* of all before the section at hand */
    enum section_kind kind; /* of the section at hand, or the last */
    size_t at;              /* where it begins */
    bool bad;
    bool newer;   /* bad, since it is of a version that is not known here */
    bool unsound; /* bad, though the checksums are right */
};

/* Writes the head into `out`. */
struct sections sections_to(struct buf *out);
/* Reads the head. */
struct sections sections_from(struct slice in, struct arena *arena);

struct codec section_begin(struct sections *sections, enum section_kind kind);
/* Requires: the coder is of section_begin(). */
void section_end(struct sections *sections, struct codec *codec);

/* Says between sections that what was read cannot be. */
void sections_require(struct sections *sections, bool so);

/* Ends those that are written; or looks whether those that are read are at their end. */
void sections_finish(struct sections *sections);

/* Says of sections that were read to their end that the one with this byte holds what cannot be. */
void sections_fail_at(struct sections *sections, size_t place);

/* Appends what is bad, and where. */
void sections_describe_error(const struct sections *sections, struct buf *buf);

static inline bool sections_are_read(const struct sections *sections)
{
    return sections->out == NULL;
}

#endif
