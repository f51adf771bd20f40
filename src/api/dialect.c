/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dialect of calls whose path does not tell.
 */
#include "api/dialect.h"

#include "api/api_internal.h"
#include "core/catalog.h"
#include "json/filter.h"

/* What has been seen of some indices. */
struct survey {
    size_t typed;
    size_t typeless;
};

static void survey_add(struct survey *survey, const struct catalog_index *index)
{
    if (index->dialect == DIALECT_5)
        survey->typed++;
    else
        survey->typeless++;
}

/* Looks until the first typeless one, which settles it. */
static void survey_all(struct survey *survey, const struct catalog *catalog, struct slice pattern)
{
    for (size_t i = 0; i < catalog_index_count(catalog) && survey->typeless == 0; i++) {
        const struct catalog_index *index = catalog_index_at(catalog, i);
        bool meant = json_wildcard(pattern, index->name);
        for (size_t k = 0; k < index->alias_count && !meant; k++)
            meant = json_wildcard(pattern, index->aliases[k].name);
        if (meant)
            survey_add(survey, index);
    }
}

static void survey_name(struct survey *survey, const struct catalog *catalog, struct slice name)
{
    const struct catalog_index *index = catalog_index(catalog, name);
    if (index != NULL)
        survey_add(survey, index);
    else if (slice_find_byte(name, '*') < name.len || catalog_has_alias(catalog, name))
        survey_all(survey, catalog, name);
}

/* What a connection's note may say. */
enum { NOTE_NOTHING, NOTE_TYPELESS, NOTE_TYPED };

void dialect_note(struct request *request, enum route_form form)
{
    if (request->exchange->connection_note == NULL || (form != FORM_TYPED && form != FORM_TYPELESS))
        return;
    if (form == FORM_TYPED && slice_starts_with(request->parts[PART_TYPE], SLICE_LIT("_")))
        return; /* a slip of a 7.x client, as in POST /index/_update: no type is named so */
    atomic_store_explicit(request->exchange->connection_note, form == FORM_TYPED ? NOTE_TYPED : NOTE_TYPELESS,
                          memory_order_relaxed);
}

static bool noted_as_typed(const struct request *request)
{
    return request->exchange->connection_note != NULL &&
           atomic_load_explicit(request->exchange->connection_note, memory_order_relaxed) == NOTE_TYPED;
}

enum dialect dialect_of_indices(struct request *request, struct slice expression)
{
    struct survey survey = {0, 0};
    tl_cleanup(catalog_unrefp) struct catalog *catalog = journal_catalog(request->api->journal);
    while (expression.len > 0 && survey.typeless == 0) {
        size_t len = slice_find_byte(expression, ',');
        survey_name(&survey, catalog, slice_make(expression.data, len));
        expression = slice_from_offset(expression, len + 1);
    }
    if (survey.typed + survey.typeless == 0)
        survey_all(&survey, catalog, SLICE_LIT("*"));
    if (survey.typed + survey.typeless == 0)
        return noted_as_typed(request) ? DIALECT_5 : DIALECT_7;
    return survey.typeless == 0 ? DIALECT_5 : DIALECT_7;
}
