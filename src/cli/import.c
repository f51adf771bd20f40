/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tidelock import`: walks a file tree and loads it into an index, a document a file or directory.
 *
 * The tree is walked twice, first only to count, so that the bar can show the progress. Documents
 * are created, not overwritten: run again after an interruption, it continues there.
 *
 * The document of a file is the one at its path. In an existing index, documents may have been
 * renamed, so each batch is looked up by its paths first: a document that is found keeps its id. A
 * new one gets the id derived from its path, or, if a document that was renamed since has that id,
 * an id derived from the path and this run. Files whose names are no UTF-8 may have one path in
 * their documents, and ids of their own: each file of a batch gets another document of that path.
 */
#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/error.h"
#include "base/map.h"
#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/escape.h"
#include "cli/file_doc.h"
#include "cli/loader.h"
#include "cli/progress.h"
#include "json/each.h"
#include "json/json.h"

struct import_options {
    const char *directory;
    const char *index;
    const char *type; /* of documents, for servers and clients of 5.x; NULL: none */
    const char *root; /* NULL: paths as they are */
    const char *url;
    unsigned jobs;
    unsigned tries;
    size_t contents_bytes_max;
    bool contents;
    bool update;
    bool one_file_system;
    bool quiet;
};

enum { OPTION_TYPE = 256, OPTION_ROOT, OPTION_CONTENTS, OPTION_CONTENTS_MAX, OPTION_URL, OPTION_UPDATE, OPTION_TRIES };

enum {
    BATCH_BYTES = 1 << 20,
    BATCH_COUNT = 1000,
    CONTENTS_DEFAULT = 64 << 10,
    JOBS_DEFAULT = 4,
    TRIES_DEFAULT = 10,
};

static const struct argp_option options[] = {
    {"index", 'i', "NAME", 0, "The index to load into; created if missing", 1},
    {"root", OPTION_ROOT, "PATH", 0, "Replace DIR by PATH in the paths of documents", 1},
    {"type", OPTION_TYPE, "NAME", 0, "Give documents a type, as in Elasticsearch 5", 1},
    {"contents", OPTION_CONTENTS, NULL, 0, "Also load the text of small text files", 1},
    {"contents-max", OPTION_CONTENTS_MAX, "SIZE", 0, "The limit of --contents (64k)", 1},
    {"update", OPTION_UPDATE, NULL, 0, "Overwrite existing documents", 1},
    {"one-file-system", 'x', NULL, 0, "Do not cross file systems", 1},
    {"url", OPTION_URL, "URL", 0, "The server (" ARGUMENTS_URL_DEFAULT ")", 2},
    CLIENT_OPTIONS(2),
    {"jobs", 'j', "N", 0, "Concurrent requests (4)", 2},
    {"tries", OPTION_TRIES, "N", 0, "Attempts for each batch (10)", 2},
    {"quiet", 'q', NULL, 0, "Do not show progress", 2},
    {0},
};

static const char doc[] =
    "Load the file tree DIR into an index: one document {name, path, size, mtime, mode, type, owner} per file.\v"
    "A missing index is created with a mapping for file trees: `term` on path.tree finds everything below a directory. "
    "After an interruption it can be run again: it skips existing documents, by their paths, also by those that a "
    "rename changed. Exit status 0 if everything is in the index, 1 if a document failed.\n\n"
    "Examples:\n"
    "  tidelock import /usr --index fs\n"
    "  tidelock import ~/projects --index fs --root /clinton/projects --contents\n";

static error_t parse_import_option(int key, char *text, struct argp_state *state)
{
    struct import_options *o = state->input;
    switch (key) {
    case 'i': o->index = text; break;
    case OPTION_TYPE: o->type = text; break;
    case OPTION_ROOT: o->root = text; break;
    case OPTION_CONTENTS: o->contents = true; break;
    case OPTION_CONTENTS_MAX: o->contents_bytes_max = arguments_size(state, "contents-max", text); break;
    case OPTION_UPDATE: o->update = true; break;
    case 'x': o->one_file_system = true; break;
    case OPTION_URL: o->url = text; break;
    case 'j': o->jobs = (unsigned)arguments_number(state, "jobs", text, 1, 256); break;
    case OPTION_TRIES: o->tries = (unsigned)arguments_number(state, "tries", text, 1, 1000); break;
    case 'q': o->quiet = true; break;
    case ARGP_KEY_ARG:
        if (o->directory != NULL)
            arguments_error(state, "too many arguments: '%s'; expected DIR", text);
        o->directory = text;
        break;
    case ARGP_KEY_END:
        if (o->directory == NULL)
            arguments_error(state, "missing argument; expected DIR");
        if (o->index == NULL)
            arguments_error(state, "missing option --index=NAME");
        break;
    default: return client_option(key, text);
    }
    return 0;
}

static FTS *walk_open(const struct import_options *o, int flags)
{
    char *const roots[] = {(char *)(uintptr_t)o->directory, NULL};
    flags |= FTS_PHYSICAL | FTS_NOCHDIR | (o->one_file_system ? FTS_XDEV : 0);
    return fts_open(roots, flags, NULL);
}

/* Returns: how many documents the tree will be. */
static uint64_t count_files(const struct import_options *o)
{
    uint64_t count = 0;
    FTS *walk = walk_open(o, o->one_file_system ? 0 : FTS_NOSTAT);
    const FTSENT *entry;
    while (walk != NULL && (entry = fts_read(walk)) != NULL)
        count += entry->fts_info != FTS_DP && entry->fts_info != FTS_ERR && entry->fts_info != FTS_NS;
    if (walk != NULL)
        fts_close(walk);
    return count;
}

/* Returns: the path of the document: the file's own, or below --root. */
static struct slice document_path(const struct import_options *o, struct slice file, struct buf *to)
{
    if (o->root == NULL)
        return file;
    size_t below = strcmp(o->directory, "/") == 0 ? 0 : strlen(o->directory);
    struct slice root = slice_from(o->root);
    while (root.len > 0 && root.data[root.len - 1] == '/')
        root.len--;
    struct slice rest = slice_from_offset(file, below);
    buf_clear(to);
    buf_slice(to, root);
    buf_slice(to, rest);
    if (to->len == 0)
        buf_byte(to, '/');
    return buf_as_slice(to);
}

/* --- Existing documents ------------------------------------------------------------------------------------------- */

/* The document of a file, not sent yet. */
struct pending {
    char id[FILE_DOC_ID_BYTES + 1]; /* derived from the file's path */
    struct slice path;              /* in the document */
    struct slice body;
    struct slice found;       /* the id of the existing document at its path; data NULL: none */
    struct pending *namesake; /* another file of the batch with the same path in its document; NULL: none */
    bool taken;               /* a document at another path has its id */
};

/* The documents to be sent next. */
struct batch {
    const struct import_options *options;
    struct loader *loader;
    struct client client;
    bool looks; /* the index existed before this run: look documents up */
    uint64_t run;
    struct pending items[BATCH_COUNT];
    size_t count;
    size_t bytes;
    struct arena arena;
};

static void write_query(const struct batch *batch, struct buf *to)
{
    buf_lit(to, "{\"size\":10000,\"_source\":[\"path\"],\"query\":{\"bool\":{\"should\":[{\"terms\":{\"path\":[");
    for (size_t i = 0; i < batch->count; i++) {
        if (i > 0)
            buf_byte(to, ',');
        buf_json_string(to, batch->items[i].path);
    }
    buf_lit(to, "]}},{\"ids\":{\"values\":[");
    for (size_t i = 0; i < batch->count; i++) {
        if (i > 0)
            buf_byte(to, ',');
        buf_json_string(to, slice_from(batch->items[i].id));
    }
    buf_lit(to, "]}}]}}}");
}

static struct slice path_of(yyjson_val *hit)
{
    yyjson_val *path = yyjson_obj_get(yyjson_obj_get(hit, "_source"), "path");
    return yyjson_is_str(path) ? json_slice(path) : SLICE_LIT("");
}

/* Records the found documents that have the ids derived from their files' paths, at these paths or moved away. */
static void note_derived(const struct map *by_id, yyjson_val *hits)
{
    size_t i, max;
    yyjson_val *hit;
    json_arr_foreach (hits, i, max, hit) {
        struct pending *item = map_get(by_id, json_slice(yyjson_obj_get(hit, "_id")));
        if (item == NULL)
            continue;
        if (slice_equal(item->path, path_of(hit)))
            item->found = slice_from(item->id);
        else
            item->taken = true;
    }
}

/* Records the other found documents, each for a file at its path that has none yet. */
static void note_others(struct batch *batch, const struct map *by_path, const struct map *by_id, yyjson_val *hits)
{
    size_t i, max;
    yyjson_val *hit;
    json_arr_foreach (hits, i, max, hit) {
        struct slice id = json_slice(yyjson_obj_get(hit, "_id"));
        struct pending *item = map_get(by_path, path_of(hit)), *same = map_get(by_id, id);
        if (same != NULL && !same->taken)
            continue;
        while (item != NULL && item->found.data != NULL)
            item = item->namesake;
        if (item != NULL)
            item->found = arena_copy(&batch->arena, id);
    }
}

static bool is_transient(long status)
{
    return status == 0 || status == 429 || status == 502 || status == 503 || status == 504;
}

/* Finds the existing documents. Returns: 0; TL_ERR_IO, printed. */
static int look_up(struct batch *batch)
{
    const struct import_options *o = batch->options;
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf query = BUF_INIT(BUF_UNLIMITED);
    struct map by_path = MAP_INIT, by_id = MAP_INIT;
    long status = 0;
    buf_byte(&path, '/');
    client_escape(&path, slice_from(o->index));
    buf_lit(&path, "/_search?filter_path=hits.hits._id,hits.hits._source");
    buf_byte(&path, '\0');
    write_query(batch, &query);
    for (unsigned tries = 1; tries <= o->tries; tries++) {
        status = client_request(&batch->client, "POST", path.data, buf_as_slice(&query), 0);
        if (!is_transient(status) || tries == o->tries)
            break;
        struct timespec pause = {.tv_sec = tries < 5 ? 0 : 5, .tv_nsec = tries < 5 ? tries * 100000000L : 0};
        nanosleep(&pause, NULL);
    }
    if (status != 200) {
        fprintf(stderr, "tidelock import: cannot look up the documents of '%s': %s\n", o->index,
                client_error(&batch->client, status));
        return TL_ERR_IO;
    }
    for (size_t i = 0; i < batch->count; i++) {
        struct pending *item = &batch->items[i];
        item->namesake = map_put(&by_path, item->path, item);
        map_put(&by_id, slice_from(item->id), item);
    }
    yyjson_val *hits = yyjson_obj_get(yyjson_obj_get(client_json(&batch->client), "hits"), "hits");
    note_derived(&by_id, hits);
    note_others(batch, &by_path, &by_id, hits);
    map_deinit(&by_path);
    map_deinit(&by_id);
    return 0;
}

/* Replaces the id of a document, which is taken, by one of this run. */
static void make_id_of_run(const struct batch *batch, struct pending *item)
{
    tl_cleanup(buf_deinit) struct buf text = BUF_INIT(BUF_UNLIMITED);
    buf_slice(&text, slice_from(item->id));
    buf_u64be(&text, batch->run);
    file_doc_id(buf_as_slice(&text), item->id);
}

/* Hands a batch to the loader. Returns: 0; TL_ERR_IO. */
static int send_batch(struct batch *batch)
{
    int r = batch->looks && batch->count > 0 ? look_up(batch) : 0;
    for (size_t i = 0; r == 0 && i < batch->count; i++) {
        struct pending *item = &batch->items[i];
        if (item->found.data == NULL && item->taken)
            make_id_of_run(batch, item);
        struct buf *body = loader_begin(batch->loader, item->found.data != NULL ? item->found : slice_from(item->id));
        buf_slice(body, item->body);
        r = loader_commit(batch->loader);
    }
    batch->count = batch->bytes = 0;
    arena_reset(&batch->arena);
    return r;
}

/* Returns: 0; TL_ERR_IO. */
static int add_file(struct batch *batch, struct file_doc_maker *maker, struct slice said, const FTSENT *entry)
{
    tl_cleanup(buf_deinit) struct buf body = BUF_INIT(BUF_UNLIMITED), path = BUF_INIT(BUF_UNLIMITED);
    struct pending *item = &batch->items[batch->count++];
    file_doc_text(said, &path);
    *item = (struct pending){.path = arena_copy(&batch->arena, buf_as_slice(&path))};
    file_doc_id(said, item->id);
    file_doc_write(maker, &body, said, entry->fts_accpath, entry->fts_statp);
    item->body = arena_copy(&batch->arena, buf_as_slice(&body));
    batch->bytes += body.len;
    return batch->count == BATCH_COUNT || batch->bytes >= BATCH_BYTES ? send_batch(batch) : 0;
}

/* --- Loading ------------------------------------------------------------------------------------------------------ */

static int load_batches(const struct import_options *o, struct batch *batch, struct progress *progress,
                        uint64_t *ret_unreadable)
{
    struct file_doc_options doc_options = {.content_bytes_max = o->contents ? o->contents_bytes_max : 0};
    struct file_doc_maker maker;
    struct buf path = BUF_INIT(BUF_UNLIMITED);
    FTS *walk = walk_open(o, 0);
    const FTSENT *entry;
    int r = 0;
    file_doc_maker_init(&maker, &doc_options);
    while (r == 0 && walk != NULL && (entry = fts_read(walk)) != NULL) {
        if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS) {
            progress_clear();
            fprintf(stderr, "tidelock import: %s: %s\n", escape_terminal(entry->fts_path), strerror(entry->fts_errno));
            ++*ret_unreadable;
        }
        if (entry->fts_info == FTS_DP || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS ||
            entry->fts_info == FTS_DNR || entry->fts_info == FTS_DC)
            continue;
        struct slice said = document_path(o, (struct slice){entry->fts_path, entry->fts_pathlen}, &path);
        r = add_file(batch, &maker, said, entry);
        progress_set(progress, loader_counts(batch->loader)->sent);
    }
    if (walk != NULL)
        fts_close(walk);
    if (r == 0)
        r = send_batch(batch);
    if (r == 0)
        r = loader_finish(batch->loader);
    buf_deinit(&path);
    file_doc_maker_deinit(&maker);
    return r;
}

static void write_index_body(struct buf *to, const char *type)
{
    buf_lit(to, "{\"settings\":{\"number_of_shards\":1,\"number_of_replicas\":0,"
                "\"analysis\":{\"analyzer\":{\"paths\":{\"tokenizer\":\"path_hierarchy\"}}}},\"mappings\":{");
    if (type != NULL) {
        buf_json_string(to, slice_from(type));
        buf_lit(to, ":{");
    }
    buf_lit(to, "\"properties\":{"
                "\"path\":{\"type\":\"keyword\",\"fields\":{\"tree\":{\"type\":\"text\",\"analyzer\":\"paths\"}}},"
                "\"name\":{\"type\":\"keyword\"},\"size\":{\"type\":\"long\"},\"mtime\":{\"type\":\"date\"},"
                "\"mode\":{\"type\":\"keyword\"},\"type\":{\"type\":\"keyword\"},"
                "\"owner\":{\"type\":\"keyword\"},\"content\":{\"type\":\"text\"}}");
    if (type != NULL)
        buf_byte(to, '}');
    buf_lit(to, "}}");
}

/* Makes the index if it does not exist. Returns: 0, or the exit status: the server cannot be reached, or refuses. */
static int make_index(const struct import_options *o, bool *ret_made)
{
    struct client client;
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf body = BUF_INIT(BUF_UNLIMITED);
    client_init_tidelock(&client, o->url);
    buf_byte(&path, '/');
    client_escape(&path, slice_from(o->index));
    buf_byte(&path, '\0');
    long status = client_request(&client, "HEAD", path.data, SLICE_NONE, 0);
    *ret_made = status == 404;
    if (status == 404) {
        write_index_body(&body, o->type);
        status = client_request(&client, "PUT", path.data, buf_as_slice(&body), 0);
    }
    if (status != 200)
        fprintf(stderr, "tidelock import: cannot make the index '%s' at %s: %s\n", o->index,
                url_without_password(o->url), client_error(&client, status));
    client_deinit(&client);
    return status == 200 ? 0 : client_exit(status);
}

static void report_counts(const struct import_options *o, const struct loader *loader, double seconds)
{
    const struct loader_counts *counts = loader_counts(loader);
    printf("%llu documents created in '%s', %llu updated, %llu already there, %llu failed, in %.1f s (%.0f/s)\n",
           (unsigned long long)counts->created, o->index, (unsigned long long)counts->updated,
           (unsigned long long)counts->present, (unsigned long long)counts->failed, seconds,
           seconds > 0 ? (double)counts->sent / seconds : 0);
    if (loader_error(loader) != NULL)
        fprintf(stderr, "tidelock import: %s\n", escape_terminal(loader_error(loader)));
}

int command_import(int argc, char **argv)
{
    static const struct argp argp = {options, parse_import_option, "DIR", doc, NULL, NULL, NULL};
    struct import_options o = {
        .url = ARGUMENTS_URL_DEFAULT,
        .jobs = JOBS_DEFAULT,
        .tries = TRIES_DEFAULT,
        .contents_bytes_max = CONTENTS_DEFAULT,
    };
    arguments_parse(&argp, argc, argv, 0, &o);
    tl_cleanup(mem_freep) char *directory = realpath(o.directory, NULL);
    if (directory == NULL) {
        fprintf(stderr, "tidelock import: %s: %s\n", escape_terminal(o.directory), strerror(errno));
        return 1;
    }
    o.directory = directory;
    bool made;
    int status = make_index(&o, &made);
    if (status != 0)
        return status;

    struct loader_options loading = {
        .url = o.url,
        .index = o.index,
        .type = o.type,
        .jobs = o.jobs,
        .batch_bytes = BATCH_BYTES,
        .batch_count = BATCH_COUNT,
        .overwrite = o.update,
        .tries = o.tries,
    };
    struct loader *loader = loader_new(&loading);
    struct progress progress;
    uint64_t unreadable = 0;
    progress_init(&progress, "files", o.quiet ? 0 : count_files(&o), o.quiet);
    struct batch *batch = mem_zalloc(sizeof *batch);
    batch->options = &o;
    batch->loader = loader;
    batch->looks = !made;
    client_init_tidelock(&batch->client, o.url);
    INSIST(getrandom(&batch->run, sizeof batch->run, 0) == sizeof batch->run);
    int r = load_batches(&o, batch, &progress, &unreadable);
    client_deinit(&batch->client);
    arena_deinit(&batch->arena);
    mem_free(batch);
    progress_set(&progress, loader_counts(loader)->sent);
    progress_end(&progress);
    report_counts(&o, loader, progress_seconds(&progress));
    bool whole = r == 0 && loader_counts(loader)->failed == 0 && unreadable == 0;
    loader_free(loader);
    return whole ? 0 : 1;
}
