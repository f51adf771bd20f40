/* SPDX-License-Identifier: Apache-2.0 */
/* The crash page; see at_work.h. */
#include "journal/at_work.h"

#include <fcntl.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "core/command/command.h"
#include "core/step/core.h"

enum { PAGE_BYTES = 4096, BOOT_BYTES_MAX = 64, CACHE_LINE = 64 };

/*
 * A recorded entry. The position is written last and cleared first, so that the other fields always
 * belong to it.
 */
struct entry_slot {
    _Atomic uint64_t position; /* 0: none */
    uint64_t ts;
    uint64_t bytes;
    _Atomic uint32_t command;
    uint32_t ends; /* set in `found` only */
};

/* The part of the page about entries. */
struct entry_page {
    char magic[8];
    char boot[BOOT_BYTES_MAX];
    uint32_t boot_len;
    struct entry_slot found;                   /* the process ended during its application */
    alignas(CACHE_LINE) struct entry_slot now; /* it is being applied */
    _Atomic uint64_t applied;                  /* highest position of an entry that was ever applied completely */
    /* Zeros in a page of a version that did not decode ahead */
    struct entry_slot found_ahead;               /* the process ended while it was decoded ahead */
    alignas(CACHE_LINE) struct entry_slot ahead; /* it is being decoded ahead */
};

/* The page, in native byte order: it never leaves this machine. */
struct page {
    char magic[8];
    atomic_uint noted; /* 1: the cleanup action below is being executed */
    uint32_t checksum; /* of the fields below, up to the session's last byte */
    uint64_t deferred;
    uint64_t action;
    uint32_t session_len;
    char session[SESSION_ID_BYTES_MAX];
    alignas(CACHE_LINE) struct entry_page entry; /* after the fields that earlier versions wrote */
};

_Static_assert(sizeof(struct page) <= PAGE_BYTES, "it is one page");

static const char page_magic[8] = "tidework";
static const char entry_magic[8] = "tideentr";

struct at_work {
    struct page *page;
    struct page found; /* as found at opening */
    /* Position of the last entry in whose decoding ahead an earlier process may have ended; 0: none, or applied */
    _Atomic uint64_t ended_until;
    uint64_t ended_at[2]; /* positions in whose application one may have ended, as of the opening; 0: none */
    struct core_watch watch;
    struct core_watch command_watch;
};

static uint32_t page_checksum(const struct page *page)
{
    const char *from = (const char *)&page->deferred;
    return crc32c(0, from, (size_t)(page->session - from) + page->session_len);
}

static void begin_action(void *context, struct slice session, uint64_t deferred, uint64_t action)
{
    struct page *page = ((struct at_work *)context)->page;
    REQUIRE(atomic_load_explicit(&page->noted, memory_order_relaxed) == 0);
    if (session.len > SESSION_ID_BYTES_MAX)
        return; /* loaded from a store of an earlier version: the core refuses longer ids */
    page->deferred = deferred;
    page->action = action;
    page->session_len = (uint32_t)session.len;
    memcpy(page->session, session.data, session.len);
    page->checksum = page_checksum(page);
    atomic_store_explicit(&page->noted, 1, memory_order_release);
}

static void end_action(void *context)
{
    atomic_store_explicit(&((struct at_work *)context)->page->noted, 0, memory_order_release);
}

/* Callback of each step: the next command of the entry begins. */
static void count_step(void *context)
{
    _Atomic uint32_t *command = &((struct at_work *)context)->page->entry.now.command;
    atomic_store_explicit(command, atomic_load_explicit(command, memory_order_relaxed) + 1, memory_order_relaxed);
}

static void ignore_begin(void *context, struct slice session, uint64_t deferred, uint64_t action)
{
    (void)context;
    (void)session;
    (void)deferred;
    (void)action;
}

static void ignore_end(void *context)
{
    (void)context;
}

/* Returns: whether the recorded action is valid. Assumes: the file has the full size. */
static bool is_sound(const struct page *page)
{
    return memcmp(page->magic, page_magic, sizeof page_magic) == 0 && page->session_len <= SESSION_ID_BYTES_MAX &&
           page->checksum == page_checksum(page);
}

/*
 * Maps the page. Allocates its block first: a store to a mapped page cannot report a full disk.
 * Returns: NULL on failure.
 */
static struct page *map_page(const char *path)
{
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return NULL;
    void *page = posix_fallocate(file, 0, PAGE_BYTES) != 0
                     ? MAP_FAILED
                     : mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    (void)close(file);
    return page == MAP_FAILED ? NULL : page;
}

/* Returns: whether the part about entries was written in this boot of the machine. */
static bool is_of_boot(const struct entry_page *entry, struct slice boot)
{
    return memcmp(entry->magic, entry_magic, sizeof entry_magic) == 0 && boot.len > 0 &&
           entry->boot_len <= BOOT_BYTES_MAX && slice_equal(boot, slice_make(entry->boot, entry->boot_len));
}

/* Resets the part about entries if it is new or of another boot of the machine. */
static void begin_entries(struct entry_page *entry, struct slice boot)
{
    if (is_of_boot(entry, boot))
        return;
    memset(entry, 0, sizeof *entry);
    memcpy(entry->magic, entry_magic, sizeof entry_magic);
    if (boot.len > 0 && boot.len <= BOOT_BYTES_MAX) {
        memcpy(entry->boot, boot.data, boot.len);
        entry->boot_len = (uint32_t)boot.len;
    }
}

static bool is_same_entry(const struct entry_slot *a, const struct entry_slot *b)
{
    return atomic_load(&a->position) == atomic_load(&b->position) && a->ts == b->ts && a->bytes == b->bytes;
}

/*
 * Counts an end of the process in the entry of `now` in `found`. `other`: ends that were counted in another slot
 * continue in this one.
 */
static void count_end_in(struct entry_slot *found, struct entry_slot *other, const struct entry_slot *now)
{
    uint64_t position = atomic_load(&now->position);
    uint32_t ends = is_same_entry(found, now) ? found->ends : is_same_entry(other, now) ? other->ends : 0;
    REQUIRE(position != 0);
    if (!is_same_entry(found, now)) {
        atomic_store(&found->position, 0);
        found->ts = now->ts;
        found->bytes = now->bytes;
    }
    found->ends = ends + 1;
    atomic_store(&found->command, atomic_load(&now->command));
    atomic_store(&found->position, position);
    if (is_same_entry(other, now))
        atomic_store(&other->position, 0);
}

/*
 * Counts an end of the process in the entry that it was applying, and in the one that it was decoding ahead: which of
 * them ended it is unknown. A crash within this function counts one end twice, never too few. `counts` false: a
 * cleanup action was being executed, to which TRIED attributes the end.
 */
static void count_end(struct entry_page *entry, bool counts)
{
    if (counts && atomic_load(&entry->now.position) != 0)
        count_end_in(&entry->found, &entry->found_ahead, &entry->now);
    if (counts && atomic_load(&entry->ahead.position) != 0)
        count_end_in(&entry->found_ahead, &entry->found, &entry->ahead);
    atomic_store(&entry->now.position, 0);
    atomic_store(&entry->ahead.position, 0);
}

/* Returns: the slot whose entry is reported as the one in which the process ended. */
static struct entry_slot *reported_slot(struct entry_page *entry)
{
    bool applied = atomic_load(&entry->found.position) != 0 && entry->found.ends != 0;
    return applied ? &entry->found : &entry->found_ahead;
}

int at_work_open(struct slice directory, struct slice boot, struct at_work **ret_at_work)
{
    REQUIRE(directory.len > 0);
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&path, "%.*s/at-work", SLICE_ARG(directory));
    buf_byte(&path, '\0');
    struct page *page = map_page(path.data);
    if (page == NULL)
        return tl_trace(TL_ERR_IO);
    struct at_work *at_work = mem_zalloc(sizeof *at_work);
    memcpy(&at_work->found, page, sizeof *page);
    if (!is_sound(&at_work->found))
        atomic_store(&at_work->found.noted, 0);
    memcpy(page->magic, page_magic, sizeof page_magic);
    begin_entries(&page->entry, boot);
    uint64_t ahead = atomic_load(&page->entry.ahead.position), found = atomic_load(&page->entry.found_ahead.position);
    atomic_init(&at_work->ended_until, ahead > found ? ahead : found);
    at_work->ended_at[0] = atomic_load(&page->entry.now.position);
    at_work->ended_at[1] = atomic_load(&page->entry.found.position);
    count_end(&page->entry, atomic_load(&at_work->found.noted) == 0);
    at_work->page = page;
    at_work->watch = (struct core_watch){count_step, begin_action, end_action, at_work};
    at_work->command_watch = (struct core_watch){count_step, ignore_begin, ignore_end, at_work};
    *ret_at_work = at_work;
    return 0;
}

uint64_t at_work_read_ended_in(struct slice directory, struct slice boot)
{
    REQUIRE(directory.len > 0);
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    struct page page;
    buf_printf(&path, "%.*s/at-work", SLICE_ARG(directory));
    buf_byte(&path, '\0');
    int file = open(path.data, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t len = file < 0 ? -1 : read(file, &page, sizeof page);
    if (file >= 0)
        (void)close(file);
    if (len != sizeof page || !is_of_boot(&page.entry, boot))
        return 0;
    uint64_t now = atomic_load(&page.entry.now.position); /* the next at_work_open() counts it */
    if (now == 0)
        now = atomic_load(&page.entry.ahead.position);
    const struct entry_slot *found = reported_slot(&page.entry);
    return now != 0 || found->ends == 0 ? now : atomic_load(&found->position);
}

void at_work_close(struct at_work *at_work)
{
    if (at_work == NULL)
        return;
    (void)munmap(at_work->page, PAGE_BYTES);
    mem_free(at_work);
}

bool at_work_found(const struct at_work *at_work, struct command *command)
{
    REQUIRE(command->type == COMMAND_TRIED);
    const struct page *found = &at_work->found;
    if (atomic_load(&found->noted) != 1)
        return false;
    command->tried = (struct tried_command){
        .session = arena_copy(&command->arena, slice_make(found->session, found->session_len)),
        .deferred = found->deferred,
        .action = found->action,
    };
    return true;
}

const struct core_watch *at_work_watch(struct at_work *at_work)
{
    REQUIRE(at_work != NULL);
    end_action(at_work); /* the action found at opening is in the log as TRIED */
    return &at_work->watch;
}

const struct core_watch *at_work_watch_commands(struct at_work *at_work)
{
    REQUIRE(at_work != NULL);
    return &at_work->command_watch;
}

/* --- Entries ------------------------------------------------------------------------------------------------------ */

void at_work_begin_entry(struct at_work *at_work, uint64_t position, uint64_t ts, uint64_t bytes)
{
    if (at_work == NULL)
        return;
    struct entry_slot *now = &at_work->page->entry.now;
    REQUIRE(position != 0 && atomic_load_explicit(&now->position, memory_order_relaxed) == 0);
    now->ts = ts;
    now->bytes = bytes;
    atomic_store_explicit(&now->command, 0, memory_order_relaxed);
    atomic_store_explicit(&now->position, position, memory_order_release);
}

void at_work_end_entry(struct at_work *at_work)
{
    if (at_work == NULL)
        return;
    struct entry_page *entry = &at_work->page->entry;
    uint64_t position = atomic_load_explicit(&entry->now.position, memory_order_relaxed);
    if (position > atomic_load_explicit(&entry->applied, memory_order_relaxed))
        atomic_store_explicit(&entry->applied, position, memory_order_relaxed);
    if (is_same_entry(&entry->found, &entry->now))
        atomic_store(&entry->found.position, 0);
    if (is_same_entry(&entry->found_ahead, &entry->now))
        atomic_store(&entry->found_ahead.position, 0);
    if (position >= atomic_load_explicit(&at_work->ended_until, memory_order_relaxed))
        atomic_store_explicit(&at_work->ended_until, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->now.position, 0, memory_order_release);
}

void at_work_fail_entry(struct at_work *at_work)
{
    if (at_work != NULL)
        atomic_store_explicit(&at_work->page->entry.now.position, 0, memory_order_release);
}

void at_work_begin_ahead(struct at_work *at_work, uint64_t position, uint64_t ts, uint64_t bytes)
{
    if (at_work == NULL)
        return;
    struct entry_slot *ahead = &at_work->page->entry.ahead;
    REQUIRE(position != 0 && atomic_load_explicit(&ahead->position, memory_order_relaxed) == 0);
    REQUIRE(at_work_may_decode_ahead(at_work, position));
    ahead->ts = ts;
    ahead->bytes = bytes;
    atomic_store_explicit(&ahead->position, position, memory_order_release);
}

void at_work_end_ahead(struct at_work *at_work)
{
    if (at_work != NULL)
        atomic_store_explicit(&at_work->page->entry.ahead.position, 0, memory_order_release);
}

bool at_work_may_decode_ahead(const struct at_work *at_work, uint64_t position)
{
    REQUIRE(position != 0);
    return at_work == NULL || (atomic_load_explicit(&at_work->ended_until, memory_order_relaxed) == 0 &&
                               position != at_work->ended_at[0] && position != at_work->ended_at[1]);
}

bool at_work_ended_in(const struct at_work *at_work, struct at_work_entry *ret_entry)
{
    REQUIRE(at_work != NULL && ret_entry != NULL);
    const struct entry_slot *found = reported_slot(&at_work->page->entry);
    *ret_entry = (struct at_work_entry){.position = atomic_load(&found->position),
                                        .ts = found->ts,
                                        .bytes = found->bytes,
                                        .command = atomic_load(&found->command),
                                        .ends = found->ends,
                                        .ahead = found == &at_work->page->entry.found_ahead};
    return ret_entry->position != 0 && ret_entry->ends != 0;
}

uint64_t at_work_applied(const struct at_work *at_work)
{
    REQUIRE(at_work != NULL);
    return atomic_load(&at_work->page->entry.applied);
}

void at_work_begin_log(struct at_work *at_work)
{
    REQUIRE(at_work != NULL);
    at_work_forget_entry(at_work);
    atomic_store(&at_work->page->entry.applied, 0);
    atomic_store_explicit(&at_work->ended_until, 0, memory_order_relaxed);
}

void at_work_forget_entry(struct at_work *at_work)
{
    if (at_work == NULL)
        return;
    atomic_store(&at_work->page->entry.found.position, 0);
    atomic_store(&at_work->page->entry.found_ahead.position, 0);
}

void at_work_retry_entry(struct at_work *at_work)
{
    struct entry_slot *found = reported_slot(&at_work->page->entry);
    REQUIRE(atomic_load(&found->position) != 0 && found->ends != 0);
    found->ends = AT_WORK_ENDS_MAX - 1;
}
