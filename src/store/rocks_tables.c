/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of RocksDB's tables; see rocks_tables.h. */
#include "store/rocks_tables.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/little_endian.h"
#include "base/slice.h"
#include "store/rocks_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * A table of the formats 1 to 5 ends with its footer: a byte for the kind of checksums; as varints
 * the offset and the length of the index of its meta blocks, and of its index; zeros; then in little
 * endian the number of the format, and a number by which all tables are known. A newer format is not
 * checked.
 */
enum {
    FOOTER_BYTES = 53,
    FORMAT_OFFSET = 41,
    MAGIC_OFFSET = 45,
    FORMAT_MAX = 5,
    /* Of the index of the meta blocks, which has some ten entries of fifty bytes. */
    META_BYTES_MAX = 64 << 10,
};
#define TABLE_MAGIC 0x88e241b785f4cff7U
#define PROPERTIES "rocksdb.properties"
#define HASH_INDEX_BIT (1U << 31)

struct block {
    uint64_t offset, len;
};

static bool read_at(int fd, uint64_t offset, char *bytes, size_t len)
{
    return offset <= INT64_MAX && pread(fd, bytes, len, (off_t)offset) == (ssize_t)len;
}

static bool take_block(struct slice *bytes, struct block *ret_block)
{
    return slice_take_varint(bytes, &ret_block->offset) && slice_take_varint(bytes, &ret_block->len);
}

/* Returns: whether the file ends with a footer that is understood. */
static bool find_meta_index(int fd, struct block *ret_block)
{
    char footer[FOOTER_BYTES];
    struct stat status;
    if (fstat(fd, &status) != 0 || status.st_size < FOOTER_BYTES ||
        !read_at(fd, (uint64_t)status.st_size - FOOTER_BYTES, footer, FOOTER_BYTES))
        return false;
    uint64_t format = little_endian_get(footer + FORMAT_OFFSET, 4);
    if (little_endian_get(footer + MAGIC_OFFSET, 8) != TABLE_MAGIC || format == 0 || format > FORMAT_MAX)
        return false;
    struct slice handles = slice_make(footer + 1, FORMAT_OFFSET - 1);
    return take_block(&handles, ret_block) && ret_block->len <= META_BYTES_MAX;
}

/*
 * Takes an entry of the index of the meta blocks: as varints how many bytes its name shares with the previous
 * one (none do), and the lengths of its name and its value; then both.
 */
static bool take_entry(struct slice *entries, struct slice *ret_name, struct slice *ret_value)
{
    uint64_t shared, name_len, value_len;
    return slice_take_varint(entries, &shared) && shared == 0 && slice_take_varint(entries, &name_len) &&
           slice_take_varint(entries, &value_len) && name_len <= entries->len && value_len <= entries->len &&
           slice_take(entries, (size_t)name_len, ret_name) && slice_take(entries, (size_t)value_len, ret_value);
}

/* Returns: whether the table has properties. The words that follow the last entry do not look like one of that name. */
static bool find_properties(int fd, const struct block *meta_index, struct block *ret_block)
{
    char bytes[META_BYTES_MAX];
    REQUIRE(meta_index->len <= sizeof bytes);
    if (!read_at(fd, meta_index->offset, bytes, (size_t)meta_index->len))
        return false;
    struct slice entries = slice_make(bytes, (size_t)meta_index->len), name, value;
    while (take_entry(&entries, &name, &value))
        if (slice_equal(name, SLICE_LIT(PROPERTIES)))
            return take_block(&value, ret_block);
    return false;
}

static bool is_sound(int directory, const char *name)
{
    struct block block;
    char word[4];
    int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return true;
    bool found = find_meta_index(fd, &block) && find_properties(fd, &block, &block) && block.len >= sizeof word &&
                 block.len <= INT64_MAX && block.offset <= INT64_MAX - block.len &&
                 read_at(fd, block.offset + block.len - sizeof word, word, sizeof word);
    close(fd);
    return !found || (little_endian_get(word, sizeof word) & HASH_INDEX_BIT) == 0;
}

int rocks_tables_check(const char *path, char **ret_reason)
{
    REQUIRE(path != NULL);
    DIR *listing = opendir(path);
    if (listing == NULL)
        return 0;
    int r = 0;
    for (struct dirent *entry; r == 0 && (entry = readdir(listing)) != NULL;) {
        if (!rocks_dir_is_table(entry->d_name) || is_sound(dirfd(listing), entry->d_name))
            continue;
        rocks__set_reason(ret_reason, "Corruption: the properties of the table %s/%s are damaged", path, entry->d_name);
        r = TL_ERR_CORRUPT;
    }
    closedir(listing);
    return r < 0 ? tl_trace(r) : 0;
}
