/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster's uuid.
 */
#include "api/cluster/cluster_uuid.h"

#include <semaphore.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "core/catalog/catalog.h"
#include "core/command/command.h"
#include "journal/journal.h"

/* Where the result of an offer goes. */
struct offer {
    sem_t done;
    int code; /* 0, or why it was refused */
};

static void uuid_offered(struct command *command)
{
    struct offer *offer = command->context;
    if (command->problem.type != PROBLEM_NONE) {
        offer->code = command->problem.type == PROBLEM_DISK_FULL ? TL_ERR_NO_SPACE : TL_ERR_STOPPED;
        log_error("the first start cannot write the uuid of the cluster: %.*s", SLICE_ARG(command->problem.reason));
    }
    command_free(command);
    sem_post(&offer->done);
}

/*
 * Offers a new uuid, which is accepted only if the cluster has no uuid yet. Returns: 0, or the code
 * of a refusal, whose reason is in the log.
 */
static int offer_uuid(struct journal *journal, struct id_source *ids)
{
    struct offer offer = {.code = 0};
    struct command *command = command_new(COMMAND_CLUSTER_UUID, DIALECT_7);
    command->object.name = id_random(ids, &command->arena);
    command->on_done = uuid_offered;
    command->context = &offer;
    sem_init(&offer.done, 0, 0);
    journal_submit(journal, command, false);
    while (sem_wait(&offer.done) != 0)
        ;
    sem_destroy(&offer.done);
    return offer.code;
}

static bool read_uuid(struct journal *journal, char *ret_uuid)
{
    struct catalog *catalog = journal_catalog(journal);
    const struct catalog_object *object = catalog_object(catalog, CATALOG_CLUSTER, SLICE_LIT("uuid"));
    bool found = object != NULL && object->body.len == ID_BYTES;
    if (found) {
        memcpy(ret_uuid, object->body.data, ID_BYTES);
        ret_uuid[ID_BYTES] = '\0';
    }
    catalog_unref(catalog);
    return found;
}

int cluster_uuid_fetch(struct journal *journal, struct id_source *ids, char ret_uuid[static ID_BYTES + 1])
{
    if (read_uuid(journal, ret_uuid))
        return 0;
    int r = offer_uuid(journal, ids);
    if (r != 0)
        return tl_trace(r);
    bool found = read_uuid(journal, ret_uuid);
    INSIST(found);
    return 0;
}
