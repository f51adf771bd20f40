/* SPDX-License-Identifier: Apache-2.0 */
/* Reading isolation specs; see spec.h. */
#include "spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void wrong(const char *path, int line, const char *what)
{
    fprintf(stderr, "%s:%d: %s\n", path, line, what);
    exit(2);
}

int spec_actor(const struct spec *spec, const char *name)
{
    for (size_t i = 0; i < spec->actor_count; i++)
        if (strcmp(spec->actors[i].name, name) == 0)
            return (int)i;
    return -1;
}

static struct spec_actor *actor_of(struct spec *spec, const char *name)
{
    if (strcmp(name, "setup") == 0)
        return &spec->setup;
    if (strcmp(name, "end") == 0)
        return &spec->end;
    int number = spec_actor(spec, name);
    if (number >= 0)
        return &spec->actors[number];
    if (spec->actor_count == SPEC_ACTORS_MAX || strlen(name) >= sizeof spec->actors[0].name)
        return NULL;
    struct spec_actor *actor = &spec->actors[spec->actor_count++];
    strcpy(actor->name, name);
    return actor;
}

static void add_line(struct spec *spec, char *text, const char *path, int number)
{
    char *colon = strchr(text, ':');
    if (colon == NULL)
        wrong(path, number, "a line must be 'actor: statement'");
    *colon = '\0';
    char *statement = colon + 1 + strspn(colon + 1, " ");
    if (strcmp(text, "run") == 0) {
        if (spec->run_count == SPEC_RUNS_MAX)
            wrong(path, number, "too many runs");
        spec->runs[spec->run_count++] = strdup(statement);
        return;
    }
    struct spec_actor *actor = actor_of(spec, text);
    if (actor == NULL || actor->line_count == SPEC_LINES_MAX)
        wrong(path, number, "too many actors or lines, or too long a name");
    actor->lines[actor->line_count++] = strdup(statement);
}

void spec_read(const char *path, struct spec *ret_spec)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t capacity = 0;
    memset(ret_spec, 0, sizeof *ret_spec);
    if (file == NULL)
        wrong(path, 0, "cannot be opened");
    for (int number = 1; getline(&text, &capacity, file) >= 0; number++) {
        if (text[0] == '#' && strlen(ret_spec->title) + strlen(text) < sizeof ret_spec->title) {
            if (ret_spec->setup.line_count + ret_spec->actor_count == 0)
                strcat(ret_spec->title, text);
            continue;
        }
        text[strcspn(text, "\n")] = '\0';
        if (text[strspn(text, " ")] != '\0' && text[0] != '#')
            add_line(ret_spec, text, path, number);
    }
    free(text);
    fclose(file);
}

static void free_lines(struct spec_actor *actor)
{
    for (size_t i = 0; i < actor->line_count; i++)
        free(actor->lines[i]);
}

void spec_deinit(struct spec *spec)
{
    free_lines(&spec->setup);
    free_lines(&spec->end);
    for (size_t i = 0; i < spec->actor_count; i++)
        free_lines(&spec->actors[i]);
    for (size_t i = 0; i < spec->run_count; i++)
        free(spec->runs[i]);
}
