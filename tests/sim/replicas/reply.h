/* SPDX-License-Identifier: Apache-2.0 */
/* The outputs of a command as text: everything that its submitter gets. */
#ifndef TL_TESTS_SIM_REPLICAS_REPLY_H
#define TL_TESTS_SIM_REPLICAS_REPLY_H

#include "base/buf.h"
#include "core/command/command.h"

void reply_print(const struct command *command, struct buf *text);

#endif
