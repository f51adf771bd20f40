/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments of test programs and benches, by a table:
 *
 *     const struct argument arguments[] = {
 *         {"--seeds", .number = &seeds}, {"--trace", .flag = &traces}, {"SEED ...", .numbers = &named}, {0}};
 *     arguments_take(argc, argv, arguments);
 *
 * A word that is not in the table, a missing one, or one that is no number ends the process with status 2 and a line of
 * usage: else a mistyped option or seed would run something that was not asked for, and succeed.
 */
#ifndef TL_TESTS_LIB_ARGUMENTS_H
#define TL_TESTS_LIB_ARGUMENTS_H

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARGUMENT_NUMBERS_MAX = 64 };

/* Numbers that no option precedes. */
struct argument_numbers {
    uint64_t items[ARGUMENT_NUMBERS_MAX];
    size_t count;
};

/* An option has a name that begins with "--". One of the pointers is set; it is written if the argument is given. */
struct argument {
    const char *name;
    uint64_t *number;
    bool *flag;
    const char **text;                /* without an option: a word that must be there, at its place among such words */
    struct argument_numbers *numbers; /* without an option */
    size_t numbers_max;               /* 0: as many as there is space for */
};

static inline bool argument_is_option(const struct argument *argument)
{
    return strncmp(argument->name, "--", 2) == 0;
}

static inline _Noreturn void arguments_refuse(char **argv, const struct argument *arguments, const char *what,
                                              const char *word)
{
    const char *slash = strrchr(argv[0], '/'), *program = slash != NULL ? slash + 1 : argv[0];
    fprintf(stderr, "%s: %s%s%s\nusage: %s", program, what, word != NULL ? " " : "", word != NULL ? word : "", program);
    for (const struct argument *at = arguments; at->name != NULL; at++)
        if (at->text != NULL && !argument_is_option(at))
            fprintf(stderr, " %s", at->name);
        else
            fprintf(stderr, " [%s%s]", at->name, at->number != NULL ? " N" : at->text != NULL ? " TEXT" : "");
    fputc('\n', stderr);
    exit(2);
}

/* Returns: whether a word is a number without a sign. */
static inline bool argument_number(const char *word, uint64_t *ret_number)
{
    char *end;
    errno = 0;
    *ret_number = strtoull(word, &end, 10);
    return isdigit((unsigned char)word[0]) && *end == '\0' && errno == 0;
}

static inline void arguments_take(int argc, char **argv, const struct argument *arguments)
{
    bool given[64] = {false}; /* the words without an option, by their places in the table */
    for (int i = 1; i < argc; i++) {
        const struct argument *at = arguments;
        bool option = strncmp(argv[i], "--", 2) == 0;
        uint64_t number;
        while (at->name != NULL && (option ? strcmp(argv[i], at->name) != 0
                                           : argument_is_option(at) || (at->text != NULL && given[at - arguments])))
            at++;
        if (at->name == NULL)
            arguments_refuse(argv, arguments, "unknown argument", argv[i]);
        given[at - arguments] = true;
        if (at->flag != NULL) {
            *at->flag = true;
            continue;
        }
        if (option && ++i == argc)
            arguments_refuse(argv, arguments, "no value of", at->name);
        if (at->text != NULL) {
            *at->text = argv[i];
            continue;
        }
        if (!argument_number(argv[i], &number))
            arguments_refuse(argv, arguments, "not a number:", argv[i]);
        if (at->number != NULL) {
            *at->number = number;
            continue;
        }
        if (at->numbers->count == (at->numbers_max != 0 ? at->numbers_max : ARGUMENT_NUMBERS_MAX))
            arguments_refuse(argv, arguments, "too many numbers:", argv[i]);
        at->numbers->items[at->numbers->count++] = number;
    }
    for (const struct argument *at = arguments; at->name != NULL; at++)
        if (at->text != NULL && !argument_is_option(at) && !given[at - arguments])
            arguments_refuse(argv, arguments, "missing:", at->name);
}

#endif
