/* SPDX-License-Identifier: Apache-2.0 */
/* Version rules, following Elasticsearch's VersionType and InternalEngine. */
#include "core/documents/version.h"

#include "base/buf.h"
#include "base/check.h"

static enum conflict_kind check_seq_no(const struct write_item *item, const struct version_state *state)
{
    REQUIRE(item->if_seq_no != SEQ_NO_ANY);
    if (!state->live)
        return CONFLICT_MISSING;
    return item->if_seq_no != state->seq_no || item->if_primary_term != 1 ? CONFLICT_SEQ_NO : CONFLICT_NONE;
}

static enum conflict_kind check_internal(const struct write_item *item, const struct version_state *state)
{
    REQUIRE(item->version_type == VERSION_INTERNAL);
    if (item->version == VERSION_ANY)
        return CONFLICT_NONE;
    return state->version != item->version ? CONFLICT_VERSION : CONFLICT_NONE;
}

enum conflict_kind version__check(const struct write_item *item, const struct version_state *state, bool create)
{
    if (item->if_seq_no != SEQ_NO_ANY)
        return check_seq_no(item, state);
    if (create && state->live)
        return CONFLICT_EXISTS;
    switch (item->version_type) {
    case VERSION_INTERNAL: return check_internal(item, state);
    case VERSION_EXTERNAL: return state->version >= item->version ? CONFLICT_EXTERNAL : CONFLICT_NONE;
    case VERSION_EXTERNAL_GTE: return state->version > item->version ? CONFLICT_EXTERNAL_GTE : CONFLICT_NONE;
    default: return CONFLICT_NONE;
    }
}

int64_t version__next(const struct write_item *item, const struct version_state *state)
{
    if (item->version_type != VERSION_INTERNAL)
        return item->version;
    if (state->version == VERSION_NOT_FOUND)
        return 1;
    return state->version == INT64_MAX ? VERSION_NOT_FOUND : state->version + 1;
}

void version__explain(struct buf *buf, enum conflict_kind conflict, const struct version_required *required,
                      const struct version_state *state)
{
    REQUIRE(conflict > CONFLICT_NONE && conflict < CONFLICT_KIND_COUNT);
    long long current = (long long)state->version, wanted = (long long)required->version;

    switch (conflict) {
    case CONFLICT_EXISTS: buf_printf(buf, "document already exists (current version [%lld])", current); return;
    case CONFLICT_VERSION:
        buf_printf(buf, "current version [%lld] is different than the one provided [%lld]", current, wanted);
        return;
    case CONFLICT_EXTERNAL:
        buf_printf(buf, "current version [%lld] is higher or equal to the one provided [%lld]", current, wanted);
        return;
    case CONFLICT_EXTERNAL_GTE:
        buf_printf(buf, "current version [%lld] is higher than the one provided [%lld]", current, wanted);
        return;
    case CONFLICT_MISSING:
        buf_printf(buf, "required seqNo [%lld], primary term [%lld]. but no document was found",
                   (long long)required->if_seq_no, (long long)required->if_primary_term);
        return;
    case CONFLICT_SEQ_NO:
        buf_printf(buf,
                   "required seqNo [%lld], primary term [%lld]. current document has seqNo [%lld] and primary term [1]",
                   (long long)required->if_seq_no, (long long)required->if_primary_term, (long long)state->seq_no);
        return;
    default: return;
    }
}
