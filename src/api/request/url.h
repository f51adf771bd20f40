/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Percent-encoding, as Elasticsearch's RestUtils decodes and encodes it.
 *
 * Bytes that are no UTF-8 after decoding become U+FFFD, as Java's decoder makes them. An escape that is no escape is an
 * error with a text of its own.
 */
#ifndef TL_API_URL_H
#define TL_API_URL_H

#include "base/arena.h"
#include "base/buf.h"

enum {
    URL_BAD_ESCAPE = 1, /* *ret_reason: Elasticsearch's text */
};

/*
 * Decodes a path segment or a piece of a query. `plus_is_space`: for 5.6's paths and every query, not for 7.10's paths.
 * Returns: 0, URL_BAD_ESCAPE. Owns: the text is `raw` itself when nothing needed decoding, else in `arena`.
 */
int url_decode(struct arena *arena, struct slice raw, bool plus_is_space, struct slice *ret_text,
               struct slice *ret_reason) TL_MUST_USE;

/* Appends `text` as java.net.URLEncoder writes it: letters, digits and ".-*_" stay, a space becomes '+'. */
void url_encode(struct buf *buf, struct slice text);

/* Returns: `text` with bytes that are no UTF-8 replaced by U+FFFD; `text` itself if all are UTF-8. */
struct slice url_utf8_repair(struct arena *arena, struct slice text);

#endif
