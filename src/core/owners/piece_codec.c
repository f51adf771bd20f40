/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading pieces of the saved state; see piece_codec.h. */
#include "core/owners/piece_codec.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "core/command/section.h"
#include "core/documents/doc.h"
#include "core/feed/feed.h"
#include "core/locks/lock.h"
#include "core/locks/lock_codec.h"
#include "core/session/owners.h"
#include "core/session/save_chunk.h"
#include "core/session/save_pieces.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/tree/tree_record.h"
#include "core/unit/unit.h"
#include "core/wait/wait.h"
#include "store/store.h"
#include "store/view.h"

/*
 * Chunks change while they are written ahead. So at most twice the bytes of the changed overlays
 * are written before each checkpoint, and a little more; never so many that a table of the store in
 * memory becomes full.
 */
enum { AHEAD_FACTOR = 2, AHEAD_BYTES_MIN = 8 << 20, AHEAD_BYTES_MAX = 1 << 30, HOLDS_BYTES = 16 << 10 };

/* A piece that is written or deleted counts as so many bytes more. */
enum { PIECE_COST = 4096 };

enum { PIECE_KEPT_MAX = 64 * 1024, PIECE_BYTES_MIN = 3 };

/* Records before these versions have holds, or sessions and waits, as a whole. */
enum { HOLDS_VERSION = 10, MEMBERS_VERSION = 11 };

static struct save_pieces *pieces_of(const struct core *core)
{
    return &core->owners->pieces;
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static void write_one(void *context, enum store_space space, struct slice key, struct slice value)
{
    struct codec *codec = context;
    codec_enum(codec, space, SPACE_COUNT);
    codec_bytes(codec, &key);
    codec_slice(codec, &value);
}

/* Begins a piece in the scratch buffer. */
static struct codec begin_piece(struct save_pieces *pieces)
{
    buf_clear(&pieces->piece);
    return codec_to(&pieces->piece, SECTIONS_VERSION);
}

/* Frees the scratch buffer after a large piece, at once: the next one may be written in an hour. */
static void trim_piece(struct save_pieces *pieces)
{
    if (pieces->piece.capacity > PIECE_KEPT_MAX)
        buf_deinit(&pieces->piece);
}

/* Encodes a chunk of an overlay into `piece`. */
static struct slice encode_chunk(struct save_pieces *pieces, const struct overlay *overlay, size_t index)
{
    struct codec codec = begin_piece(pieces);
    overlay_each_of_chunk(overlay, index, write_one, &codec);
    return buf_as_slice(&pieces->piece);
}

static struct save_chunks *chunks_of(const struct core *core, enum save_piece_kind kind)
{
    REQUIRE(kind == PIECE_SESSIONS || kind == PIECE_WAITS);
    return kind == PIECE_SESSIONS ? &core->owners->session_chunks : &core->owners->wait_chunks;
}

/* Encodes a chunk of sessions or waits into `piece`. */
static struct slice encode_members(struct core *core, enum save_piece_kind kind, const struct save_chunk *chunk)
{
    REQUIRE(!list_empty(&chunk->members)); /* else the piece is never deleted */
    struct codec codec = begin_piece(pieces_of(core));
    list_for_each(link, &chunk->members)
    {
        struct save_member *member = list_entry(link, struct save_member, of_chunk);
        if (kind == PIECE_SESSIONS)
            codec_session_fields(&codec, core, container_of(member, struct session, saved), true);
        else
            codec_wait_in_piece(&codec, core, container_of(member, struct wait, saved), NULL);
    }
    return buf_as_slice(&pieces_of(core)->piece);
}

/* Puts the bytes of `piece` into the store, and counts them. */
static int put_piece(struct core *core, struct store_piece at, enum save_piece_kind kind)
{
    REQUIRE(at.owner != 0 && at.owner <= pieces_of(core)->last_owner);
    struct save_pieces *pieces = pieces_of(core);
    struct slice bytes = buf_as_slice(&pieces->piece);
    INSIST(!pieces->piece.overflow && bytes.len <= UINT32_MAX);
    int r = store_put_piece(core->store, at, bytes);
    if (r < 0)
        return tl_trace(r);
    pieces->bytes += bytes.len + PIECE_COST;
    pieces->kind_bytes[kind] += bytes.len + PIECE_COST;
    metric_add(&core->metrics.pieces_written, 1);
    metric_add(&core->metrics.piece_bytes, bytes.len);
    return 0;
}

static int write_holds(struct core *core, struct lock_chunk *chunk)
{
    struct save_pieces *pieces = pieces_of(core);
    struct codec codec = begin_piece(pieces);
    uint64_t piece = chunk->piece != 0 ? chunk->piece : ++pieces->last_owner;
    lock_codec_write_chunk(&codec, &core->owners->locks, chunk);
    int r = put_piece(core, (struct store_piece){piece, 0}, PIECE_HOLDS);
    if (r < 0)
        return tl_trace(r);
    struct slice bytes = buf_as_slice(&pieces->piece);
    lock_chunk_saved(&core->owners->locks, chunk, piece, (uint32_t)bytes.len, crc32c(0, bytes.data, bytes.len));
    return 0;
}

static int write_members(struct core *core, enum save_piece_kind kind, struct save_chunk *chunk)
{
    REQUIRE(list_linked(&chunk->changed)); /* else its piece has these members */
    struct save_pieces *pieces = pieces_of(core);
    uint64_t piece = chunk->piece != 0 ? chunk->piece : ++pieces->last_owner;
    struct slice bytes = encode_members(core, kind, chunk);
    int r = put_piece(core, (struct store_piece){piece, 0}, kind);
    if (r < 0)
        return tl_trace(r);
    save_chunk__saved(chunks_of(core, kind), chunk, piece, (uint32_t)bytes.len, crc32c(0, bytes.data, bytes.len));
    return 0;
}

/* Writes a chunk of an overlay, and moves its transaction after the others if it has more. */
static int write_overlay(struct core *core, struct txn *txn, size_t index)
{
    REQUIRE(list_linked(&txn->of_unsaved) && txn->overlay != NULL);
    struct save_pieces *pieces = pieces_of(core);
    struct slice bytes = encode_chunk(pieces, txn->overlay, index);
    if (txn->piece_owner == 0)
        txn->piece_owner = ++pieces->last_owner;
    const struct store_piece at = {txn->piece_owner, overlay_chunk(txn->overlay, index)->number};
    int r = put_piece(core, at, PIECE_OVERLAY);
    if (r < 0)
        return tl_trace(r);
    overlay_chunk_saved(txn->overlay, index, (uint32_t)bytes.len, crc32c(0, bytes.data, bytes.len));
    list_remove(&txn->of_unsaved);
    if (overlay_changed_chunk(txn->overlay, &index))
        list_append(&pieces->unsaved, &txn->of_unsaved);
    return 0;
}

/* Returns: the next transaction with a changed chunk, or NULL. */
static struct txn *unsaved_txn(struct save_pieces *pieces, size_t *ret_index)
{
    while (!list_empty(&pieces->unsaved)) {
        struct txn *txn = list_entry(pieces->unsaved.next, struct txn, of_unsaved);
        INSIST(MAGIC_VALID(txn, TXN_MAGIC)); /* a freed one leaves the list */
        if (txn->overlay != NULL && overlay_changed_chunk(txn->overlay, ret_index))
            return txn;
        list_remove(&txn->of_unsaved);
    }
    return NULL;
}

/*
 * Writes a piece that has changed. That kind comes next of which the fewest bytes were written, so
 * that none uses up the limit while others wait. Returns: 1: written. 0: none has changed.
 */
static int write_next(struct core *core)
{
    struct save_pieces *pieces = pieces_of(core);
    struct lock_chunk *holds = lock_table_changed_chunk(&core->owners->locks);
    struct save_chunk *sessions = save_chunk__changed(&core->owners->session_chunks);
    struct save_chunk *waits = save_chunk__changed(&core->owners->wait_chunks);
    size_t index;
    struct txn *txn = unsaved_txn(pieces, &index);
    const bool changed[PIECE_KIND_COUNT] = {txn != NULL, holds != NULL, sessions != NULL, waits != NULL};
    enum save_piece_kind next = PIECE_KIND_COUNT;
    for (int i = 0; i < PIECE_KIND_COUNT; i++)
        if (changed[i] && (next == PIECE_KIND_COUNT || pieces->kind_bytes[i] < pieces->kind_bytes[next]))
            next = (enum save_piece_kind)i;
    int r = 0;
    switch (next) {
    case PIECE_OVERLAY: r = write_overlay(core, txn, index); break;
    case PIECE_HOLDS: r = write_holds(core, holds); break;
    case PIECE_SESSIONS: r = write_members(core, next, sessions); break;
    case PIECE_WAITS: r = write_members(core, next, waits); break;
    case PIECE_KIND_COUNT: return 0;
    }
    trim_piece(pieces);
    return r < 0 ? tl_trace(r) : 1;
}

static int compare_owners(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/*
 * Deletes pieces that are not needed any more: a range of consecutive owners at a time, since all
 * chunks of a session end together; until pieces->bytes has reached `end`. A range costs 1 us, and
 * 60,000 of single owners did not slow reads; pieces are read only when a core is loaded.
 */
static int delete_ended(struct core *core, uint64_t end)
{
    struct save_pieces *pieces = pieces_of(core);
    int r = 0;
    if (!pieces->known)
        r = store_delete_pieces(core->store, 0, UINT64_MAX - 1);
    pieces->known = r == 0;
    if (pieces->ended_count > 1 && !pieces->ended_sorted)
        qsort(pieces->ended, pieces->ended_count, sizeof *pieces->ended, compare_owners);
    pieces->ended_sorted = true;
    while (r == 0 && pieces->ended_count > 0 && pieces->bytes < end) {
        size_t first = pieces->ended_count - 1, last = first;
        while (first > 0 && pieces->ended[first - 1] + 1 == pieces->ended[first])
            first--;
        r = store_delete_pieces(core->store, pieces->ended[first], pieces->ended[last]);
        pieces->ended_count = r == 0 ? first : pieces->ended_count;
        pieces->bytes += PIECE_COST;
    }
    return r < 0 ? tl_trace(r) : 0;
}

/* Returns: the most bytes to write ahead for the sessions or waits that have changed. */
static uint64_t ahead_of_members(const struct save_chunks *chunks)
{
    uint64_t bytes = 0;
    list_for_each(link, &chunks->changed) bytes +=
        AHEAD_FACTOR * (list_entry(link, struct save_chunk, changed)->bytes + PIECE_COST);
    return bytes;
}

/* Sets the limit of the bytes written ahead of the next checkpoint. */
static void begin_ahead(struct core *core)
{
    struct save_pieces *pieces = pieces_of(core);
    pieces->bytes_max = AHEAD_BYTES_MIN + PIECE_COST * (uint64_t)pieces->ended_count +
                        AHEAD_FACTOR * (HOLDS_BYTES + PIECE_COST) * (uint64_t)core->owners->locks.changed_chunk_count +
                        ahead_of_members(&core->owners->session_chunks) + ahead_of_members(&core->owners->wait_chunks);
    list_for_each(link, &pieces->unsaved)
    {
        const struct txn *txn = list_entry(link, struct txn, of_unsaved);
        if (txn->overlay != NULL)
            pieces->bytes_max +=
                AHEAD_FACTOR * (overlay_bytes(txn->overlay) + PIECE_COST * (uint64_t)overlay_chunk_count(txn->overlay));
    }
    if (pieces->bytes_max > AHEAD_BYTES_MAX)
        pieces->bytes_max = AHEAD_BYTES_MAX;
}

/*
 * Returns: whether pieces have everything that records of this version have in pieces, as it is now.
 * There may be further pieces.
 */
static bool is_saved(const struct core *core, unsigned version)
{
    const struct owners *owners = core->owners;
    return list_empty(&owners->pieces.unsaved) &&
           (version < HOLDS_VERSION || lock_table_changed_chunk(&owners->locks) == NULL) &&
           (version < MEMBERS_VERSION || (save_chunk__changed(&owners->session_chunks) == NULL &&
                                          save_chunk__changed(&owners->wait_chunks) == NULL));
}

int piece_codec__write_ahead(struct core *core, uint64_t bytes_max, bool *ret_more)
{
    REQUIRE(!core->open);
    struct save_pieces *pieces = pieces_of(core);
    if (pieces->bytes_max == 0)
        begin_ahead(core);
    uint64_t end = bytes_max > UINT64_MAX - pieces->bytes ? UINT64_MAX : pieces->bytes + bytes_max;
    int r = delete_ended(core, end);
    for (bool any = true; r == 0 && any && pieces->bytes < end;) {
        r = write_next(core);
        any = r == 1;
        r = r < 0 ? r : 0;
    }
    INSIST(r < 0 || pieces->known); /* else the store has pieces of another state, too */
    *ret_more = (!is_saved(core, SECTIONS_VERSION) || pieces->ended_count > 0) && pieces->bytes < pieces->bytes_max;
    return r < 0 ? tl_trace(r) : 0;
}

int piece_codec__write_rest(struct core *core)
{
    struct save_pieces *pieces = pieces_of(core);
    bool more;
    int r = piece_codec__write_ahead(core, UINT64_MAX, &more);
    pieces->bytes = pieces->bytes_max = 0;
    memset(pieces->kind_bytes, 0, sizeof pieces->kind_bytes);
    ENSURE(r < 0 || (is_saved(core, SECTIONS_VERSION) && pieces->ended_count == 0));
    return r < 0 ? tl_trace(r) : 0;
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

/* Returns: whether a record of an overlay is valid, so that a commit can apply it. */
static bool record_is_valid(enum store_space space, struct slice key, struct slice value)
{
    struct slice id;
    uint32_t index;
    uint16_t type;
    struct doc doc;

    if (space == SPACE_FEED) {
        struct feed_change change;
        return value.data != NULL && feed_change_take(&value, &change) && value.len == 0 && change.kind == FEED_RENAMED;
    }
    if (space == SPACE_TREE)
        return value.data == NULL || tree_record_is_valid(key, value);
    return space != SPACE_DOCUMENTS ||
           (value.data != NULL && doc_key_parse(key, &index, &type, &id) && doc_decode(value, &doc) == 0);
}

bool piece_codec__restore_record(struct overlay *overlay, enum store_space space, struct slice key, struct slice value)
{
    if (!record_is_valid(space, key, value))
        return false;
    if (value.data == NULL)
        overlay_delete(overlay, space, key);
    else
        overlay_put(overlay, space, key, value);
    return true;
}

static void read_one(struct codec *codec, struct overlay *overlay)
{
    enum store_space space = (enum store_space)codec_enum(codec, 0, SPACE_COUNT);
    struct slice key = SLICE_NONE, value = SLICE_NONE, before;
    codec_bytes(codec, &key);
    codec_slice(codec, &value);
    codec_require(codec, codec->bad || (overlay_get(overlay, space, key, &before) == STORE_NOT_FOUND &&
                                        piece_codec__restore_record(overlay, space, key, value)));
}

/* Appends the bytes of a piece. Returns: whether there is one of this length and checksum. */
static bool get_piece(struct core *core, struct store_piece at, uint32_t len, uint32_t crc, struct buf *ret_bytes)
{
    return store_get_piece(core->store, at, ret_bytes) == 0 && ret_bytes->len > 0 && ret_bytes->len == len &&
           crc32c(0, ret_bytes->data, len) == crc;
}

bool piece_codec__read(void *core, uint64_t piece, uint32_t len, uint32_t crc, struct buf *ret_bytes)
{
    struct save_pieces *pieces = pieces_of(core);
    if (piece == UINT64_MAX || !get_piece(core, (struct store_piece){piece, 0}, len, crc, ret_bytes))
        return false;
    pieces->named++;
    if (piece > pieces->last_owner)
        pieces->last_owner = piece;
    return true;
}

/* Reads a piece into a new chunk. Returns: whether it is valid, and encodes to the same bytes. */
static bool read_piece(struct core *core, struct txn *txn, uint32_t number, uint32_t len, uint32_t crc)
{
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    bool valid = number < UINT32_MAX && /* else the next chunk would have no number */
                 get_piece(core, (struct store_piece){txn->piece_owner, number}, len, crc, &bytes);
    if (valid) {
        struct codec codec = codec_from(buf_as_slice(&bytes), NULL);
        size_t index = overlay_begin_chunk(txn->overlay, number);
        while (!codec.bad && codec.in.len > 0)
            read_one(&codec, txn->overlay);
        valid = !codec.bad && slice_equal(encode_chunk(pieces_of(core), txn->overlay, index), buf_as_slice(&bytes));
        overlay_chunk_saved(txn->overlay, index, len, crc);
    }
    buf_deinit(&bytes);
    return valid;
}

static void codec_u32(struct codec *codec, uint32_t *number)
{
    uint64_t value = *number;
    codec_number(codec, &value);
    codec_require(codec, value <= UINT32_MAX);
    *number = codec->bad ? 0 : (uint32_t)value;
}

void piece_codec__overlay(struct codec *codec, struct core *core, struct txn *txn)
{
    struct save_pieces *pieces = pieces_of(core);
    struct overlay *overlay = txn->overlay;
    REQUIRE(codec_reads(codec) || (overlay != NULL && txn->piece_owner != 0));
    size_t count = codec_reads(codec) ? 0 : overlay_chunk_count(overlay);

    codec_number(codec, &txn->piece_owner);
    codec_array(codec, NULL, &count, 0, PIECE_BYTES_MIN);
    codec_require(codec, txn->piece_owner > 0 && txn->piece_owner < UINT64_MAX && count > 0);
    for (size_t i = 0; i < count && !codec->bad; i++) {
        struct overlay_chunk chunk = {0};
        if (!codec_reads(codec)) {
            chunk = *overlay_chunk(overlay, i);
            REQUIRE(!chunk.changed);
        }
        codec_u32(codec, &chunk.number);
        codec_u32(codec, &chunk.saved_len);
        codec_u32(codec, &chunk.saved_crc);
        if (!codec_reads(codec) || codec->bad)
            continue;
        codec_require(codec, read_piece(core, txn, chunk.number, chunk.saved_len, chunk.saved_crc));
        pieces->named++;
    }
    if (codec_reads(codec) && txn->piece_owner > pieces->last_owner)
        pieces->last_owner = txn->piece_owner;
}

/* Reads a piece into a new chunk. Its content is compared when all is read: piece_codec__check_loaded(). */
static bool read_members(struct core *core, enum save_piece_kind kind, struct slice bytes, uint64_t piece, uint32_t crc,
                         unsigned version, struct piece_reader *reader)
{
    struct save_chunks *chunks = chunks_of(core, kind);
    struct save_chunk *chunk = save_chunk__begin(chunks);
    struct codec codec = codec_from(bytes, reader->arena);
    codec.version = version;
    while (!codec.bad && codec.in.len > 0)
        if (kind == PIECE_SESSIONS)
            codec_session_fields(&codec, core, NULL, true);
        else
            codec_wait_in_piece(&codec, core, NULL, reader);
    save_chunk__saved(chunks, chunk, piece, (uint32_t)bytes.len, crc);
    return !codec.bad;
}

static void codec_members(struct codec *codec, struct core *core, enum save_piece_kind kind, struct save_chunk *chunk,
                          struct piece_reader *reader)
{
    uint64_t piece = 0;
    uint32_t len = 0, crc = 0;
    if (chunk != NULL) {
        REQUIRE(!list_linked(&chunk->changed));
        piece = chunk->piece;
        len = chunk->saved_len;
        crc = chunk->saved_crc;
    }
    codec_number(codec, &piece);
    codec_u32(codec, &len);
    codec_u32(codec, &crc);
    codec_require(codec, piece > 0);
    if (!codec_reads(codec) || codec->bad)
        return;
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    codec_require(codec, piece_codec__read(core, piece, len, crc, &bytes) &&
                             read_members(core, kind, buf_as_slice(&bytes), piece, crc, codec->version, reader));
    buf_deinit(&bytes);
}

void piece_codec__chunks(struct codec *codec, struct core *core, enum save_piece_kind kind, struct piece_reader *reader)
{
    const struct save_chunks *chunks = chunks_of(core, kind);
    size_t count = codec_reads(codec) ? 0 : list_length(&chunks->all);
    REQUIRE(codec_reads(codec) || list_empty(&chunks->changed));
    codec_array(codec, NULL, &count, 0, PIECE_BYTES_MIN);
    if (!codec_reads(codec))
        list_for_each(link, &chunks->all)
            codec_members(codec, core, kind, list_entry(link, struct save_chunk, of_all), reader);
    for (size_t i = 0; i < count && codec_reads(codec) && !codec->bad; i++)
        codec_members(codec, core, kind, NULL, reader);
}

bool piece_codec__chunks_are_saved(struct core *core)
{
    bool saved = true;
    for (int kind = PIECE_SESSIONS; kind <= PIECE_WAITS && saved; kind++)
        list_for_each(link, &chunks_of(core, (enum save_piece_kind)kind)->all)
        {
            const struct save_chunk *chunk = list_entry(link, struct save_chunk, of_all);
            if (list_linked(&chunk->changed))
                continue;
            struct slice bytes = encode_members(core, (enum save_piece_kind)kind, chunk);
            saved = saved && bytes.len == chunk->saved_len && crc32c(0, bytes.data, bytes.len) == chunk->saved_crc;
        }
    trim_piece(pieces_of(core));
    return saved;
}

bool piece_codec__check_loaded(struct core *core, unsigned version)
{
    struct save_pieces *pieces = pieces_of(core);
    size_t count;
    if (store_count_pieces(core->store, &count) != 0)
        return false;
    pieces->known = count == pieces->named;
    if (pieces->named > 0 && (!pieces->known || !is_saved(core, version)))
        return false;
    if (version == SECTIONS_VERSION)
        return pieces->named == 0 || piece_codec__chunks_are_saved(core);
    for (int kind = PIECE_SESSIONS; kind <= PIECE_WAITS; kind++)
        save_chunk__touch_all(chunks_of(core, (enum save_piece_kind)kind));
    return true;
}
