/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of locks for a terminal: as wide as that is, and as high when it is redrawn in place.
 *
 * Texts that are too long lose their middle; of a long queue only the front is shown, so that
 * waiters hide no holder. Names of clients are shown unchanged but for control characters, which a
 * terminal would obey.
 */
#ifndef TL_CLI_LOCK_TABLE_H
#define TL_CLI_LOCK_TABLE_H

#include <stdbool.h>

#include "base/buf.h"
#include "json/value.h"

/* Printed in place of an empty table. */
#define LOCK_TABLE_EMPTY "no locks are held or requested\n"

/*
 * Appends the table, lines ended by '\n', as wide as the terminal at standard output;
 * `whole_screen`: and one line lower. `reply` is that of GET /_lock. Without locks it appends
 * LOCK_TABLE_EMPTY.
 */
void lock_table_print(yyjson_val *reply, bool whole_screen, struct buf *to);

#endif
