#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the benchmark's documents from a real file tree.

    dataset.py OUT [--root /usr] [--count 1000000] [--bytes 400] [--files bulk,tsv,sql,terms]

Lists the tree, repeats it under /clinton/copy0, /clinton/copy1, ... until there are --count documents
{name, path, size, mtime, mode, type, owner}, each brought to --bytes bytes by a "note". Document i has the id f%07d. Writes into
the folder OUT:

    docs.bulk    _bulk actions without an index name
    docs.tsv     the same as id TAB json, as PostgreSQL's COPY reads it
    docs.sql     the same as INSERT statements of 500 rows for a table docs(id, doc)
    terms.txt    names that eight to twelve documents have
    size.txt     bytes of JSON in all

The same tree gives the same bytes. Files that exist already are kept.
"""
import argparse
import collections
import datetime
import itertools
import json
import os
import pwd
import random
import stat

TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink", stat.S_IFIFO: "fifo",
         stat.S_IFSOCK: "socket", stat.S_IFBLK: "block", stat.S_IFCHR: "char"}


def owner(uid, names={}):
    if uid not in names:
        try:
            names[uid] = pwd.getpwuid(uid).pw_name
        except KeyError:
            names[uid] = str(uid)
    return names[uid]


def describe(path):
    s = os.lstat(path)
    mtime = datetime.datetime.fromtimestamp(int(s.st_mtime), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"name": os.path.basename(path), "path": path, "size": s.st_size, "mtime": mtime,
            "mode": "%04o" % stat.S_IMODE(s.st_mode), "type": TYPES[stat.S_IFMT(s.st_mode)], "owner": owner(s.st_uid)}


def listing(root):
    yield describe(root)
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(folders + files):
            try:
                name.encode("utf-8")
                yield describe(os.path.join(folder, name))
            except (OSError, UnicodeEncodeError):
                pass


def documents(tree, count):
    copy = 0
    while count > 0:
        for document in tree[:count]:
            yield {**document, "path": "/clinton/copy%d%s" % (copy, document["path"])}
        count -= len(tree)
        copy += 1


def pad(document, size, rng):
    """Returns: the document's JSON, brought to its size by a note."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    room = size - len(text.encode()) - len(',"note":""')
    return '%s,"note":"%0*x"}' % (text[:-1], room, rng.getrandbits(4 * room)) if room > 0 else text


def write_bulk(out, rows):
    for key, text in rows:
        out.write('{"index":{"_id":"%s"}}\n%s\n' % (key, text))


def write_tsv(out, rows):
    for key, text in rows:
        out.write("%s\t%s\n" % (key, text.replace("\\", "\\\\")))


def write_sql(out, rows):
    while True:
        values = ",".join("('%s','%s')" % (key, text.replace("'", "''")) for key, text in itertools.islice(rows, 500))
        if not values:
            return
        out.write("INSERT INTO docs VALUES %s;\n" % values)


def write_terms(out, tree, count):
    names = collections.Counter(document["name"] for document in documents(tree, count))
    for name, times in names.items():
        if 8 <= times <= 12 and '"' not in name and "\\" not in name:
            out.write(name + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--root", default="/usr")
    parser.add_argument("--count", type=int, default=1000000)
    parser.add_argument("--bytes", type=int, default=400)
    parser.add_argument("--files", default="bulk,tsv,sql,terms")
    args = parser.parse_args()

    def wanted(name):
        return not os.path.exists(os.path.join(args.out, name))

    def create(name):
        return open(os.path.join(args.out, name), "w", encoding="utf-8")

    def rows():
        rng = random.Random(20261120)
        total = 0
        for i, document in enumerate(documents(tree, args.count)):
            text = pad(document, args.bytes, rng)
            total += len(text.encode())
            yield "f%07d" % i, text
        with create("size.txt") as size:
            size.write("%d\n" % total)

    writers = {"bulk": write_bulk, "tsv": write_tsv, "sql": write_sql}
    missing = [f for f in args.files.split(",") if wanted("terms.txt" if f == "terms" else "docs." + f)]
    if not missing:
        return
    os.makedirs(args.out, exist_ok=True)
    tree = list(listing(args.root))
    for name in missing:
        if name == "terms":
            with create("terms.txt") as terms:
                write_terms(terms, tree, args.count)
        else:
            with create("docs." + name + ".new") as out:
                writers[name](out, rows())
            os.rename(os.path.join(args.out, "docs." + name + ".new"), os.path.join(args.out, "docs." + name))


if __name__ == "__main__":
    main()
