/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constant folding. Painless reports a division of constants by zero at compile time.
 */
#include "script/syntax/compile.h"

static bool fold_node(struct compiler *compiler, struct node **link);

static bool fold_list(struct compiler *compiler, struct node **list)
{
    for (struct node **item = list; *item != NULL; item = &(*item)->next)
        if (!fold_node(compiler, item))
            return false;
    return true;
}

static bool is_number(const struct node *node)
{
    return node != NULL && node->kind == NODE_CONST && node->value.kind >= VALUE_BYTE &&
           node->value.kind <= VALUE_DOUBLE;
}

static void become_constant(struct node *node, struct value value)
{
    node->kind = NODE_CONST;
    node->value = value;
    node->a = node->b = NULL;
}

/* Arithmetic that throws needs a run; its budget is never reached. */
static bool fold_binary(struct compiler *compiler, struct node *node)
{
    struct script_limits limits = SCRIPT_LIMITS_DEFAULT;
    struct run run = {.arena = compiler->arena, .limits = &limits, .steps_left = 1000, .memory_left = 1 << 20};
    struct value result;
    if (!is_number(node->a) || !is_number(node->b) || node->type == CLASS_DEF || node->target == CLASS_DEF)
        return true;
    if (number_binary(&run, (enum operator)node->op, node->a->value, node->b->value, &result)) {
        become_constant(node, result);
        return true;
    }
    return compile_fail(compiler, CLASS_ARITHMETIC_EXCEPTION, node->offset, "/ by zero") != NULL;
}

static void fold_cast(struct node *node)
{
    enum value_kind kinds[] = {
        [CLASS_BYTE] = VALUE_BYTE, [CLASS_SHORT] = VALUE_SHORT, [CLASS_CHAR] = VALUE_CHAR,    [CLASS_INT] = VALUE_INT,
        [CLASS_LONG] = VALUE_LONG, [CLASS_FLOAT] = VALUE_FLOAT, [CLASS_DOUBLE] = VALUE_DOUBLE};
    if (node->target >= CLASS_BYTE && node->target <= CLASS_DOUBLE && is_number(node->a))
        become_constant(node, number_cast(NULL, node->a->value, kinds[node->target]));
}

static bool fold_node(struct compiler *compiler, struct node **link)
{
    struct node *node = *link;
    struct node **children[] = {&node->a, &node->b, &node->c};
    for (unsigned i = 0; i < 3; i++)
        if (*children[i] != NULL && !fold_node(compiler, children[i]))
            return false;
    if (!fold_list(compiler, &node->list))
        return false;
    if (node->kind == NODE_LAMBDA)
        return fold_painless(compiler, node->function);
    if (node->kind == NODE_CAST)
        fold_cast(node);
    return node->kind != NODE_BINARY || fold_binary(compiler, node);
}

bool fold_painless(struct compiler *compiler, struct function *function)
{
    return fold_node(compiler, &function->body);
}
