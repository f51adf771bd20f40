#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the benchmark's documents from a real file tree.

    dataset.py OUT [--root /usr] [--count 1000000] [--bytes 400]

Lists the tree, repeats it under /clinton/copy0, /clinton/copy1, ... until there are --count documents
{name, path, size, mtime, mode, type, owner}, each brought to --bytes bytes by a "note". Document i has the id f%07d. Writes into
the folder OUT:

    docs.tsv     id TAB json, as PostgreSQL's COPY reads it
    docs.bulk    the same as _bulk actions without an index name
    terms.txt    names that eight to twelve documents have
    size.txt     bytes of JSON in all

The same tree gives the same bytes. What is there already is kept.
"""
import argparse
import collections
import datetime
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--root", default="/usr")
    parser.add_argument("--count", type=int, default=1000000)
    parser.add_argument("--bytes", type=int, default=400)
    args = parser.parse_args()
    if os.path.exists(os.path.join(args.out, "size.txt")):
        return
    os.makedirs(args.out, exist_ok=True)
    tree = list(listing(args.root))
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    rng = random.Random(20261120)
    names = collections.Counter()
    total = 0
    with open(os.path.join(args.out, "docs.tsv"), "wb") as tsv, open(os.path.join(args.out, "docs.bulk"), "wb") as bulk:
        for i, document in enumerate(documents(tree, args.count)):
            names[document["name"]] += 1
            text = encode(document)
            room = args.bytes - len(text.encode()) - len(',"note":""')
            if room > 0:
                text = '%s,"note":"%0*x"}' % (text[:-1], room, rng.getrandbits(4 * room))
            data = text.encode()
            total += len(data)
            tsv.write(b"f%07d\t%s\n" % (i, data.replace(b"\\", b"\\\\")))
            bulk.write(b'{"index":{"_id":"f%07d"}}\n%s\n' % (i, data))
    with open(os.path.join(args.out, "terms.txt"), "w", encoding="utf-8") as terms:
        for name, count in names.items():
            if 8 <= count <= 12 and '"' not in name and "\\" not in name:
                terms.write(name + "\n")
    with open(os.path.join(args.out, "size.txt"), "w", encoding="utf-8") as size:
        size.write("%d\n" % total)


if __name__ == "__main__":
    main()
