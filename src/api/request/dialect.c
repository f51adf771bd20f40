/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dialect of calls whose path does not decide it.
 */
#include "api/request/dialect.h"

#include "api/request/api_internal.h"
#include "core/catalog/catalog.h"
#include "json/filter.h"
#include "mapping/mapping.h"

/* Observations of some indices. */
struct survey {
    size_t typed;
    size_t typeless;
};

/* An index that has no type yet does not decide the dialect: 7.10 is the safer guess. */
static void survey_add(struct survey *survey, const struct catalog_index *index)
{
    if (index->dialect == DIALECT_5 && mapping_type_count(index->mapping) > 0)
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

/* Whether the index is one of 7.x whose only type a call has named. */
static bool has_named_type(const struct catalog_index *index)
{
    const struct mapping_type *named = NULL;
    size_t visible = 0;
    for (size_t i = 0; i < mapping_type_count(index->mapping); i++) {
        const struct mapping_type *type = mapping_type_at(index->mapping, i);
        visible += !type->hidden;
        named = type->hidden || slice_is(type->name, "_doc") ? named : type;
    }
    return named != NULL && visible == 1 && index->dialect == DIALECT_7;
}

/* Whether the client is a library of 7.x: "elasticsearch-py/7.10.1 (…)", "go-elasticsearch/7.17.0 (…)". */
static bool names_itself_seven(const struct request *request)
{
    static const char library[] = "elasticsearch";
    struct slice agent = exchange_header(request->exchange, "User-Agent");
    struct slice name = slice_make(agent.data, slice_find_byte(agent, '/'));
    const char *found = name.len == 0 ? NULL : memmem(name.data, name.len, library, sizeof library - 1);
    return found != NULL && slice_starts_with(slice_from_offset(agent, name.len + 1), SLICE_LIT("7."));
}

enum dialect dialect_of_typed_call(struct request *request, struct slice name, struct slice type)
{
    if (slice_is(type, "_doc") || names_itself_seven(request))
        return DIALECT_7;
    if (slice_starts_with(type, SLICE_LIT("_"))) /* no type is named so: a slip in a typeless path */
        return dialect_of_indices(request, name);
    tl_cleanup(catalog_unrefp) struct catalog *catalog = journal_catalog(request->api->journal);
    const struct catalog_index *index = catalog_index(catalog, name);
    return index != NULL && has_named_type(index) ? DIALECT_7 : DIALECT_5;
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
    return survey.typed > 0 && survey.typeless == 0 ? DIALECT_5 : DIALECT_7;
}
