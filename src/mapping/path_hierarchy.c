/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields whose tokens are the directories of paths that another field holds whole: README.md, invariant 8.
 *
 * A field and its multi-fields, a *family*, are given the same scalars. Where one member cuts them by path_hierarchy and
 * another keeps each as it is, the entries of the second find the documents of the first, which then has none of its own.
 */
#include "mapping/mapping_internal.h"

/* Whether a field's tokens of a text are its beginnings that end with the text or in front of a delimiter. */
static bool is_directories(const struct mapping_field *field, char *ret_delimiter)
{
    return field->type == FIELD_TEXT && field->indexed && analyzer_is_path(field->analyzer, ret_delimiter);
}

/* Whether every text that a field is given is a value of it, unchanged, and has its entry. */
static bool holds_whole(const struct mapping_field *field)
{
    return (field->type == FIELD_KEYWORD || field->type == FIELD_PATH) && field_has_entries(field) &&
           field->analyzer == NULL && field->ignore_above == FIELD_IGNORE_ABOVE_NONE;
}

/* Member 0 of a family is the field itself, the others are its multi-fields. */
static struct mapping_field *family_member(struct mapping_field *base, size_t place)
{
    return place == 0 ? base : base->multi[place - 1];
}

/* The member of another type's family that has the path of `member`, or NULL. */
static struct mapping_field *same_member(struct mapping_field *base, const struct mapping_field *member)
{
    return slice_equal(base->path, member->path) ? base : field__multi(base, member->name);
}

/* Whether every type that has the family agrees that `whole` finds the documents of `field`. */
static bool types_agree(const struct mapping *mapping, const struct mapping_field *base,
                        const struct mapping_field *field, const struct mapping_field *whole, char delimiter)
{
    for (size_t i = 0; i < mapping->type_count; i++) {
        struct mapping_field *other = field__find(mapping->types[i]->type.root, base->path);
        if (other == NULL)
            continue;
        char own_delimiter;
        const struct mapping_field *own = same_member(other, field);
        const struct mapping_field *own_whole = same_member(other, whole);
        if (own_whole == NULL || !holds_whole(own_whole))
            return false;
        if (own != NULL && (!is_directories(own, &own_delimiter) || own_delimiter != delimiter))
            return false;
    }
    return true;
}

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

/* Whether some copy_to gives a field scalars that its family does not get. */
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

static const struct mapping_field *find_whole(const struct mapping *mapping, struct mapping_field *base,
                                              const struct mapping_field *field)
{
    char delimiter;
    if (!is_directories(field, &delimiter) || is_copied_alone(mapping, base, field))
        return NULL;
    for (size_t i = 0; i <= base->multi_count; i++) {
        const struct mapping_field *whole = family_member(base, i);
        if (holds_whole(whole) && types_agree(mapping, base, field, whole, delimiter))
            return whole;
    }
    return NULL;
}

static void seal_family(struct mapping *mapping, struct mapping_field *base)
{
    for (size_t i = 0; i <= base->multi_count; i++) {
        struct mapping_field *field = family_member(base, i);
        field->full_path_field = find_whole(mapping, base, field);
    }
}

static void seal_below(struct mapping *mapping, struct mapping_field *object)
{
    for (size_t i = 0; i < object->child_count; i++) {
        struct mapping_field *field = object->children[i];
        if (field__is_object(field))
            seal_below(mapping, field);
        else if (field->multi_count > 0)
            seal_family(mapping, field);
    }
}

/*
 * Takes the entries away from what was found. It gets none from now on, so its own are not complete should it need them
 * again; its number stays with its path.
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
