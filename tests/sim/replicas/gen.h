/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random commands of all rows that the log has. They are drawn without a model: what is refused is as good as what is done, as long
 * as every core does the same. Names are few, so that they meet.
 */
#ifndef TL_TESTS_SIM_REPLICAS_GEN_H
#define TL_TESTS_SIM_REPLICAS_GEN_H

#include "base/rand.h"
#include "core/step/core.h"
#include "core/step/command_group.h"

struct gen {
    struct rng *rng;
    const struct core *core; /* whose sessions and transactions are mostly named */
    unsigned sessions;       /* given so far */
    unsigned txns;
    uint64_t requests;
    uint64_t attachments;
    uint64_t clock; /* of the entry at hand */
    tl_ts ts;
    tl_ts tokens[4]; /* of late grants */
    uint16_t host;
};

/* What stands before the next entry: mostly of a host that lives, some that do not count. Sets gen->host. */
void gen_head(struct gen *gen, struct command_group_header *head);
/* Which command comes n-th of those that set the stage; NULL: no more. */
struct command *gen_stage(struct gen *gen, unsigned n);
/* Any command but MAINTAIN, which a core proposes. Owns: the caller. */
struct command *gen_command(struct gen *gen);

#endif
