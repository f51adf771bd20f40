/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of births against full paths.
 *
 * One seed drives random writes, deletes and renames of documents in a small tree, alone and in transactions that overlap as far as
 * exclusive locks on paths and documents allow, with requests that fail half-way, roll-backs and crashes. After each step the newest state, a state of the past and a transaction's own must be what the plain model (oracle.h)
 * has: path, version and sequence number of every document, what lies at a path, and what lies below it. The seed of a
 * failure is printed; `tree_sim --from SEED --seeds 1` replays it, `--tell` says what it does.
 */
#include "../../lib/settle.h"
#include "oracle.h"
#include "doc_table.h"

#include "base/alloc.h"
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

enum { TRANSACTIONS = MODEL_OWNERS - 1, PAST = 24, RECENT = 3, STEPS_DEFAULT = 400, NOBODY = 0 };

struct transaction {
    struct overlay *overlay; /* NULL: not open */
    bool touched[MODEL_DOCS];
    struct model own; /* of what it touched */
};

/* What an owner renamed lately, from and to: that something comes back, and goes again, is seldom chance. */
struct recent {
    char paths[RECENT][MODEL_PATH_MAX];
};

struct world {
    uint64_t seed;
    int step;
    bool tell;
    struct rng rng;
    struct table table;
    tl_ts now;
    int64_t next_seq_no;
    struct model committed;
    struct model_locks locks;
    struct transaction transactions[TRANSACTIONS]; /* owner i + 1 */
    struct recent recent[MODEL_OWNERS];
    struct model synced; /* what a crash leaves, as it was at */
    tl_ts synced_at;
    struct {
        tl_ts ts;
        struct model model;
    } past[PAST];
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

static void tell(const struct world *w, int owner, const char *what, const char *a, const char *b)
{
    if (w->tell)
        printf("%4d  %d  %s %s %s\n", w->step, owner, what, a, b);
}

/* --- Views -------------------------------------------------------------------------------------------------------- */

static struct overlay *overlay_of(const struct world *w, int owner)
{
    return owner == NOBODY ? NULL : w->transactions[owner - 1].overlay;
}

static struct view view_of(const struct world *w, int owner)
{
    return (struct view){w->table.store, TL_TS_MAX, overlay_of(w, owner)};
}

/* What an owner sees: the committed state with what it touched itself. */
static struct model model_of(const struct world *w, int owner)
{
    struct model model = w->committed;

    for (int i = 0; owner != NOBODY && i < MODEL_DOCS; i++)
        if (w->transactions[owner - 1].touched[i])
            model.docs[i] = w->transactions[owner - 1].own.docs[i];
    return model;
}

/* An owner's state has become this. */
static void set_model(struct world *w, int owner, const struct model *model)
{
    if (owner == NOBODY) {
        w->committed = *model;
        return;
    }
    struct transaction *txn = &w->transactions[owner - 1];
    struct model before = model_of(w, owner);
    for (int i = 0; i < MODEL_DOCS; i++) {
        if (memcmp(&before.docs[i], &model->docs[i], sizeof before.docs[i]) == 0)
            continue;
        txn->touched[i] = true;
        txn->own.docs[i] = model->docs[i];
    }
}

/* --- Comparing ---------------------------------------------------------------------------------------------------- */

static void check_doc(struct world *w, const struct view *view, const struct model *model, uint32_t id)
{
    const struct model_doc *wanted = &model->docs[id];
    struct table_doc doc = table_get(&w->table, view, id);
    char text[1200];

    snprintf(text, sizeof text, "document %u: '%.*s' version %lld seq %lld, wanted '%s' %lld %lld", id,
             SLICE_ARG(doc.path), (long long)doc.version, (long long)doc.seq_no, wanted->path,
             (long long)wanted->version, (long long)wanted->seq_no);
    if (doc.live != wanted->live || doc.version != wanted->version ||
        (wanted->version > 0 && doc.seq_no != wanted->seq_no) ||
        (wanted->live && !slice_equal(doc.path, slice_from(wanted->path))))
        fail(w, "get", text);
}

static void check_search(struct world *w, const struct view *view, const struct model *model, const char *path,
                         bool with_below)
{
    bool found[MODEL_DOCS];

    if (path != NULL && path[0] == '\0' && with_below)
        return; /* no directory: what begins with its name and a delimiter hangs from the other root */
    table_search(&w->table, view, slice_from(path), with_below, found, MODEL_DOCS);
    for (int i = 0; i < MODEL_DOCS; i++) {
        const struct model_doc *doc = &model->docs[i];
        bool wanted = doc->live && (path == NULL ? doc->path[0] == '/'
                                    : with_below ? model_within(doc->path, path)
                                                 : strcmp(doc->path, path) == 0);
        if (found[i] != wanted)
            fail(w, with_below ? "search below" : "search at", path == NULL ? "(root)" : path);
    }
}

/* No path below a birth is longer than its reach and the longest birth say. */
static void check_reach(struct world *w, const struct view *view, const struct model *model, const char *path)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct tree tree = table_tree(&w->table, view);
    size_t reach, longest = 0, wanted = 0;
    struct slice birth;

    if (tree_resolve(&tree, slice_from(path), &w->table.arena, &birth) != 0)
        return;
    for (uint32_t i = 0; i < MODEL_DOCS; i++) {
        size_t len = model->docs[i].live ? table_get(&w->table, view, i).birth.len : 0;
        longest = len > longest ? len : longest;
        if (model->docs[i].live && model_within(model->docs[i].path, path) &&
            strlen(model->docs[i].path) - strlen(path) > wanted)
            wanted = strlen(model->docs[i].path) - strlen(path);
    }
    if (tree__read_length(&tree, tree_reach_key(&key, tree.index, birth), &reach) != 0)
        fail(w, "reach", path);
    if (wanted > (reach > 0 ? reach + longest : longest > birth.len ? longest - birth.len : 0))
        fail(w, "a path is longer than its directory reaches", path);
}

static void check_view(struct world *w, const struct view *view, const struct model *model)
{
    char path[MODEL_PATH_MAX];

    for (uint32_t i = 0; i < MODEL_DOCS; i++)
        check_doc(w, view, model, i);
    model_random_path(&w->rng, false, path);
    check_search(w, view, model, path, false);
    check_search(w, view, model, path, true);
    const struct model_doc *some = &model->docs[below(w, MODEL_DOCS)];
    if (some->live)
        check_search(w, view, model, some->path, below(w, 2) == 0);
    if (view->ts == TL_TS_MAX && some->live) {
        char above[MODEL_PATH_MAX];
        memcpy(above, some->path, sizeof above);
        above[tree_parent_length(slice_from(above), '/')] = '\0';
        if (above[0] != '\0')
            check_reach(w, view, model, above);
    }
    check_search(w, view, model, NULL, true);
    arena_reset(&w->table.arena);
    w->checks++;
}

/* What lies at a place by record says so itself, and the way up from it ends. */
static void check_guest(struct world *w, const struct tree *tree, struct slice place, struct slice guest)
{
    struct tree_totals standing;
    struct tree_relocation moved;

    if (tree__read_relocation(tree, guest, &w->table.arena, &moved) != 0 || moved.state != TREE_RELOCATED ||
        !slice_equal(moved.dirent, place))
        fail(w, "table", "a guest is not where its place says");
    if (tree_locate(tree, guest, &w->table.arena, NULL, &standing) < 0)
        fail(w, "table", "a birth lies below itself");
}

/* Births and places say the same of each other, and the newest rename is of the past. */
static void check_table(struct world *w, const struct view *view)
{
    struct store_iter *iter = store_iter_new(w->table.store, SPACE_TREE, TL_TS_MAX, SLICE_NONE, SLICE_NONE);
    struct tree tree = table_tree(&w->table, view);
    struct tree_relocation moved;
    struct slice guest;
    tl_ts newest;

    for (store_iter_seek_first(iter); store_iter_valid(iter); store_iter_next(iter)) {
        struct slice text = slice_from_offset(store_iter_key(iter), sizeof(uint32_t) + 1);
        char letter = store_iter_key(iter).data[sizeof(uint32_t)];
        if (letter == 'g')
            check_guest(w, &tree, text, store_iter_value(iter));
        if (letter != 'm')
            continue;
        if (tree_relocation_decode(store_iter_value(iter), &moved) != 0 || moved.ts > w->now)
            fail(w, "table", "a rename was not stamped");
        if (moved.state == TREE_RELOCATED &&
            (tree__read_dirent(&tree, moved.dirent, &w->table.arena, &guest) != 0 || !slice_equal(guest, text)))
            fail(w, "table", "a place is another's");
    }
    store_iter_free(iter);
    if (tree_last_rename(&tree, &newest, NULL) != 0 || newest > w->now)
        fail(w, "table", "the newest rename was not stamped");
}

static void check_all(struct world *w)
{
    int owner = (int)below(w, MODEL_OWNERS), at = (int)below(w, PAST);
    struct view now = view_of(w, NOBODY), own = view_of(w, owner), then = {w->table.store, w->past[at].ts, NULL};
    struct model model = model_of(w, owner);

    check_table(w, &now);
    check_view(w, &now, &w->committed);
    check_view(w, &own, &model);
    if (w->past[at].ts != 0 && below(w, 4) == 0)
        check_view(w, &then, &w->past[at].model);
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

/* --- What owners do ----------------------------------------------------------------------------------------------- */

/* A path that lately was one of a rename, now and then. Returns: whether it is. */
static bool recent_path(struct world *w, int owner, char *path)
{
    const char *recent = w->recent[owner].paths[below(w, RECENT)];

    if (recent[0] == '\0' || below(w, 2) != 0)
        return false;
    memcpy(path, recent, MODEL_PATH_MAX);
    return true;
}

static void remember(struct world *w, int owner, const char *path)
{
    memcpy(w->recent[owner].paths[below(w, RECENT)], path, MODEL_PATH_MAX);
}

/* A path to write at: below what was renamed lately as often as anywhere. */
static void path_to_write(struct world *w, int owner, char *path)
{
    model_random_path(&w->rng, false, path);
    if (!recent_path(w, owner, path) || strlen(path) > MODEL_PATH_MAX / 2)
        return;
    if (below(w, 3) != 0)
        strcat(path, below(w, 2) == 0 ? "/a" : "/b");
}

/* One document is written or deleted, in the unit at hand. Returns: whether locks allowed it. */
static bool write_one(struct world *w, int owner, uint32_t id, struct model *model)
{
    struct model_doc *doc = &model->docs[id];
    struct view view = view_of(w, owner);
    char path[MODEL_PATH_MAX];
    bool live = below(w, 6) != 0;

    path_to_write(w, owner, path);
    if (live && below(w, 3) == 0 && doc->live)
        memcpy(path, doc->path, sizeof path);
    if ((doc->live && !model_lock_doc(&w->locks, owner, (int)id, doc->path)) ||
        !model_lock_doc(&w->locks, owner, (int)id, live ? path : doc->path))
        return false;
    tell(w, owner, live ? "put" : "delete", doc->live ? doc->path : "-", live ? path : "");
    doc->live = live;
    if (live)
        memcpy(doc->path, path, sizeof path);
    doc->version++;
    doc->seq_no = w->next_seq_no++;
    table_put(&w->table, &view, overlay_of(w, owner), id, live ? slice_from(path) : SLICE_NONE, doc->seq_no, w->now);
    return true;
}

static void write_some(struct world *w, int owner, struct model *model)
{
    uint32_t first = (uint32_t)below(w, MODEL_DOCS), count = 1 + (uint32_t)below(w, 4);

    for (uint32_t i = 0; i < count; i++)
        (void)write_one(w, owner, (first + i) % MODEL_DOCS, model);
}

/* A path that something has, or one of those above it, as often as not. */
static void random_from(struct world *w, int owner, const struct model *model, char *path)
{
    const struct model_doc *doc = &model->docs[below(w, MODEL_DOCS)];

    model_random_path(&w->rng, true, path);
    if (recent_path(w, owner, path) || !doc->live || below(w, 8) == 0)
        return;
    memcpy(path, doc->path, MODEL_PATH_MAX);
    for (uint64_t cut = below(w, 3); cut > 0; cut--) {
        char *slash = strrchr(path + 1, '/');
        if (path[0] != '\0' && slash != NULL)
            *slash = '\0';
    }
}

/* What a request for a rename may name: names, and none of them empty. */
static bool is_plain(const char *path)
{
    size_t len = strlen(path);

    return len > 1 && strstr(path, "//") == NULL && path[len - 1] != '/';
}

/* Returns: whether anything was renamed. */
static bool rename_one(struct world *w, int owner, struct model *model)
{
    char from[MODEL_PATH_MAX], to[MODEL_PATH_MAX];
    struct view view = view_of(w, owner);
    struct tree_writer writer = table_writer(&w->table, &view, overlay_of(w, owner), w->now);

    random_from(w, owner, model, from);
    model_random_path(&w->rng, true, to);
    (void)recent_path(w, owner, to);
    for (int i = 0; i < MODEL_DOCS; i++)
        if (model->docs[i].live && strlen(model->docs[i].path) > MODEL_PATH_MAX / 2)
            return false;
    if (!is_plain(from) || !is_plain(to) || !model_lock_path(&w->locks, owner, from) ||
        !model_lock_path(&w->locks, owner, to))
        return false;
    bool there = table_exists(&w->table, &view, slice_from(from));
    if (there != model_exists(model, from))
        fail(w, "exists", from);
    if (table_exists(&w->table, &view, slice_from(to)) != model_exists(model, to))
        fail(w, "exists", to);
    if (!there || (model_exists(model, to) && !model_within(to, from)))
        return false;
    int64_t seq_no = w->next_seq_no++;
    int r = tree_rename(&writer, slice_from(from), slice_from(to), seq_no, owner == NOBODY ? w->now : TREE_TS_OPEN);
    if (r != (model_within(to, from) ? TREE_INTO_ITSELF : 0))
        fail(w, "rename", from);
    tell(w, owner, "rename", from, to);
    if (r == 0) {
        model_rename(model, from, to, seq_no);
        remember(w, owner, from);
        remember(w, owner, to);
    }
    w->renames += r == 0;
    return r == 0;
}

/* A request of an owner, in a unit of its own; now and then it fails as a whole. */
static void act(struct world *w, int owner)
{
    struct overlay *overlay = overlay_of(w, owner);
    struct model model = model_of(w, owner);
    size_t mark = overlay != NULL ? overlay_savepoint(overlay) : 0;
    bool fails = below(w, 8) == 0, with_unit = owner == NOBODY || below(w, 2) == 0;

    begin_unit(w);
    if (below(w, 2) == 0)
        for (int tries = 0; tries < 8 && !rename_one(w, owner, &model); tries++)
            ;
    else
        write_some(w, owner, &model);
    if (fails && overlay != NULL)
        overlay_rollback_to(overlay, mark); /* and what it made ahead stays, or goes with the unit */
    if (!fails)
        set_model(w, owner, &model);
    else
        tell(w, owner, "(fails)", "", "");
    end_unit(w, !fails || !with_unit);
    if (owner == NOBODY)
        model_unlock(&w->locks, NOBODY);
}

static void end_transaction(struct world *w, int owner, bool commit)
{
    struct transaction *txn = &w->transactions[owner - 1];

    tell(w, owner, commit ? "commit" : "roll back", "", "");
    if (commit) {
        struct model model = model_of(w, owner);
        begin_unit(w);
        table_commit(&w->table, txn->overlay, w->now);
        w->committed = model;
        end_unit(w, true);
    }
    overlay_free(txn->overlay);
    *txn = (struct transaction){0};
    model_unlock(&w->locks, owner);
}

/* --- Running ------------------------------------------------------------------------------------------------------ */

/* What was not made durable is gone, and all that was open. */
static void crash(struct world *w)
{
    for (int owner = 1; owner < MODEL_OWNERS; owner++)
        if (overlay_of(w, owner) != NULL)
            end_transaction(w, owner, false);
    (void)store_mem_crash(w->table.store, 0);
    w->committed = w->synced;
    for (int i = 0; i < PAST; i++)
        if (w->past[i].ts > w->synced_at)
            w->past[i].ts = 0;
    tell(w, NOBODY, "crash", "", "");
}

static void step(struct world *w)
{
    int owner = (int)below(w, MODEL_OWNERS);
    uint64_t what = below(w, 100);

    if (owner != NOBODY && overlay_of(w, owner) == NULL)
        w->transactions[owner - 1].overlay = overlay_new();
    if (what == 0)
        crash(w);
    else if (what < 25 && owner != NOBODY)
        end_transaction(w, owner, below(w, 3) != 0);
    else
        act(w, owner);
    int at = w->step % PAST;
    w->past[at].ts = w->now;
    w->past[at].model = w->committed;
}

static struct world *world_new(uint64_t seed, bool tells)
{
    struct world *w = mem_zalloc(sizeof *w);

    w->seed = seed;
    w->tell = tells;
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
    uint64_t first = 1, seeds = 100, checks = 0, renames = 0;
    int steps = STEPS_DEFAULT;
    bool tells = false;

    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--tell") == 0)
            tells = true;
        else if (more && strcmp(argv[i], "--from") == 0)
            first = strtoull(argv[++i], NULL, 10);
        else if (more && strcmp(argv[i], "--seeds") == 0)
            seeds = strtoull(argv[++i], NULL, 10);
        else if (more && strcmp(argv[i], "--steps") == 0)
            steps = atoi(argv[++i]);
        else
            return fprintf(stderr, "usage: tree_sim [--from SEED] [--seeds N] [--steps N] [--tell]\n"), 2;
    }
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        struct world *w = world_new(seed, tells);
        for (w->step = 0; w->step < steps; w->step++) {
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
