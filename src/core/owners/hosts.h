/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts of a cluster, as the log tells of them. core/README.md, "Hosts". */
#ifndef TL_CORE_HOSTS_H
#define TL_CORE_HOSTS_H

#include <stddef.h>
#include <stdint.h>

struct core_host;
struct sections;

struct hosts {
    struct core_host *all; /* in order of their names; mem_free, and the texts in it */
    size_t count;
    uint64_t last_number; /* ever given */
};

void hosts__free(struct hosts *hosts);
void hosts__codec(struct sections *sections, struct hosts *hosts);

#endif
