/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands by way of their bytes: what a simulator gives to a core has gone through the form that the log keeps, so whatever the form
 * loses shows as a difference.
 */
#ifndef TL_TESTS_LIB_CODEC_ROUNDTRIP_H
#define TL_TESTS_LIB_CODEC_ROUNDTRIP_H

#include "core/step/command.h"

/* Set: commands are given as they are, which is faster. */
extern bool codec_roundtrip_off;

/*
 * Returns: the command that the bytes of a command say, which is freed; its two times, context and on_done go along. One that is
 * never in the log is returned as it is. Ends the process where the bytes are not what they should be.
 */
struct command *codec_roundtrip(struct command *command);

#endif
