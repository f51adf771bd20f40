/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at the tables of a directory before RocksDB opens it.
 *
 * RocksDB verifies the checksum of each block before it uses the block, except for a table's
 * properties: 7.8 and 9.10 first construct the block, which takes the top bit of its last word for
 * the mark of a hash index. Built with assertions, as Debian's is, RocksDB ends the process if that index
 * has no buckets. A block of properties has no hash index, so the bit is damage.
 */
#ifndef TL_STORE_ROCKS_TABLES_H
#define TL_STORE_ROCKS_TABLES_H

#include "base/error.h"
#include "base/types.h"

/*
 * Checks all tables in RocksDB's directory `path`. Reads the end of each. Whatever else is wrong
 * with a table is left for RocksDB, which reports it.
 * Returns: 0; TL_ERR_CORRUPT with *ret_reason (mem_free; may be NULL). A directory or a table that
 *          cannot be read is no error.
 */
int rocks_tables_check(const char *path, char **ret_reason) TL_MUST_USE;

#endif
