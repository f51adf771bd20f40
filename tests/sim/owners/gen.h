/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random operations of sessions and transactions, and the commands that they are for the product.
 */
#ifndef TL_TESTS_SIM_OWNERS_GEN_H
#define TL_TESTS_SIM_OWNERS_GEN_H

#include "base/rand.h"
#include "core/command/command.h"
#include "model.h"

enum gen_profile { GEN_LOCKS, GEN_TXNS, GEN_RENAMES /* all, and OP_TRIED */, GEN_PROFILE_COUNT };

enum { GEN_NAMED = 6 };

struct gen {
    enum gen_profile profile;
    struct rng *rng;
    uint32_t last_session; /* last serials given */
    uint32_t last_txn;
    uint32_t last_name;            /* of the newest named write */
    struct om_op named[GEN_NAMED]; /* the newest named writes, a ring by name */
    uint64_t last_number;
    uint64_t last_attachment;
    uint64_t tokens[8]; /* of recent grants */
    size_t token_count;
};

/* Generates an operation that suits the state of the model. */
void gen_op(struct gen *gen, const struct om *model, struct om_op *op);
/* Generates an operation of a kind. */
void gen_op_of(struct gen *gen, const struct om *model, enum om_op_kind kind, struct om_op *op);
/* Returns: the request number of an operation's command: its host and its number. */
uint64_t gen_request(const struct om_op *op);
/* Returns: the product's command; its context is the operation. */
struct command *gen_command(const struct om_op *op);
/* Appends a description to `text`. */
void gen_describe(const struct om_op *op, char *text, size_t size);

extern const char *const gen_index_names[OM_INDICES];

#endif
