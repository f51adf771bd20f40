/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inspecting a store for consistency.
 *
 * Checked for every index: each document (its record decodes, its source is JSON, its place in the order of
 * changes is its own), each entry a document must have, each entry that exists, and the count of documents.
 */
#ifndef TL_CLI_INSPECT_H
#define TL_CLI_INSPECT_H

#include <stdio.h>

#include "core/catalog/catalog.h"
#include "store/view.h"

struct inspection {
    const struct view *view;
    FILE *report; /* faults, a line each */
    size_t faults;
    size_t faults_reported; /* further ones are counted only */
    uint64_t documents;
    uint64_t entries;
    uint64_t stale; /* entries of former versions, which searches skip */
};

/*
 * Inspects one index; may be called for one after another.
 * Returns: 0, whatever was found; TL_ERR_IO, TL_ERR_CORRUPT when reading itself fails.
 */
int inspect_index(struct inspection *inspection, const struct catalog_index *index) TL_MUST_USE;

/* Counts a fault, and reports it while they are few. */
void inspect_fault(struct inspection *inspection, const char *format, ...) TL_PRINTF(2, 3);

#endif
