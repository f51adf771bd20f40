/* SPDX-License-Identifier: Apache-2.0 */
/* `tidelock check`: reads everything of a stopped store and says whether it is sound. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/shown.h"
#include "cli/inspect.h"
#include "core/step/core.h"

static const struct argp_option options[] = {
    {"data", 'd', "DIR", 0, "Where the data is (./tidelock-data)", 1},
    {0},
};

static const char doc[] =
    "Read everything of a stopped store: the checksums of all blocks, every document, every entry with its document "
    "and the other way round, the counts.\v"
    "Nothing is changed. Exit status 0 when all is sound; 1 when it is not, or cannot be read.\n\n"
    "Example:\n"
    "  tidelock check --data /var/lib/tidelock\n";

static error_t parse(int key, char *text, struct argp_state *state)
{
    const char **data = state->input;
    switch (key) {
    case 'd': *data = text; return 0;
    case ARGP_KEY_ARG: arguments_error(state, "'%s' is no option; the store is named by --data=DIR", text); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int complain(const char *what, int code, char *reason)
{
    printf("%s: %s\n", shown(what), reason != NULL ? reason : error_text(code));
    mem_free(reason);
    return 1;
}

static int check_indices(struct inspection *inspection, const struct catalog *catalog)
{
    for (size_t i = 0; i < catalog_index_count(catalog); i++) {
        const struct catalog_index *index = catalog_index_at(catalog, i);
        uint64_t before = inspection->documents;
        int r = inspect_index(inspection, index);
        if (r != 0)
            return r;
        printf("index %s: %" PRIu64 " documents\n", shown_slice(index->name), inspection->documents - before);
    }
    return 0;
}

/* Returns: the exit status. */
static int check_state(struct store *store)
{
    struct core_limits limits = core_limits_default();
    struct core *core = NULL;
    int r = core_open(store, &limits, &core);
    if (r != 0)
        return complain("the state", r, NULL);
    struct view view = {store, TL_TS_MAX,
                        NULL}; /* of a store that was idle the history may begin above its last change */
    struct inspection inspection = {.view = &view, .report = stdout};
    struct catalog *catalog = core_catalog(core);
    r = check_indices(&inspection, catalog);
    catalog_unref(catalog);
    core_close(core);
    if (r != 0)
        return complain("reading", r, NULL);
    printf("%" PRIu64 " documents, %" PRIu64 " entries (%" PRIu64 " of former versions, waiting to be dropped)\n",
           inspection.documents, inspection.entries, inspection.stale);
    if (inspection.faults > 0) {
        printf("%zu faults\n", inspection.faults);
        return 1;
    }
    printf("sound\n");
    return 0;
}

int command_check(int argc, char **argv)
{
    static const struct argp argp = {options, parse, NULL, doc, NULL, NULL, NULL};
    const char *data = "./tidelock-data";
    struct store *store = NULL;
    char *reason = NULL;
    arguments_parse(&argp, argc, argv, 0, &data);
    struct store_options opening = {.directory = slice_from(data), .read_only = true};
    int r = store_open_rocks(&opening, &store, &reason);
    if (r != 0)
        return complain(data, r, reason);
    r = store_verify(store, &reason);
    int status = r != 0 ? complain("checksums", r, reason) : check_state(store);
    store_close(store);
    return status;
}
