/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What COMMAND_STATUS answers, passed on as it is or as cells of a _cat table.
 */
#ifndef TL_API_STATUS_H
#define TL_API_STATUS_H

#include "api/request/cat_table.h"
#include "core/command/command.h"

/* A completion: the response is the status itself. */
int status_reply(struct request *request, struct command *command) TL_MUST_USE;

/* A member of a status object as a cell: text, number or nothing. */
struct cat_cell status_cell(struct request *request, yyjson_val *object, const char *name);
/* The same for a timestamp, as a readable time. */
struct cat_cell status_time_cell(struct request *request, yyjson_val *object, const char *name);

#endif
