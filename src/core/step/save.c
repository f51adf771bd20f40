/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints; see save.h. This file has the numbers of the core; the owners code everything else.
 */
#include "core/step/save.h"

#include <inttypes.h>

#include "base/check.h"
#include "core/command/codec.h"
#include "core/command/section.h"
#include "core/owners/owners_step.h"
#include "core/owners/piece_codec.h"
#include "core/step/core.h"
#include "core/tree/empty_paths.h"
#include "core/unit/unit.h"

static void codec_numbers(struct sections *sections, struct core *core)
{
    struct codec codec = section_begin(sections, SECTION_NUMBERS);

    REQUIRE(codec_reads(&codec) || (core->written_ts <= core->last_ts && core->must_sync_ts <= core->last_ts));
    codec_bool(&codec, &core->chained);
    codec_number(&codec, &core->chain);
    codec_number(&codec, &core->last_ts);
    codec_number(&codec, &core->written_ts);
    codec_number(&codec, &core->must_sync_ts);
    codec_number(&codec, &core->clock);
    codec_number(&codec, &core->names_epoch);
    codec_number(&codec, &core->purge_horizons.tombstones); /* may be above the stored ones */
    codec_number(&codec, &core->purge_horizons.outcomes);
    if (codec_reads(&codec))
        codec_require(&codec, core->last_ts < TL_TS_MAX && core->written_ts <= core->last_ts &&
                                  core->must_sync_ts <= core->last_ts && (core->chained || core->chain == 0));
    section_end(sections, &codec);
}

/* Version 10 added them: a core that was loaded from an older form knows no paths. */
static void codec_paths(struct sections *sections, struct core *core)
{
    if (sections->version < 10)
        return;
    struct codec codec = section_begin(sections, SECTION_PATHS);
    empty_paths__codec(&codec, &core->empty_paths);
    section_end(sections, &codec);
}

static void save_to(struct core *core, bool in_pieces, struct buf *buf)
{
    struct sections sections = sections_to(buf);
    sections.in_pieces = in_pieces;
    codec_numbers(&sections, core);
    owners__codec(core, &sections);
    codec_paths(&sections, core);
    sections_finish(&sections);
}

void core_save(struct core *core, struct buf *buf)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC) && core->effects == NULL && !core->open);
    save_to(core, false, buf);
}

int core_save_ahead(struct core *core, uint64_t bytes_max, bool *ret_more)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC) && core->effects == NULL && bytes_max > 0);
    REQUIRE(!core->open);
    return piece_codec__write_ahead(core, bytes_max, ret_more);
}

int core_save_rest(struct core *core, struct buf *buf)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC) && core->effects == NULL);
    REQUIRE(!core->open);
    int r = piece_codec__write_rest(core);
    if (r < 0)
        return tl_trace(r);
    save_to(core, true, buf);
    return 0;
}

/*
 * Checks that the state that was read encodes to the same bytes, which finds errors that no check
 * of a single field does. Files of older versions are not compared.
 */
static void compare_saved(struct core *core, struct sections *sections)
{
    struct buf again = BUF_INIT(BUF_UNLIMITED);
    size_t same = 0, len = sections->all.len;

    if (sections->bad || sections->version != SECTIONS_VERSION)
        return;
    save_to(core, sections->in_pieces, &again);
    while (same < len && same < again.len && sections->all.data[same] == again.data[same])
        same++;
    if (same < len || same < again.len)
        sections_fail_at(sections, same);
    buf_deinit(&again);
}

/* Refuses a store with changes after the checkpoint, since the log would apply them again. */
static int check_store(const struct core *core, struct buf *reason)
{
    if (core->found_ts <= core->last_ts)
        return 0;
    if (reason != NULL)
        buf_printf(reason, "the store next to it has changes up to %" PRIu64 ", beyond %" PRIu64 ", where it was saved",
                   core->found_ts, core->last_ts);
    return tl_trace(TL_ERR_CORRUPT);
}

/* Loads the sections into a core that has the store's state but no owners. */
static int load_saved(struct core *core, struct sections *sections)
{
    codec_numbers(sections, core);
    owners__codec(core, sections);
    codec_paths(sections, core);
    sections_finish(sections);
    compare_saved(core, sections);
    if (!sections->bad)
        return 0;
    owners__discard_loaded(core);
    return sections->newer ? CORE_SAVE_NEWER : tl_trace(TL_ERR_CORRUPT);
}

int core_load(struct store *store, const struct core_limits *limits, struct slice saved, struct buf *reason,
              struct core **ret_core)
{
    REQUIRE(store != NULL && limits != NULL && ret_core != NULL);
    struct arena arena = ARENA_INIT;
    struct sections sections = sections_from(saved, &arena);
    struct core *core;
    int r = core__open_bare(store, limits, &core);

    if (r == 0) {
        r = load_saved(core, &sections);
        if (r != 0 && reason != NULL)
            sections_describe_error(&sections, reason);
        if (r == 0 && (r = check_store(core, reason)) != 0)
            owners__discard_loaded(core);
        if (r != 0)
            core_close(core);
    } else if (reason != NULL) {
        buf_lit(reason, "the store next to it cannot be read");
    }
    arena_deinit(&arena);
    if (r != 0)
        return r < 0 ? tl_trace(r) : r;
    core__loaded(core);
    *ret_core = core;
    return 0;
}
