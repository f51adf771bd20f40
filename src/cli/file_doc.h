/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file or directory as a document: {name, path, size, mtime, mode, type, owner[, content]}.
 */
#ifndef TL_CLI_FILE_DOC_H
#define TL_CLI_FILE_DOC_H

#include <sys/stat.h>

#include "base/buf.h"
#include "base/map.h"

struct file_doc_options {
    size_t content_bytes_max; /* of text files, taken along; 0: none */
};

struct file_doc_maker {
    struct file_doc_options options;
    struct map owners; /* user number as text → name */
    struct buf scratch;
};

void file_doc_maker_init(struct file_doc_maker *maker, const struct file_doc_options *options);
void file_doc_maker_deinit(struct file_doc_maker *maker);

/* Appends a name or path as it is in a document: bytes that are no UTF-8 become U+FFFD. */
void file_doc_text(struct slice text, struct buf *to);

/*
 * Appends the document of a file. `path` is what the document says, by file_doc_text(), and `file`
 * where the file is now.
 */
void file_doc_write(struct file_doc_maker *maker, struct buf *to, struct slice path, const char *file,
                    const struct stat *status);

enum { FILE_DOC_ID_BYTES = 22 };

/* The id of a path's document: the same path has the same id on every run, so an import can be taken up again. */
void file_doc_id(struct slice path, char ret_id[FILE_DOC_ID_BYTES + 1]);

#endif
