/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands after a round trip through their byte form. Simulators give these to cores, so that any
 * input that the form loses shows up as a difference.
 */
#ifndef TL_TESTS_LIB_CODEC_ROUNDTRIP_H
#define TL_TESTS_LIB_CODEC_ROUNDTRIP_H

#include "core/command/command.h"

/* set: codec_roundtrip() returns its argument, which is faster */
extern bool codec_roundtrip_off;

/*
 * Encodes, decodes and frees a command. Returns: the decoded command, with timestamp, clock,
 * context and on_done of the original; a command that is never logged is returned itself. Aborts if
 * the bytes are not canonical.
 */
struct command *codec_roundtrip(struct command *command);

#endif
