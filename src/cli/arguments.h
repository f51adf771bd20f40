/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines: argp, with defaults from the environment and the kinds of values that our options have.
 */
#ifndef TL_CLI_ARGUMENTS_H
#define TL_CLI_ARGUMENTS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;

/*
 * argp_parse() with the environment in front: for each long option NAME with a value, TIDELOCK_NAME (capitals, '_' for
 * '-') is handed to the parser first, so that the command line wins. Requires: argp->options, and no child parsers.
 * Ends the process on --help and wrong usage.
 */
void arguments_parse(const struct argp *argp, int argc, char **argv, unsigned flags, void *input);

/*
 * The same with a file that precedes the environment: the one that the option `config` names, on
 * the command line or in the environment. Each of its lines is an option that takes a value, by its
 * whole long name; errors name their line. The option itself is passed to the parser, too. Owns:
 * the caller, *ret_config, config_free(), when what the parser kept of the values is no longer
 * used.
 */
void arguments_parse_config(const struct argp *argp, int argc, char **argv, unsigned flags, void *input,
                            struct config *ret_config);

/* For a parser. Returns: whether the value that it was called with is from the environment. */
bool arguments_are_environment(void);

/* Returns: whether the environment or the command line says an option with a value, so that a file has no say in it. */
bool arguments_given(const struct argp *argp, int argc, char **argv, const char *option);

/*
 * Prints an error of the command line, and a hint at --help, and has arguments_parse() end the
 * process. It returns to its caller: the parser continues to its end, and further errors are not
 * printed.
 */
void arguments_error(const struct argp_state *state, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * To be asked at the end of a program that has printed something: what could not be written is a
 * failure (`ls >/dev/full`).
 * Returns: `status`, or 1 in place of 0 when something is missing, which it has said then.
 */
int arguments_end_output(const char *program, int status);

/* Values; each is a usage error, naming option and value, and returns 0 when `text` is invalid. */
uint64_t arguments_duration(const struct argp_state *state, const char *option, const char *text); /* microseconds */
size_t arguments_size(const struct argp_state *state, const char *option, const char *text);       /* "64m" */
uint64_t arguments_number(const struct argp_state *state, const char *option, const char *text, uint64_t min,
                          uint64_t max);

/* Splits "HOST:PORT", "[::1]:PORT" or "PORT". Owns: the caller, *ret_host; mem_free. */
void arguments_address(const struct argp_state *state, const char *text, char **ret_host, uint16_t *ret_port);

/* Returns: the host of HOST:PORT, without the brackets of an IPv6 address. Owns: the caller; mem_free. */
char *arguments_host_of(const char *address);

/* Cuts "INDEX:PATH" after INDEX. Returns: PATH, or NULL if it is absent. */
char *arguments_path(char *text);

/* A duration as the server takes it, "1500ms", in `to`. */
const char *arguments_duration_text(uint64_t us, char to[32]);

#define ARGUMENTS_URL_DEFAULT "http://127.0.0.1:9200"

#endif
