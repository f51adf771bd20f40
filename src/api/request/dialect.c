/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dialect of calls whose path does not decide it.
 */
#include "api/request/dialect.h"

#include "api/request/api_internal.h"
#include "base/check.h"
#include "base/map.h"
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

/* Counts comparisons of names. Returns: false: they are too many. */
static bool count_looks(uint64_t *io_looks, uint64_t looks)
{
    bool within = looks < *io_looks;
    *io_looks = within ? *io_looks - looks : 0;
    return within;
}

/* Looks until the first typeless one, which settles it. Returns: as count_looks(). */
static bool survey_all(struct survey *survey, const struct catalog *catalog, struct slice pattern, uint64_t *io_looks)
{
    for (size_t i = 0; i < catalog_index_count(catalog) && survey->typeless == 0; i++) {
        const struct catalog_index *index = catalog_index_at(catalog, i);
        bool meant = json_wildcard(pattern, index->name);
        uint64_t looks = catalog_looks(CATALOG_WEIGH_REQUEST, pattern, index->name);
        for (size_t k = 0; k < index->alias_count; k++) {
            meant = meant || json_wildcard(pattern, index->aliases[k].name);
            looks += catalog_looks(CATALOG_WEIGH_REQUEST, pattern, index->aliases[k].name);
        }
        if (!count_looks(io_looks, looks))
            return false;
        if (meant)
            survey_add(survey, index);
    }
    return true;
}

/* As survey_all(), of the indices of an alias. */
static bool survey_alias(struct survey *survey, const struct catalog *catalog, struct slice alias, uint64_t *io_looks)
{
    const struct catalog_index *index;
    for (size_t i = 0; survey->typeless == 0; i++) {
        if ((index = catalog_alias_index(catalog, alias, i)) == NULL)
            break;
        survey_add(survey, index);
        if (!count_looks(io_looks, 1))
            return false;
    }
    return true;
}

static bool survey_name(struct survey *survey, const struct catalog *catalog, struct slice name, uint64_t *io_looks)
{
    const struct catalog_index *index = catalog_index(catalog, name);
    if (!count_looks(io_looks, 1))
        return false;
    if (index != NULL)
        survey_add(survey, index);
    else if (slice_find_byte(name, '*') < name.len)
        return survey_all(survey, catalog, name, io_looks);
    else
        return survey_alias(survey, catalog, name, io_looks);
    return true;
}

/* Surveys the names of an expression. Returns: as count_looks(). */
static bool survey_names(struct survey *survey, const struct catalog *catalog, struct slice expression,
                         uint64_t *io_looks)
{
    while (expression.len > 0 && survey->typeless == 0) {
        size_t len = slice_find_byte(expression, ',');
        if (!survey_name(survey, catalog, slice_make(expression.data, len), io_looks))
            return false;
        expression = slice_from_offset(expression, len + 1);
    }
    return true;
}

static enum dialect dialect_of_survey(const struct survey *survey)
{
    return survey->typed > 0 && survey->typeless == 0 ? DIALECT_5 : DIALECT_7;
}

/* Whether the index is one of 7.x whose only type a call has named. */
static bool has_named_type(const struct catalog_index *index)
{
    const struct mapping_type *named = NULL;
    size_t visible = 0;
    if (index->dialect != DIALECT_7)
        return false;
    for (size_t i = 0; i < mapping_type_count(index->mapping) && visible < 2; i++) {
        const struct mapping_type *type = mapping_type_at(index->mapping, i);
        visible += !type->hidden;
        named = type->hidden || slice_is(type->name, "_doc") ? named : type;
    }
    return named != NULL && visible == 1;
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

/* Whether a typed call follows the name of its index alone: no type is named so, it is a slip in a typeless path. */
static bool is_slip(const struct request *request, struct slice type)
{
    return slice_starts_with(type, SLICE_LIT("_")) && !slice_is(type, "_doc") && !names_itself_seven(request);
}

/* Whether a typed call is one of 7.x by its type or its client, whatever its index is. */
static bool is_sevens(const struct request *request, struct slice type)
{
    return slice_is(type, "_doc") || names_itself_seven(request);
}

/* The dialect of another typed call. */
static enum dialect dialect_of_typed_index(const struct catalog *catalog, struct slice name)
{
    const struct catalog_index *index = catalog_index(catalog, name);
    return index != NULL && has_named_type(index) ? DIALECT_7 : DIALECT_5;
}

enum dialect dialect_of_typed_call(struct request *request, struct slice name, struct slice type)
{
    if (is_slip(request, type))
        return dialect_of_indices(request, name);
    if (is_sevens(request, type))
        return DIALECT_7;
    tl_cleanup(catalog_unrefp) struct catalog *catalog = journal_catalog(request->api->journal);
    return dialect_of_typed_index(catalog, name);
}

enum dialect dialect_of_indices(struct request *request, struct slice expression)
{
    struct survey survey = {0, 0};
    uint64_t looks = CATALOG_LOOKS_MAX;
    tl_cleanup(catalog_unrefp) struct catalog *catalog = journal_catalog(request->api->journal);
    bool within = survey_names(&survey, catalog, expression, &looks);
    if (survey.typed + survey.typeless == 0)
        within = within && survey_all(&survey, catalog, SLICE_LIT("*"), &looks);
    return within ? dialect_of_survey(&survey) : DIALECT_7; /* what resolves so many names refuses them */
}

/* --- Many names of one request ------------------------------------------------------------------------------------ */

/* The values of struct dialect_names: a dialect, and 1. */
static void *dialect_value(enum dialect dialect)
{
    return (void *)((uintptr_t)dialect + 1);
}

/* Surveys an expression, and all indices the first time that it names none. Returns: as count_looks(). */
static bool survey_new(struct dialect_names *names, struct slice expression, enum dialect *ret_dialect)
{
    const struct catalog *catalog = names->catalog;
    struct survey survey = {0, 0}, all = {0, 0};
    if (!survey_names(&survey, catalog, expression, &names->looks_left))
        return false;
    *ret_dialect = dialect_of_survey(&survey);
    if (survey.typed + survey.typeless > 0)
        return true;
    if (!names->all_known && !survey_all(&all, catalog, SLICE_LIT("*"), &names->looks_left))
        return false;
    names->all = names->all_known ? names->all : dialect_of_survey(&all);
    names->all_known = true;
    *ret_dialect = names->all;
    return true;
}

int dialect_of_named(struct request *request, struct dialect_names *names, struct slice name, struct slice type,
                     enum dialect *ret_dialect)
{
    bool typed = type.len > 0 && !is_slip(request, type);
    if (typed && is_sevens(request, type)) {
        *ret_dialect = DIALECT_7;
        return 0;
    }
    if (names->catalog == NULL)
        names->catalog = journal_catalog(request->api->journal);
    if (typed) {
        *ret_dialect = dialect_of_typed_index(names->catalog, name);
        return 0;
    }
    const struct slice key = name.len > 0 ? name : SLICE_LIT("");
    const void *known = map_get(&names->known, key);
    if (known == NULL) {
        enum dialect dialect;
        if (!survey_new(names, name, &dialect))
            return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                                  "the request has so many names and wildcards of indices that comparing them with all "
                                  "indices and aliases takes too long: use fewer");
        known = dialect_value(dialect);
        map_put(&names->known, key, dialect_value(dialect));
    }
    *ret_dialect = (enum dialect)((uintptr_t)known - 1);
    return 0;
}

void dialect_names_deinit(struct dialect_names *names)
{
    map_deinit(&names->known);
    catalog_unref(tl_steal(names->catalog));
}
