/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines in order; see deadline.h. */
#include "core/session/deadline.h"

#include "base/check.h"
#include "core/command/codec.h"

static bool due_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct deadline *x = container_of(a, const struct deadline, node);
    const struct deadline *y = container_of(b, const struct deadline, node);
    return x->at != y->at ? x->at < y->at : x->number < y->number;
}

void deadlines_init(struct deadlines *deadlines)
{
    deadlines->last_number = 0;
    heap_init(&deadlines->heap, due_before);
}

void deadlines_deinit(struct deadlines *deadlines)
{
    REQUIRE(heap_first(&deadlines->heap) == NULL);
    heap_deinit(&deadlines->heap);
}

void deadline_set(struct deadlines *deadlines, struct deadline *deadline, uint64_t at)
{
    REQUIRE(deadlines->heap.before != NULL && deadlines->last_number < UINT64_MAX);
    if (heap_holds(&deadline->node))
        heap_remove(&deadlines->heap, &deadline->node);
    deadline->at = at;
    deadline->number = ++deadlines->last_number;
    if (at < TL_TS_MAX)
        heap_push(&deadlines->heap, &deadline->node);
}

void deadline_restore(struct deadlines *deadlines, struct deadline *deadline, uint64_t at, uint64_t number)
{
    REQUIRE(!heap_holds(&deadline->node) && number <= deadlines->last_number);
    deadline->at = at;
    deadline->number = number;
    if (at < TL_TS_MAX)
        heap_push(&deadlines->heap, &deadline->node);
}

struct deadline *deadlines_due(const struct deadlines *deadlines, uint64_t now)
{
    struct heap_node *first = heap_first(&deadlines->heap);
    struct deadline *deadline = first == NULL ? NULL : container_of(first, struct deadline, node);
    INSIST(deadline == NULL || (deadline->number != 0 && deadline->number <= deadlines->last_number));
    return deadline != NULL && deadline->at <= now ? deadline : NULL;
}

uint64_t deadlines_first(const struct deadlines *deadlines)
{
    struct heap_node *first = heap_first(&deadlines->heap);
    return first == NULL ? TL_TS_MAX : container_of(first, struct deadline, node)->at;
}

void codec_deadline(struct codec *codec, struct deadlines *all, struct deadline *deadline)
{
    bool set = !codec_reads(codec) && deadline->at < TL_TS_MAX;
    uint64_t at = deadline->at, number = deadline->number;

    codec_bool(codec, &set);
    if (!set) {
        deadline->at = TL_TS_MAX;
        return;
    }
    REQUIRE(codec_reads(codec) || (number != 0 && number <= all->last_number)); /* else it cannot be read */
    codec_number(codec, &at);
    codec_number(codec, &number);
    if (!codec_reads(codec))
        return;
    codec_require(codec, at < TL_TS_MAX && number != 0 && number <= all->last_number);
    if (!codec->bad)
        deadline_restore(all, deadline, at, number);
}
