/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `tidelock tree`: a directory and all below it, drawn as tree(1) does, at one timestamp.
 *
 * Directories are listed one after another, each when it is drawn: only the listings on the path to
 * the current one are kept.
 */
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/types.h"
#include "cli/arguments.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/directory.h"
#include "cli/escape.h"
#include "json/each.h"

enum { OPTION_URL = 256, OPTION_AS_OF, OPTION_JSON };

struct tree_options {
    char *index;
    const char *path; /* as it was named; NULL: the root */
    const char *url;
    const char *as_of; /* NULL: now */
    uint64_t depth;
    bool json;
};

static const struct argp_option options[] = {
    {"depth", 'L', "N", 0, "Print at most N levels", 1},
    {"as-of", OPTION_AS_OF, "TIME", 0, "The state at that time, such as 2026-11-20T10:00:00Z", 1},
    {"json", OPTION_JSON, NULL, 0, "Print JSON in the format of `tree -J`", 1},
    {"url", OPTION_URL, "URL", 0, "The server (" ARGUMENTS_URL_DEFAULT ")", 1},
    CLIENT_OPTIONS(1),
    {0},
};

static const char doc[] =
    "Draw the content of the directory PATH of an index, at one timestamp, in the format of tree(1).\v"
    "Examples:\n"
    "  tidelock tree fs /usr/share --depth 2\n"
    "  tidelock tree fs:/usr --as-of 2026-11-20T10:00:00Z\n";

static void take_word(struct tree_options *o, char *word, struct argp_state *state)
{
    if (o->index == NULL) {
        o->path = arguments_path(word);
        o->index = word;
    } else if (o->path == NULL) {
        o->path = word;
    } else {
        arguments_error(state, "too many arguments; expected INDEX [PATH]");
    }
}

static error_t parse_tree_option(int key, char *text, struct argp_state *state)
{
    struct tree_options *o = state->input;
    switch (key) {
    case 'L': o->depth = arguments_number(state, "--depth", text, 1, UINT32_MAX); break;
    case OPTION_AS_OF: o->as_of = text; break;
    case OPTION_JSON: o->json = true; break;
    case OPTION_URL: o->url = text; break;
    case ARGP_KEY_ARG: take_word(o, text, state); break;
    case ARGP_KEY_END:
        if (o->index == NULL)
            arguments_error(state, "missing argument; expected INDEX [PATH]");
        break;
    default: return client_option(key, text);
    }
    return 0;
}

/* --- Drawing ------------------------------------------------------------------------------------------------------ */

/*
 * The lines drawn before a name: for a level above that has no further name, and for one that has;
 * for the last name of a level, and for others.
 */
struct strokes {
    const char *blank, *bar, *last, *next;
};

static const struct strokes lines = {"    ", "\xe2\x94\x82\xc2\xa0\xc2\xa0 ", "\xe2\x94\x94\xe2\x94\x80\xe2\x94\x80 ",
                                     "\xe2\x94\x9c\xe2\x94\x80\xe2\x94\x80 "};
static const struct strokes ascii = {"    ", "|   ", "`-- ", "|-- "};

static const struct strokes *strokes_of_terminal(void)
{
    locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    bool utf8 = locale != (locale_t)0 && strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
    if (locale != (locale_t)0)
        freelocale(locale);
    return utf8 ? &lines : &ascii;
}

/* A directory that is being drawn. */
struct level {
    struct directory directory;
    size_t next;      /* of its entries */
    size_t path_len;  /* of the walk's path, that is this directory's */
    size_t front_len; /* of the lines before its names */
};

struct tree_walk {
    const struct tree_options *o;
    struct client *client;
    struct directory_ask ask;
    const struct strokes *strokes;
    struct level *levels; /* from the top down */
    size_t level_count, level_capacity;
    struct buf path, front;
    uint64_t directories, files;
};

/* Begins with a directory, which the path names. Returns: as directory_read(). */
static long enter_directory(struct tree_walk *walk)
{
    if (walk->level_count == walk->level_capacity) {
        walk->level_capacity = 2 * walk->level_capacity + 16;
        walk->levels = mem_realloc(walk->levels, walk->level_capacity * sizeof *walk->levels);
    }
    struct level *level = &walk->levels[walk->level_count++];
    *level = (struct level){.path_len = walk->path.len, .front_len = walk->front.len};
    walk->directories++;
    return directory_read(walk->client, &walk->ask, buf_as_slice(&walk->path), &level->directory);
}

static void leave_directory(struct tree_walk *walk)
{
    directory_deinit(&walk->levels[--walk->level_count].directory);
    if (walk->o->json)
        printf("]}");
}

static const char *type_of(const struct directory_entry *entry)
{
    const char *type = yyjson_get_str(yyjson_obj_get(entry->source, "type"));
    return entry->directory ? "directory" : type == NULL ? "file" : strcmp(type, "symlink") == 0 ? "link" : type;
}

static void print_json_entry(const struct directory_entry *entry, bool first, bool opens)
{
    tl_cleanup(buf_deinit) struct buf line = BUF_INIT(BUF_UNLIMITED);
    buf_lit(&line, "{\"type\":");
    buf_json_string(&line, slice_from(type_of(entry)));
    buf_lit(&line, ",\"name\":");
    buf_json_string(&line, entry->name);
    printf("%s\n%.*s%s", first ? "" : ",", SLICE_ARG(buf_as_slice(&line)), opens ? ",\"contents\":[" : "}");
}

/* Draws the next entry, and goes into it. Returns: as directory_read(). */
static long draw_next(struct tree_walk *walk)
{
    struct level *level = &walk->levels[walk->level_count - 1];
    const struct directory_entry *entry = &level->directory.items[level->next++];
    bool last = level->next == level->directory.count;
    bool continues = entry->below && walk->level_count < walk->o->depth;
    buf_truncate(&walk->path, level->path_len);
    buf_truncate(&walk->front, level->front_len);
    if (walk->o->json)
        print_json_entry(entry, level->next == 1, continues);
    else
        printf("%.*s%s%s\n", SLICE_ARG(buf_as_slice(&walk->front)), last ? walk->strokes->last : walk->strokes->next,
               escape_terminal_slice(entry->name));
    if (!continues) {
        walk->directories += entry->directory;
        walk->files += !entry->directory;
        return 200;
    }
    buf_byte(&walk->path, '/');
    buf_slice(&walk->path, entry->name);
    buf_slice(&walk->front, slice_from(last ? walk->strokes->blank : walk->strokes->bar));
    return enter_directory(walk);
}

static void print_root(const struct tree_walk *walk)
{
    tl_cleanup(buf_deinit) struct buf name = BUF_INIT(BUF_UNLIMITED);
    struct slice path = buf_as_slice(&walk->path);
    buf_printf(&name, "%s:%.*s", walk->o->index, SLICE_ARG(path.len > 0 ? path : SLICE_LIT("/")));
    if (!walk->o->json) {
        printf("%s\n", escape_terminal_slice(buf_as_slice(&name)));
        return;
    }
    printf("[");
    print_json_entry(&(struct directory_entry){.name = buf_as_slice(&name), .directory = true}, true, true);
}

static void print_report(const struct tree_walk *walk)
{
    unsigned long long directories = walk->directories, files = walk->files;
    if (walk->o->json)
        printf(",\n{\"type\":\"report\",\"directories\":%llu,\"files\":%llu}\n]\n", directories, files);
    else
        printf("\n%llu director%s, %llu file%s\n", directories, directories == 1 ? "y" : "ies", files,
               files == 1 ? "" : "s");
}

static int draw_tree(struct tree_walk *walk)
{
    long status = enter_directory(walk);
    if (status == 200 && walk->levels[0].directory.count == 0 && walk->path.len > 0) {
        fprintf(stderr, "tidelock tree: '%s' has no directory '%s/'\n", escape_terminal(walk->o->index),
                escape_terminal_slice(buf_as_slice(&walk->path)));
        return 1;
    }
    if (status == 200)
        print_root(walk);
    while (status == 200 && walk->level_count > 0) {
        const struct level *level = &walk->levels[walk->level_count - 1];
        if (level->next < level->directory.count)
            status = draw_next(walk);
        else
            leave_directory(walk);
    }
    if (status != 200) {
        fprintf(stderr, "tidelock tree: %s\n", client_error(walk->client, status));
        return client_exit(status);
    }
    print_report(walk);
    return 0;
}

int command_tree(int argc, char **argv)
{
    static const struct argp argp = {options, parse_tree_option, "INDEX [PATH]", doc, NULL, NULL, NULL};
    struct tree_options o = {.url = ARGUMENTS_URL_DEFAULT, .depth = UINT64_MAX};
    struct client client;
    arguments_parse(&argp, argc, argv, 0, &o);
    client_init_tidelock(&client, o.url);
    struct tree_walk walk = {.o = &o,
                             .client = &client,
                             .ask = {.index = o.index, .source = "type", .as_of = o.as_of},
                             .strokes = strokes_of_terminal(),
                             .path = BUF_INIT(BUF_UNLIMITED),
                             .front = BUF_INIT(BUF_UNLIMITED)};
    buf_slice(&walk.path, slice_from(o.path != NULL ? o.path : ""));
    while (walk.path.len > 0 && walk.path.data[walk.path.len - 1] == '/')
        buf_chop(&walk.path, 1);
    int status = draw_tree(&walk);
    while (walk.level_count > 0)
        directory_deinit(&walk.levels[--walk.level_count].directory);
    mem_free(walk.levels);
    buf_deinit(&walk.path);
    buf_deinit(&walk.front);
    client_deinit(&client);
    return status;
}
