/* SPDX-License-Identifier: Apache-2.0 */
/* What the names in requests mean, and which locks keep it so. */
#ifndef TL_CORE_LOCK_RESOLVE_H
#define TL_CORE_LOCK_RESOLVE_H

#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/step/command.h"

struct write_target;
struct core;
struct session;
struct txn;
struct overlay;

/* What is wanted together, in the core's arena. */
struct lock_spec_list {
    struct lock_spec *items;
    size_t count;
    size_t capacity;
};
void lock_specs__add(struct core *core, struct lock_spec_list *wants, const struct lock_spec *want);
/* Returns: how many are locks, and not only places for something. */
size_t lock_specs__lock_count(const struct lock_spec_list *wants);
/*
 * Returns: bytes that these locks take, and each level of their paths once, about as api/request/memory.c estimates it of a body: what a script
 * makes, or a stored document has, is in no body. No more than `most` is counted exactly.
 */
size_t lock_specs__bytes(struct core *core, const struct lock_spec_list *wants, size_t most);
/* Returns: bytes that the locks of an owner take, with each level above them. */
size_t owner__lock_bytes(const struct lock_owner *owner);

/* Whether a name is neither an index nor an alias. */
bool lock_resolve__is_missing(const struct core *core, struct slice name);
/* What becomes of lock targets. What may not be named is refused in each. */
enum lock_resolve_purpose {
    LOCK_RESOLVE_TO_LOCK, /* a directory in an index without a path field is refused */
    LOCK_RESOLVE_TO_UNLOCK,
    LOCK_RESOLVE_TO_RENAME /* a name is that name, also where it looks like a pattern */
};
/*
 * Finds what lock targets mean: indices with the aliases that named them, and documents under all their names, where they lie
 * now.
 * Returns: 0; 1 with *ret_problem in `arena`; fatal codes.
 */
int lock_resolve__locks(struct core *core, const struct lock_target *targets, size_t count, enum lock_resolve_purpose use,
                    struct arena *arena, struct lock_spec_list *ret_wants,
                    struct problem *ret_problem) TL_MUST_USE;
/*
 * Finds what a read of a transaction must lock and has not. Of names that come to nothing the read itself will tell.
 * Returns: 0; fatal codes.
 */
int lock_resolve__reads(struct core *core, const struct lock_target *targets, size_t count, enum dialect dialect,
                    const struct txn *txn, struct lock_spec_list *ret_wants) TL_MUST_USE;
/* Adds what an item of a write must lock: its document, the place where it will lie, the index that it makes. */
void lock_resolve__write(struct core *core, const struct write_item *item, const struct write_target *target,
                     const struct txn *txn, struct lock_spec_list *wants);
/* Returns: by what name a document that is written is locked. */
struct resource_name lock_resolve__target_document(struct core *core, const struct write_target *target);
/* Adds what a command that changes indices or stored scripts must lock. */
void lock_resolve__ddl(struct core *core, const struct command *command, struct lock_spec_list *wants);
/* Releases the aliases by which an owner has nothing locked any more. */
void lock_resolve__release_unused_aliases(struct core *core, struct lock_owner *owner);
/* Whether a session (NULL: none) would itself make a name mean something else that it has locked. Then *ret_problem says so. */
bool lock_resolve__self_conflict(struct core *core, const struct session *session, const struct lock_spec_list *wants, struct arena *arena,
                struct problem *ret_problem);
/* Tells the table of locks that a document lies elsewhere, under each of its names. */
void lock_resolve__move_document(struct core *core, const struct resource_name *name, struct slice path);
/* Tells it of all documents of an index that it knows where they lie now: with another path field. Returns: 0; fatal codes. */
int lock_resolve__relocate_documents(struct core *core, struct slice index) TL_MUST_USE;
/* The same of those that lay at a path, or below it, before it was renamed. */
int lock_resolve__relocate_renamed(struct core *core, struct slice index, struct slice from) TL_MUST_USE;
/*
 * Leaves out names that nobody else (`owner` NULL: nobody) holds against it: who keeps nothing waits only for names that are
 * held, and keeps nobody from a name while he waits for other things.
 */
void lock_resolve__drop_unheld(struct core *core, const struct lock_owner *owner, const struct session *session,
                      struct lock_spec_list *wants);
/* Leaves out names that an owner keeps already: who waits to change one must not be waited for. */
void lock_resolve__drop_held(struct core *core, const struct lock_owner *owner, struct lock_spec_list *wants);
/* Returns: what a change of a document, by its stored type, must lock. */
struct lock_spec_list lock_resolve__document(struct core *core, const struct resource_name *document);
/* Returns: whether a document could be changed at once by what an owner has, or for it. */
bool lock_resolve__can_write(struct core *core, struct lock_owner *owner, const struct resource_name *document);

#endif
