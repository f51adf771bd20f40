/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers shared by the tests of mappings. */
#ifndef TL_TESTS_MAPPING_LIB_H
#define TL_TESTS_MAPPING_LIB_H

#include "../../lib/unit.h"

#include "mapping/document.h"

static inline yyjson_val *parse_json(struct arena *arena, const char *text)
{
    struct json_doc doc;
    if (json_parse_stored(arena, slice_from(text), &doc) != 0)
        fail_msg("no JSON: %s", text);
    return doc.root;
}

/* Returns: a mapping of one type with these settings and this body; NULL: none. */
static inline struct mapping *make_mapping(struct arena *arena, const char *settings, const char *type,
                                           const char *body, enum dialect dialect)
{
    struct mapping *empty, *typed, *mapping;
    struct problem problem = {0};
    if (mapping_new(settings == NULL ? NULL : parse_json(arena, settings), DATE_RULES_7_10, arena, &empty, &problem) !=
        0)
        fail_msg("settings refused: %.*s", SLICE_ARG(problem.reason));
    if (mapping_ensure_type(empty, slice_from(type), false, dialect, arena, &typed, &problem) != 0)
        fail_msg("type refused: %.*s", SLICE_ARG(problem.reason));
    mapping_unref(empty);
    if (body == NULL)
        return typed;
    if (mapping_merge(typed, slice_from(type), parse_json(arena, body), dialect, false, FIELDS_COUNTED_FIRST, arena,
                      &mapping, &problem) != 0)
        fail_msg("%s refused: %.*s", body, SLICE_ARG(problem.reason));
    mapping_unref(typed);
    return mapping;
}

/* Parses a document and replaces *mapping by the one extended with its fields. */
static inline void index_document(struct arena *arena, struct mapping **mapping, const char *source,
                                  enum dialect dialect)
{
    struct document document;
    struct problem problem = {0};
    if (document_parse(*mapping, mapping_type_at(*mapping, 0), SLICE_LIT("1"), slice_from(source), dialect,
                       DOCUMENT_DATES_STRICT, FIELDS_COUNTED_FIRST, arena, &document, &problem) != 0)
        fail_msg("%s refused: %.*s", source, SLICE_ARG(problem.reason));
    if (document.update != NULL) {
        mapping_unref(*mapping);
        *mapping = mapping_ref(document.update);
    }
    document_release(&document);
}

#define assert_rendered(mapping, text)                                                    \
    do {                                                                                  \
        struct buf rendered_ = BUF_INIT(BUF_UNLIMITED);                                   \
        mapping_render_type(mapping, mapping_type_at(mapping, 0), DIALECT_7, &rendered_); \
        assert_slice_equal(buf_as_slice(&rendered_), text);                               \
        buf_deinit(&rendered_);                                                           \
    } while (0)

#endif
