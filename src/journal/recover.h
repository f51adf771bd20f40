/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery of a core: the store as of its last checkpoint, and the log entries after it. README.md,
 * "The command log".
 */
#ifndef TL_JOURNAL_RECOVER_H
#define TL_JOURNAL_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "cmdlog/cmdlog.h"

struct at_work;
struct command;
struct core;
struct core_limits;
struct effects;
struct store;

/* Size of the segments of a new log. */
enum { RECOVER_SEGMENT_BYTES = 8 << 20 };

struct recovered {
    cmdlog_position checkpoint; /* of the store's checkpoint */
    /* Of the log at the checkpoint; zero if an older version made the record. */
    struct cmdlog_lineage lineage;
    uint64_t log_bytes;       /* size of a cluster's log up to the checkpoint; 0: unknown */
    cmdlog_position position; /* of the newest entry applied: the log's last, or the last before an end */
    uint64_t work_us;         /* duration of the replay */
    uint64_t replayed_bytes;  /* size of the entries replayed */
    cmdlog_position skipped;  /* of the newest entry that a SKIP excludes; 0: none */
    /* Of the first MARK whose recorded chain differs from the replayed one; 0: none. */
    cmdlog_position differs;
    /* Of the newest MARK of another build, whose chain was not compared; 0: none. */
    cmdlog_position other_build;
};

/*
 * The progress of a replay, reported before an entry is applied: of a single host's log, or of a cluster's
 * log until the host has joined.
 */
struct recover_progress {
    enum recover_phase {
        RECOVER_BEGINS, /* reported once, if the log has entries after the checkpoint */
        RECOVER_REPLAYS,
        RECOVER_ENDED /* all entries have been applied; not reported after a failure */
    } phase;
    bool shared;                /* of a cluster's log: positions have gaps */
    cmdlog_position checkpoint; /* its position: the first entry of the replay follows it */
    cmdlog_position position;   /* of the newest entry read before this one */
    cmdlog_position last;       /* of the last entry to replay; 0: unknown, only of a cluster's log */
    uint64_t entries;           /* number of those up to `position` */
    /*
     * Of the log from the first entry of the replay, up to `position` and up to the log's end, which
     * recover_options.end may precede. bytes_total is 0, unknown, of a cluster's log.
     */
    uint64_t bytes, bytes_total;
    uint64_t us; /* duration of the replay so far */
};

/* Observes a replay. `report` is called by the thread that replays. */
struct recover_observer {
    void (*report)(void *context, const struct recover_progress *progress);
    void *context;
    uint64_t period_us; /* least time between two reports in phase RECOVER_REPLAYS; 0: one before each entry */
};

/*
 * Recovers the core from the store's checkpoint record, or from the store alone if it has no
 * checkpoint, and replays the log entries after it, except those that a SKIP excludes. Waiting
 * commands wait again, but have no client. Refuses a store whose record names another log, or other
 * entries of this log up to its checkpoint. Records in `at_work` (NULL: nowhere) the entry
 * being applied, now and later, and drops the entry in which the process ended.
 * Returns: 0; TL_ERR_CORRUPT, TL_ERR_VERSION, TL_ERR_IO, with *ret_reason (mem_free; may be NULL).
 * Owns: the caller; core_close().
 */
int recover_core(struct store *store, struct cmdlog *log, const struct core_limits *limits, struct at_work *at_work,
                 struct core **ret_core, struct recovered *ret_recovered, char **ret_reason) TL_MUST_USE;

struct recover_options {
    struct at_work *at_work;                 /* as in recover_core(); NULL: nowhere */
    cmdlog_position end;                     /* replays only the entries before this position; 0: all */
    const struct recover_observer *observer; /* of the replay; NULL: none */
    bool in_place;                           /* the calling thread reads and decodes each entry when it applies it */
};
/* As recover_core(), with options. */
int recover_core_with(struct store *store, struct cmdlog *log, const struct core_limits *limits,
                      const struct recover_options *options, struct core **ret_core, struct recovered *ret_recovered,
                      char **ret_reason) TL_MUST_USE;

/* A store_check (store.h): whether recover_core() can convert a store. `context`: its struct core_limits. */
int recover_check_older(struct store *store, void *context) TL_MUST_USE;

/*
 * Refuses the start of a cluster's host whose next entries were trimmed after it had checked that the
 * log has them. Returns: TL_ERR_CORRUPT, with reason and remedy in *ret_reason (mem_free; may be
 * NULL).
 */
int recover_refuse_trimmed(char **ret_reason);

/*
 * Appends an annotation of the log's last entry, TRIED or SKIP, and syncs the log. Called before
 * recover_core(), which follows annotations like every other reader of the log.
 * Returns: as cmdlog_append() and cmdlog_sync().
 * Requires: the command is a TRIED or a SKIP.
 */
int recover_append_annotation(struct cmdlog *log, const struct command *command) TL_MUST_USE;

/* An entry's annotation of its predecessor. */
enum recover_annotation { RECOVER_NO_ANNOTATION, RECOVER_TRIED, RECOVER_SKIP };
/*
 * Reads the annotation in an entry; decodes SKIP only, since the decoding of another command may end
 * the process, and the SKIP that leaves that command out may follow. *ret_skipped: the position that
 * a SKIP names, 0 for TRIED; unset without an annotation.
 */
enum recover_annotation recover_read_annotation(struct slice bytes, cmdlog_position *ret_skipped);

/*
 * Recovers the core as of the store's checkpoint, without the log. *ret_position: the checkpoint's
 * position; 0 without one. *ret_log_bytes: as recovered.log_bytes. Returns: as recover_core().
 */
int recover_begin(struct store *store, const struct core_limits *limits, struct core **ret_core,
                  cmdlog_position *ret_position, uint64_t *ret_log_bytes, char **ret_reason) TL_MUST_USE;

/* Builds the core from a checkpoint record. Returns: as recover_core(). */
int recover_read_record(struct store *store, struct slice record, const struct core_limits *limits,
                        struct core **ret_core, struct recovered *ret_recovered, char **ret_reason) TL_MUST_USE;

/*
 * Reads the log position and lineage in a checkpoint record. Returns: 0; TL_ERR_CORRUPT;
 * TL_ERR_VERSION.
 */
int recover_read_position(struct slice record, cmdlog_position *ret_position,
                          struct cmdlog_lineage *ret_lineage) TL_MUST_USE;

/*
 * Checks that the store was made from this log, and that all entries after the checkpoint can be
 * decoded. *ret_later_count: their number. Returns: as recover_core().
 */
int recover_check_log(struct cmdlog *log, const struct recovered *store, cmdlog_position *ret_later_count,
                      char **ret_reason) TL_MUST_USE;

/*
 * Frees the completed commands of a core that has no clients. Ensures: effects->completed is empty.
 */
void recover_free_completed(struct effects *effects);

/* Closes a core that has no clients; the requests that wait in it end. */
void recover_close_core(struct core *core);

/*
 * Appends a checkpoint record: the core's state at this position in a log of this lineage. NULL
 * `lineage`: the log is shared by hosts; its opener checks that it fits. `log_bytes`: size of the
 * shared log up to the position; 0: the log is not shared. Writes to the core's store; the record is
 * that of the store's next checkpoint.
 * Returns: 0; fatal codes. Requires: as core_save_rest().
 */
int recover_write_record(struct core *core, cmdlog_position position, const struct cmdlog_lineage *lineage,
                         uint64_t log_bytes, struct buf *record) TL_MUST_USE;

#endif
