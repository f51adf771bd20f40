/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offsets of run-time errors in Painless.
 *
 * The original compiles to byte code with source offsets as line numbers. A throwable is reported
 * at the last number written before the instruction that threw. So this pass walks the tree in the
 * order of code generation, keeps the last number, and stores it in each node that can throw.
 */
#include "script/syntax/compile.h"

struct placer {
    struct compiler *compiler;
    struct program *program;
    size_t capacity;
    int32_t last; /* the number written last; -1: none yet */
};

static void place_node(struct placer *placer, struct node *node);

static void place_list(struct placer *placer, struct node *list)
{
    for (; list != NULL; list = list->next)
        place_node(placer, list);
}

static void start_statement(struct placer *placer, int32_t offset)
{
    struct program *program = placer->program;
    unsigned at = program->start_count;
    while (at > 0 && program->starts[at - 1] > offset)
        at--;
    if (at > 0 && program->starts[at - 1] == offset)
        return;
    program->starts = arena_grow(placer->compiler->arena, program->starts, program->start_count, &placer->capacity,
                                 sizeof *program->starts);
    memmove(program->starts + at + 1, program->starts + at, (program->start_count - at) * sizeof *program->starts);
    program->starts[at] = offset;
    program->start_count++;
}

/* Visits the target of an assignment or increment: its prefix and index. */
static void place_target(struct placer *placer, struct node *target)
{
    if (target->kind != NODE_DOT && target->kind != NODE_BRACE)
        return;
    place_node(placer, target->a);
    if (target->b != NULL)
        place_node(placer, target->b);
    target->slot = target->kind == NODE_BRACE ? (uint32_t)placer->last : target->slot;
    target->error_offset = target->offset;
}

static void place_brace(struct placer *placer, struct node *node)
{
    place_node(placer, node->a);
    place_node(placer, node->b);
    node->slot = (uint32_t)placer->last; /* of the index, before the element is read */
    node->error_offset = placer->last = node->offset;
    if (node->a->type != CLASS_DEF &&
        type_assignable(CLASS_MAP, node->a->type)) /* the get is called at the offset of the key */
        node->error_offset = placer->last = node->b->offset;
}

static void place_expression(struct placer *placer, struct node *node)
{
    switch (node->kind) {
    case NODE_FIND:
    case NODE_MATCH:
        placer->last = node->offset;
        place_node(placer, node->b);
        place_node(placer, node->a);
        break;
    case NODE_CAST:
        place_node(placer, node->a);
        placer->last = node->offset;
        break;
    case NODE_INSTANCEOF: place_node(placer, node->a); break;
    case NODE_ASSIGN:
        place_target(placer, node->a);
        place_node(placer, node->b);
        if (node->a->kind != NODE_LOCAL)
            placer->last = node->a->offset;
        break;
    case NODE_COMPOUND:
    case NODE_STEP:
        place_target(placer, node->a);
        placer->last = node->a->kind == NODE_LOCAL ? node->offset : node->a->offset;
        place_node(placer, node->b);
        node->error_offset = placer->last;
        if (node->a->kind != NODE_LOCAL)
            placer->last = node->a->offset;
        return;
    case NODE_DOT:
        place_node(placer, node->a);
        placer->last = node->offset;
        break;
    case NODE_BRACE: place_brace(placer, node); return;
    case NODE_CALL:
        place_node(placer, node->a);
        placer->last = node->offset;
        place_list(placer, node->list);
        break;
    case NODE_CONST:
    case NODE_LOCAL:
    case NODE_TYPE: break;
    default: /* its own offset first, then its operands' */
        placer->last = node->offset;
        place_node(placer, node->a);
        place_node(placer, node->b);
        place_node(placer, node->c);
        place_list(placer, node->list);
    }
    node->error_offset = placer->last;
}

static void place_function(struct placer *placer, struct function *function, int32_t first)
{
    int32_t outer = placer->last;
    placer->last = first;
    place_node(placer, function->body);
    placer->last = outer;
}

static void place_loop(struct placer *placer, struct node *node)
{
    start_statement(placer, node->offset);
    if (node->kind == NODE_FOR)
        place_node(placer, node->list);
    if (node->kind == NODE_DO)
        place_node(placer, node->b);
    place_node(placer, node->a);
    node->error_offset = placer->last;
    placer->last = node->offset; /* the loop counter */
    if (node->kind != NODE_DO)
        place_node(placer, node->b);
    if (node->kind == NODE_FOR)
        place_node(placer, node->c);
}

static void place_node(struct placer *placer, struct node *node)
{
    if (node == NULL)
        return;
    switch (node->kind) {
    case NODE_BLOCK:
    case NODE_DECLARE_ALL: place_list(placer, node->list); break;
    case NODE_WHILE:
    case NODE_DO:
    case NODE_FOR:
    case NODE_EACH: place_loop(placer, node); break;
    case NODE_BREAK:
    case NODE_CONTINUE:
    case NODE_EMPTY: break;
    case NODE_EXPRESSION:
    case NODE_DECLARE:
    case NODE_IF:
    case NODE_RETURN:
    case NODE_THROW:
    case NODE_TRY:
    case NODE_CATCH:
    case NODE_ASSERT:
        start_statement(placer, node->offset);
        place_node(placer, node->a);
        node->error_offset = placer->last;
        place_node(placer, node->b);
        place_list(placer, node->list);
        place_node(placer, node->c);
        break;
    case NODE_LAMBDA:
        placer->last = node->error_offset = node->offset;
        place_function(placer, node->function, -1);
        break;
    default: place_expression(placer, node);
    }
}

void error_offset_painless(struct compiler *compiler, struct program *program)
{
    struct placer placer = {.compiler = compiler, .program = program, .last = -1};
    start_statement(&placer, 0);
    for (struct function *function = program->functions; function != NULL; function = function->next)
        place_function(&placer, function, -1);
    place_function(&placer, program->main, 0);
}
