/* SPDX-License-Identifier: Apache-2.0 */
/* Searching; see text_search.h. */
#include "script/value/text_search.h"

/* A search from the end is a search from the start with both texts reversed. */
static inline uint16_t part_at(const struct text_search *search, int64_t i)
{
    return text_at(search->part, (size_t)(search->back ? search->part->length - 1 - i : i));
}

static inline uint16_t text_part_at(const struct text_search *search, int64_t i)
{
    return text_at(search->text, (size_t)(search->back ? search->text->length - 1 - i : i));
}

/*
 * Returns: the index before the maximal suffix of the part, in the order of units or its reverse;
 * and its period.
 */
static int64_t greatest_suffix(const struct text_search *search, bool reverse, int64_t *ret_period)
{
    int64_t begin = -1, at = 0, k = 1, period = 1, length = search->part->length;
    while (at + k < length) {
        uint16_t a = part_at(search, at + k), b = part_at(search, begin + k);
        if (a == b) {
            at += k == period ? period : 0;
            k = k == period ? 1 : k + 1;
        } else if ((a < b) != reverse) {
            at += k;
            k = 1;
            period = at - begin;
        } else {
            begin = at++;
            k = period = 1;
        }
    }
    *ret_period = period;
    return begin;
}

static void cut_part(struct text_search *search)
{
    int64_t one, two, length = search->part->length;
    int64_t a = greatest_suffix(search, false, &one), b = greatest_suffix(search, true, &two);
    search->cut = a > b ? a : b;
    search->period = a > b ? one : two;
    search->periodic = true;
    for (int64_t i = 0; i <= search->cut && search->periodic; i++)
        search->periodic = i + search->period < length && part_at(search, i) == part_at(search, i + search->period);
    if (!search->periodic) {
        int64_t left = search->cut + 1, right = length - left;
        search->period = (left > right ? left : right) + 1;
    }
    run_work(search->run, (size_t)length);
}

void text_search_init(struct text_search *search, struct run *run, const struct text *text, const struct text *part,
                      int64_t from)
{
    *search = (struct text_search){.run = run, .text = text, .part = part, .at = from < 0 ? 0 : from, .matched = -1};
    cut_part(search);
}

void text_search_init_back(struct text_search *search, struct run *run, const struct text *text,
                           const struct text *part, int64_t from)
{
    int64_t last = (int64_t)text->length - (int64_t)part->length;
    *search = (struct text_search){.run = run, .text = text, .part = part, .back = true, .matched = -1};
    search->at = from >= last ? 0 : last - from;
    cut_part(search);
}

/* Returns: whether the part occurs at search->at. Advances, after a match by its period. */
static bool try_here(struct text_search *search)
{
    int64_t length = search->part->length, at = search->at;
    int64_t i = (search->cut > search->matched ? search->cut : search->matched) + 1;
    while (i < length && part_at(search, i) == text_part_at(search, at + i))
        i++;
    if (i < length) {
        search->at += i - search->cut;
        search->matched = -1;
        return false;
    }
    for (i = search->cut; i > search->matched && part_at(search, i) == text_part_at(search, at + i);)
        i--;
    bool found = i <= search->matched;
    search->at += search->period;
    search->matched = search->periodic ? length - search->period - 1 : -1;
    return found;
}

int64_t text_search_next(struct text_search *search)
{
    int64_t length = search->part->length, last = (int64_t)search->text->length - length, begin = search->at;
    int64_t found = -1;
    while (found < 0 && search->at <= last) {
        int64_t at = search->at;
        if (length == 0)
            search->at++, found = at;
        else if (try_here(search))
            found = at;
    }
    run_work(search->run, (size_t)(search->at - begin));
    return found < 0 || !search->back ? found : last - found;
}

int64_t text_index(struct run *run, const struct text *text, const struct text *part, int64_t from)
{
    struct text_search search;
    if (part->length == 0 && from > (int64_t)text->length)
        return text->length;
    text_search_init(&search, run, text, part, from);
    return text_search_next(&search);
}

int64_t text_last_index(struct run *run, const struct text *text, const struct text *part, int64_t from)
{
    struct text_search search;
    if (from < 0)
        return -1;
    text_search_init_back(&search, run, text, part, from);
    return text_search_next(&search);
}
