/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts of a cluster, as the command log defines them: JOIN, HOST_GONE, HEARTBEAT.
 * core/README.md, "Hosts".
 */
#ifndef TL_CORE_HOSTS_H
#define TL_CORE_HOSTS_H

#include <stddef.h>
#include <stdint.h>

struct core_host;
struct sections;

struct hosts {
    struct core_host *all; /* in order of their names; mem_free, and the texts in it */
    size_t count;
    uint64_t last_number; /* highest number ever given to a host */
};

/* Frees all hosts and leaves the table empty. */
void hosts__free(struct hosts *hosts);
/* Writes the hosts to a checkpoint, or reads them into an empty table. Errors are in `sections`. */
void hosts__codec(struct sections *sections, struct hosts *hosts);

#endif
