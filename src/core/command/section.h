/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sections: the parts of a checkpoint. Each has a checksum, so that damage is reported with its
 * position. README.md, "Checkpoints", describes their form. As with codecs, one function both
 * writes and reads:
 *
 *     struct codec codec = section_begin(sections, SECTION_NUMBERS);
 *     codec_number(&codec, &number);
 *     section_end(sections, &codec);
 *
 * Sections are in a fixed order. An invalid section sets `bad`; from then on codecs read zeros.
 */
#ifndef TL_CORE_SECTION_H
#define TL_CORE_SECTION_H

#include "core/command/codec.h"

/* The numeric values are permanent. */
enum section_kind {
    SECTION_END = 0,
    SECTION_NUMBERS = 1,
    SECTION_OWNERS = 2,      /* counts of sessions, transactions and waits, and the order of each */
    SECTION_SESSION = 3,     /* one section for each, or one with the list of all pieces */
    SECTION_TRANSACTION = 4, /* one section for each */
    SECTION_DEFERRED = 5,    /* all deferred actions */
    SECTION_WAIT = 6,        /* one section for each waiting request, or as for sessions */
    SECTION_LOCKS = 7,
    SECTION_LOCK_EVENTS = 8,
    SECTION_TERMINATING = 9, /* terminating sessions */
    SECTION_HOSTS = 10,      /* of a cluster */
    SECTION_PATHS = 11,      /* paths known to be empty, or watched */
    SECTION_KIND_COUNT
};

/*
 * Version 2 added deferred actions that are set aside, and counts of cleanup attempts. 3: waiting
 * requests as commands of version 2. 4: hosts. 5: terminating sessions, postponed items of waiting
 * writes, waiting requests as commands of version 3, the dialect of deferred actions. 6: granted
 * requests that run in a later step, ended requests to be answered, transactions of a host,
 * abandoned transactions, commands of version 4. 7: no query transactions, commands of version 5;
 * which terminating sessions still have a record. 8: cancelled requests, commands of version 6.
 * 9: commands of version 7; requests cancelled by the end of their session; overlays as lists of
 * pieces. 10: commands of version 8; holds as lists of pieces; unconfirmed grants; known paths.
 * 11: commands of version 9; sessions and waits as lists of pieces. 12: commands of version 10. 13: of
 * version 11. 14: of version 12; atomic writes in pieces. 15: of version 13; the attempts of those.
 * 16: of version 14; which transactions are of such a write. 17: of version 15. 18: of version 16. 19: of version
 * 17. 20: of version 18. 21: of version 19; waits whose places will be kept although their host is gone.
 * 22: of version 20. 23: of version 21. 24: of version 22. 25: of version 23. 26: of version 24. 27: of
 * version 25. 28: of version 26. Pieces have the form of their record's version; that of an overlay's is the same
 * since 9, and that of holds since 10.
 */
enum { SECTIONS_VERSION = 28 };

struct sections {
    struct buf *out;     /* output, when writing; NULL: reading */
    struct slice in;     /* input not yet read */
    struct slice all;    /* whole input */
    struct arena *arena; /* when reading: as of a codec */
    unsigned version;
    bool in_pieces;         /* overlays, holds, sessions and waits are lists of pieces (README.md, "Pieces") */
    uint32_t crc;           /* of all sections before the current one */
    enum section_kind kind; /* of the current or the last section */
    size_t at;              /* offset of the current section */
    bool bad;
    bool newer;   /* with `bad`: the version is newer than this build knows */
    bool unsound; /* with `bad`: the checksums are valid */
};

/* Begins writing: appends the header to `out`. Requires: `out` has not overflowed. */
struct sections sections_to(struct buf *out);
/* Begins reading: checks the header. */
struct sections sections_from(struct slice in, struct arena *arena);

/*
 * Begins the next section, of the given kind. Returns: the codec of its content, for section_end().
 */
struct codec section_begin(struct sections *sections, enum section_kind kind);
/* Ends a section: writes or checks length and checksum. Requires: section_begin() returned the codec. */
void section_end(struct sections *sections, struct codec *codec);

/* Sets `bad` if state that was read violates a condition, between sections. */
void sections_require(struct sections *sections, bool so);

/* Writes the end section, or checks that the input ends. */
void sections_finish(struct sections *sections);

/* Sets `bad` after reading: the section that has the byte at `offset` is invalid. */
void sections_fail_at(struct sections *sections, size_t offset);

/* Appends the reason of `bad` and its position. */
void sections_describe_error(const struct sections *sections, struct buf *buf);

static inline bool sections_are_read(const struct sections *sections)
{
    return sections->out == NULL;
}

#endif
