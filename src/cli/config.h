/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration files: the options of a command by their long names, one a line.
 *
 *     # Where clients come in.
 *     listen = 0.0.0.0:9200
 *     host-name = store.example.org, store
 *
 * Blanks around a name and a value do not count. A value is the rest of its line, as the command
 * line would have it, but without quotes. A line whose first character is '#' says nothing. An
 * option is said once: the second time is a mistake, not a change of mind.
 */
#ifndef TL_CLI_CONFIG_H
#define TL_CLI_CONFIG_H

#include <stddef.h>

#include "base/error.h"

struct config_line {
    unsigned number; /* from 1 */
    char *name;
    char *value;
    char *given; /* a copy, which its parser may modify */
};

struct config {
    char *path; /* NULL: there is no file */
    struct config_line *lines;
    size_t count;
};

/* More than any configuration has; a longer file is not one. */
#define CONFIG_BYTES_MAX ((size_t)1 << 20)

/*
 * Reads a file; whether the options and their values exist is checked by the callers.
 * Returns: 0; TL_ERR_IO, TL_ERR_CORRUPT, *ret_reason then names the file, the line, and the error.
 * Owns: the caller, *ret_config, config_free(), and *ret_reason, mem_free().
 */
int config_read(const char *path, struct config *ret_config, char **ret_reason) TL_MUST_USE;
void config_free(struct config *config);

/* Returns: the line of an option, or NULL where it is not said. */
const struct config_line *config_find(const struct config *config, const char *name);

#endif
