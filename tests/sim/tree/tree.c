/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulates the path tree of the core and compares it with full paths.
 *
 * One seed drives random writes, deletions and renames of documents in a small tree. They run alone
 * and in transactions that overlap as far as exclusive locks on paths and documents allow, with
 * failing requests, rollbacks and crashes. After each step the newest state, an earlier state and
 * that of a transaction must equal the oracle (oracle.h): path, version and sequence number of each
 * document, the documents at a path, and those below it. A failure prints its seed; `tree_sim
 * --from SEED --seeds 1` repeats it, and `--trace` prints each step.
 */
#include "../../lib/arguments.h"
#include "../../lib/settle.h"
#include "oracle.h"
#include "doc_table.h"

#include "base/alloc.h"
#include "base/check.h"
#include "core/tree/tree_paths.h"

#include <stdio.h>
#include <stdlib.h>

enum { TRANSACTIONS = ORACLE_OWNERS - 1, PAST = 24, RECENT = 3, STEPS_DEFAULT = 400, NO_OWNER = 0 };

struct transaction {
    struct overlay *overlay; /* NULL: not open */
    bool touched[ORACLE_DOCS];
    struct oracle own; /* documents it has touched */
};

/* Recent renames of an owner, from and to, so that renames back and forth are frequent. */
struct recent {
    char paths[RECENT][ORACLE_PATH_MAX];
};

struct world {
    uint64_t seed;
    int step;
    bool trace;
    struct rng rng;
    struct doc_table table;
    tl_ts now;
    int64_t next_seq_no;
    struct oracle committed;
    struct oracle_locks locks;
    struct transaction transactions[TRANSACTIONS]; /* owner i + 1 */
    struct recent recent[ORACLE_OWNERS];
    struct oracle synced; /* the state after a crash, as of the next field */
    tl_ts synced_at;
    struct {
        tl_ts ts;
        struct oracle oracle;
    } history[PAST];
    uint64_t checks, renames;
};

static _Noreturn void fail(const struct world *w, const char *what, const char *detail)
{
    fprintf(stderr, "tree_sim: seed %llu, step %d: %s: %s\n", (unsigned long long)w->seed, w->step, what, detail);
    exit(1);
}

static uint64_t below(struct world *w, uint64_t bound)
{
    return rng_below(&w->rng, bound);
}

static void trace(const struct world *w, int owner, const char *what, const char *a, const char *b)
{
    if (w->trace)
        printf("%4d  %d  %s %s %s\n", w->step, owner, what, a, b);
}

/* --- Views -------------------------------------------------------------------------------------------------------- */

static struct overlay *overlay_of(const struct world *w, int owner)
{
    return owner == NO_OWNER ? NULL : w->transactions[owner - 1].overlay;
}

static struct view view_of(const struct world *w, int owner)
{
    return (struct view){w->table.store, TL_TS_MAX, overlay_of(w, owner)};
}

/* Returns: the state that an owner sees: committed, with the documents it has touched. */
static struct oracle oracle_of(const struct world *w, int owner)
{
    struct oracle oracle = w->committed;

    for (int i = 0; owner != NO_OWNER && i < ORACLE_DOCS; i++)
        if (w->transactions[owner - 1].touched[i])
            oracle.docs[i] = w->transactions[owner - 1].own.docs[i];
    return oracle;
}

/* Sets the state that an owner sees. */
static void set_oracle(struct world *w, int owner, const struct oracle *oracle)
{
    if (owner == NO_OWNER) {
        w->committed = *oracle;
        return;
    }
    struct transaction *txn = &w->transactions[owner - 1];
    struct oracle before = oracle_of(w, owner);
    for (int i = 0; i < ORACLE_DOCS; i++) {
        if (memcmp(&before.docs[i], &oracle->docs[i], sizeof before.docs[i]) == 0)
            continue;
        txn->touched[i] = true;
        txn->own.docs[i] = oracle->docs[i];
    }
}

/* --- Comparison --------------------------------------------------------------------------------------------------- */

static void check_doc(struct world *w, const struct view *view, const struct oracle *oracle, uint32_t id)
{
    const struct oracle_doc *wanted = &oracle->docs[id];
    struct stored_doc doc = doc_table_get(&w->table, view, id);
    char text[1200];

    snprintf(text, sizeof text, "document %u: '%.*s' version %lld seq %lld, wanted '%s' %lld %lld", id,
             SLICE_ARG(doc.path), (long long)doc.version, (long long)doc.seq_no, wanted->path,
             (long long)wanted->version, (long long)wanted->seq_no);
    if (doc.live != wanted->live || doc.version != wanted->version ||
        (wanted->version > 0 && doc.seq_no != wanted->seq_no) ||
        (wanted->live && !slice_equal(doc.path, slice_from(wanted->path))))
        fail(w, "get", text);
}

static void check_search(struct world *w, const struct view *view, const struct oracle *oracle, const char *path,
                         bool with_below)
{
    bool found[ORACLE_DOCS];

    if (path != NULL && path[0] == '\0' && with_below)
        return; /* not a directory: paths with this prefix are below the other root */
    doc_table_search(&w->table, view, slice_from(path), with_below, found, ORACLE_DOCS);
    for (int i = 0; i < ORACLE_DOCS; i++) {
        const struct oracle_doc *doc = &oracle->docs[i];
        bool wanted = doc->live && (path == NULL ? doc->path[0] == '/'
                                    : with_below ? oracle_within(doc->path, path)
                                                 : strcmp(doc->path, path) == 0);
        if (found[i] != wanted)
            fail(w, with_below ? "search below" : "search at", path == NULL ? "(root)" : path);
    }
}

/* No path below an origin exceeds its reach and the longest origin. */
static void check_reach(struct world *w, const struct view *view, const struct oracle *oracle, const char *path)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct tree tree = doc_table_tree(&w->table, view);
    size_t reach, longest = 0, wanted = 0;
    struct slice origin;

    if (tree_resolve(&tree, slice_from(path), &w->table.arena, &origin) != 0)
        return;
    for (uint32_t i = 0; i < ORACLE_DOCS; i++) {
        size_t len = oracle->docs[i].live ? doc_table_get(&w->table, view, i).origin.len : 0;
        longest = len > longest ? len : longest;
        if (oracle->docs[i].live && oracle_within(oracle->docs[i].path, path) &&
            strlen(oracle->docs[i].path) - strlen(path) > wanted)
            wanted = strlen(oracle->docs[i].path) - strlen(path);
    }
    if (tree__read_length(&tree, tree_reach_key(&key, tree.index, origin), &reach) != 0)
        fail(w, "reach", path);
    if (wanted > (reach > 0 ? reach + longest : longest > origin.len ? longest - origin.len : 0))
        fail(w, "a path is longer than its directory reaches", path);
}

/* Paths that are found by those that were found before are those of the documents. */
static void check_kept_paths(struct world *w, const struct view *view, const struct oracle *oracle)
{
    struct tree tree = doc_table_tree(&w->table, view);
    struct tree_paths paths;
    tree_paths_init(&paths);
    for (uint32_t i = 0; i < ORACLE_DOCS; i++) {
        const struct stored_doc doc = doc_table_get(&w->table, view, i);
        struct slice path;
        if (!doc.live)
            continue;
        if (tree_paths_locate(&paths, &tree, doc.origin, &w->table.arena, &path) != 0 ||
            !slice_equal(path, slice_from(oracle->docs[i].path)))
            fail(w, "the path after others", oracle->docs[i].path);
    }
    tree_paths_deinit(&paths);
}

static void check_view(struct world *w, const struct view *view, const struct oracle *oracle)
{
    char path[ORACLE_PATH_MAX];

    for (uint32_t i = 0; i < ORACLE_DOCS; i++)
        check_doc(w, view, oracle, i);
    check_kept_paths(w, view, oracle);
    oracle_random_path(&w->rng, false, path);
    check_search(w, view, oracle, path, false);
    check_search(w, view, oracle, path, true);
    const struct oracle_doc *some = &oracle->docs[below(w, ORACLE_DOCS)];
    if (some->live)
        check_search(w, view, oracle, some->path, below(w, 2) == 0);
    if (view->ts == TL_TS_MAX && some->live) {
        char above[ORACLE_PATH_MAX];
        memcpy(above, some->path, sizeof above);
        above[tree_parent_length(slice_from(above), '/')] = '\0';
        if (above[0] != '\0')
            check_reach(w, view, oracle, above);
    }
    check_search(w, view, oracle, NULL, true);
    arena_reset(&w->table.arena);
    w->checks++;
}

/* The origin at a directory entry refers back to the entry, and locating it terminates. */
static void check_dirent(struct world *w, const struct tree *tree, struct slice dirent, struct slice origin)
{
    struct tree_totals totals;
    struct tree_relocation relocation;

    if (tree__read_relocation(tree, origin, &w->table.arena, &relocation) != 0 || relocation.state != TREE_RELOCATED ||
        !slice_equal(relocation.dirent, dirent))
        fail(w, "table", "a relocated origin is not where its directory entry says");
    if (tree_locate(tree, origin, &w->table.arena, NULL, &totals) < 0)
        fail(w, "table", "an origin is its own ancestor");
}

/*
 * Directory entries and relocation records refer to each other, and the last rename is not in the
 * future.
 */
static void check_table(struct world *w, const struct view *view)
{
    struct store_iter *iter = store_iter_new(w->table.store, SPACE_TREE, TL_TS_MAX, SLICE_NONE, SLICE_NONE);
    struct tree tree = doc_table_tree(&w->table, view);
    struct tree_relocation relocation;
    struct slice origin;
    tl_ts newest;

    for (store_iter_seek_first(iter); store_iter_valid(iter); store_iter_next(iter)) {
        struct slice text = slice_from_offset(store_iter_key(iter), sizeof(uint32_t) + 1);
        char letter = store_iter_key(iter).data[sizeof(uint32_t)];
        if (letter == 'g')
            check_dirent(w, &tree, text, store_iter_value(iter));
        if (letter != 'm')
            continue;
        if (tree_relocation_decode(store_iter_value(iter), &relocation) != 0 || relocation.ts > w->now)
            fail(w, "table", "a rename was not stamped");
        if (relocation.state == TREE_RELOCATED &&
            (tree__read_dirent(&tree, relocation.dirent, &w->table.arena, &origin) != 0 || !slice_equal(origin, text)))
            fail(w, "table", "a place is another's");
    }
    store_iter_free(iter);
    if (tree_last_rename(&tree, &newest, NULL) != 0 || newest > w->now)
        fail(w, "table", "the newest rename was not stamped");
}

static void check_all(struct world *w)
{
    int owner = (int)below(w, ORACLE_OWNERS), at = (int)below(w, PAST);
    struct view now = view_of(w, NO_OWNER), own = view_of(w, owner), then = {w->table.store, w->history[at].ts, NULL};
    struct oracle oracle = oracle_of(w, owner);

    check_table(w, &now);
    check_view(w, &now, &w->committed);
    check_view(w, &own, &oracle);
    if (w->history[at].ts != 0 && below(w, 4) == 0)
        check_view(w, &then, &w->history[at].oracle);
}

/* --- Units -------------------------------------------------------------------------------------------------------- */

static void begin_unit(struct world *w)
{
    w->now += 1 + below(w, 3);
    store_batch_clear(w->table.batch);
    store_batch_begin(w->table.batch, w->now);
}

static void end_unit(struct world *w, bool keep)
{
    if (keep && store_batch_count(w->table.batch) > 0 && store_write(w->table.store, w->table.batch) != 0)
        fail(w, "store_write", "");
    omap_clear(&w->table.pending);
    arena_reset(&w->table.arena);
    if (below(w, 4) != 0)
        return;
    settle(w->table.store);
    w->synced = w->committed;
    w->synced_at = w->now;
}

/* --- Actions of owners -------------------------------------------------------------------------------------------- */

/* Sometimes picks a path of a recent rename. Returns: whether it did. */
static bool recent_path(struct world *w, int owner, char *path)
{
    const char *recent = w->recent[owner].paths[below(w, RECENT)];

    if (recent[0] == '\0' || below(w, 2) != 0)
        return false;
    memcpy(path, recent, ORACLE_PATH_MAX);
    return true;
}

static void remember(struct world *w, int owner, const char *path)
{
    memcpy(w->recent[owner].paths[below(w, RECENT)], path, ORACLE_PATH_MAX);
}

/* Picks a path to write: below a recent rename as often as elsewhere. */
static void path_to_write(struct world *w, int owner, char *path)
{
    oracle_random_path(&w->rng, false, path);
    if (!recent_path(w, owner, path) || strlen(path) > ORACLE_PATH_MAX / 2)
        return;
    if (below(w, 3) != 0)
        strcat(path, below(w, 2) == 0 ? "/a" : "/b");
}

/* Writes or deletes a document in the open unit. Returns: whether locks allowed it. */
static bool write_one(struct world *w, int owner, uint32_t id, struct oracle *oracle)
{
    struct oracle_doc *doc = &oracle->docs[id];
    struct view view = view_of(w, owner);
    char path[ORACLE_PATH_MAX];
    bool live = below(w, 6) != 0;

    path_to_write(w, owner, path);
    if (live && below(w, 3) == 0 && doc->live)
        memcpy(path, doc->path, sizeof path);
    if ((doc->live && !oracle_lock_doc(&w->locks, owner, (int)id, doc->path)) ||
        !oracle_lock_doc(&w->locks, owner, (int)id, live ? path : doc->path))
        return false;
    trace(w, owner, live ? "put" : "delete", doc->live ? doc->path : "-", live ? path : "");
    doc->live = live;
    if (live)
        memcpy(doc->path, path, sizeof path);
    doc->version++;
    doc->seq_no = w->next_seq_no++;
    doc_table_put(&w->table, &view, overlay_of(w, owner), id, live ? slice_from(path) : SLICE_NONE, doc->seq_no,
                  w->now);
    return true;
}

static void write_some(struct world *w, int owner, struct oracle *oracle)
{
    uint32_t first = (uint32_t)below(w, ORACLE_DOCS), count = 1 + (uint32_t)below(w, 4);

    for (uint32_t i = 0; i < count; i++)
        (void)write_one(w, owner, (first + i) % ORACLE_DOCS, oracle);
}

/* Picks a path of a document, or one above it, half of the time. */
static void random_from(struct world *w, int owner, const struct oracle *oracle, char *path)
{
    const struct oracle_doc *doc = &oracle->docs[below(w, ORACLE_DOCS)];

    oracle_random_path(&w->rng, true, path);
    if (recent_path(w, owner, path) || !doc->live || below(w, 8) == 0)
        return;
    memcpy(path, doc->path, ORACLE_PATH_MAX);
    for (uint64_t cut = below(w, 3); cut > 0; cut--) {
        char *slash = strrchr(path + 1, '/');
        if (path[0] != '\0' && slash != NULL)
            *slash = '\0';
    }
}

/* Whether a rename request may contain the path: it has no empty names. */
static bool is_plain(const char *path)
{
    size_t len = strlen(path);

    return len > 1 && strstr(path, "//") == NULL && path[len - 1] != '/';
}

/* Returns: whether a rename was done. */
static bool rename_one(struct world *w, int owner, struct oracle *oracle)
{
    char from[ORACLE_PATH_MAX], to[ORACLE_PATH_MAX];
    struct view view = view_of(w, owner);
    struct tree_writer writer = doc_table_writer(&w->table, &view, overlay_of(w, owner), w->now);

    random_from(w, owner, oracle, from);
    oracle_random_path(&w->rng, true, to);
    (void)recent_path(w, owner, to);
    for (int i = 0; i < ORACLE_DOCS; i++)
        if (oracle->docs[i].live && strlen(oracle->docs[i].path) > ORACLE_PATH_MAX / 2)
            return false;
    if (!is_plain(from) || !is_plain(to) || !oracle_lock_path(&w->locks, owner, from) ||
        !oracle_lock_path(&w->locks, owner, to))
        return false;
    bool there = doc_table_exists(&w->table, &view, slice_from(from));
    if (there != oracle_exists(oracle, from))
        fail(w, "exists", from);
    if (doc_table_exists(&w->table, &view, slice_from(to)) != oracle_exists(oracle, to))
        fail(w, "exists", to);
    if (!there || (oracle_exists(oracle, to) && !oracle_within(to, from)))
        return false;
    int64_t seq_no = w->next_seq_no++;
    int r = tree_rename(&writer, slice_from(from), slice_from(to), seq_no, owner == NO_OWNER ? w->now : TREE_TS_OPEN);
    if (r != (oracle_within(to, from) ? TREE_INTO_ITSELF : 0))
        fail(w, "rename", from);
    trace(w, owner, "rename", from, to);
    if (r == 0) {
        oracle_rename(oracle, from, to, seq_no);
        remember(w, owner, from);
        remember(w, owner, to);
    }
    w->renames += r == 0;
    return r == 0;
}

/* A request of an owner in its own unit; sometimes it fails as a whole. */
static void act(struct world *w, int owner)
{
    struct overlay *overlay = overlay_of(w, owner);
    struct oracle oracle = oracle_of(w, owner);
    size_t mark = overlay != NULL ? overlay_savepoint(overlay) : 0;
    bool fails = below(w, 8) == 0, with_unit = owner == NO_OWNER || below(w, 2) == 0;

    begin_unit(w);
    if (below(w, 2) == 0)
        for (int tries = 0; tries < 8 && !rename_one(w, owner, &oracle); tries++)
            ;
    else
        write_some(w, owner, &oracle);
    if (fails && overlay != NULL)
        overlay_rollback_to(overlay, mark); /* synthetic origins stay, or are dropped with the unit */
    if (!fails)
        set_oracle(w, owner, &oracle);
    else
        trace(w, owner, "(fails)", "", "");
    end_unit(w, !fails || !with_unit);
    if (owner == NO_OWNER)
        oracle_unlock(&w->locks, NO_OWNER);
}

static void end_transaction(struct world *w, int owner, bool commit)
{
    struct transaction *txn = &w->transactions[owner - 1];

    trace(w, owner, commit ? "commit" : "roll back", "", "");
    if (commit) {
        struct oracle oracle = oracle_of(w, owner);
        begin_unit(w);
        doc_table_commit(&w->table, txn->overlay, w->now);
        w->committed = oracle;
        end_unit(w, true);
    }
    overlay_free(txn->overlay);
    *txn = (struct transaction){0};
    oracle_unlock(&w->locks, owner);
}

/* --- Running ------------------------------------------------------------------------------------------------------ */

/* Drops everything that was not synced, and all open transactions. */
static void crash(struct world *w)
{
    for (int owner = 1; owner < ORACLE_OWNERS; owner++)
        if (overlay_of(w, owner) != NULL)
            end_transaction(w, owner, false);
    (void)store_mem_crash(w->table.store, 0);
    w->committed = w->synced;
    for (int i = 0; i < PAST; i++)
        if (w->history[i].ts > w->synced_at)
            w->history[i].ts = 0;
    trace(w, NO_OWNER, "crash", "", "");
}

static void step(struct world *w)
{
    int owner = (int)below(w, ORACLE_OWNERS);
    uint64_t what = below(w, 100);

    if (owner != NO_OWNER && overlay_of(w, owner) == NULL)
        w->transactions[owner - 1].overlay = overlay_new();
    if (what == 0)
        crash(w);
    else if (what < 25 && owner != NO_OWNER)
        end_transaction(w, owner, below(w, 3) != 0);
    else
        act(w, owner);
    int at = w->step % PAST;
    w->history[at].ts = w->now;
    w->history[at].oracle = w->committed;
}

static struct world *world_new(uint64_t seed, bool traces)
{
    struct world *w = mem_zalloc(sizeof *w);

    w->seed = seed;
    w->trace = traces;
    rng_init(&w->rng, seed);
    w->table.store = store_open_mem();
    w->table.batch = store_batch_new(w->table.store);
    w->now = 1000;
    omap_init(&w->table.pending);
    return w;
}

static void world_free(struct world *w)
{
    for (int i = 0; i < TRANSACTIONS; i++)
        overlay_free(w->transactions[i].overlay);
    omap_deinit(&w->table.pending);
    arena_deinit(&w->table.arena);
    store_batch_free(w->table.batch);
    store_close(w->table.store);
    mem_free(w);
}

int main(int argc, char **argv)
{
    uint64_t first = 1, seeds = 100, steps = STEPS_DEFAULT, checks = 0, renames = 0;
    bool traces = false;
    const struct argument arguments[] = {{"--from", .number = &first},
                                         {"--seeds", .number = &seeds},
                                         {"--steps", .number = &steps},
                                         {"--trace", .flag = &traces},
                                         {0}};

    arguments_take(argc, argv, arguments);
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        struct world *w = world_new(seed, traces);
        for (w->step = 0; w->step < (int)steps; w->step++) {
            step(w);
            check_all(w);
        }
        checks += w->checks;
        renames += w->renames;
        world_free(w);
    }
    printf("tree_sim: %llu seeds, %llu renames, %llu states compared\n", (unsigned long long)seeds,
           (unsigned long long)renames, (unsigned long long)checks);
    return 0;
}
