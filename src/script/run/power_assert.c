/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assertions, and Groovy's power assertion message: the text of the condition, and below each subexpression its value.
 */
#include "script/run/interp.h"

#include "script/run/convert.h"
#include "script/run/script_error.h"

struct recorded {
    const struct node *node;
    struct value value;
};

struct recorder {
    struct run *run;
    struct recorded *items;
    size_t count;
    size_t capacity;
};

#define RECORDED_MAX 1000u

/* Literals and similar nodes are not recorded: their values show in the text. */
static bool worth_showing(const struct node *node)
{
    switch (node->kind) {
    case NODE_CONST:
    case NODE_TYPE:
    case NODE_LIST:
    case NODE_MAP:
    case NODE_LAMBDA:
    case NODE_CAST:
    case NODE_COERCE:
    case NODE_CONDITIONAL:
    case NODE_ELVIS:
    case NODE_RANGE:
    case NODE_GSTRING: return false;
    default: return true;
    }
}

void power_assert_record(struct recorder *recorder, const struct node *node, struct value value)
{
    if (!worth_showing(node) || recorder->count >= RECORDED_MAX)
        return;
    recorder->items = arena_grow(recorder->run->arena, recorder->items, recorder->count, &recorder->capacity,
                                 sizeof *recorder->items);
    run_charge(recorder->run, sizeof *recorder->items);
    recorder->items[recorder->count++] = (struct recorded){node, value};
}

struct cell {
    int32_t column;
    struct slice text;
};

/*
 * Sorts values by column, the rightmost first; of several in one column it keeps the one recorded
 * last.
 */
static size_t sort_cells(struct run *run, struct recorder *recorder, int32_t base, struct cell *cells)
{
    size_t count = 0;
    for (size_t i = recorder->count; i-- > 0;) {
        int32_t column = recorder->items[i].node->error_offset - base;
        size_t at = 0;
        bool taken = false;
        for (size_t k = 0; k < count; k++)
            taken |= cells[k].column == column;
        struct text *text = taken || column < 0 ? NULL : value_to_text(run, recorder->items[i].value);
        if (text == NULL)
            continue;
        while (at < count && cells[at].column > column)
            at++;
        memmove(cells + at + 1, cells + at, (count - at) * sizeof *cells);
        cells[at] = (struct cell){column, text_utf8(run, text)};
        run_charge(run, cells[at].text.len);
        count++;
    }
    return count;
}

/* A growing set of lines, padded with blanks as needed. */
static void put_cell(struct buf *line, int32_t column, struct slice text)
{
    while (line->len < (size_t)column)
        buf_byte(line, ' ');
    size_t overlap = line->len - (size_t)column;
    buf_overwrite(line, (size_t)column, text.data, overlap < text.len ? overlap : text.len);
    if (text.len > overlap)
        buf_append(line, text.data + overlap, text.len - overlap);
}

#define POWER_LINES_MAX 64u

/*
 * The first line has a bar for each value. A value is printed on the first later line on which it ends before the text
 * already there; the lines above it get a bar.
 */
static struct slice render_cells(struct run *run, const struct cell *cells, size_t count)
{
    struct buf lines[POWER_LINES_MAX];
    int32_t firsts[POWER_LINES_MAX];
    size_t used = 1;
    lines[0] = BUF_INIT(BUF_UNLIMITED);
    for (size_t i = count; i-- > 0;)
        put_cell(&lines[0], cells[i].column, SLICE_LIT("|"));
    for (size_t i = 0; i < count; i++) {
        int32_t end = cells[i].column + (int32_t)utf8_units(cells[i].text);
        size_t at = 1;
        for (; at < used && end >= firsts[at]; at++) {
            put_cell(&lines[at], cells[i].column, SLICE_LIT("|"));
            firsts[at] = cells[i].column + 1;
        }
        if (at == POWER_LINES_MAX)
            break;
        if (at == used)
            lines[used++] = BUF_INIT(BUF_UNLIMITED);
        put_cell(&lines[at], cells[i].column, cells[i].text);
        firsts[at] = cells[i].column;
    }
    struct slice all = SLICE_LIT("");
    for (size_t i = 0; i < used; i++) {
        if (count > 0)
            all = arena_printf(run->arena, "%.*s%s%.*s", SLICE_ARG(all), i > 0 ? "\n" : "",
                               SLICE_ARG(buf_as_slice(&lines[i])));
        buf_deinit(&lines[i]);
    }
    run_charge(run, all.len);
    return all;
}

static bool fail_with_picture(struct run *run, const struct node *node, struct recorder *recorder)
{
    struct cell *cells = run_alloc_large(run, (recorder->count + 1) * sizeof *cells);
    if (cells == NULL)
        return false;
    size_t count = run->groovy ? sort_cells(run, recorder, node->offset, cells) : 0;
    if (run->thrown != NULL)
        return false;
    return run_throw(run, CLASS_POWER_ASSERTION_ERROR, "%.*s\n%.*s", SLICE_ARG(node->text),
                     SLICE_ARG(render_cells(run, cells, count)));
}

/*
 * Lists the variables that a condition compares, as groovyc does: not those inside calls and
 * similar expressions.
 */
static bool append_values(struct run *run, struct frame *frame, const struct node *node, struct slice *all)
{
    struct value value;
    switch (node->kind) {
    case NODE_NOT: return append_values(run, frame, node->a, all);
    case NODE_BINARY:
    case NODE_COMPARE:
    case NODE_AND:
    case NODE_OR:
    case NODE_FIND:
    case NODE_MATCH:
    case NODE_IN:
    case NODE_SPACESHIP:
    case NODE_BRACE: return append_values(run, frame, node->a, all) && append_values(run, frame, node->b, all);
    case NODE_LOCAL:
    case NODE_BINDING: break;
    default: return true;
    }
    if (!interp__eval(run, frame, node, &value))
        return false;
    struct text *text = value_to_text(run, value);
    if (text == NULL)
        return false;
    *all = arena_printf(run->arena, "%.*s%s%.*s = %.*s", SLICE_ARG(*all), all->len == 0 ? ". Values: " : ", ",
                        SLICE_ARG(node->text), SLICE_ARG(text_utf8(run, text)));
    run_charge(run, all->len);
    return run_step(run, 1);
}

static bool fail_with_message(struct run *run, struct frame *frame, const struct node *node)
{
    struct value message;
    if (!interp__eval(run, frame, node->b, &message))
        return false;
    struct text *text = value_to_text(run, message);
    if (text == NULL)
        return false;
    struct slice shown = text_utf8(run, text);
    struct slice condition = text_utf8(run, (struct text *)node->value.object), values = SLICE_LIT("");
    if (!append_values(run, frame, node->a, &values))
        return false;
    return run_throw(run, CLASS_ASSERTION_ERROR, "%.*s. Expression: %.*s%.*s", SLICE_ARG(shown), SLICE_ARG(condition),
                     SLICE_ARG(values));
}

bool power_assert(struct run *run, struct frame *frame, const struct node *node)
{
    struct recorder recorder = {.run = run}, *outer = run->record;
    struct value value;
    bool truth;
    run->record = &recorder;
    bool ok = interp__eval(run, frame, node->a, &value);
    run->record = outer;
    if (!ok || !convert_truth(run, value, &truth))
        return false;
    if (truth)
        return true;
    ok = node->b != NULL ? fail_with_message(run, frame, node) : fail_with_picture(run, node, &recorder);
    return ok || interp__at(run, node->error_offset);
}
