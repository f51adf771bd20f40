/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster's uuid.
 */
#include "api/cluster/cluster_uuid.h"

#include <semaphore.h>
#include <string.h>

#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/command/command.h"
#include "journal/journal.h"

static void offered(struct command *command)
{
    sem_t *done = command->context;
    command_free(command);
    sem_post(done);
}

/* Offers a new uuid, which is accepted only if the cluster has no uuid yet. */
static void offer(struct journal *journal, struct id_source *ids)
{
    sem_t done;
    struct command *command = command_new(COMMAND_CLUSTER_UUID, DIALECT_7);
    command->object.name = id_random(ids, &command->arena);
    command->on_done = offered;
    command->context = &done;
    sem_init(&done, 0, 0);
    journal_submit(journal, command, false);
    while (sem_wait(&done) != 0)
        ;
    sem_destroy(&done);
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

void cluster_uuid_fetch(struct journal *journal, struct id_source *ids, char ret_uuid[static ID_BYTES + 1])
{
    if (read_uuid(journal, ret_uuid))
        return;
    offer(journal, ids);
    bool found = read_uuid(journal, ret_uuid);
    INSIST(found);
}
