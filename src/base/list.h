/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intrusive circular doubly linked lists.
 *
 * A head and its links have the same type; the head of an empty list points to itself. A link that
 * is in no list has NULL pointers. Iteration follows the list, so it is deterministic.
 */
#ifndef TL_BASE_LIST_H
#define TL_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *prev;
    struct list *next;
};

#define LIST_INIT(head) ((struct list){&(head), &(head)})
#define container_of(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

static inline void list_init(struct list *head)
{
    head->prev = head->next = head;
}

static inline bool list_empty(const struct list *head)
{
    return head->next == head;
}

static inline bool list_linked(const struct list *link)
{
    return link->next != NULL;
}

static inline void list_insert_before(struct list *position, struct list *link)
{
    link->prev = position->prev;
    link->next = position;
    position->prev->next = link;
    position->prev = link;
}

static inline void list_append(struct list *head, struct list *link)
{
    list_insert_before(head, link);
}

static inline void list_prepend(struct list *head, struct list *link)
{
    list_insert_before(head->next, link);
}

static inline void list_remove(struct list *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    link->prev = link->next = NULL;
}

#define list_entry(link, type, member) container_of(link, type, member)
#define list_for_each(link, head) for (struct list *link = (head)->next; link != (head); link = link->next)
/* The body may remove `link`. */
#define list_for_each_safe(link, following, head)                                   \
    for (struct list *link = (head)->next, *following = link->next; link != (head); \
         link = following, following = link->next)

/* Returns: the number of links of a list, which it counts. */
static inline size_t list_length(const struct list *head)
{
    size_t count = 0;
    list_for_each(link, head) count++;
    return count;
}

#endif
