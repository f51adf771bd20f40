/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Analyzers: the input's first line is the settings of an index's analysis, or nothing; the second names an analyzer;
 * the rest is a text.
 *
 * Tokens lie in the text, in order, and a second run gives the same ones. They are no more than its bytes, and all
 * together not longer than what each may be.
 */
#include "fuzz.h"

#include "base/stack.h"
#include "json/each.h"
#include "json/json.h"
#include "mapping/analysis.h"

enum { TEXT_BYTES_MAX = 8192 };

struct seen {
    size_t text_len, count, bytes;
    uint32_t position;
    uint64_t hash;
};

static bool look(void *context, const struct analysis_token *token)
{
    struct seen *seen = context;
    MUST(token->start <= token->end && token->end <= seen->text_len);
    MUST(seen->count == 0 || token->position >= seen->position);
    seen->position = token->position;
    seen->count++;
    seen->bytes += token->text.len;
    for (size_t i = 0; i < token->text.len; i++)
        seen->hash = seen->hash * 1099511628211u + (unsigned char)token->text.data[i];
    return true;
}

static void run(const struct analyzer *analyzer, struct slice text)
{
    struct seen seen[2] = {{0}};
    for (int i = 0; i < 2; i++) {
        struct arena arena = ARENA_INIT;
        seen[i].text_len = text.len;
        analyzer_run(analyzer, text, &arena, look, &seen[i]);
        MUST(seen[i].count <= 4 * text.len + 8); /* synonyms and parts of one word stand for several */
        arena_deinit(&arena);
    }
    MUST(seen[0].count == seen[1].count && seen[0].hash == seen[1].hash);
}

static struct slice take_line(struct slice *input)
{
    size_t end = slice_find_byte(*input, '\n');
    struct slice line = slice_make(input->data, end);
    *input = slice_from_offset(*input, end + 1);
    return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = ARENA_INIT, scratch = ARENA_INIT;
    struct slice input = slice_make(data, size), settings = take_line(&input), name = take_line(&input);
    struct analysis *analysis = NULL;
    struct problem problem = {0};
    struct json_doc doc;
    if (input.len > TEXT_BYTES_MAX)
        input.len = TEXT_BYTES_MAX;
    if (json_parse(&scratch, settings, DIALECT_7, 0, &doc, &problem) == 0 && yyjson_is_obj(doc.root) &&
        analysis_new(&arena, doc.root, &scratch, &analysis, &problem) != 0) {
        MUST(problem.type != PROBLEM_NONE && problem.reason.len > 0);
        analysis = NULL;
    }
    const struct analyzer *analyzer = analysis_find(analysis, name);
    const struct analyzer *normalizer = analysis_find_normalizer(analysis, name);
    if (analyzer != NULL)
        run(analyzer, input);
    if (normalizer != NULL)
        (void)analyzer_normalize(normalizer, input, &arena);
    run(analysis_find(NULL, SLICE_LIT("standard")), input);
    arena_deinit(&arena);
    arena_deinit(&scratch);
    return 0;
}
