/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing documents: what single writes, updates and bulk items have in common.
 */
#ifndef TL_API_DOC_WRITE_H
#define TL_API_DOC_WRITE_H

#include "api/documents/doc_read.h"
#include "core/command/command.h"

/* Parameters of the request as a whole. */
struct write_options {
    bool refreshed;        /* `refresh` was given and is not false: replies say forced_refresh */
    bool refresh_waits;    /* wait_for: they do not */
    uint64_t timeout_us;   /* for locks */
    struct slice timeout;  /* as given; for texts */
    int32_t active_shards; /* wait_for_active_shards; ACTIVE_SHARDS_ALL, ACTIVE_SHARDS_DEFAULT */
    struct slice lease;
};

enum { ACTIVE_SHARDS_ALL = -1, ACTIVE_SHARDS_DEFAULT = -2 };

/* Reads them. Returns: 0, REQUEST_REFUSED. */
int write_options_read(struct request *request, struct write_options *ret_options) TL_MUST_USE;

/*
 * What Java's servers have in `version` when the client gave none, and what they take for none when it gave that.
 */
#define JAVA_MATCH_ANY (-3)

/* Returns: Java's name of the type, as errors have it. */
const char *write_version_type_name(enum version_type type);

/* There are no pipelines, so no name names one. Returns: whether this one would be looked for, and the problem. */
bool write_pipeline_missing(struct slice name, enum dialect dialect, struct arena *arena, struct problem *ret_problem);

/* Makes a WRITE command with `count` items, all zero but for VERSION_ANY and the like, for the request's owner. */
struct command *write_command_new(struct request *request, const struct write_options *options, size_t count);

/* Returns: on the boot clock, until when items that are submitted now may wait for locks. */
uint64_t write_wait_end(const struct write_options *options);
/*
 * Returns: the time left until then: the timeout of a command with those of them that were
 * postponed.
 */
uint64_t write_wait_left(uint64_t until_us);

/*
 * Returns: the time in which a script of such an item that runs outside of the core may wait for the lock under which
 *          it reads: at least some, so that the write is refused with a timeout, as for its own locks. Without time
 *          a read is refused with a conflict.
 */
uint64_t write_read_wait(uint64_t until_us);

/* Returns: how many of the postponed items the command after `done` has at most (divided.h). */
size_t write_resubmitted_max(const struct write_command *done);

/* An item as it is before anything is known of it; its dialect is then 7.10's. */
#define WRITE_ITEM_INIT ((struct write_item){.version = VERSION_ANY, .if_seq_no = SEQ_NO_ANY})

/* Collects "Validation Failed: 1: …;2: …;". */
struct validation {
    struct arena *arena;
    struct slice text;
    unsigned count;
};
void validation_add(struct validation *validation, const char *format, ...) TL_PRINTF(2, 3);
/* Returns: 0 when nothing was added; REQUEST_REFUSED with action_request_validation_exception. */
int validation_end(struct validation *validation, struct request *request) TL_MUST_USE;

/* What a client said about an item that the item itself does not hold. */
struct write_params {
    bool version; /* it named one, be it -1 */
    bool version_type;
    bool typed_path; /* the type is in the path, where 5.6 wants a create to have an id; 6.x, by the item, does not */
    int32_t retries; /* retry_on_conflict: of scripts that take long (dry_run.h); other updates run one after another */
};

/* Checks an item as Elasticsearch's IndexRequest, DeleteRequest and UpdateRequest do. */
void write_item_validate(const struct write_item *item, const struct write_params *asked,
                         struct validation *validation);

/*
 * Reads the parts of the path and the parameters that describe a single write, which has the
 * request's dialect. Returns: 0, REQUEST_REFUSED.
 */
int write_item_read(struct request *request, struct write_item *item, struct write_params *ret_asked) TL_MUST_USE;

/*
 * Reads `if_seq_no` and `if_primary_term`; absent ones leave the values unchanged. Returns: 0,
 * REQUEST_REFUSED. The second function adds an error where one is given without the other.
 */
int write_read_numbers(struct request *request, int64_t *seq_no, int64_t *term) TL_MUST_USE;
void write_validate_numbers(int64_t seq_no, int64_t term, struct validation *validation);

/* A sequence number or term that no document can have. Returns: REQUEST_REFUSED. */
int write_refuse_seq_no(struct request *request, int64_t seq_no) TL_MUST_USE;
int write_refuse_term(struct request *request, int64_t term) TL_MUST_USE;

/* Returns: the number of the shard that an item would go to. */
uint32_t write_item_shard(struct request *request, const struct write_item *item);

/*
 * Refuses to wait for more copies than there are. `siblings`: how many items of a bulk request go to the shard of
 * this one; 0: it is no bulk request.
 * Returns: 0, REQUEST_REFUSED.
 */
int write_check_copies(struct request *request, const struct write_options *options, const struct write_item *item,
                       size_t siblings) TL_MUST_USE;

/*
 * Looks up what the command's one item will find, on this thread, so that the core need not
 * (core/documents/prefetch.h).
 */
void write_read_ahead(struct request *request, struct command *command);

/* Returns: the item that a result belongs to: with the id that was generated when a repeated request was sent first. */
struct write_item write_item_answered(const struct write_item *item, const struct write_result *result);

/* --- Replies ------------------------------------------------------------------------------------------------------ */

/* How one result is shown. */
struct write_reply_options {
    const struct write_options *options;
    const struct source_filter *source; /* of updates that want it; NULL: none */
    const struct slice *fields;         /* of 5.x updates */
    size_t field_count;
    bool in_bulk;
};

/* Returns: the status of a result that did not fail. */
int write_result_status(const struct write_result *result);

/*
 * Completes the problem of a failed result: its text and details where the core left them to the
 * dialect of the item.
 */
void write_result_problem(struct request *request, const struct write_item *item, struct write_result *result);

/* Writes the reply of a result that did not fail, as an object; in bulk with "status". Returns: 0, TL_ERR_CORRUPT. */
int write_result_write(struct request *request, const struct write_item *item, const struct write_result *result,
                       const struct write_reply_options *reply, struct buf *buf) TL_MUST_USE;

/* Adds the Location header of a document that was created. */
void write_location(struct request *request, const struct write_item *item, const struct write_result *result);

#endif
