/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command RENAME: acquires X on both paths, then writes a few records (core/tree/README.md).
 * Outside a transaction it waits as DDL does, and locks of the session that it names do not block
 * it. In a transaction it holds its locks until the end, as a write does.
 */
#include <inttypes.h>
#include <stdarg.h>

#include "base/check.h"
#include "core/acquire/acquire.h"
#include "core/acquire/ask.h"
#include "core/acquire/grants.h"
#include "core/acquire/lock_resolve.h"
#include "core/catalog/catalog.h"
#include "core/catalog/counter.h"
#include "core/command/command.h"
#include "core/documents/path_lookup.h"
#include "core/documents/prefetch.h"
#include "core/documents/write.h"
#include "core/feed/feed.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/session/command_owner.h"
#include "core/session/cost.h"
#include "core/session/deadline.h"
#include "core/session/owner.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/tree/empty_paths.h"
#include "core/tree/tree.h"
#include "core/tree/tree_record.h"
#include "core/tree/tree_write.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "core/wait/lock_event.h"
#include "core/wait/wait.h"
#include "mapping/document.h"

enum { RENAME_REFUSED = 1 /* command->problem says why, or rename.unknown is set */ };

/* The first byte of a path, and the separator of the names that can be locked. */
static const char delimiter = '/';

/* --- Validation --------------------------------------------------------------------------------------------------- */

static int refuse_rename(struct command *command, enum problem_type type, const char *format, ...) TL_PRINTF(3, 4);
static int refuse_rename(struct command *command, enum problem_type type, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct slice reason = arena_vprintf(&command->arena, format, arguments);
    va_end(arguments);
    problem_set(&command->problem, &command->arena, type, "%.*s", SLICE_ARG(reason));
    return RENAME_REFUSED;
}

/* Returns: a path for an error text: a long one is cut, in the command's arena. */
static struct slice path_shown(struct command *command, struct slice path)
{
    if (path.len <= DESCRIBE_NAME_BYTES_MAX)
        return path;
    return describe_truncate(path, arena_alloc(&command->arena, DESCRIBE_NAME_BYTES_MAX));
}

/* Returns: the path without a delimiter at its end, which has no meaning. */
static struct slice trim_delimiter(struct slice path)
{
    bool ends = path.len > 1 && path.data[path.len - 1] == delimiter;
    return slice_make(path.data, path.len - ends);
}

static int check_paths(struct command *command)
{
    struct slice from = trim_delimiter(command->rename.from), to = trim_delimiter(command->rename.to);
    if (from.len < 2 || to.len < 2)
        return refuse_rename(command, PROBLEM_ILLEGAL_ARGUMENT,
                             "the root directory can be neither the source nor the target of a rename");
    if (to.len > DOCUMENT_PATH_MAX)
        return refuse_rename(command, PROBLEM_ILLEGAL_ARGUMENT, "a path has at most [%d] bytes", DOCUMENT_PATH_MAX);
    if (slice_utf8_valid_prefix(to) != to.len || slice_utf8_valid_prefix(from) != from.len)
        return refuse_rename(command, PROBLEM_ILLEGAL_ARGUMENT, "a path must be UTF-8");
    if (tree_within(to, from, delimiter))
        return refuse_rename(command, PROBLEM_ILLEGAL_ARGUMENT, "[%.*s] cannot be renamed to [%.*s], which is itself%s",
                             SLICE_ARG(path_shown(command, from)), SLICE_ARG(path_shown(command, to)),
                             to.len > from.len ? " or below it" : "");
    return 0;
}

/* Finds the index. Returns: 0; RENAME_REFUSED, also if its path field does not support renames. */
static int find_index(struct core *core, struct command *command, const struct catalog_index **ret_index)
{
    const struct catalog_alias *alias;
    const struct catalog_index *index;
    if (catalog_find_any(core->catalog, command->rename.index, true, command->dialect, &command->arena, &index, &alias,
                         &command->problem) != 0)
        return RENAME_REFUSED;
    if (index->closed) {
        catalog_problem_closed(&command->arena, index, command->dialect, &command->problem);
        return RENAME_REFUSED;
    }
    if (index->write_block != NULL) {
        catalog_problem_blocked(&command->arena, index->name, index->write_block, &command->problem);
        return RENAME_REFUSED;
    }
    const struct mapping_field *path = mapping_path_field(index->mapping);
    if (path == NULL)
        return refuse_rename(
            command, PROBLEM_ILLEGAL_ARGUMENT,
            "nothing can be renamed in [%.*s]: its mapping has no path field, such as [path] of type [path], or of "
            "type [keyword] with a multi-field whose analyzer's tokenizer is [path_hierarchy]",
            SLICE_ARG(index->name));
    if (!mapping_is_tree(index->mapping) || !field_has_entries(path) ||
        mapping_path_delimiter(index->mapping) != delimiter)
        return refuse_rename(
            command, PROBLEM_ILLEGAL_ARGUMENT,
            "nothing can be renamed in [%.*s]: its path field [%.*s] has not been, since before the first document, a "
            "keyword or path that is indexed whole, with [/] between names; [_reindex] its documents into an index "
            "with such a field",
            SLICE_ARG(index->name), SLICE_ARG(path->path));
    if (path->copy_to_count > 0) /* the index entries of the copies would keep the old path */
        return refuse_rename(
            command, PROBLEM_ILLEGAL_ARGUMENT,
            "nothing can be renamed in [%.*s]: its path field [%.*s] has a [copy_to], and a rename does not change "
            "copies; [_reindex] its documents into an index without [copy_to], or with a multi-field instead",
            SLICE_ARG(index->name), SLICE_ARG(path->path));
    *ret_index = index;
    return 0;
}

/* Resolves the locks: X on both paths, S on the alias. Returns: as lock_resolve__locks(). */
static int find_specs(struct core *core, struct command *command, struct lock_spec_list *ret_specs)
{
    const struct rename_command *rename = &command->rename;
    struct lock_target targets[] = {
        {.mode = LOCK_X, .index = rename->index, .path = rename->from},
        {.mode = LOCK_X, .index = rename->index, .path = rename->to},
    };
    return lock_resolve__locks(core, targets, 2, LOCK_RESOLVE_TO_RENAME, NULL, &command->arena, ret_specs,
                               &command->problem);
}

/* --- Execution ---------------------------------------------------------------------------------------------------- */

/*
 * Limits of a search (README.md of the tree, "Renames, and when they fail"). In the view of a
 * transaction: documents elsewhere, for each path; entries and directory entries, for both. Else:
 * entries and directory entries for each path.
 */
enum { MISSES_MAX = 5000, READS_MAX = 6000, SEARCH_MAX = 1000, MISS_WORK = WORK_SCAN + WORK_READ + WORK_READ };

/*
 * Stale entries that are read where all documents of a path are, for both checks of a rename together: a scan and a
 * read each. An index has hardly more before a sweep removes them (core_limits.stale_documents_min; README.md of the
 * core, "Stale posting lists"), unless single writes make them, which do not count for that, or restarts, with which
 * counting begins anew, come between.
 */
enum { STALE_MAX = 10000, STALE_WORK = WORK_SCAN + WORK_READ };

/* The reads of the checks that read all documents of a path. */
struct survey {
    size_t stale_left; /* how many more stale entries may be read */
    uint64_t work;     /* of all checks */
};

/* Counts the work of a check. Its limits bound it, but with the probes it exceeds a step: "The work of a step". */
static void survey_count(struct core *core, struct survey *survey, size_t stale_before, size_t read)
{
    REQUIRE(survey->stale_left <= stale_before);
    uint64_t work = STALE_WORK * (uint64_t)(stale_before - survey->stale_left) + MISS_WORK * (uint64_t)read;
    core__work(core, work);
    survey->work += work;
    cost_charge_work(core, work);
    core__note_indivisible(core, survey->work);
}

static int refuse_stale(struct command *command, struct slice from)
{
    return refuse_rename(command, PROBLEM_ILLEGAL_ARGUMENT,
                         "more than [%d] earlier versions of documents at [%.*s] are still indexed, too many to read: "
                         "they are removed after bulks have written some [%d] more documents of its index; until then "
                         "rename without [if_seq_no], and to a name that is not longer",
                         STALE_MAX, SLICE_ARG(path_shown(command, from)), STALE_MAX);
}

/* Checks if_seq_no of the document at `from`. Returns: 0; RENAME_REFUSED; fatal codes. */
static int check_seq_no(struct core *core, struct command *command, const struct catalog_index *index,
                        const struct view *view, struct survey *survey)
{
    const struct rename_command *rename = &command->rename;
    struct slice from = trim_delimiter(rename->from);
    int64_t seq_no;
    size_t read, stale_before = survey->stale_left;
    if (rename->if_seq_no == SEQ_NO_ANY)
        return 0;
    int r = path_lookup_max_seq_no(view, index->number, index->mapping, from, &survey->stale_left, &seq_no, &read);
    survey_count(core, survey, stale_before, read);
    if (r < 0)
        return tl_trace(r);
    if (r == PATH_LOOKUP_STALE)
        return refuse_stale(command, from);
    if (r != 0)
        return refuse_rename(command, PROBLEM_ILLEGAL_ARGUMENT,
                             "more than [%d] documents are at [%.*s]: [if_seq_no] is not compared with so many",
                             PATH_LOOKUP_SEQ_NO_DOCUMENTS_MAX, SLICE_ARG(path_shown(command, from)));
    if (seq_no == rename->if_seq_no && rename->if_primary_term == 1)
        return 0;
    struct slice wanted = arena_printf(&command->arena, "required seqNo [%" PRId64 "], primary term [%" PRId64 "]",
                                       rename->if_seq_no, rename->if_primary_term);
    if (seq_no < 0)
        return refuse_rename(command, PROBLEM_VERSION_CONFLICT,
                             "[%.*s]: version conflict, %.*s. but no document was found: a directory has the sequence "
                             "number of its own document only",
                             SLICE_ARG(path_shown(command, from)), SLICE_ARG(wanted));
    return refuse_rename(command, PROBLEM_VERSION_CONFLICT,
                         "[%.*s]: version conflict, %.*s. current document has seqNo [%" PRId64
                         "] and primary term [1]",
                         SLICE_ARG(path_shown(command, from)), SLICE_ARG(wanted), seq_no);
}

enum { PROBE_LIMITED = 1 /* the limit was reached, or the finding is out of date */ };

/* Verifies a document that a submitter found. *ret_at and *ret_below stay true. */
static int verify_document(struct core *core, const struct catalog_index *index, const struct view *view,
                           struct slice path, struct slice document, bool *ret_at, bool *ret_below)
{
    bool at, below;
    if (document.data == NULL)
        return 0;
    core__work(core, MISS_WORK);
    int r = path_lookup_verify(view, index->number, index->mapping, path, document, &at, &below);
    *ret_at |= at;
    *ret_below |= below;
    return r < 0 ? tl_trace(r) : 0;
}

/*
 * Uses a submitter's finding: verifies the documents; if it has none, the path must be unchanged.
 * Returns: 0; PROBE_LIMITED: that is not known; fatal codes.
 */
static int use_finding(struct core *core, const struct catalog_index *index, const struct view *view, struct slice path,
                       const struct path_finding *finding, bool *ret_at, bool *ret_below)
{
    REQUIRE(finding->ts != TL_TS_NONE);
    int r = verify_document(core, index, view, path, finding->document, ret_at, ret_below);
    if (r == 0)
        r = verify_document(core, index, view, path, finding->below, ret_at, ret_below);
    if (r != 0)
        return r;
    bool same_at, same_below;
    empty_paths_unchanged_since(&core->empty_paths, index->number, path, finding->ts, &same_at, &same_below);
    bool knows_at = *ret_at || (same_at && finding->document.data == NULL);
    bool knows_below = *ret_below || (same_below && finding->below.data == NULL);
    return knows_at && knows_below ? 0 : PROBE_LIMITED;
}

/* As probe_path(), in the newest committed state. */
static int probe_committed(struct core *core, const struct command *command, const struct catalog_index *index,
                           const struct view *view, struct slice path, const struct path_finding *finding, bool *ret_at,
                           bool *ret_below)
{
    REQUIRE(view->overlay == NULL);
    size_t read;
    if (empty_paths_contains(&core->empty_paths, index->number, path, delimiter))
        return 0;
    if (finding->ts != TL_TS_NONE)
        return use_finding(core, index, view, path, finding, ret_at, ret_below);
    int r = path_lookup_exists_limited(view, index->number, index->mapping, path,
                                       command->rename.single_step ? SIZE_MAX : SEARCH_MAX, ret_at, ret_below, &read);
    core__work(core, MISS_WORK * (uint64_t)read);
    if (r == 0 && !*ret_at && !*ret_below && !command->rename.single_step)
        empty_paths_add(&core->empty_paths, index->number, path, delimiter);
    return r == PATH_LOOKUP_INCOMPLETE ? PROBE_LIMITED : r;
}

/*
 * Finds whether documents are at a path, and below it. An empty path is costly to prove: that may
 * read every document that was ever there. Hence the findings of submitters and the known paths,
 * and a limit of what the step reads without them. The view of a transaction has neither, and
 * lowers *reads_left.
 * Returns: 0; PROBE_LIMITED; fatal codes.
 */
static int probe_path(struct core *core, const struct command *command, const struct catalog_index *index,
                      const struct view *view, struct slice path, const struct path_finding *finding,
                      size_t *reads_left, bool *ret_at, bool *ret_below)
{
    size_t misses, before = *reads_left;
    *ret_at = *ret_below = false;
    if (view->overlay == NULL)
        return probe_committed(core, command, index, view, path, finding, ret_at, ret_below);
    int r = path_lookup_exists_within(view, index->number, index->mapping, path, MISSES_MAX,
                                      command->rename.single_step ? NULL : reads_left, ret_at, ret_below, &misses);
    ENSURE(*reads_left <= before);
    core__work(core, MISS_WORK * (uint64_t)(command->rename.single_step ? misses : before - *reads_left));
    return r == PATH_LOOKUP_INCOMPLETE ? PROBE_LIMITED : r;
}

/* Ends a rename whose paths could not be probed: the submitter searches, or it is refused. */
static int end_probe(struct command *command, const struct view *view, struct slice path)
{
    if (view->overlay == NULL) {
        command->rename.unknown = true;
        return RENAME_REFUSED;
    }
    return refuse_rename(
        command, PROBLEM_ILLEGAL_ARGUMENT,
        "cannot determine whether documents are at [%.*s] or below it: more than [%d] that were there were renamed or "
        "deleted one by one, too many to read in a transaction; rename outside of transactions",
        SLICE_ARG(path_shown(command, path)), MISSES_MAX);
}

/*
 * Checks that `from` exists, and `to` does not.
 * Returns: 0, with rename->document and ->directory; RENAME_REFUSED; fatal codes.
 */
static int check_existence(struct core *core, struct command *command, const struct catalog_index *index,
                           const struct overlay *overlay, struct survey *survey)
{
    struct rename_command *rename = &command->rename;
    struct slice from = trim_delimiter(rename->from), to = trim_delimiter(rename->to);
    struct view view = core__view(core, overlay);
    bool at, below;
    size_t reads_left = READS_MAX;
    int r = 0;
    if (from.len <= DOCUMENT_PATH_MAX) /* no document has a longer path, and no longer one is watched */
        r = probe_path(core, command, index, &view, from, &rename->found_from, &reads_left, &rename->document,
                       &rename->directory);
    if (r < 0)
        return tl_trace(r);
    if (r != 0)
        return end_probe(command, &view, from);
    if (!rename->document && !rename->directory)
        return refuse_rename(command, PROBLEM_PATH_MISSING, "nothing is at [%.*s] in [%.*s], nor below it",
                             SLICE_ARG(path_shown(command, from)), SLICE_ARG(index->name));
    if (!rename->directory && from.len < rename->from.len)
        return refuse_rename(command, PROBLEM_ILLEGAL_ARGUMENT, "[%.*s] is not a directory: nothing is below it",
                             SLICE_ARG(path_shown(command, from)));
    r = check_seq_no(core, command, index, &view, survey);
    if (r != 0)
        return r;
    r = probe_path(core, command, index, &view, to, &rename->found_to, &reads_left, &at, &below);
    if (r < 0)
        return tl_trace(r);
    if (r != 0 && !at && !below)
        return end_probe(command, &view, to);
    return at || below ? refuse_rename(command, PROBLEM_PATH_EXISTS, "[%.*s] exists in [%.*s] already%s",
                                       SLICE_ARG(path_shown(command, to)), SLICE_ARG(index->name),
                                       at ? "" : ", with documents below it")
                       : 0;
}

/*
 * Checks that the version of each document can be increased.
 * Returns: 0; RENAME_REFUSED; fatal codes.
 */
static int check_versions(struct core *core, struct command *command, const struct catalog_index *index,
                          const struct overlay *overlay)
{
    struct slice from = trim_delimiter(command->rename.from), id;
    struct view view = core__view(core, overlay);
    size_t read;
    int r = path_lookup_max_version(&view, index->number, index->mapping, from, &command->arena, &id, &read);
    core__work(core, (WORK_SCAN + WORK_READ) * (uint64_t)read);
    if (r < 0)
        return tl_trace(r);
    if (r != 0)
        return refuse_rename(
            command, PROBLEM_ILLEGAL_ARGUMENT,
            "more than [%d] documents of [%.*s] have versions so high that a rename may not be able to raise them",
            PATH_LOOKUP_HIGH_VERSIONS_MAX, SLICE_ARG(index->name));
    return id.data == NULL ? 0
                           : refuse_rename(command, PROBLEM_ILLEGAL_ARGUMENT,
                                           "the version of [%.*s] cannot be raised any more", SLICE_ARG(id));
}

/*
 * Checks that no path becomes longer than DOCUMENT_PATH_MAX. The tree has an upper bound of the
 * path lengths; if that is too large, the documents are read, provided they are few.
 * Returns: 0; RENAME_REFUSED; fatal codes.
 */
static int check_length(struct core *core, struct command *command, const struct catalog_index *index,
                        const struct overlay *overlay, struct survey *survey)
{
    struct slice from = trim_delimiter(command->rename.from), to = trim_delimiter(command->rename.to);
    struct view view = core__view(core, overlay);
    struct tree tree = {.view = &view, .index = index->number, .delimiter = delimiter, .pending = &core->tree_pending};
    size_t below, origin, longest, read, stale_before = survey->stale_left;
    int r = tree_reach(&tree, from, &below, &origin);
    if (r != 0)
        return tl_trace(r < 0 ? r : TL_ERR_CORRUPT); /* check_existence() has found it */
    if (origin > TREE_ORIGIN_MAX)
        return refuse_rename(
            command, PROBLEM_ILLEGAL_ARGUMENT,
            "[%.*s] was created and renamed below long paths too often to be renamed again: [_reindex] its documents",
            SLICE_ARG(path_shown(command, from)));
    if (to.len <= from.len || to.len + below <= DOCUMENT_PATH_MAX)
        return 0;
    r = path_lookup_longest_path(&view, index->number, index->mapping, from, &survey->stale_left, &longest, &read);
    survey_count(core, survey, stale_before, read);
    if (r < 0)
        return tl_trace(r);
    if (r == PATH_LOOKUP_STALE)
        return refuse_stale(command, from);
    if (r != 0)
        return refuse_rename(
            command, PROBLEM_ILLEGAL_ARGUMENT,
            "paths below [%.*s] may become longer than [%d] bytes, and more than [%d] documents are there, too "
            "many to check: choose a name that is not longer than the present one, or [_reindex] them",
            SLICE_ARG(path_shown(command, from)), DOCUMENT_PATH_MAX, PATH_LOOKUP_LONGEST_MAX);
    if (longest - from.len + to.len > DOCUMENT_PATH_MAX)
        return refuse_rename(
            command, PROBLEM_ILLEGAL_ARGUMENT,
            "a path below [%.*s] would have [%zu] bytes; the limit is [%d]: give the deepest directories shorter names "
            "first, or choose a shorter name",
            SLICE_ARG(path_shown(command, from)), longest - from.len + to.len, DOCUMENT_PATH_MAX);
    return 0;
}

/*
 * Adds the rename to the feed; in a transaction to its overlay, in order, for the feed at commit.
 */
static void record_change(struct core *core, struct overlay *overlay, const struct catalog_index *index,
                          struct slice from, struct slice to)
{
    const struct feed_change change = {.kind = FEED_RENAMED, .index = index->number, .name = from, .to = to};
    struct buf key = BUF_INIT(16), value = BUF_INIT(BUF_UNLIMITED);
    if (overlay == NULL) {
        feed__record_change(core, &change, false);
        return;
    }
    buf_u64be(&key, overlay_count_in(overlay, SPACE_FEED));
    feed_change_put(&value, &change);
    overlay_put(overlay, SPACE_FEED, buf_as_slice(&key), buf_as_slice(&value));
    buf_deinit(&key);
    buf_deinit(&value);
}

/*
 * Returns: the timestamp from which the tree keeps earlier states of origins; 0: it need not.
 *          Documents of an ended session that are still to be purged count the renames before its
 *          end only; its creation is a lower bound of that time.
 */
static tl_ts origins_needed_from(const struct core *core)
{
    tl_ts first = TL_TS_MAX;

    if (!session__any_terminating(core))
        return 0;
    for (const struct list *at = core->owners->sessions_to_purge.next; at != &core->owners->sessions_to_purge;
         at = at->next) {
        const struct session *session = list_entry(at, struct session, of_terminating);
        first = session->created < first ? session->created : first;
    }
    return first;
}

/*
 * Checks that few documents at or below `from`, which move in the lock table with the rename, are locked: by the
 * session of the rename, since others have no locks there. Those that others request do not count, since neither the
 * session nor the client could do anything about them. A transaction's renames move documents at its commit, which has
 * no such limit. Returns: 0; RENAME_REFUSED.
 */
static int check_locked(const struct core *core, struct command *command, const struct catalog_index *index,
                        const struct txn *txn)
{
    struct slice from = trim_delimiter(command->rename.from), to = trim_delimiter(command->rename.to);
    if (txn != NULL || lock_resolve__count_renamed(core, index->name, from, to) <= RELOCATED_MAX)
        return 0;
    return refuse_rename(command, PROBLEM_ILLEGAL_ARGUMENT,
                         "more than [%d] documents at [%.*s] or below it are locked, or fewer that have or get longer "
                         "paths: release these locks first, or lock the directory instead",
                         RELOCATED_MAX, SLICE_ARG(path_shown(command, from)));
}

/* Renames; `txn` NULL: outside a transaction. Returns: 0, done or refused; fatal codes. */
static int rename_directory(struct core *core, struct command *command, struct txn *txn)
{
    struct rename_command *rename = &command->rename;
    const struct catalog_index *index;
    struct survey survey = {core->command_version >= COMMAND_SINCE_MOVES_BOUNDED ? STALE_MAX : SIZE_MAX, 0};
    int r = find_index(core, command, &index);
    if (r == 0)
        r = check_existence(core, command, index, txn == NULL ? NULL : txn->overlay, &survey);
    if (r == 0)
        r = check_length(core, command, index, txn == NULL ? NULL : txn->overlay, &survey);
    if (r == 0)
        r = check_versions(core, command, index, txn == NULL ? NULL : txn->overlay);
    if (r == 0)
        r = check_locked(core, command, index, txn);
    if (r != 0)
        return r < 0 ? tl_trace(r) : 0;
    struct overlay *overlay = txn == NULL ? NULL : txn__overlay(core, txn);
    struct view view = core__view(core, overlay);
    struct tree_writer writer = {
        .tree = {.view = &view, .index = index->number, .delimiter = delimiter, .pending = &core->tree_pending},
        .overlay = overlay,
        .batch = core->batch,
        .pending = &core->tree_pending,
        .ts = core->ts,
        .origins_created = &core->origins_created,
        .history_from = origins_needed_from(core)};
    rename->seq_no = counter__take_seq_no(&core->counters, counters__of(&core->counters, index->number),
                                          mapping_type_at(index->mapping, 0)->number);
    r = tree_rename(&writer, trim_delimiter(rename->from), trim_delimiter(rename->to), rename->seq_no,
                    overlay == NULL ? core->ts : TREE_TS_OPEN);
    if (r != 0)
        return tl_trace(r < 0 ? r : TL_ERR_CORRUPT); /* check_existence() has found it */
    record_change(core, overlay, index, trim_delimiter(rename->from), trim_delimiter(rename->to));
    if (overlay != NULL)
        return 0;
    empty_paths_invalidate_subtree(&core->empty_paths, index->number, trim_delimiter(rename->to));
    if (!rename->single_step) /* core/tree/README.md, "Renames, and when they fail", 3 */
        empty_paths_add(&core->empty_paths, index->number, trim_delimiter(rename->from), delimiter);
    recent_writes_invalidate_all(&core->recent_writes, core->ts);
    return lock_resolve__relocate_renamed(core, arena_copy(&core->arena, index->name), trim_delimiter(rename->from));
}

int core__do_places_watch(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_PLACES_WATCH);
    struct places_command *places = &command->places;
    struct problem ignored = {0};
    const struct catalog_alias *alias;
    const struct catalog_index *index;
    if (catalog_find_any(core->catalog, places->index, true, command->dialect, &command->arena, &index, &alias,
                         &ignored) != 0)
        return 0;
    for (size_t i = 0; i < sizeof places->paths / sizeof *places->paths; i++) {
        struct slice path = trim_delimiter(places->paths[i]);
        places->empty[i] = empty_paths_contains(&core->empty_paths, index->number, path, delimiter);
        if (!places->empty[i] && path.len <= DOCUMENT_PATH_MAX) /* the state has all of these paths */
            empty_paths_watch(&core->empty_paths, index->number, path, delimiter, core->ts);
    }
    return 0;
}

/* --- Locks -------------------------------------------------------------------------------------------------------- */

static bool token_is_valid(const struct core *core, const struct lock_spec_list *specs, struct command *command,
                           const struct owner *owner)
{
    for (size_t i = 0; i < specs->count; i++)
        if (specs->items[i].on.space == RESOURCE_SPACE_TREE &&
            !command_owner__check_token(core, command, &specs->items[i].on, owner, &command->problem))
            return false;
    return true;
}

static void free_wait(struct core *core, struct wait *wait)
{
    struct txn *txn = wait->txn;
    wait__free(core, wait);
    if (txn != NULL)
        txn__touch(core, txn);
}

/*
 * Resolves both paths, requests their locks, and runs or parks the rename.
 * Returns: 0, done or refused, and the wait freed; CORE_WAITS; fatal codes.
 */
static int acquire_rename_locks(struct core *core, struct wait *wait, uint64_t until)
{
    struct command *command = wait->command;
    const struct owner *owner = wait->txn != NULL       ? &wait->txn->owner
                                : wait->session != NULL ? &wait->session->owner
                                                        : NULL;
    struct lock_spec_list specs;
    int r = find_specs(core, command, &specs);
    if (r == 0 && wait->txn == NULL)
        lock_resolve__drop_unheld(core, wait->owner, wait->session, &specs);
    if (r != 0 || !token_is_valid(core, &specs, command, owner)) {
        free_wait(core, wait);
        return r < 0 ? tl_trace(r) : 0;
    }
    enum ask_outcome outcome = ask__locks(core, wait, specs.items, specs.count, until);
    switch (outcome) {
    case ASK_GRANTED: r = rename_directory(core, command, wait->txn); break;
    case ASK_PARKED: return CORE_WAITS;
    case ASK_BLOCKED:
    case ASK_FULL: ask__explain(core, wait, outcome, PROBLEM_LOCK_WAIT_TIMEOUT); break;
    case ASK_VICTIM: ask__fail_victim(core, wait); return 0;
    }
    free_wait(core, wait);
    return r;
}

/*
 * Upper bound of a rename's memory in a transaction: copies of both paths, and HELD_BYTES for the
 * rest.
 */
enum { HELD_COPIES = 8, HELD_BYTES = 1024, LOCK_BYTES = 256 };

static bool too_large(const struct core *core, const struct command *command, const struct txn *txn)
{
    size_t names = command->rename.from.len + command->rename.to.len;
    size_t held =
        txn->overlay == NULL ? 0 : overlay_memory_bytes(txn->overlay) + overlay_bytes_in(txn->overlay, SPACE_FEED);
    uint64_t changes = txn->overlay == NULL ? 0 : write__overlay_changes(txn->overlay);
    return held + owner__lock_bytes(core, &txn->owner.locks) + 2 * LOCK_BYTES + HELD_COPIES * names + HELD_BYTES >
               core->limits.transaction_held_max ||
           changes + 1 > core->limits.transaction_changes_max;
}

/* Checks the limits of a transaction before it acquires locks, which it could not release. */
static bool is_within_limits(struct core *core, struct command *command, const struct txn *txn)
{
    const struct lock_owner *owner = &txn->owner.locks;
    size_t most = core->limits.locks_per_session_max;
    if (owner__lock_count(owner, lock_specs__counted(core)) + 2 > most)
        problem_set(&command->problem, &command->arena, PROBLEM_TRANSACTION_TOO_LARGE,
                    "a transaction holds at most [%zu] locks", most);
    else if (too_large(core, command, txn))
        problem_set(&command->problem, &command->arena, PROBLEM_TRANSACTION_TOO_LARGE,
                    "a transaction holds at most [%zu] bytes with their entries and locks, and [%zu] changes; this "
                    "request was not executed, earlier changes of the transaction are kept",
                    core->limits.transaction_held_max, core->limits.transaction_changes_max);
    return command->problem.type == PROBLEM_NONE;
}

int core__do_rename(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_RENAME);
    const struct command_owner *owner = &command->owner;
    const struct catalog_index *index;
    struct session *session = NULL;
    struct txn *txn = NULL;
    struct lock_spec_list specs;
    int r = find_index(core, command, &index);
    if (r == 0)
        r = find_specs(core, command, &specs); /* an invalid path is refused first */
    if (r == 0)
        r = check_paths(command);
    if (r != 0)
        return r < 0 ? tl_trace(r) : 0;
    if (!owners_any_locks(core->owners) && owner->session.len == 0 && owner->transaction.len == 0 &&
        owner->fencing_token == 0)
        return rename_directory(core, command, NULL);
    if (owner->transaction.len == 0 && !command_owner__session(core, command, &session))
        return 0;
    if (owner->transaction.len > 0) {
        txn = txn__find(core, owner->transaction, owner->session, &command->arena, &command->problem);
        if (txn == NULL)
            return 0;
        if (!is_within_limits(core, command, txn)) {
            txn__touch(core, txn);
            return 0;
        }
    }
    struct wait *wait = wait__new(core, command, txn == NULL ? NULL : &txn->owner.locks, session, txn);
    return acquire_rename_locks(core, wait, deadline_after(core, owner->timeout_us));
}

static int resume_rename(struct core *core, struct wait *wait)
{
    return acquire_rename_locks(core, wait, wait->until);
}

const struct wait_ops rename__wait_ops = {wait__on_grant, resume_rename, wait__on_timeout, grants__on_deadlock, NULL};
