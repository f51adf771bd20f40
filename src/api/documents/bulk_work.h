/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimates of the work of bulk items, by which a bulk is divided into commands.
 *
 * The core applies a command in one step, and all clients wait for a step. What an item costs depends
 * on the document that it replaces or deletes more than on what the client sends: a delete of a few
 * bytes removes all entries of its document. So the submitter reads these documents before it divides
 * the bulk. The commands are in the log, so a replay has the same ones.
 *
 * The estimate is no promise. A document that becomes larger after it was read is not noticed; and an
 * analyzer may make more entries of a text than it has words.
 */
#ifndef TL_API_BULK_WORK_H
#define TL_API_BULK_WORK_H

#include "core/command/command.h"
#include "core/unit/work.h"

struct request;

/* Most estimated work of a command with several items, in units of core/unit/work.h: 40 ms. */
#define BULK_PIECE_WORK_MAX (CORE_STEP_WORK / 5 * 4)

/*
 * Returns: the number of leading items that fit into one command, at least 1: at most `count`, and no
 *   more than BULK_PIECE_WORK_MAX of estimated work.
 * Requires: count > 0; the request is in no transaction.
 */
size_t bulk_work_fitting(const struct request *request, const struct write_item *items, size_t count);

/* Returns: the estimated work of storing a document, by its source. */
uint64_t bulk_work_of_new(struct slice source);
/* Returns: that of reading and removing a document. `single_entries`: doc_may_have_single_entries(). */
uint64_t bulk_work_of_old(struct slice source, bool single_entries);

/*
 * Returns: an estimate of the indexed values of a JSON source: its words, numbers and levels of paths,
 *   without the names of its members.
 */
size_t bulk_work_words(struct slice source);

#endif
