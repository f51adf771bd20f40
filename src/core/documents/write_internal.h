/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the write executor: the state of a run, and of one of its items. */
#ifndef TL_CORE_WRITE_INTERNAL_H
#define TL_CORE_WRITE_INTERNAL_H

#include "core/command/command.h"
#include "core/documents/doc.h"
#include "core/documents/update.h"
#include "core/documents/version.h"
#include "core/documents/write.h"
#include "core/tree/tree_write.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "mapping/document.h"
#include "mapping/entry.h"

/* Commands with at least this many items write posting lists instead of single entries. */
#define WRITE_POSTING_LIST_ITEMS_MIN 32
/* A document keeps its posting lists until more fields than this have single entries. */
#define WRITE_SINGLE_FIELDS_MAX 32
/*
 * Parsed bytes of sources, plus WRITE_FLUSH_VALUE_BYTES for each of their values, after which a run
 * writes its collected entries out. Bounds memory. It counts sources whether or not the submitter
 * has parsed them, so it does not depend on that.
 */
#define WRITE_FLUSH_BYTES ((uint64_t)32 << 20)
#define WRITE_FLUSH_VALUE_BYTES 48

/*
 * Work of making mappings (core__work_mapping()) after which a command starts no further item:
 * 10 ms. If locks are held, the items' indices are drafted up to three more times to find them.
 */
#define WRITE_MAPPING_WORK_MAX UINT64_C(100000)

/*
 * Before version 11 of commands, the limit of the work of finding the locks of items, which did not
 * count towards WRITE_WORK_MAX.
 */
#define WRITE_TARGET_WORK_MAX (CORE_STEP_WORK / 2)
/* A value that a bulk stores. Its posting list is one of the batch's keys; half of them are shared. */
#define WRITE_POSTING_WORK (WORK_ENTRY / 2)
/*
 * Bytes of a source from which on its values are counted before its item is started. All values of a shorter one, two
 * bytes each at least, take less than the time that WRITE_WORK_MAX leaves a step.
 */
#define WRITE_COUNTED_BYTES ((size_t)16 << 10)
_Static_assert(WRITE_WORK_MAX + WRITE_WORK_MAX / 4 <= CORE_STEP_WORK, "work_limit_reached() leaves that to an item");

/*
 * Returns: whether the mappings of the items so far took so much work that no further item is
 * started. An atomic write cannot be divided, so it may take the work of a step.
 */
static inline bool write_executor__mapping_limit_reached(const struct core *core, bool atomic, uint64_t work)
{
    return core->command_version >= COMMAND_SINCE_MAPPING_LIMIT &&
           work > (atomic ? CORE_STEP_WORK : WRITE_MAPPING_WORK_MAX);
}

/*
 * Bytes of results of updates that are kept from finding the locks of a write until it runs. The scripts of further
 * items run twice. A bulk of thousands of updates may have documents of megabytes.
 */
#define WRITE_KEPT_BYTES_MAX ((size_t)16 << 20)

enum {
    WRITE_ITEM_FAILED = 1, /* the result has the problem */
};

/*
 * The parsed source of an item, from determining its path. It lives in the core's arena, and the
 * run of the same unit reuses it if the mapping has not changed.
 */
struct write_parsed {
    const struct mapping *mapping; /* NULL: not parsed, or invalid */
    const struct mapping_type *type;
    struct document document;
};

/* Collected entries of one index and one batch, not yet written. */
struct write_entries {
    struct write_entries *next;
    struct entry_set set;
};

struct write_executor {
    struct core *core;
    struct write_run *run;
    struct change_sink sink;
    struct view view;
    struct tree_paths *paths; /* for write__path_near(): only paths are looked for; else NULL */
    uint64_t batch; /* of posting lists; 0: the run has none */
    bool posts;     /* it writes posting lists for all documents, else only for those that go ahead */
    size_t singles; /* in a transaction: single entries put or removed since the last flush */
    uint64_t flushes;
    uint64_t parsed_bytes; /* since the last flush; WRITE_FLUSH_BYTES */
    bool divided;       /* an item was postponed, and those after it are, though they may take less; since version 22 */
    uint64_t item_work; /* an estimate, of the item which is about to start: write_executor__work_limit_reached() */
    /* Its source, parsed to know that, in the scratch arena; `root` NULL: not parsed so, or dropped by a flush */
    struct json_doc item_json;
    struct write_entries *entries;
    struct buf record;             /* reused for each record */
    size_t bytes;                  /* of keys and records written */
    uint64_t script_steps;         /* left to all scripts of the command (update.h) */
    uint64_t steps_taken;          /* by scripts in this run */
    bool script_postpones;         /* an item was postponed for its script, so no further item is started */
    uint64_t mapping_work;         /* core->mapping_work when the run began */
    uint64_t work;                 /* of this run's items; follows from state and command alone */
    size_t result_bytes;           /* of the items that ran */
    struct doc_multiget *multiget; /* reads previous versions, in a bulk with sorted ids; NULL: not opened */
    struct view committed_view;    /* its view: without the transaction's own writes */
    bool use_multiget;             /* the first item that reads opens it */

    /*
     * In a transaction: the change of the document count of the index and type counted last, not
     * yet in the overlay.
     */
    struct {
        uint32_t index;
        uint16_t type;
        int64_t change;
    } counted;

    /* Names of the index and type written last, for results; in the run's arena. */
    uint32_t named_index;
    int named_type;
    struct slice index_name;
    struct slice index_uuid;
    struct slice type_name;
};

/*
 * What renames are applied to in a document that was read: always its version, sequence number and
 * timestamp. Its source is rewritten only for an update, since that copies the whole source.
 */
enum write_load {
    WRITE_LOAD_SOURCE,  /* also the source */
    WRITE_LOAD_PATH,    /* also `old_path`; the source is as stored */
    WRITE_LOAD_VERSION, /* no more; the source is as stored */
};

/* The state of one item. */
struct write_item_state {
    const struct write_item *item;
    struct write_result *result;
    const struct catalog_index *index;
    const struct catalog_alias *alias; /* by which the index was found; NULL: by its name */
    const struct mapping_type *type;   /* NULL: the index does not have it yet */
    struct slice routing;              /* data NULL: none */
    struct slice key;                  /* in the scratch arena; set together with `type` */
    bool has_old;                      /* `old` is a document, or a tombstone whose version still counts */
    bool in_unit; /* out: a version of it, which may be a delete that does not count, is of this unit */
    struct doc old;
    enum write_load load;  /* in: what write_executor__load() makes current */
    struct slice old_path; /* out, for WRITE_LOAD_PATH: the path, in the scratch arena; data NULL: as in the source */
    struct version_state state;
    bool levels_counted;
    uint64_t levels; /* of the path of `old`, if they are counted (doc_path_levels()) */
};

/* Runs one item. Returns: 0; WRITE_ITEM_FAILED; fatal codes. */
int write_executor__item(struct write_executor *exec, const struct write_item *item,
                         struct write_result *result) TL_MUST_USE;

/*
 * Returns: whether this is a bulk with sorted ids, whose previous versions one multiget can read.
 */
bool write_executor__ids_are_sorted(const struct write_run *run);

/*
 * Finds the item's index, which is created if the item may, and the type if it exists.
 *
 * Returns: 0; WRITE_ITEM_FAILED; fatal codes.
 */
int write_executor__find(struct write_executor *exec, struct write_item_state *at) TL_MUST_USE;
/*
 * Creates the type if it is missing, and makes the item's key. Returns: 0; WRITE_ITEM_FAILED; fatal
 * codes.
 */
int write_executor__ensure_type(struct write_executor *exec, struct write_item_state *at) TL_MUST_USE;
/* Reads the previous version into has_old, old and state. Returns: 0; fatal codes. */
int write_executor__load(struct write_executor *exec, struct write_item_state *at) TL_MUST_USE;
/* Checks the version rules; fills the result on a conflict. Returns: 0; WRITE_ITEM_FAILED. */
int write_executor__check_version(struct write_executor *exec, struct write_item_state *at, bool create) TL_MUST_USE;

/*
 * Parses the source that an item stores. `parsed`: its JSON, if that is parsed already, or NULL.
 *
 * Refuses dates that Elasticsearch 7.10 refuses. Exceptions: a command of a version before 8 takes
 * them, and so does an update of a document that has some already, since the update may not be about
 * them.
 *
 * Requires: for an update, at->old is loaded.
 * Returns: 0; DOCUMENT_REFUSED with *ret_problem.
 */
int write_executor__parse(struct write_executor *exec, const struct write_item_state *at, struct slice source,
                          const struct json_doc *parsed, struct arena *arena, struct document *ret_document,
                          struct problem *ret_problem) TL_MUST_USE;

/*
 * Collects the changes of entries when `doc`, parsed as `document`, replaces at->old. Sets
 * doc->batch and doc->single_fields accordingly.
 *
 * Requires: doc->ts and doc->source are set.
 * Returns: 0; fatal codes.
 */
int write_executor__change_entries(struct write_executor *exec, struct write_item_state *at,
                                   const struct document *document, struct doc *doc) TL_MUST_USE;
/* Collects the changes of entries when at->old is deleted. Returns: 0; fatal codes. */
int write_executor__remove_entries(struct write_executor *exec, struct write_item_state *at) TL_MUST_USE;
/* Returns: the script steps after which no further item of a run is started. `whole`: an atomic write in one step. */
static inline uint64_t write_executor__steps_max(const struct core *core, bool whole)
{
    bool all = whole && core->command_version < COMMAND_SINCE_SCRIPT_LIMIT;

    return update_command_steps_max(&core->limits.script, all);
}
/* Returns: the destination of the run's changes of an index's tree. */
struct tree_writer write_executor__tree_writer(struct write_executor *exec, const struct catalog_index *index);
/* Counts work that follows from state and command: of the step, and of the run. */
static inline void write_executor__work(struct write_executor *exec, uint64_t units)
{
    exec->work += units;
    core__work(exec->core, units);
}
/* Returns: whether the values that sources have count as work. */
static inline bool write_executor__counts_values(const struct write_executor *exec)
{
    return exec->core->command_version >= COMMAND_SINCE_VALUES_WEIGHED;
}
/* Counts values visited by a mapping, or read by an update. Whether they get entries counts apart. */
static inline void write_executor__count_visits(struct write_executor *exec, size_t visits)
{
    uint64_t units = write_executor__counts_values(exec) ? visits / WORK_VISITS : 0;

    exec->work += units;
    core__work_document(exec->core, units);
}
/* Counts what a mapping visited to find the values of a document. */
static inline void write_executor__count_document(struct write_executor *exec, const struct document *document)
{
    bool filters = exec->core->command_version >= COMMAND_SINCE_FILTERS_BOUNDED;
    write_executor__count_visits(exec, document->visited + (filters ? document->filtered : 0));
}
/* Counts the fields of a mapping that was copied in vain. Those of one that is kept count where the catalog changes. */
static inline void write_executor__count_fields(struct write_executor *exec, size_t fields)
{
    uint64_t units = write_executor__counts_values(exec) ? fields * (uint64_t)WORK_FIELD : 0;

    exec->work += units;
    core__work_document(exec->core, units);
}
/* Returns: whether an update reads the source of its document; it counts in any case in commands before version 26. */
static inline bool write_executor__reads_old(const struct write_executor *exec, const struct update *update)
{
    return exec->core->command_version < COMMAND_SINCE_UPDATES_LEFT ||
           (!update->item->update->ready.given && !update_is_left(update));
}
/* Returns: the source after an update as parsed by its submitter; NULL: not parsed. */
static inline const struct json_doc *write_executor__parsed_update(const struct write_item *item)
{
    REQUIRE(item->op == WRITE_UPDATE);
    return item->update->ready.given ? item->parsed : NULL;
}
/* Returns: the bytes of an item's sources, whether or not they are used. */
static inline size_t write_executor__source_bytes(const struct write_item *item)
{
    const struct write_update *update = item->update;

    return item->source.len + (update == NULL ? 0
                                              : update->doc.len + update->upsert.len + update->script_params.len +
                                                    update->ready.source.len);
}
/* Counts a parsed source and its values, for the flush limit and the work. */
static inline void write_executor__count_source(struct write_executor *exec, struct slice source, size_t value_count)
{
    exec->parsed_bytes += source.len + (uint64_t)value_count * WRITE_FLUSH_VALUE_BYTES;
    exec->core->source_bytes += source.len;
    exec->work += source.len / WORK_BYTES;
    core__work_document(exec->core, source.len / WORK_BYTES);
}
/*
 * Returns: whether this is an atomic write by itself, which is given up and carried out in pieces once
 * it has taken as much as one step may.
 */
static inline bool write_executor__may_exceed(const struct write_executor *exec)
{
    return exec->run->atomic && exec->sink.overlay == NULL && !exec->run->one_step &&
           exec->core->command_version >= COMMAND_SINCE_ATOMIC_PIECES;
}
/* Returns: whether a run is divided, or given up, where its items have taken much work. */
static inline bool write_executor__divides_by_work(const struct write_executor *exec)
{
    return exec->core->command_version >= COMMAND_SINCE_WORK_LIMIT && !exec->run->cleanup &&
           (!exec->run->atomic || exec->run->one_step || write_executor__may_exceed(exec));
}
/* Returns: the work of mappings that counts together with that of the items: where nothing is divided or repeated. */
static inline uint64_t write_executor__counted_mappings(const struct write_executor *exec)
{
    return exec->run->one_step ? exec->core->mapping_work - exec->mapping_work : 0;
}
/* Returns: the work after which no further item of a run is started. */
static inline uint64_t write_executor__work_max(const struct write_executor *exec)
{
    return exec->run->atomic ? exec->core->atomic_work_max : exec->core->write_work_max;
}
/*
 * Returns: whether the items of a divisible run, and what the write has done before in this step,
 * took so much work that no further item is started, or that with the next one they probably exceed a step. The first
 * item of a run is started whatever came before it: else a write that is resubmitted for it would never end.
 */
static inline bool write_executor__work_limit_reached(const struct write_executor *exec)
{
    bool shared = exec->core->command_version >= COMMAND_SINCE_WRITE_ACCOUNT;
    uint64_t before = (shared ? exec->run->work_before : 0) + write_executor__counted_mappings(exec);
    uint64_t max = write_executor__work_max(exec), work = before + exec->work;

    return write_executor__divides_by_work(exec) && exec->work > 0 &&
           (work > max || work + exec->item_work > max + max / 4);
}
/*
 * Returns: whether the results of a divisible write have so many bytes that no further item is started. A run
 * starts at least one, as above.
 */
static inline bool write_executor__result_limit_reached(const struct write_executor *exec)
{
    const struct write_run *run = exec->run;

    return exec->core->command_version >= COMMAND_SINCE_RESULT_BYTES && !run->cleanup && !run->atomic &&
           exec->result_bytes > 0 && run->result_bytes_before + exec->result_bytes > WRITE_RESULT_BYTES_MAX;
}
/* Returns: the most work of finding the locks of an atomic write in a transaction: its run takes as much again. */
static inline uint64_t write_executor__targets_max(const struct write_executor *exec)
{
    return write_executor__work_max(exec) / 2;
}
/* Returns: as write_executor__work_limit_reached(), while the locks of the items are found. */
static inline bool write_executor__target_limit_reached(const struct write_executor *exec)
{
    uint64_t max = write_executor__work_max(exec);

    if (!write_executor__divides_by_work(exec))
        return false;
    if (exec->run->one_step)
        return exec->work + write_executor__counted_mappings(exec) > write_executor__targets_max(exec);
    if (exec->core->command_version < COMMAND_SINCE_WRITE_ACCOUNT)
        return exec->work > WRITE_TARGET_WORK_MAX;
    return exec->work > max / 8 * 3 || exec->run->work_before + exec->work > max;
}
/* Writes out the collected entries. Resets the scratch arena. */
void write_executor__flush_entries(struct write_executor *exec);
/*
 * Writes the new record of a document, and updates pending documents, counters, the feed and the
 * ephemeral index.
 *
 * Returns: 0; fatal codes.
 */
int write_executor__record(struct write_executor *exec, struct write_item_state *at, const struct doc *doc) TL_MUST_USE;
/* Sets the names of index and type in the item's result. */
void write_executor__set_names(struct write_executor *exec, struct write_item_state *at);

/* Adds index_uuid, shard and index to the item's problem. */
void write_executor__shard_details(struct write_executor *exec, struct write_item_state *at);
/* Returns: the type as the client named it. */
static inline struct slice write_executor__type_text(const struct write_item_state *at)
{
    return at->item->type.len > 0 ? at->item->type : SLICE_LIT("_doc");
}

/* Marks an item as postponed: it was not started. */
void write_executor__postpone(const struct core *core, struct arena *arena, struct write_result *result);

struct update;
/*
 * Returns: the steps that the scripts of a run share: core->shared_steps if that is set, else those
 *   of one command.
 */
uint64_t write_executor__shared_steps(const struct core *core);
/*
 * Stores the steps that are left in core->shared_steps, if that is set.
 * Requires: it took no more than the steps there were.
 */
void write_executor__return_steps(const struct write_executor *exec);
/* Counts the script steps of an update, and the values that it read. The work of a kept result is counted already. */
void write_executor__count_script(struct write_executor *exec, const struct update *update);
/* Returns: the update of an item whose index is found, without `old`; results go to `arena`. */
struct update write_executor__update(struct write_executor *exec, const struct write_item_state *at,
                                     struct arena *arena);

#endif
