/* SPDX-License-Identifier: Apache-2.0 */
/* A file or directory as a document; see file_doc.h. */
#include "cli/file_doc.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/base64.h"

void file_doc_maker_init(struct file_doc_maker *maker, const struct file_doc_options *options)
{
    *maker = (struct file_doc_maker){.options = *options, .owners = MAP_INIT, .scratch = BUF_INIT(BUF_UNLIMITED)};
}

void file_doc_maker_deinit(struct file_doc_maker *maker)
{
    size_t position = 0;
    struct slice key;
    void *name;
    while (map_next(&maker->owners, &position, &key, &name))
        mem_free(name);
    map_deinit(&maker->owners);
    buf_deinit(&maker->scratch);
}

static const char *owner_name(struct file_doc_maker *maker, uid_t user)
{
    char number[16];
    snprintf(number, sizeof number, "%u", (unsigned)user);
    char *name = map_get(&maker->owners, slice_from(number));
    if (name != NULL)
        return name;
    const struct passwd *entry = getpwuid(user);
    const char *found = entry != NULL ? entry->pw_name : number;
    name = mem_strdup(found, strlen(found));
    map_put(&maker->owners, slice_from(number), name);
    return name;
}

static const char *type_of_mode(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG: return "file";
    case S_IFDIR: return "directory";
    case S_IFLNK: return "symlink";
    case S_IFIFO: return "fifo";
    case S_IFSOCK: return "socket";
    case S_IFBLK: return "block";
    default: return "char";
    }
}

void file_doc_text(struct slice text, struct buf *to)
{
    for (;;) {
        size_t valid = slice_utf8_valid_prefix(text);
        buf_append(to, text.data, valid);
        if (valid == text.len)
            return;
        buf_lit(to, "\xef\xbf\xbd");
        text = slice_from_offset(text, valid + 1);
    }
}

static void write_text(struct file_doc_maker *maker, struct buf *to, struct slice text)
{
    buf_clear(&maker->scratch);
    file_doc_text(text, &maker->scratch);
    buf_json_string(to, buf_as_slice(&maker->scratch));
}

/* Adds what a small text file says; anything else, or a file that cannot be read, has no content. */
static void write_content(struct file_doc_maker *maker, struct buf *to, const char *file, size_t size)
{
    int fd = open(file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return;
    buf_clear(&maker->scratch);
    char *at = buf_reserve(&maker->scratch, size + 1);
    ssize_t got = read(fd, at, size + 1);
    close(fd);
    if (got <= 0 || (size_t)got > size || memchr(at, '\0', (size_t)got) != NULL)
        return;
    struct slice text = {at, (size_t)got};
    if (slice_utf8_valid_prefix(text) != text.len)
        return;
    buf_lit(to, ",\"content\":");
    buf_json_string(to, text);
}

void file_doc_write(struct file_doc_maker *maker, struct buf *to, struct slice path, const char *file,
                    const struct stat *status)
{
    char mtime[32];
    struct tm utc;
    size_t name = path.len;
    while (name > 0 && path.data[name - 1] != '/')
        name--;
    gmtime_r(&status->st_mtime, &utc);
    strftime(mtime, sizeof mtime, "%Y-%m-%dT%H:%M:%SZ", &utc);

    buf_lit(to, "{\"name\":");
    write_text(maker, to, slice_from_offset(path, name));
    buf_lit(to, ",\"path\":");
    write_text(maker, to, path);
    buf_printf(to, ",\"size\":%lld,\"mtime\":\"%s\",\"mode\":\"%04o\",\"type\":\"%s\",\"owner\":",
               (long long)status->st_size, mtime, (unsigned)(status->st_mode & 07777), type_of_mode(status->st_mode));
    write_text(maker, to, slice_from(owner_name(maker, status->st_uid)));
    if (S_ISREG(status->st_mode) && status->st_size > 0 && (size_t)status->st_size <= maker->options.content_bytes_max)
        write_content(maker, to, file, (size_t)status->st_size);
    buf_byte(to, '}');
}

/* Two 64-bit hashes that differ in what they begin with; 128 bits make a collision among files implausible. */
void file_doc_id(struct slice path, char ret_id[FILE_DOC_ID_BYTES + 1])
{
    uint64_t words[2] = {0xcbf29ce484222325u, 0x84222325cbf29ce4u};
    for (int w = 0; w < 2; w++) {
        for (size_t i = 0; i < path.len; i++)
            words[w] = (words[w] ^ (unsigned char)path.data[i]) * 0x100000001b3u;
        words[w] = (words[w] ^ words[w] >> 32) * 0xd6e8feb86659fd93u;
        words[w] ^= words[w] >> 32;
    }
    for (int i = 0; i < FILE_DOC_ID_BYTES; i++)
        ret_id[i] = base64_url_digit(words[i / 11] >> (i % 11 * 6));
    ret_id[FILE_DOC_ID_BYTES] = '\0';
}
