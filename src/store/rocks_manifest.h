/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of RocksDB's manifest what we need to judge its logs: which of them it will read, and how far it was.
 *
 * The manifest is a log of edits, in the framing of RocksDB's logs; an edit is fields, each a tag and a value.
 */
#ifndef TL_STORE_ROCKS_MANIFEST_H
#define TL_STORE_ROCKS_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

struct rocks_manifest {
    bool known;              /* it was found, and all of it understood */
    uint64_t log_number;     /* logs with smaller numbers hold nothing that is not in files */
    uint64_t log_number_max; /* logs with smaller numbers were synced before a family's changes went to files */
    uint64_t last_sequence;  /* at least that of the newest change in files */
};

/* Reads the manifest of a closed database. What cannot be read or understood leaves `known` false. */
struct rocks_manifest rocks_manifest_read(const char *directory);

#endif
