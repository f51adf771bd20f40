/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The byte form of the results of writes: in checkpoints for writes that wait, and in the store for
 * requests that may be repeated (request_outcome.h).
 */
#ifndef TL_CORE_RESULT_CODEC_H
#define TL_CORE_RESULT_CODEC_H

#include "core/command/codec.h"
#include "core/command/command.h"

/* Codes a problem with its causes, or its absence. */
void result_codec__problem(struct codec *codec, struct problem *problem);
/*
 * Codes a result, without `id`. Requires: version 5 or higher of the saved state for `postponed`.
 */
void result_codec__result(struct codec *codec, struct write_result *result);

#endif
