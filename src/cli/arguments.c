/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines; see arguments.h. */
#include "cli/arguments.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "base/alloc.h"
#include "base/check.h"
#include "base/types.h"
#include "cli/config.h"
#include "cli/escape.h"

static void variable_name(const char *option, char *to, size_t room)
{
    int len = snprintf(to, room, "TIDELOCK_%s", option);
    for (int i = 0; i < len && (size_t)i < room; i++)
        to[i] = to[i] == '-' ? '_' : (char)toupper((unsigned char)to[i]);
}

static bool is_last(const struct argp_option *option)
{
    return option->name == NULL && option->key == 0 && option->doc == NULL;
}

/* For a parser that this file calls, not argp. */
static struct argp_state own_state(const struct argp *argp, int argc, char **argv, unsigned flags, void *input)
{
    return (struct argp_state){
        .root_argp = argp,
        .argc = argc,
        .argv = argv,
        .flags = flags,
        .input = input,
        .name = argv[0],
        .err_stream = stderr,
        .out_stream = stdout,
    };
}

/* Returns: the option's value in the environment; NULL: none. */
static char *in_environment(const struct argp_option *option)
{
    char name[64];
    if (option->name == NULL || option->arg == NULL)
        return NULL;
    variable_name(option->name, name, sizeof name);
    char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

static bool arg_environment; /* the environment is parsed */

bool arguments_are_environment(void)
{
    return arg_environment;
}

/* Calls the parser with the options of the environment, as argp does with those of the command line. */
static void parse_environment(const struct argp *argp, int argc, char **argv, unsigned flags, void *input)
{
    struct argp_state state = own_state(argp, argc, argv, flags, input);
    arg_environment = true;
    for (const struct argp_option *option = argp->options; !is_last(option); option++) {
        char *value = in_environment(option);
        if (value != NULL)
            (void)argp->parser(option->key, value, &state);
    }
    arg_environment = false;
}

/* --- Unknown options ---------------------------------------------------------------------------------------------- */

/* Names that other programs give to options of this one. */
static const struct {
    const char *theirs;
    const char *ours;
} option_synonyms[] = {
    {"address", "listen"},    {"bind", "listen"},   {"host", "listen"},    {"port", "listen"},
    {"data-dir", "data"},     {"datadir", "data"},  {"dir", "data"},       {"directory", "data"},
    {"path", "data"},         {"memory", "cache"},  {"address", "url"},    {"host", "url"},
    {"port", "url"},          {"server", "url"},    {"timeout", "wait"},   {"lease", "ttl"},
    {"threads", "jobs"},      {"parallel", "jobs"}, {"name", "node-name"}, {"cluster", "cluster-name"},
    {"verbose", "log-level"}, {"nonblock", "wait"}, {"nb", "wait"},
};

/* The option of that name, or the only one of which it is a prefix; argp accepts both. */
static const struct argp_option *find_option(const struct argp *argp, struct slice name)
{
    const struct argp_option *found = NULL;
    size_t count = 0;
    for (const struct argp_option *option = argp->options; !is_last(option); option++) {
        if (option->name == NULL || strncmp(option->name, name.data, name.len) != 0)
            continue;
        if (strlen(option->name) == name.len)
            return option;
        found = option;
        count++;
    }
    return count == 1 ? found : NULL;
}

static const struct argp_option *find_short_option(const struct argp *argp, int key)
{
    for (const struct argp_option *option = argp->options; !is_last(option); option++)
        if (option->key == key)
            return option;
    return NULL;
}

/* An option of argp itself, or a prefix of several options, which argp reports. */
static bool is_for_argp(const struct argp *argp, struct slice name)
{
    static const char *const own[] = {"help", "usage", "version"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strncmp(own[i], name.data, name.len) == 0)
            return true;
    for (const struct argp_option *option = argp->options; !is_last(option); option++)
        if (option->name != NULL && strncmp(option->name, name.data, name.len) == 0)
            return true;
    return false;
}

static const struct argp_option *find_synonym(const struct argp *argp, struct slice name)
{
    for (size_t i = 0; i < sizeof option_synonyms / sizeof *option_synonyms; i++) {
        const struct argp_option *option = find_option(argp, slice_from(option_synonyms[i].ours));
        if (option != NULL && slice_is(name, option_synonyms[i].theirs))
            return option;
    }
    return NULL;
}

static const struct argp_option *find_nearest(const struct argp *argp, struct slice name)
{
    const struct argp_option *nearest = find_synonym(argp, name);
    double best = SUGGEST_SIMILARITY_MIN;
    for (const struct argp_option *option = argp->options; nearest == NULL && !is_last(option); option++) {
        double similarity = option->name == NULL ? 0 : suggest_similarity(name, slice_from(option->name));
        if (similarity <= best)
            continue;
        best = similarity;
        nearest = option;
    }
    return nearest;
}

static void refuse_option(const struct argp *argp, const char *program, struct slice name)
{
    const struct argp_option *nearest = find_nearest(argp, name);
    fprintf(stderr, "%s: unrecognized option '--%.*s'", program, SLICE_ARG(name));
    if (nearest != NULL)
        fprintf(stderr, "; did you mean '--%s%s%s'?", nearest->name, nearest->arg != NULL ? " " : "",
                nearest->arg != NULL ? nearest->arg : "");
    fprintf(stderr, "\nTry `%s --help'.\n", program);
    exit(argp_err_exit_status);
}

/* Looks at one word. Returns: whether the next one is its value. */
static bool check_option(const struct argp *argp, const char *program, const char *word)
{
    const struct argp_option *option;
    if (word[1] != '-') {
        option = find_short_option(argp, (unsigned char)word[1]);
        return option != NULL && option->arg != NULL && word[2] == '\0';
    }
    struct slice name = slice_make(word + 2, strcspn(word + 2, "="));
    option = find_option(argp, name);
    /* A name that other programs use is not a prefix here: --host is not --host-name. */
    const struct argp_option *theirs = find_synonym(argp, name);
    bool exact = option != NULL && strlen(option->name) == name.len;
    if (!exact && ((theirs != NULL && theirs != option) || (option == NULL && !is_for_argp(argp, name))))
        refuse_option(argp, program, name);
    return option != NULL && option->arg != NULL && name.data[name.len] == '\0';
}

/* Ends the process at an unknown option, and suggests a similar one, which argp does not. */
static void check_options(const struct argp *argp, int argc, char **argv, unsigned flags)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        bool is_option = argv[i][0] == '-' && argv[i][1] != '\0';
        if (!is_option && (flags & ARGP_IN_ORDER) != 0)
            return;
        if (is_option && check_option(argp, argv[0], argv[i]))
            i++;
    }
}

/* --- Ending the process ------------------------------------------------------------------------------------------- */

/*
 * Neither argp nor a parser of ours ends the process inside argp_parse(): the thread sanitizer of
 * GCC 14 reports an exit there as a fault. The exit status is kept instead, and parsing stops with
 * an error.
 */
static bool arg_failed; /* the reason has been printed */
static bool arg_helped;
static const char *arg_file;               /* while it is parsed: a configuration file ... */
static const struct config_line *arg_line; /* ... and the current line */

enum { KEY_USAGE = -3 };

static const struct argp_option help_options[] = {
    {"help", 'h', NULL, 0, "Give this help list", -1},
    {NULL, '?', NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, -1},
    {"version", 'V', NULL, 0, "Print the version", -1},
    {"usage", KEY_USAGE, NULL, 0, "Give a short usage message", 0},
    {0},
};

static error_t parse_help(int key, char *text, struct argp_state *state)
{
    (void)text;
    if (key == 'V') {
        fprintf(state->out_stream, "tidelock " TIDELOCK_VERSION "\n");
        arg_helped = true;
        return EINVAL;
    }
    if (key != 'h' && key != '?' && key != KEY_USAGE)
        return ARGP_ERR_UNKNOWN;
    unsigned what = key != KEY_USAGE ? ARGP_HELP_STD_HELP & ~ARGP_HELP_EXIT_OK : ARGP_HELP_USAGE;
    argp_state_help(state, state->out_stream, what);
    arg_helped = true;
    return EINVAL;
}

/* The own parser of a command, and its input. */
struct parsing {
    const struct argp *argp;
    void *input;
};

static error_t parse_own(int key, char *text, struct argp_state *state)
{
    const struct parsing *parsing = state->input;
    struct argp_state own = *state;
    own.input = parsing->input;
    error_t r = parsing->argp->parser(key, text, &own);
    state->next = own.next;
    return arg_failed ? EINVAL : r;
}

void arguments_error(const struct argp_state *state, const char *format, ...)
{
    if (arg_failed)
        return; /* the first reason is printed */
    arg_failed = true;
    va_list values;
    va_start(values, format);
    fprintf(stderr, "%s: ", state->name);
    if (arg_line != NULL)
        fprintf(stderr, "%s:%u: ", escape_terminal_line(slice_from(arg_file)), arg_line->number);
    char *text = NULL;
    if (vasprintf(&text, format, values) >= 0)
        fprintf(stderr, "%s\n", escape_terminal_line(slice_from(text)));
    va_end(values);
    free(text);
    argp_state_help(state, stderr, ARGP_HELP_SEE);
}

int arguments_end_output(const char *program, int status)
{
    bool failed = ferror(stdout) != 0;
    errno = 0;
    if (fflush(stdout) == 0 && !failed)
        return status;
    fprintf(stderr, "%s: cannot write to standard output%s%s\n", program, errno != 0 ? ": " : "",
            errno != 0 ? strerror(errno) : "");
    return status != 0 ? status : 1;
}

/* --- Configuration files ------------------------------------------------------------------------------------------ */

/* The value of an option on the command line, the last one, which argp will use; NULL: it is not given. */
static const char *on_command_line(const struct argp *argp, int argc, char **argv, const struct argp_option *wanted)
{
    const char *found = NULL;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *word = argv[i], *value = NULL;
        const struct argp_option *option = NULL;
        if (word[0] != '-' || word[1] == '\0')
            continue;
        if (word[1] == '-') {
            size_t len = strcspn(word + 2, "=");
            option = find_option(argp, slice_make(word + 2, len));
            value = word[2 + len] == '=' ? word + 3 + len : NULL;
        } else {
            option = find_short_option(argp, (unsigned char)word[1]);
            value = word[2] != '\0' ? word + 2 : NULL;
        }
        if (option == NULL || option->arg == NULL)
            continue;
        if (value == NULL)
            value = ++i < argc ? argv[i] : NULL;
        if (option == wanted)
            found = value;
    }
    return found;
}

bool arguments_given(const struct argp *argp, int argc, char **argv, const char *name)
{
    const struct argp_option *option = find_option(argp, slice_from(name));
    return option != NULL && (in_environment(option) != NULL || on_command_line(argp, argc, argv, option) != NULL);
}

static void parse_line(const struct argp *argp, struct argp_state *state, const struct config_line *line)
{
    struct slice name = slice_from(line->name);
    const struct argp_option *option = find_option(argp, name);
    if (option != NULL && strlen(option->name) == name.len && option->arg != NULL && !slice_is(name, "config")) {
        (void)argp->parser(option->key, line->given, state);
        return;
    }
    const struct argp_option *nearest = option != NULL ? option : find_nearest(argp, name);
    if (nearest == NULL || nearest->arg == NULL || strcmp(nearest->name, "config") == 0)
        arguments_error(state, "there is no option '%s' for a file", line->name);
    else
        arguments_error(state, "there is no option '%s'; did you mean '%s'?", line->name, nearest->name);
}

/* Calls the parser with the options of the file. */
static void parse_file(const struct argp *argp, int argc, char **argv, unsigned flags, void *input,
                       struct config *config)
{
    const struct argp_option *option = find_option(argp, SLICE_LIT("config"));
    struct argp_state state = own_state(argp, argc, argv, flags, input);
    char *reason = NULL;
    const char *path = on_command_line(argp, argc, argv, option);
    if (path == NULL)
        path = in_environment(option);
    if (path == NULL)
        return;
    if (config_read(path, config, &reason) != 0) {
        arguments_error(&state, "%s", reason);
        mem_free(reason);
    }
    arg_file = path;
    for (size_t i = 0; i < config->count; i++) {
        arg_line = &config->lines[i];
        parse_line(argp, &state, arg_line);
    }
    arg_line = NULL;
}

void arguments_parse(const struct argp *argp, int argc, char **argv, unsigned flags, void *input)
{
    REQUIRE(argp->options != NULL && argp->children == NULL);
    arguments_parse_config(argp, argc, argv, flags, input, NULL);
}

void arguments_parse_config(const struct argp *argp, int argc, char **argv, unsigned flags, void *input,
                            struct config *ret_config)
{
    static const struct argp help = {help_options, parse_help, NULL, NULL, NULL, NULL, NULL};
    struct argp own = *argp;
    own.parser = parse_own;
    const struct argp_child children[] = {{&own, 0, NULL, 0}, {&help, 0, NULL, 0}, {0}};
    const struct argp both = {.children = children}; /* its input is handed to the first */
    struct parsing parsing = {argp, input};
    check_options(argp, argc, argv, flags);
    if (ret_config != NULL) {
        *ret_config = (struct config){0};
        parse_file(argp, argc, argv, flags, input, ret_config);
    }
    parse_environment(argp, argc, argv, flags, input);
    int r = arg_failed ? EINVAL : argp_parse(&both, argc, argv, flags | ARGP_NO_HELP | ARGP_NO_EXIT, NULL, &parsing);
    if (arg_helped)
        exit(arguments_end_output(argv[0], 0));
    if (r != 0)
        exit(argp_err_exit_status); /* the reason has been printed */
}

/* --- Values ------------------------------------------------------------------------------------------------------- */

/* A hundred years, and 2^60 bytes: sums of a few values do not overflow. */
#define DURATION_US_MAX (UINT64_C(36500) * 86400 * TL_SECOND)
#define SIZE_BYTES_MAX (UINT64_C(1) << 60)

struct unit {
    const char *name;
    uint64_t factor;
};

/* Reads a number followed by one of `units`; the entry with an empty name is for a number alone. */
static bool with_unit(const char *text, const struct unit *units, uint64_t *ret_value)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    if (errno != 0)
        return false;
    for (; units->name != NULL; units++)
        if (strcasecmp(end, units->name) == 0 && number <= UINT64_MAX / units->factor / 2) {
            *ret_value = number * units->factor;
            return true;
        }
    return false;
}

uint64_t arguments_duration(const struct argp_state *state, const char *option, const char *text)
{
    static const struct unit units[] = {
        {"ms", TL_MS},   {"s", TL_SECOND}, {"m", 60 * TL_SECOND}, {"h", 3600 * TL_SECOND}, {"d", 86400 * TL_SECOND},
        {"", TL_SECOND}, {NULL, 1},
    };
    uint64_t value = 0;
    if (!with_unit(text, units, &value))
        arguments_error(state,
                        "--%s: '%s' is not a duration; write it as 500ms, 10s, 5m, 1h or 1d; a number alone is seconds",
                        option, text);
    if (value > DURATION_US_MAX)
        arguments_error(state, "--%s: '%s' is longer than 36500d, the limit of durations", option, text);
    return value;
}

size_t arguments_size(const struct argp_state *state, const char *option, const char *text)
{
    static const struct unit units[] = {
        {"", 1},
        {"b", 1},
        {"k", 1 << 10},
        {"kb", 1 << 10},
        {"m", 1 << 20},
        {"mb", 1 << 20},
        {"g", UINT64_C(1) << 30},
        {"gb", UINT64_C(1) << 30},
        {"t", UINT64_C(1) << 40},
        {"tb", UINT64_C(1) << 40},
        {NULL, 1},
    };
    uint64_t value = 0;
    if (!with_unit(text, units, &value) || value > SIZE_BYTES_MAX)
        arguments_error(state, "--%s: '%s' is not a size; write it as 4096, 64k, 100m or 1g", option, text);
    return (size_t)value;
}

uint64_t arguments_number(const struct argp_state *state, const char *option, const char *text, uint64_t min,
                          uint64_t max)
{
    static const struct unit units[] = {{"", 1}, {NULL, 1}};
    uint64_t value = 0;
    if (!with_unit(text, units, &value) || value < min || value > max)
        arguments_error(state, "--%s: '%s' is not a number from %" PRIu64 " to %" PRIu64, option, text, min, max);
    return value;
}

void arguments_address(const struct argp_state *state, const char *text, char **ret_host, uint16_t *ret_port)
{
    const char *colon = strrchr(text, ':');
    const char *port = colon != NULL ? colon + 1 : text;
    if (port[0] < '0' || port[0] > '9')
        arguments_error(state, "--listen: '%s' has no port; write it as HOST:PORT, such as 127.0.0.1:9200", text);
    size_t host_len = colon != NULL ? (size_t)(colon - text) : 0;
    if (host_len >= 2 && text[0] == '[' && text[host_len - 1] == ']') {
        text++;
        host_len -= 2;
    }
    *ret_port = (uint16_t)arguments_number(state, "listen", port, 0, UINT16_MAX);
    *ret_host = host_len > 0 ? mem_strdup(text, host_len) : mem_strdup("127.0.0.1", 9);
}

char *arguments_host_of(const char *address)
{
    const char *colon = strrchr(address, ':');
    size_t len = colon != NULL ? (size_t)(colon - address) : strlen(address);
    if (len >= 2 && address[0] == '[' && address[len - 1] == ']')
        return mem_strdup(address + 1, len - 2);
    return mem_strdup(address, len);
}

char *arguments_path(char *text)
{
    char *colon = strchr(text, ':');
    if (colon != NULL)
        *colon = '\0';
    return colon != NULL ? colon + 1 : NULL;
}

const char *arguments_duration_text(uint64_t us, char to[32])
{
    snprintf(to, 32, "%" PRIu64 "ms", us / TL_MS);
    return to;
}
