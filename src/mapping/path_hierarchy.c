/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Path-hierarchy fields that are covered by a full-path field: README.md, invariant 8.
 *
 * A field and its multi-fields, a multi-field group, get the same scalars. If one member splits
 * them by path_hierarchy and another indexes them unchanged, the entries of the second find the
 * documents of the first, which needs no entries.
 */
#include "mapping/mapping_internal.h"

/*
 * Returns: whether the tokens of a field are the full text and its prefixes that a delimiter
 *          follows. Sets *ret_delimiter if so.
 */
static bool is_path_hierarchy(const struct mapping_field *field, char *ret_delimiter)
{
    return field->type == FIELD_TEXT && field->indexed && analyzer_is_path(field->analyzer, ret_delimiter);
}

/* Returns: whether a field indexes every text unchanged and has an entry for each value. */
static bool is_full_path(const struct mapping_field *field)
{
    return (field->type == FIELD_KEYWORD || field->type == FIELD_PATH) && field_has_entries(field) &&
           field->analyzer == NULL && field->ignore_above == FIELD_IGNORE_ABOVE_NONE;
}

/* Returns: a member of the group of `base`: 0 is `base` itself, the others are its multi-fields. */
static struct mapping_field *group_member(struct mapping_field *base, size_t position)
{
    return position == 0 ? base : base->multi[position - 1];
}

/* Returns: the member of the group of `base` in another type with the path of `member`, or NULL. */
static struct mapping_field *same_member(struct mapping_field *base, const struct mapping_field *member)
{
    return slice_equal(base->path, member->path) ? base : field__multi(base, member->name);
}

/* Returns: whether `full_path` covers `field` in every type that has the group. */
static bool types_agree(const struct mapping *mapping, const struct mapping_field *base,
                        const struct mapping_field *field, const struct mapping_field *full_path, char delimiter)
{
    for (size_t i = 0; i < mapping->type_count; i++) {
        struct mapping_field *other = field__find(mapping->types[i]->type.root, base->path);
        if (other == NULL)
            continue;
        char own_delimiter;
        const struct mapping_field *own = same_member(other, field);
        const struct mapping_field *own_full_path = same_member(other, full_path);
        if (own_full_path == NULL || !is_full_path(own_full_path))
            return false;
        if (own != NULL && (!is_path_hierarchy(own, &own_delimiter) || own_delimiter != delimiter))
            return false;
    }
    return true;
}

/* Returns: whether `field` or a field below it has a copy_to with the target `path`. */
static bool copies_below(const struct mapping_field *field, struct slice path)
{
    for (size_t i = 0; i < field->copy_to_count; i++) {
        if (slice_equal(field->copy_to[i], path))
            return true;
    }
    for (size_t i = 0; i < field->child_count; i++) {
        if (copies_below(field->children[i], path))
            return true;
    }
    for (size_t i = 0; i < field->multi_count; i++) {
        if (copies_below(field->multi[i], path))
            return true;
    }
    return false;
}

/*
 * Returns: whether a copy_to gives a multi-field scalars that the rest of its group does not get.
 */
static bool is_copied_alone(const struct mapping *mapping, const struct mapping_field *base,
                            const struct mapping_field *field)
{
    if (field == base || !mapping->has_copy_to)
        return false;
    for (size_t i = 0; i < mapping->type_count; i++) {
        if (copies_below(mapping->types[i]->type.root, field->path))
            return true;
    }
    return false;
}

/* Returns: the full-path field that covers `field`, a member of the group of `base`; or NULL. */
static const struct mapping_field *find_full_path_field(const struct mapping *mapping, struct mapping_field *base,
                                                        const struct mapping_field *field)
{
    char delimiter;
    if (!is_path_hierarchy(field, &delimiter) || is_copied_alone(mapping, base, field))
        return NULL;
    for (size_t i = 0; i <= base->multi_count; i++) {
        const struct mapping_field *full_path = group_member(base, i);
        if (is_full_path(full_path) && types_agree(mapping, base, field, full_path, delimiter))
            return full_path;
    }
    return NULL;
}

static void seal_group(struct mapping *mapping, struct mapping_field *base)
{
    for (size_t i = 0; i <= base->multi_count; i++) {
        struct mapping_field *field = group_member(base, i);
        field->full_path_field = find_full_path_field(mapping, base, field);
    }
}

static void seal_below(struct mapping *mapping, struct mapping_field *object)
{
    for (size_t i = 0; i < object->child_count; i++) {
        struct mapping_field *field = object->children[i];
        if (field__is_object(field))
            seal_below(mapping, field);
        else if (field->multi_count > 0)
            seal_group(mapping, field);
    }
}

/*
 * Removes the field numbers of covered fields, so that documents get no entries for them. Entries
 * of such a number are marked incomplete, in case a later mapping needs them again. The number
 * stays assigned to the path.
 */
static void drop_entries(struct mapping *mapping, struct mapping_field *field)
{
    if (field->full_path_field != NULL) {
        mapping->numbers[field->number].complete = false;
        mapping->numbers[field->number].field = NULL;
        field->complete = false;
        field->number = FIELD_NUMBER_NONE;
    }
    for (size_t i = 0; i < field->child_count; i++)
        drop_entries(mapping, field->children[i]);
    for (size_t i = 0; i < field->multi_count; i++)
        drop_entries(mapping, field->multi[i]);
}

void mapping__seal_path_hierarchies(struct mapping *mapping)
{
    for (size_t i = 0; i < mapping->type_count; i++)
        seal_below(mapping, mapping->types[i]->type.root);
    for (size_t i = 0; i < mapping->type_count; i++)
        drop_entries(mapping, mapping->types[i]->type.root);
}
