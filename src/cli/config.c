/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration files; see config.h. */
#include "cli/config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/slice.h"
#include "cli/escape.h"

static const char blanks[] = " \t\r";

static int refuse_line(int code, char **ret_reason, const char *path, unsigned line, const char *what)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&text, line == 0 ? "%s: " : "%s:%u: ", path, line);
    buf_printf(&text, "%s", what);
    *ret_reason = buf_detach(&text, &(size_t){0});
    return code;
}

/* A whole file, NUL-terminated. */
static int read_all(const char *path, struct buf *text, char **ret_reason)
{
    char piece[4096];
    size_t got;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return refuse_line(TL_ERR_IO, ret_reason, path, 0, strerror(errno));
    errno = 0;
    while (text->len <= CONFIG_BYTES_MAX && (got = fread(piece, 1, sizeof piece, file)) > 0)
        buf_append(text, piece, got);
    int error = ferror(file) ? errno : 0;
    (void)fclose(file);
    if (error != 0)
        return refuse_line(TL_ERR_IO, ret_reason, path, 0, strerror(error));
    if (text->len > CONFIG_BYTES_MAX)
        return refuse_line(TL_ERR_CORRUPT, ret_reason, path, 0,
                           "it is longer than a megabyte, the limit of a configuration file");
    if (memchr(text->data != NULL ? text->data : "", '\0', text->len) != NULL)
        return refuse_line(TL_ERR_CORRUPT, ret_reason, path, 0, "it contains NUL bytes: it is not a text file");
    buf_byte(text, '\0');
    return 0;
}

/* Cuts the blanks at both ends off. */
static char *trim_blanks(char *text)
{
    text += strspn(text, blanks);
    size_t len = strlen(text);
    while (len > 0 && strchr(blanks, text[len - 1]) != NULL)
        text[--len] = '\0';
    return text;
}

static char *copy_text(const char *text)
{
    return mem_strdup(text, strlen(text));
}

/* Parses one line in place. Returns: its error, or NULL. */
static const char *take_line(struct config *config, unsigned number, char *line)
{
    line = trim_blanks(line);
    if (*line == '\0' || *line == '#')
        return NULL;
    char *equals = strchr(line, '=');
    if (equals == NULL)
        return "it is neither NAME = VALUE nor a comment, which begins with #";
    *equals = '\0';
    const char *name = trim_blanks(line), *value = trim_blanks(equals + 1);
    if (strncmp(name, "--", 2) == 0)
        return "option names in a file have no --";
    if (*name == '\0')
        return "there is no name before the =";
    if (*value == '\0')
        return "there is no value after the =; for the default remove the line";
    if (config_find(config, name) != NULL)
        return "this option is also in an earlier line; values of lists are separated by commas";
    config->lines = mem_realloc(config->lines, (config->count + 1) * sizeof *config->lines);
    config->lines[config->count++] = (struct config_line){number, copy_text(name), copy_text(value), copy_text(value)};
    return NULL;
}

int config_read(const char *path, struct config *ret_config, char **ret_reason)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct config config = {.path = copy_text(path)};
    int r = read_all(path, &text, ret_reason);
    char *rest = text.data;
    for (unsigned number = 1; r == 0 && rest != NULL; number++) {
        const char *wrong = take_line(&config, number, strsep(&rest, "\n"));
        if (wrong != NULL)
            r = refuse_line(TL_ERR_CORRUPT, ret_reason, path, number, wrong);
    }
    buf_deinit(&text);
    if (r != 0)
        config_free(&config);
    else
        *ret_config = config;
    return r;
}

void config_free(struct config *config)
{
    for (size_t i = 0; i < config->count; i++) {
        mem_free(config->lines[i].name);
        mem_free(config->lines[i].value);
        mem_free(config->lines[i].given);
    }
    mem_free(config->lines);
    mem_free(config->path);
    *config = (struct config){0};
}

const struct config_line *config_find(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->count; i++)
        if (strcmp(config->lines[i].name, name) == 0)
            return &config->lines[i];
    return NULL;
}
