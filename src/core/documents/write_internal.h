/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the write executor share: one run, and one item of it. */
#ifndef TL_CORE_WRITE_INTERNAL_H
#define TL_CORE_WRITE_INTERNAL_H

#include "core/documents/doc.h"
#include "core/documents/version.h"
#include "core/documents/write.h"
#include "core/step/unit.h"
#include "core/step/work.h"
#include "core/tree/tree_write.h"
#include "mapping/document.h"
#include "mapping/entry.h"

/* From this many items on a command writes its entries in chunks. */
#define WRITE_POSTING_LIST_ITEMS_MIN 32
/* Fields of a document of a bulk that go over to singles one by one; beyond, all do. */
#define WRITE_SINGLE_FIELDS_MAX 32
/*
 * What a run may take apart before the entries so far are written out: bytes of sources, and so much for each value in them. It bounds
 * what is held in memory, but counts what is said and not what was used: where somebody has parsed ahead, that is less.
 */
#define WRITE_FLUSH_BYTES ((uint64_t)32 << 20)
#define WRITE_FLUSH_VALUE_BYTES 48

enum {
    WRITE_ITEM_FAILED = 1, /* the result says why */
};

/*
 * The source of an item, taken apart to find where the document will lie. It is in the core's arena, and good for the run of
 * the same unit under the same mapping, which needs not do it again.
 */
struct write_parsed {
    const struct mapping *mapping; /* NULL: it was not, or could not be */
    const struct mapping_type *type;
    struct document document;
};

/* The entries of one index and one batch that a run has collected and not yet written. */
struct write_entries {
    struct write_entries *next;
    struct entry_set set;
};

struct write_executor {
    struct core *core;
    struct write_run *run;
    struct change_sink sink;
    struct view view;
    uint64_t batch; /* of entries: 0 singles */
    uint64_t flushes;
    uint64_t taken_apart; /* since the last of those; WRITE_FLUSH_BYTES */
    struct write_entries *entries;
    struct buf record;     /* reused */
    size_t bytes;          /* of keys and records written */
    uint64_t script_steps; /* left to all scripts of the command (update.h) */
    uint64_t steps_taken;  /* by scripts so far */
    struct doc_multiget *walk;  /* over what the run replaces, in a bulk whose ids rise; NULL: not begun */
    struct view committed; /* what it walks over: the view without the transaction's own writes */
    bool walks;            /* it is to be begun by the first item that reads */

    /* Documents more or fewer, in a transaction: of the index and type counted last, and not in its overlay yet. */
    struct {
        uint32_t index;
        uint16_t type;
        int64_t change;
    } counted;

    /* Names for results, in the run's arena, of the index and type written last. */
    uint32_t named_index;
    int named_type;
    struct slice index_name;
    struct slice index_uuid;
    struct slice type_name;
};

/* One item at work. */
struct write_item_state {
    const struct write_item *item;
    struct write_result *result;
    const struct catalog_index *index;
    const struct catalog_alias *alias; /* by which the index was found; NULL: by its name */
    const struct mapping_type *type;   /* NULL: the index has no such type yet */
    struct slice routing;              /* data NULL: none */
    struct slice key;                  /* in the scratch arena, once there is a type */
    bool has_old;                      /* `old` is a document, or a tombstone that counts still */
    struct doc old;
    struct version_state state;
};

/* Runs one item. Returns: 0; WRITE_ITEM_FAILED; fatal codes. */
int write_executor__item(struct write_executor *work, const struct write_item *item, struct write_result *result) TL_MUST_USE;

/* Returns: whether it is a bulk whose ids rise, so that what it replaces can be read by one walk (doc_multiget.h). */
bool write_executor__ids_are_sorted(const struct write_run *run);

/* Finds the item's index, making it where the item may, and its type where there is one. As write_executor__item(). */
int write_executor__find(struct write_executor *work, struct write_item_state *at) TL_MUST_USE;
/* Makes the type where it is missing, and the item's key. */
int write_executor__ensure_type(struct write_executor *work, struct write_item_state *at) TL_MUST_USE;
/* Reads what is there: fills has_old, old and state. */
int write_executor__load(struct write_executor *work, struct write_item_state *at) TL_MUST_USE;
/* Checks the version rules; on a conflict fills the result. */
int write_executor__check_version(struct write_executor *work, struct write_item_state *at, bool create) TL_MUST_USE;

/*
 * Collects what becomes of a document's entries when `doc` with these values replaces at->old, and says in doc->batch and
 * doc->singles which shape they then have. Requires: doc->ts and doc->source are set.
 */
int write_executor__change_entries(struct write_executor *work, struct write_item_state *at, const struct document *document,
                            struct doc *doc) TL_MUST_USE;
/* The same when a document is deleted. */
int write_executor__remove_entries(struct write_executor *work, struct write_item_state *at) TL_MUST_USE;
/* Where the run's changes of an index's tree go. */
struct tree_writer write_executor__tree_writer(struct write_executor *work, const struct catalog_index *index);
/* Counts a source that is taken apart, with the values that it had. */
static inline void write_executor__count_source(struct write_executor *work, struct slice source, size_t value_count)
{
    work->taken_apart += source.len + (uint64_t)value_count * WRITE_FLUSH_VALUE_BYTES;
    work->core->source_bytes += source.len;
    core__work_indivisible(work->core, source.len / WORK_BYTES);
}
/* Writes out the entries collected so far. What the scratch arena held is gone after it. */
void write_executor__flush_entries(struct write_executor *work);
/* Records what the run made of a document: in the sink, the pending documents, the counters, the lease marks. */
int write_executor__record(struct write_executor *work, struct write_item_state *at, const struct doc *doc) TL_MUST_USE;
/* Fills what a result says of the index and type. */
void write_executor__set_names(struct write_executor *work, struct write_item_state *at);

/* A problem with the details of the document's shard: index_uuid, shard, index. */
void write_executor__shard_details(struct write_executor *work, struct write_item_state *at);
/* Returns: the type as the client named it. */
static inline struct slice write_executor__type_text(const struct write_item_state *at)
{
    return at->item->type.len > 0 ? at->item->type : SLICE_LIT("_doc");
}

/* Says of an item that it was not begun. */
void write_executor__postpone(const struct core *core, struct arena *arena, struct write_result *result);

struct update;
/* What the scripts of a run share at its beginning; with core->shared_steps set that, which gets what is left of it at the end. */
uint64_t write_executor__shared_steps(const struct core *core);
void write_executor__return_steps(const struct write_executor *work);
/* Counts what the script of an update took. */
void write_executor__count_script(struct write_executor *work, const struct update *update);
/* An update of an item whose index is found, without what was there before; `arena` takes what it makes. */
struct update write_executor__update(struct write_executor *work, const struct write_item_state *at, struct arena *arena);

#endif
