/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work units, by which the time of one step is bounded (README.md, "The work of a step").
 *
 * Each loop of the core whose length depends on clients' data adds the cost of its iterations:
 * core__work() in unit.h, lock_table.walked in the lock table. The count starts at 0 in each step.
 * It is not part of the state. A budget that decides what a step does may count only work that
 * follows from state and command.
 *
 * A unit is about 0.1 us of processor time in the release build on the reference machine (two cores
 * of 2 to 3 GHz, RocksDB on a local disk). The weights are measurements of bench/step_bench,
 * rounded up; its last column must stay at 100 ns or below.
 */
#ifndef TL_CORE_WORK_H
#define TL_CORE_WORK_H

#include <stdint.h>

/* Cost in units: */
enum {
    WORK_LOCK = 1,         /* a lock, waiting request or resource visited */
    WORK_RELEASE = 3,      /* a lock, or a resource above it, released with its owner */
    WORK_SCAN = 10,        /* a key passed by an iterator */
    WORK_READ = 30,        /* a record read by its key */
    WORK_LEVEL = 10,       /* a level of a path, searched for among the renamed directories */
    WORK_WRITE = 20,       /* a record put or deleted */
    WORK_ENTRY = 10,       /* an entry or posting list put or deleted (mapping/entry.h) */
    WORK_ENTRY_SHARED = 2, /* a value that has no entry of its own: in a posting list, or repeated in its document */
    WORK_ITEM = 20,        /* an item of a write, whatever its outcome */
    WORK_RESULT = 2,       /* the result of an item, coded in the outcome of its request */
    WORK_UNIT = 50,        /* a unit of the core: beginning and writing its batch */
    WORK_OWNER = 100,      /* the end of a session, transaction or waiting request */
    WORK_LOCK_ASKED = 14,  /* a lock requested without conflict, all checks included */
    WORK_INDEX = 100,      /* an index whose names, settings or aliases are written */
    WORK_INDEX_PART = 4,   /* a setting or alias of it */
    WORK_ALIAS = 25,       /* a change of an alias of an index, without its body */
    WORK_ALIAS_SORTED = 3, /* an alias of a changed index, sorted among those of all */
    WORK_ALIAS_FOUND = 10, /* an alias searched for among those of all indices */
    WORK_SETTING = 2,      /* a setting of a template, searched for among those of the index */
    WORK_FIELD = 40,       /* a field of a mapping that is made or changed, which copies all fields */
    WORK_EXPLAINED = 10,   /* a holder of a lock that the reply of a failed request describes */
};

/* Cost in units of operations that consist of these, as far as it is known before their step: core_end_work() */
enum {
    WORK_END = WORK_OWNER + WORK_READ + 4 * WORK_WRITE, /* the end of a transaction, with the record of its outcome */
    WORK_END_LOCK = WORK_LOCK_ASKED,                    /* a lock released at the end */
    WORK_COMMIT_PATH = 2 * WORK_READ,                   /* the path of its document, which a commit reads */
    WORK_COMMIT = WORK_READ + 2 * WORK_WRITE,           /* a change: read for its checks, written, and in the feed */
    /*
     * Of a request for locks, which LOCK_WORK_MAX limits: so many that one of levels takes no longer than one of
     * documents.
     */
    WORK_PATH_LEVEL = 2,           /* a level of a path, compared with those of the other paths */
    WORK_DEEP_LEVEL = 16,          /* one below the first WORK_LEVELS_USUAL, also in a write */
    WORK_LEVEL_LOCKED = 12,        /* a directory that gets an intention lock */
    WORK_LEVEL_LOCKED_BEFORE = 60, /* in commands before version 18 */
};

/* Amount for one unit: */
enum {
    WORK_NAME_BYTES = 16,      /* bytes of names that a request locks: checked, hashed and copied */
    WORK_BYTES = 16,           /* bytes of sources, parsed and written */
    WORK_VISITS = 2,           /* values that a mapping visits (document.visited), or that an update reads */
    WORK_ENTRY_SETS = 16,      /* sets of entries that are passed, of the indices and batches of a write */
    WORK_READ_BYTES = 64,      /* bytes of a record read */
    WORK_PATH_BYTES = 64,      /* bytes of the path of a document, found, copied and hashed for its locks */
    WORK_MAPPING_BYTES = 6,    /* bytes of templates and mappings, parsed or merged */
    WORK_PATTERN_BYTES = 64,   /* bytes of patterns of templates, matched with a name; before version 26 */
    WORK_COMPARED_BYTES = 16,  /* bytes of patterns and the name that they are compared with: json_wildcard_bytes() */
    WORK_LIST_BYTES = 64,      /* bytes of a list of patterns, copied */
    WORK_ALIAS_USES = 3,       /* aliases of other indices, copied when some have changed */
    WORK_SETTINGS_COPIED = 3,  /* settings of an index before those of a further template; before version 22 */
    WORK_SETTINGS_MOVED = 32,  /* settings that follow one which a template adds or removes */
    WORK_PATTERN_PAIRS = 16,   /* pairs of patterns of index templates, compared with each other */
    WORK_SCRIPT_STEPS = 4,     /* script steps (script.h), 8 to 40 ns each */
    WORK_CATALOG_BYTES = 64,   /* bytes of a record of an index or its mapping */
    WORK_CATALOG_COPIED = 4,   /* references to indices or objects, copied with the catalog and dropped again */
    WORK_EXPLAINED_LEVELS = 2, /* levels of paths in such descriptions */
};

/* Directories deeper than this are rare, and many of them in one request rarer. */
enum { WORK_LEVELS_USUAL = 16 };

/* Limit of one step: 50 ms. */
#define CORE_STEP_WORK UINT64_C(500000)
/*
 * Work of a write's items after which it starts no further item: 40 ms, which leaves a step the time
 * of one usual item and of the mappings. Finding their locks counts towards it and takes at most three
 * eighths of it; in a transaction, each batch has it.
 */
#define WRITE_WORK_MAX (CORE_STEP_WORK / 5 * 4)
/*
 * Limits of the work of indivisible operations: the items of an atomic write in commands before version 12, and
 * the records of a commit. The first allows 100,000 changes of usual documents with ten fields three times over.
 * A commit of so many takes 2 million, since it has one key for each document. In commands before version 21 it has a
 * key for each value that it removes of documents that were written alone before: it replaces at most 20,000 of those.
 */
#define CORE_ATOMIC_WORK UINT64_C(75000000)
#define CORE_COMMIT_WORK UINT64_C(2500000)
/*
 * Work of the single entries in a commit, 5 ms, beyond which a transaction puts those of its further documents into
 * the store ahead of it, and removes those that they replace, with the write (README.md, "Entries of a transaction").
 */
#define ENTRIES_PROVISIONAL_WORK UINT64_C(50000)
/* The limit was as many times higher in commands before version 15. */
enum { COMMIT_WORK_FACTOR_BEFORE = 5 };
/*
 * Limit of one request for locks, which is granted completely or not at all, 45 ms: some 30,000 documents of an index
 * without a path field, or 4,000 in as many directories of ten levels. README-locks.md, "The limits of a request".
 */
#define LOCK_WORK_MAX (CORE_STEP_WORK / 10 * 9)
/*
 * What one step may spend on what its command releases, grants and resumes (session/cost.h), and on grants alone:
 * beyond it the next TICK continues. The last operation may exceed it.
 */
#define STEP_ACCOUNT_WORK WRITE_WORK_MAX
#define GRANTS_WORK_MAX (CORE_STEP_WORK / 10 * 3)
/* A write that can take all of it by itself begins with others if they have spent no more than such a part. */
enum { STEP_ACCOUNT_FREE_PART = 8 };
/* Limit of what one request changes of aliases, which is done at once; it leaves time to write the indices. */
#define ALIAS_WORK_MAX (CORE_STEP_WORK / 2)
/* Limit of the check of all names that one UNLOCK has. The release of the first ones has the rest of the step. */
#define UNLOCK_CHECK_WORK_MAX (CORE_STEP_WORK / 10 * 8)
/* Limit of one request for locks in commands before version 18, and of what one name of an UNLOCK releases. */
#define CORE_LOCK_WORK UINT64_C(10000000)
/* In commands before version 15, which do not count levels. */
#define CORE_LOCK_WORK_BEFORE UINT64_C(8000000)

#endif
