/* SPDX-License-Identifier: Apache-2.0 */
/* The program: finds the subcommand. */
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/suggest.h"
#include "base/siphash.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/escape.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"serve", command_serve, "run the server"},
    {"check", command_check, "verify a stopped store"},
    {"backup", command_backup, "make a backup of a running server"},
    {"restore", command_restore, "create a data directory from a backup and the log, up to a timestamp"},
    {"cert", command_cert, "make a CA and certificates, for a trial of TLS"},
    {"import", command_import, "load a file tree into an index"},
    {"ls", command_ls, "list a directory of an index"},
    {"tree", command_tree, "draw a directory with all of its content"},
    {"mv", command_mv, "rename a directory with all of its content, or a file"},
    {"changes", command_changes, "print changes, commit by commit"},
    {"replicate", command_replicate, "keep a copy in Elasticsearch up to date"},
    {"lock", command_lock, "hold a lock while a command runs"},
    {"locks", command_locks, "show locks, their holders, and the requests that wait for them"},
    {"status", command_status, "show the state of a server"},
    {"hosts", command_hosts, "show the hosts of a cluster"},
};

enum { COMMAND_COUNT = sizeof commands / sizeof *commands, EXIT_USAGE = 64, EXIT_OLD_PROCESSOR = 69 };

static void print_help(FILE *to)
{
    fprintf(to, "Usage: tidelock COMMAND [OPTION...]\n\n"
                "A JSON document store for trees of documents that many people change at once.\n\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(to, "  %-9s %s\n", commands[i].name, commands[i].summary);
    fprintf(to, "\n`tidelock COMMAND --help` or `tidelock help COMMAND` prints the options and an example. Options can "
                "also be set in the\n"
                "environment: --listen as TIDELOCK_LISTEN.\n\n"
                "A first server:\n"
                "  tidelock serve --data ./tidelock-data\n");
}

/* Names of these commands in other programs. */
static const struct {
    const char *theirs;
    const char *ours;
} synonyms[] = {
    {"start", "serve"},   {"run", "serve"},      {"server", "serve"}, {"up", "serve"},     {"daemon", "serve"},
    {"watch", "changes"}, {"follow", "changes"}, {"feed", "changes"}, {"tail", "changes"}, {"snapshot", "backup"},
    {"dump", "backup"},   {"save", "backup"},    {"verify", "check"}, {"fsck", "check"},   {"certs", "cert"},
    {"tls", "cert"},      {"load", "import"},    {"index", "import"}, {"list", "ls"},      {"health", "status"},
    {"info", "status"},   {"ping", "status"},    {"stats", "status"}, {"who", "locks"},    {"nodes", "hosts"},
    {"members", "hosts"}, {"cluster", "hosts"},  {"dir", "ls"},       {"top", "locks"},    {"rename", "mv"},
    {"move", "mv"},
};

/* Returns: the command with a similar name; NULL: none. */
static const char *nearest_command(const char *name)
{
    const char *nearest = NULL;
    double best = SUGGEST_SIMILARITY_MIN;
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
        if (strcmp(synonyms[i].theirs, name) == 0)
            return synonyms[i].ours;
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        double similarity = suggest_similarity(slice_from(name), slice_from(commands[i].name));
        if (similarity <= best)
            continue;
        best = similarity;
        nearest = commands[i].name;
    }
    return nearest;
}

static int refuse_unknown(const char *name)
{
    const char *nearest = nearest_command(name);
    fprintf(stderr, "tidelock: there is no command '%s'", escape_terminal(name));
    if (nearest != NULL)
        fprintf(stderr, "; did you mean '%s'?", nearest);
    fprintf(stderr, "\n\n");
    print_help(stderr);
    return EXIT_USAGE;
}

/*
 * Draws the secret key by which names from clients are hashed. Without random bytes the constant
 * key is used.
 */
static void draw_hash_key(void)
{
    struct siphash_key key;
    if (getrandom(&key, sizeof key, 0) == (ssize_t)sizeof key)
        siphash_set_key(&key);
}

/*
 * Whether the processor is older than 2009, which RocksDB in a release does not support
 * (tools/build-rocksdb): it would end with SIGILL.
 */
static bool is_too_old(void)
{
#ifdef NEEDS_X86_64_V2
    __builtin_cpu_init();
    return !__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("ssse3") || !__builtin_cpu_supports("popcnt");
#else
    return false;
#endif
}

int main(int argc, char **argv)
{
    if (is_too_old()) {
        fprintf(stderr, "tidelock: this build needs a processor with SSE4.2 and POPCNT (x86-64-v2); build it with "
                        "SYSTEM_ROCKSDB=1 make install\n");
        return EXIT_OLD_PROCESSOR;
    }
    draw_hash_key();
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    char help[] = "--help";
    char *asked[] = {argv[0], argc > 2 ? argv[2] : NULL, help, NULL};
    if (strcmp(name, "help") == 0 && argc > 2) { /* as COMMAND --help */
        argc = 3;
        argv = asked;
        name = argv[1];
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_help(stdout);
        return arguments_end_output("tidelock", 0);
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("tidelock " TIDELOCK_VERSION "\n");
        return arguments_end_output("tidelock", 0);
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(name, commands[i].name) != 0)
            continue;
        char title[64];
        snprintf(title, sizeof title, "tidelock %s", name);
        argv[1] = title;
        curl_global_init(CURL_GLOBAL_DEFAULT);
        int status = commands[i].run(argc - 1, argv + 1);
        curl_global_cleanup();
        return arguments_end_output(title, status);
    }
    return refuse_unknown(name);
}
