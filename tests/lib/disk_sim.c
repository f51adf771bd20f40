/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated disk; see disk_sim.h. */
#include "disk_sim.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"

enum { FILES_MAX = 4096, NAMES_MAX = 4096, CHANGES_MAX = 4096, NAME_BYTES = 48 };

/*
 * The state of a cached sector: as on the platter; to be written by the next sync; not written by a
 * failed sync but marked clean.
 */
enum { CLEAN, DIRTY, LOST };

/* A file's contents: in the page cache, and on the platter. */
struct content {
    char *now;
    size_t now_len;
    size_t capacity;
    char *platter; /* zeros after platter_len */
    size_t platter_len;
    char *sectors; /* their states */
};

struct name {
    char text[NAME_BYTES];
    int content; /* index into disk_sim.contents; -1: the name does not exist */
};

/* An atomic change of the directory: sets or removes (-1) `text`; a rename unlinks another name. */
struct change {
    char text[NAME_BYTES];
    int content;
    char unlinked[NAME_BYTES]; /* empty: none */
};

struct names {
    struct name items[NAMES_MAX];
    size_t count;
};

struct disk_sim {
    struct rng rng;
    struct content contents[FILES_MAX];
    size_t content_count;
    struct names now;
    struct names durable;
    struct change changes[CHANGES_MAX]; /* of the directory, since its last sync */
    size_t change_count;
    uint64_t operations;
    uint64_t dies_at;
    bool died;
    uint64_t capacity; /* bytes; 0: no limit */
    uint64_t one_in;   /* rate of syncs that fail: one of this many; 0: none */
};

struct handle {
    struct cmdlog_disk disk;
    struct disk_sim *sim;
};

static struct disk_sim *sim_of(struct cmdlog_disk *disk)
{
    return ((struct handle *)disk)->sim;
}

static bool dead(struct disk_sim *sim)
{
    return sim->died;
}

/* Counts an operation that changes the disk. Returns: whether it takes effect. */
static bool count_operation(struct disk_sim *sim)
{
    sim->died = sim->died || sim->operations >= sim->dies_at;
    sim->operations += !sim->died;
    return !sim->died;
}

static struct name *find(struct names *names, const char *text)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i].text, text) == 0)
            return &names->items[i];
    return NULL;
}

static void set_in(struct names *names, const char *text, int content)
{
    struct name *found = find(names, text);
    if (found == NULL) {
        REQUIRE(names->count < NAMES_MAX);
        found = &names->items[names->count++];
        snprintf(found->text, sizeof found->text, "%s", text);
    }
    found->content = content;
}

static int content_of(struct names *names, const char *text)
{
    struct name *found = find(names, text);
    return found == NULL ? -1 : found->content;
}

static void set_name(struct disk_sim *sim, const char *text, int content)
{
    REQUIRE(sim->change_count < CHANGES_MAX);
    struct change *change = &sim->changes[sim->change_count++];
    change->unlinked[0] = '\0';
    snprintf(change->text, sizeof change->text, "%s", text);
    change->content = content;
    set_in(&sim->now, text, content);
}

static int sim_open(struct cmdlog_disk *disk, const char *name, bool create, int *ret_file)
{
    struct disk_sim *sim = sim_of(disk);
    int content = content_of(&sim->now, name);
    if (dead(sim))
        return TL_ERR_IO;
    if (content < 0) {
        if (!create)
            return DISK_NO_FILE;
        if (!count_operation(sim))
            return TL_ERR_IO;
        REQUIRE(sim->content_count < FILES_MAX);
        content = (int)sim->content_count++;
        set_name(sim, name, content);
    }
    *ret_file = content;
    return 0;
}

static void sim_close(struct cmdlog_disk *disk, int file)
{
    REQUIRE((size_t)file < sim_of(disk)->content_count);
}

static size_t sector_count(size_t len)
{
    return (len + DISK_SIM_SECTOR - 1) / DISK_SIM_SECTOR;
}

/* Evicts some lost sectors from the page cache, so that the platter's contents are read again. */
static void evict(struct disk_sim *sim, struct content *content)
{
    for (size_t i = 0; i < sector_count(content->now_len); i++) {
        if (content->sectors[i] != LOST || rng_below(&sim->rng, 40) > 0)
            continue;
        memcpy(content->now + i * DISK_SIM_SECTOR, content->platter + i * DISK_SIM_SECTOR, DISK_SIM_SECTOR);
        content->sectors[i] = CLEAN;
    }
}

static int sim_read(struct cmdlog_disk *disk, int file, uint64_t offset, void *bytes, size_t len, size_t *ret_len)
{
    struct content *content = &sim_of(disk)->contents[file];
    size_t left = offset >= content->now_len ? 0 : content->now_len - (size_t)offset;
    if (dead(sim_of(disk)))
        return TL_ERR_IO;
    evict(sim_of(disk), content);
    *ret_len = len < left ? len : left;
    if (*ret_len > 0)
        memcpy(bytes, content->now + offset, *ret_len);
    return 0;
}

static void grow(struct content *content, size_t len)
{
    if (len > content->capacity) {
        size_t capacity = sector_count(len * 2) * DISK_SIM_SECTOR, more = capacity - content->capacity;
        content->now = mem_realloc(content->now, capacity);
        content->platter = mem_realloc(content->platter, capacity);
        content->sectors = mem_realloc(content->sectors, sector_count(capacity));
        memset(content->now + content->capacity, 0, more);
        memset(content->platter + content->capacity, 0, more);
        memset(content->sectors + sector_count(content->capacity), CLEAN, sector_count(more));
        content->capacity = capacity;
    }
    if (len > content->now_len) {
        memset(content->now + content->now_len, 0, len - content->now_len);
        content->now_len = len;
    }
}

static uint64_t bytes_in_use(const struct disk_sim *sim)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < sim->now.count; i++)
        if (sim->now.items[i].content >= 0)
            bytes += sim->contents[sim->now.items[i].content].now_len;
    return bytes;
}

void disk_sim_set_capacity(struct disk_sim *sim, uint64_t bytes)
{
    sim->capacity = bytes == UINT64_MAX ? 0 : bytes;
}

static int sim_write(struct cmdlog_disk *disk, int file, uint64_t offset, const struct slice *parts, size_t count)
{
    struct disk_sim *sim = sim_of(disk);
    struct content *content = &sim->contents[file];
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += parts[i].len;
    if (sim->capacity > 0 && offset + len > content->now_len &&
        bytes_in_use(sim) + offset + len - content->now_len > sim->capacity)
        return TL_ERR_NO_SPACE;
    bool died = sim->died;
    bool whole = count_operation(sim);
    size_t written = whole ? len : died ? 0 : (size_t)rng_below(&sim->rng, len + 1);
    for (size_t i = 0; i < count && written > 0; i++) {
        size_t taken = parts[i].len < written ? parts[i].len : written;
        size_t before = content->now_len;
        grow(content, (size_t)offset + taken);
        if (taken > 0)
            memcpy(content->now + offset, parts[i].data, taken);
        size_t first = before < (size_t)offset ? before : (size_t)offset; /* and the gap */
        for (size_t at = first / DISK_SIM_SECTOR; at < sector_count((size_t)offset + taken); at++)
            content->sectors[at] = DIRTY;
        offset += taken;
        written -= taken;
    }
    return whole ? 0 : TL_ERR_IO;
}

static int sim_size(struct cmdlog_disk *disk, int file, uint64_t *ret_size)
{
    *ret_size = sim_of(disk)->contents[file].now_len;
    return dead(sim_of(disk)) ? TL_ERR_IO : 0;
}

static void write_sector(struct content *content, size_t i)
{
    memcpy(content->platter + i * DISK_SIM_SECTOR, content->now + i * DISK_SIM_SECTOR, DISK_SIM_SECTOR);
    content->sectors[i] = CLEAN;
}

/* Writes the dirty sectors to the platter; lost ones count as clean. */
static void write_dirty(struct content *content)
{
    for (size_t i = 0; i < sector_count(content->now_len); i++)
        if (content->sectors[i] == DIRTY)
            write_sector(content, i);
    content->platter_len = content->now_len;
}

/* Writes some of the dirty sectors and marks all as clean. */
static void fail_to_write(struct disk_sim *sim, struct content *content)
{
    for (size_t i = 0; i < sector_count(content->now_len); i++) {
        if (content->sectors[i] != DIRTY)
            continue;
        content->sectors[i] = LOST;
        if (rng_below(&sim->rng, 2) == 0)
            write_sector(content, i);
    }
    if (rng_below(&sim->rng, 2) == 0)
        content->platter_len = content->now_len;
}

static int sim_sync(struct cmdlog_disk *disk, int file)
{
    struct disk_sim *sim = sim_of(disk);
    if (!count_operation(sim))
        return TL_ERR_IO;
    if (sim->one_in > 0 && rng_below(&sim->rng, sim->one_in) == 0) {
        fail_to_write(sim, &sim->contents[file]);
        return TL_ERR_IO;
    }
    write_dirty(&sim->contents[file]);
    return 0;
}

void disk_sim_fail_syncs(struct disk_sim *sim, uint64_t one_in)
{
    sim->one_in = one_in;
}

static int sim_rename(struct cmdlog_disk *disk, const char *from, const char *to)
{
    struct disk_sim *sim = sim_of(disk);
    int content = content_of(&sim->now, from);
    if (content < 0 || !count_operation(sim))
        return TL_ERR_IO;
    set_name(sim, to, content);
    snprintf(sim->changes[sim->change_count - 1].unlinked, NAME_BYTES, "%s", from);
    set_in(&sim->now, from, -1);
    return 0;
}

static int sim_remove(struct cmdlog_disk *disk, const char *name)
{
    struct disk_sim *sim = sim_of(disk);
    if (content_of(&sim->now, name) < 0)
        return dead(sim) ? TL_ERR_IO : 0;
    if (!count_operation(sim))
        return TL_ERR_IO;
    set_name(sim, name, -1);
    return 0;
}

static int sim_sync_directory(struct cmdlog_disk *disk)
{
    struct disk_sim *sim = sim_of(disk);
    if (!count_operation(sim))
        return TL_ERR_IO;
    sim->durable = sim->now;
    sim->change_count = 0;
    return 0;
}

static int sim_list(struct cmdlog_disk *disk, void (*visit)(void *context, const char *name), void *context)
{
    struct disk_sim *sim = sim_of(disk);
    for (size_t i = 0; i < sim->now.count; i++)
        if (sim->now.items[i].content >= 0)
            visit(context, sim->now.items[i].text);
    return dead(sim) ? TL_ERR_IO : 0;
}

static int sim_random(struct cmdlog_disk *disk, void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        ((char *)bytes)[i] = (char)rng_next(&sim_of(disk)->rng);
    return 0;
}

static void sim_free_handle(struct cmdlog_disk *disk)
{
    mem_free(disk);
}

static const struct cmdlog_disk_functions functions = {
    .open = sim_open,
    .close = sim_close,
    .read = sim_read,
    .write = sim_write,
    .size = sim_size,
    .sync = sim_sync,
    .rename = sim_rename,
    .remove = sim_remove,
    .sync_directory = sim_sync_directory,
    .list = sim_list,
    .random = sim_random,
    .free = sim_free_handle,
};

/* --- The machine -------------------------------------------------------------------------------------------------- */

struct disk_sim *disk_sim_new(uint64_t seed)
{
    struct disk_sim *sim = mem_zalloc(sizeof *sim);
    rng_init(&sim->rng, seed);
    sim->dies_at = UINT64_MAX;
    return sim;
}

void disk_sim_free(struct disk_sim *sim)
{
    for (size_t i = 0; i < sim->content_count; i++) {
        mem_free(sim->contents[i].now);
        mem_free(sim->contents[i].platter);
        mem_free(sim->contents[i].sectors);
    }
    mem_free(sim);
}

struct cmdlog_disk *disk_sim_disk(struct disk_sim *sim)
{
    struct handle *handle = mem_zalloc(sizeof *handle);
    *handle = (struct handle){{&functions}, sim};
    return &handle->disk;
}

void disk_sim_die_after(struct disk_sim *sim, uint64_t operations)
{
    sim->dies_at = operations == UINT64_MAX ? UINT64_MAX : sim->operations + operations;
    sim->died = false;
}

uint64_t disk_sim_operations(const struct disk_sim *sim)
{
    return sim->operations;
}

/* Loses the page cache: dirty sectors are written or not, lost ones are not. */
static void lose_content(struct disk_sim *sim, struct content *content)
{
    bool longer = content->now_len > content->platter_len && rng_below(&sim->rng, 2) == 0;
    size_t len = longer ? content->now_len : content->platter_len;
    if (content->capacity == 0)
        return;
    for (size_t i = 0; i < sector_count(content->now_len); i++)
        if (content->sectors[i] == DIRTY && rng_below(&sim->rng, 2) == 0)
            write_sector(content, i);
    memset(content->platter + len, 0, content->capacity - len);
    memcpy(content->now, content->platter, content->capacity);
    memset(content->sectors, CLEAN, sector_count(content->capacity));
    content->now_len = content->platter_len = len;
}

void disk_sim_cut_power(struct disk_sim *sim)
{
    for (size_t i = 0; i < sim->content_count; i++)
        lose_content(sim, &sim->contents[i]);
    size_t done = (size_t)rng_below(&sim->rng, sim->change_count + 1);
    for (size_t i = 0; i < done; i++) {
        set_in(&sim->durable, sim->changes[i].text, sim->changes[i].content);
        if (sim->changes[i].unlinked[0] != '\0')
            set_in(&sim->durable, sim->changes[i].unlinked, -1);
    }
    sim->now = sim->durable;
    sim->change_count = 0;
    disk_sim_die_after(sim, UINT64_MAX);
}

struct disk_sim *disk_sim_copy(const struct disk_sim *sim)
{
    struct disk_sim *copy = mem_dup(sim, sizeof *sim);
    for (size_t i = 0; i < copy->content_count; i++) {
        struct content *content = &copy->contents[i];
        if (content->capacity == 0)
            continue;
        content->now = mem_dup(content->now, content->capacity);
        content->platter = mem_dup(content->platter, content->capacity);
        content->sectors = mem_dup(content->sectors, sector_count(content->capacity));
    }
    return copy;
}

const char *disk_sim_file(struct disk_sim *sim, size_t i, char **ret_bytes, size_t *ret_len)
{
    for (size_t j = 0; j < sim->now.count; j++) {
        if (sim->now.items[j].content < 0 || i-- > 0)
            continue;
        struct content *content = &sim->contents[sim->now.items[j].content];
        *ret_bytes = content->now;
        *ret_len = content->now_len;
        return sim->now.items[j].text;
    }
    return NULL;
}
