/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random commands of all logged types. They are generated without a model: a refused command is as
 * useful as one that takes effect, since only equality of the cores is checked. Names are few, so
 * that commands conflict. In the mode `waits` nearly all of them request the same few locks, for a
 * long time, or end such requests; with `named` most writes of them have names, and are sent again, and hosts join and
 * leave more often. In the mode `rich` there are also indices of several types, and
 * documents, locks and writes of each.
 */
#ifndef TL_TESTS_SIM_REPLICAS_GEN_H
#define TL_TESTS_SIM_REPLICAS_GEN_H

#include "base/rand.h"
#include "core/step/core.h"
#include "core/step/command_group.h"

struct gen {
    struct rng *rng;
    struct rng *script_rng;  /* for what scripts returned outside of the core: seeds keep their other commands */
    const struct core *core; /* from which most names of sessions and transactions are taken */
    unsigned sessions;       /* number generated */
    unsigned names;          /* of named writes */
    unsigned txns;
    uint64_t requests;
    uint64_t attachments;
    uint64_t clock; /* of the current entry */
    tl_ts ts;
    tl_ts tokens[4]; /* of recent grants */
    uint16_t host;
    bool waits, rich; /* the mode; set before the first command */
    bool named;       /* with `waits`: most autocommit writes have names; set before the first command */
};

/*
 * Generates the header of the next entry: mostly of a live host, sometimes one that does not count.
 * Sets gen->host.
 */
void gen_header(struct gen *gen, struct command_group_header *head);
/* Returns: the n-th setup command; NULL: there are no more. */
struct command *gen_setup(struct gen *gen, unsigned n);
/* Returns: any command but MAINTAIN, which a core proposes. Owns: the caller. */
struct command *gen_command(struct gen *gen);

#endif
