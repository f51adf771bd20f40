/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of others on a terminal: names of files, of sessions and of indices, reasons of errors.
 * What a terminal would obey (escape sequences, directions of writing, line breaks) is spelled out,
 * as `ls -b` does: \033, \n, \\.
 */
#ifndef TL_CLI_ESCAPE_H
#define TL_CLI_ESCAPE_H

#include "base/slice.h"

/*
 * Returns: the text as it can be shown; lives until the eighth call of this thread after this one, or
 * until the thread ends. NULL gives NULL.
 */
const char *escape_terminal(const char *text);
const char *escape_terminal_slice(struct slice text);
/* The same for a line that is put together already, whose \ stay as they are. */
const char *escape_terminal_line(struct slice line);

/* Prints lines, which can be shown, in place of what the terminal shows: line by line, so that it does not flicker. */
void terminal_overwrite(struct slice lines);

/* A URL without the user and password that it may have, for logs. */
const char *url_without_password(const char *url);

#endif
