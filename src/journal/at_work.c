/* SPDX-License-Identifier: Apache-2.0 */
/* What is being done of what ended sessions left; see at_work.h. */
#include "journal/at_work.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/crc32c.h"
#include "core/step/command.h"
#include "core/step/core.h"

enum { PAGE_BYTES = 4096, SESSION_BYTES_MAX = 2048 };

/* In the machine's own order: nobody else reads it. */
struct page {
    char magic[8];
    atomic_uint noted; /* 1: what follows is under way */
    uint32_t checksum; /* of what follows, the session's bytes included */
    uint64_t kept;
    uint64_t action;
    uint32_t session_len;
    char session[SESSION_BYTES_MAX];
};

_Static_assert(sizeof(struct page) <= PAGE_BYTES, "it is one page");

static const char page_magic[8] = "tidework";

struct at_work {
    struct page *page;
    struct page found; /* as it was */
    struct core_watch watch;
};

static uint32_t checksum(const struct page *page)
{
    const char *from = (const char *)&page->kept;
    return crc32c(0, from, (size_t)(page->session - from) + page->session_len);
}

static void begin(void *context, struct slice session, uint64_t kept, uint64_t action)
{
    struct page *page = ((struct at_work *)context)->page;
    if (session.len > SESSION_BYTES_MAX)
        return; /* ids of the api are short */
    page->kept = kept;
    page->action = action;
    page->session_len = (uint32_t)session.len;
    memcpy(page->session, session.data, session.len);
    page->checksum = checksum(page);
    atomic_store_explicit(&page->noted, 1, memory_order_release);
}

static void end(void *context)
{
    atomic_store_explicit(&((struct at_work *)context)->page->noted, 0, memory_order_release);
}

/* Requires: its file is as long as it should be. */
static bool is_sound(const struct page *page)
{
    return memcmp(page->magic, page_magic, sizeof page_magic) == 0 && page->session_len <= SESSION_BYTES_MAX &&
           page->checksum == checksum(page);
}

/* Room is made first: a write to memory cannot be told that the disk is full. */
static struct page *map(const char *path)
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

int at_work_open(struct slice directory, struct at_work **ret_at_work)
{
    tl_cleanup(buf_deinit) struct buf path = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&path, "%.*s/at-work", SLICE_ARG(directory));
    buf_byte(&path, '\0');
    struct page *page = map(path.data);
    if (page == NULL)
        return tl_trace(TL_ERR_IO);
    struct at_work *at_work = mem_zalloc(sizeof *at_work);
    memcpy(&at_work->found, page, sizeof *page);
    if (!is_sound(&at_work->found))
        atomic_store(&at_work->found.noted, 0);
    memcpy(page->magic, page_magic, sizeof page_magic);
    at_work->page = page;
    at_work->watch = (struct core_watch){begin, end, at_work};
    *ret_at_work = at_work;
    return 0;
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
    const struct page *found = &at_work->found;
    if (atomic_load(&found->noted) != 1)
        return false;
    command->tried = (struct tried_command){
        .session = arena_copy(&command->arena, slice_make(found->session, found->session_len)),
        .kept = found->kept,
        .action = found->action,
    };
    return true;
}

const struct core_watch *at_work_watch(struct at_work *at_work)
{
    end(at_work); /* what was found has been said */
    return &at_work->watch;
}
