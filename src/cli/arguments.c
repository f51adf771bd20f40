/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines; see arguments.h. */
#include "cli/arguments.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/types.h"

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

/* Hands the parser what the environment says, as argp does with what the command line says. */
static void parse_environment(const struct argp *argp, int argc, char **argv, unsigned flags, void *input)
{
    struct argp_state state = {
        .root_argp = argp,
        .argc = argc,
        .argv = argv,
        .flags = flags,
        .input = input,
        .name = argv[0],
        .err_stream = stderr,
        .out_stream = stdout,
    };
    for (const struct argp_option *option = argp->options; !is_last(option); option++) {
        char name[64];
        if (option->name == NULL || option->arg == NULL)
            continue;
        variable_name(option->name, name, sizeof name);
        char *value = getenv(name);
        if (value != NULL && *value != '\0')
            (void)argp->parser(option->key, value, &state);
    }
}

void arguments_parse(const struct argp *argp, int argc, char **argv, unsigned flags, void *input)
{
    parse_environment(argp, argc, argv, flags, input);
    argp_parse(argp, argc, argv, flags, NULL, input);
}

struct unit {
    const char *name;
    uint64_t factor;
};

/* Reads a number with one of `units` behind it; the entry with an empty name is for none. */
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
        {"ms", TL_MS},           {"s", TL_SECOND},         {"m", 60 * TL_SECOND},
        {"h", 3600 * TL_SECOND}, {"d", 86400 * TL_SECOND}, {NULL, 1},
    };
    uint64_t value = 0;
    if (!with_unit(text, units, &value))
        argp_error(state, "--%s: '%s' is no duration; write it as 500ms, 10s, 5m, 1h or 1d", option, text);
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
    if (!with_unit(text, units, &value))
        argp_error(state, "--%s: '%s' is no size; write it as 4096, 64k, 100m or 1g", option, text);
    return (size_t)value;
}

uint64_t arguments_number(const struct argp_state *state, const char *option, const char *text, uint64_t min,
                          uint64_t max)
{
    static const struct unit units[] = {{"", 1}, {NULL, 1}};
    uint64_t value = 0;
    if (!with_unit(text, units, &value) || value < min || value > max)
        argp_error(state, "--%s: '%s' is no number from %" PRIu64 " to %" PRIu64, option, text, min, max);
    return value;
}

void arguments_address(const struct argp_state *state, const char *text, char **ret_host, uint16_t *ret_port)
{
    const char *colon = strrchr(text, ':');
    const char *port = colon != NULL ? colon + 1 : text;
    size_t host_len = colon != NULL ? (size_t)(colon - text) : 0;
    if (host_len >= 2 && text[0] == '[' && text[host_len - 1] == ']') {
        text++;
        host_len -= 2;
    }
    *ret_port = (uint16_t)arguments_number(state, "listen", port, 0, UINT16_MAX);
    *ret_host = host_len > 0 ? mem_strdup(text, host_len) : mem_strdup("127.0.0.1", 9);
}

const char *arguments_duration_text(uint64_t us, char to[32])
{
    snprintf(to, 32, "%" PRIu64 "ms", us / TL_MS);
    return to;
}
