/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of metadata fields, and their values per document. bind_metadata.c binds queries on
 * them.
 */
#include "query/metadata.h"

#include "base/check.h"

static const struct metadata_field table[METADATA_COUNT] = {
#define X(symbol, name, traits, term, exists) {name, METADATA_##symbol, traits, term, exists},
#include "query/metadata.def"
#undef X
};

const struct metadata_field *metadata_find(struct slice name)
{
    if (name.len == 0 || name.data[0] != '_') /* fast path: called for every field of every request */
        return NULL;
    for (size_t i = 0; i < METADATA_COUNT; i++)
        if (slice_is(name, table[i].name))
            return &table[i];
    return NULL;
}

const struct metadata_field *metadata_at(enum metadata_number number)
{
    REQUIRE(number < METADATA_COUNT);
    return &table[number];
}

bool metadata_has_values(const struct metadata_field *field)
{
    return field != NULL && (field->traits & METADATA_DOC_VALUES) != 0;
}

struct slice metadata_refusal(struct arena *arena, const struct metadata_field *field)
{
    return arena_printf(arena, "Fielddata is not supported on field [%s] of type [%s]", field->name, field->name);
}

static struct slice type_of(const struct match_doc *match_doc)
{
    const struct mapping_type *type = mapping_type_by_number(match_doc->index->mapping, match_doc->type);
    return type != NULL ? type->name : SLICE_LIT("_doc");
}

struct field_value metadata_value(const struct metadata_field *field, const struct match_doc *match_doc)
{
    switch (field->number) {
    case METADATA_ID: return (struct field_value){.kind = FIELD_VALUE_BYTES, .bytes = match_doc->id};
    case METADATA_INDEX: return (struct field_value){.kind = FIELD_VALUE_BYTES, .bytes = match_doc->index->name};
    case METADATA_TYPE: return (struct field_value){.kind = FIELD_VALUE_BYTES, .bytes = type_of(match_doc)};
    case METADATA_SEQ_NO: return (struct field_value){.kind = FIELD_VALUE_I64, .i64 = match_doc->doc->seq_no};
    case METADATA_ROUTING:
    case METADATA_VERSION:
    case METADATA_SOURCE:
    case METADATA_FIELD_NAMES:
    case METADATA_IGNORED:
    case METADATA_FEATURE:
    case METADATA_COUNT: break;
    }
    UNREACHABLE();
    return (struct field_value){0};
}
