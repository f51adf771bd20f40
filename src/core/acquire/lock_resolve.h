/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves the names in requests to lock specs: the resources a request names, and the locks that
 * keep those names from changing their meaning. README-locks.md, "Names" and "What can be named".
 */
#ifndef TL_CORE_LOCK_RESOLVE_H
#define TL_CORE_LOCK_RESOLVE_H

#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/command/command.h"

struct write_target;
struct core;
struct session;
struct txn;
struct overlay;

/* The locks of one request, in the core's arena. */
struct lock_spec_list {
    struct lock_spec *items;
    size_t count;
    size_t capacity;
    size_t levels; /* of all paths, by commands from version 15 on */
    /* Directories above all of them, each once; a function that removes a lock with a path forgets their number. */
    bool distinct_known;
    size_t distinct;
    size_t distinct_most; /* counted so far: more than that is one more */
    uint64_t work; /* of finding and requesting them, as far as it follows from the state; ended early above a limit */
    uint64_t work_max; /* that limit */
};
/*
 * Appends a copy of a spec; the slices in it are not copied.
 * Requires: an open unit; the spec has a mode.
 */
void lock_specs__add(struct core *core, struct lock_spec_list *specs, const struct lock_spec *spec);
/*
 * Returns: an estimate of the bytes that these locks take, with each directory above them. Shared
 *          directories are counted once only if the sum would exceed `most` otherwise. It is exact up to `most`.
 *          api/request/request_budget.c estimates the paths in a request body, many of which are shared; paths of
 *          scripts and stored documents are in no body.
 */
size_t lock_specs__bytes(struct core *core, struct lock_spec_list *specs, size_t most);
/* Returns: an estimate of the bytes that an owner's locks take, with each resource above them. */
size_t owner__lock_bytes(const struct core *core, const struct lock_owner *owner);

/* Which locks count towards limits.locks_per_session_max: README-locks.md, "The limits of a request". */
enum lock_count { LOCK_COUNT_PLAIN, LOCK_COUNT_ALL };
/* Returns: which of them count in this step: before version 14 of commands, auxiliary ones, too. */
enum lock_count lock_specs__counted(const struct core *core);
/* Returns: how many locks an owner has, or has when it is granted these, too. Insert intentions do not count. */
size_t owner__lock_count(const struct lock_owner *owner, enum lock_count counted);
size_t lock_specs__count_after(const struct lock_owner *owner, const struct lock_spec_list *specs,
                               enum lock_count counted);
/* Returns: whether their work exceeds what one request may take. They may be incomplete then. */
bool lock_specs__exceed(const struct lock_spec_list *specs);
/*
 * Requires: the specs have a limit of work.
 * Returns: whether it does so together with the directories above all of them, each counted once.
 */
bool lock_specs__exceed_levels(struct core *core, struct lock_spec_list *specs);
/*
 * Counts their work, with the directories above all of them, each once. Returns: whether it exceeds `most`; they may be
 * incomplete then, and *ret_work is not set.
 */
bool lock_specs__exceed_work(struct core *core, struct lock_spec_list *specs, uint64_t most, uint64_t *ret_work);
/* Refuses a request, because the locks that its first `count` names mean exceed that. */
void lock_specs__refuse(const struct core *core, size_t count, struct arena *arena, struct problem *ret_problem);

/* Returns: whether a name is neither an index nor an alias; false for an empty name. */
bool lock_resolve__is_missing(const struct core *core, struct slice name);
/* What lock targets are resolved for. Each refuses names that cannot be locked. */
enum lock_resolve_purpose {
    LOCK_RESOLVE_TO_LOCK,   /* refuses a directory in an index without a path field */
    LOCK_RESOLVE_TO_UNLOCK, /* reads no path of a document, and finds only resources in the lock table */
    LOCK_RESOLVE_TO_RENAME  /* takes '*' and '?' in a path literally */
};
/*
 * Resolves the targets of a lock request: indices with the aliases that named them, and documents
 * under each of their names, in their committed directories. `owner` asks; NULL only with another purpose than to lock.
 * Returns: 0; 1, refused with *ret_problem in `arena`; fatal codes.
 */
int lock_resolve__locks(struct core *core, const struct lock_target *targets, size_t count,
                        enum lock_resolve_purpose purpose, const struct lock_owner *owner, struct arena *arena,
                        struct lock_spec_list *ret_specs, struct problem *ret_problem) TL_MUST_USE;
/*
 * Checks the names of an UNLOCK as lock_resolve__locks() does, without what they mean. Its work is limited by
 * UNLOCK_CHECK_WORK_MAX; by commands before version 18, the levels of the paths by CORE_LOCK_WORK.
 * Returns: 0, with its work; 1, refused with *ret_problem in `arena`.
 */
int lock_resolve__check_unlocked(struct core *core, const struct lock_target *targets, size_t count,
                                 struct arena *arena, uint64_t *ret_work, struct problem *ret_problem) TL_MUST_USE;
/*
 * Resolves the locks that a read of a transaction needs: for the first targets, so many that their work is within
 * what one request may take, at least one; by commands before version 18, for all. Leaves out locks on names that the
 * transaction holds already. The read itself reports names that match nothing.
 * Returns: 0, with how many targets these are for; fatal codes.
 */
int lock_resolve__reads(struct core *core, const struct lock_target *targets, size_t count, enum dialect dialect,
                        const struct txn *txn, size_t *ret_done, struct lock_spec_list *ret_specs) TL_MUST_USE;
/*
 * Adds the locks of one item of a write: its document, an insert intention on its new directory,
 * and the index that it creates. `txn` NULL: outside a transaction.
 * Requires: an open unit.
 */
void lock_resolve__write(struct core *core, const struct write_item *item, const struct write_target *target,
                         const struct txn *txn, struct lock_spec_list *specs);
/*
 * Returns: the work of comparing the document of a write with those of its ID and other types in the lock table, and of
 *          asking for them where the write is by any type: in an index without several, and by a new type in a
 *          transaction. lock_resolve__write() does that. By commands before version 23, 0.
 */
uint64_t lock_resolve__types_work(struct core *core, const struct write_target *target, bool in_txn);
/* Returns: the resource of a write's document, at its committed path. */
struct resource_name lock_resolve__target_document(struct core *core, const struct write_target *target);
/* Adds the locks of a DDL command: one that changes indices, aliases or stored scripts. */
void lock_resolve__ddl(struct core *core, const struct command *command, struct lock_spec_list *specs);
/* Releases an owner's locks on aliases in whose indices it holds no lock any more. Requires: an open unit. */
void lock_resolve__release_unused_aliases(struct core *core, struct lock_owner *owner);
/*
 * Returns: whether a session (NULL: none) would change the meaning of a name that it has locked
 * itself; it would wait for itself without end. Then *ret_problem, in `arena`, says so.
 */
bool lock_resolve__self_conflict(struct core *core, const struct session *session, const struct lock_spec_list *specs,
                                 struct arena *arena, struct problem *ret_problem);
/*
 * Returns: whether the lock table may know a document: it knows its index. Then *ret_name is the name by which it
 * would, of its type or of none, with the path of `name`.
 * Requires: an open unit; the name has an id.
 */
bool lock_resolve__known_document(struct core *core, const struct resource_name *name, struct resource_name *ret_name);
/*
 * Moves a document's locks and waiting requests to `path` (data NULL: directly into its index), if
 * the lock table knows the document.
 * Requires: an open unit; the name has an id.
 */
void lock_resolve__move_document(struct core *core, const struct resource_name *name, struct slice path);
/*
 * Moves each document, which has a name by lock_resolve__known_document(), to the directory that this says, all at
 * once.
 * Requires: an open unit; grants are suspended.
 */
void lock_resolve__move_documents(struct core *core, const struct resource_name *names, size_t count);
/*
 * Locks on documents that a command may move in the lock table, as LOCK_MOVE_COUNT() counts them; each document is
 * read. Those that are only requested move, too.
 */
enum { RELOCATED_MAX = 2500 };
/*
 * Returns: how much the locks on documents at or below a path count that is renamed; more than RELOCATED_MAX: too many.
 *          By commands before version 23, 0.
 */
size_t lock_resolve__count_renamed(const struct core *core, struct slice index, struct slice from, struct slice to);
/*
 * So with the locks on documents of an index that has got a path field. Reads them. Returns: 0; fatal codes.
 * Requires: an open unit.
 */
int lock_resolve__count_placed(struct core *core, struct slice index, size_t *ret_count);
/*
 * Moves every known document of an index to its current directory, after the index has got or lost
 * its path field. Reads none if the index has no path field now, or no longer exists. Returns: 0; fatal codes.
 * Requires: an open unit.
 */
int lock_resolve__relocate_documents(struct core *core, struct slice index) TL_MUST_USE;
/*
 * Moves the known documents at or below `from`, after it was renamed. Returns: 0; fatal codes.
 * Requires: an open unit; the path is not empty.
 */
int lock_resolve__relocate_renamed(struct core *core, struct slice index, struct slice from) TL_MUST_USE;
/*
 * Drops the locks on names that no owner but `owner` (NULL: none) and `session` (NULL: none) holds
 * in a conflicting mode. For commands that keep no lock: they wait only for names that are held,
 * and while they wait for a document they do not block the names.
 * Requires: an open unit.
 */
void lock_resolve__drop_unheld(struct core *core, const struct lock_owner *owner, const struct session *session,
                               struct lock_spec_list *specs);
/*
 * Requires: a lock on a name, with a mode.
 * Returns: whether an owner holds a lock on the name itself or on the set of all names, and keeps it until it releases
 * it; by commands before version 17 also if another request of it has that, which may be undone. A lock on everything
 * does not count: it may be released before the locks that it covers.
 */
bool lock_resolve__holds_name(const struct core *core, const struct lock_owner *owner, const struct lock_spec *name);
/*
 * Drops the locks on names that an owner holds already. Requesting them again would queue the owner
 * after a command that waits to change the name, and both would wait for each other.
 * Requires: an owner.
 */
void lock_resolve__drop_held(struct core *core, const struct lock_owner *owner, struct lock_spec_list *specs);
/*
 * Returns: the locks for changing a document, whose type is its stored one.
 * Requires: the name has an id.
 */
struct lock_spec_list lock_resolve__document(struct core *core, const struct resource_name *document);

#endif
