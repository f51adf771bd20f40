/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Path-hierarchy fields that are covered by a full-path field: README.md, invariant 8.
 *
 * A field and its multi-fields, a multi-field group, get the same scalars. If one member splits
 * them by path_hierarchy and another indexes them unchanged, the entries of the second find the
 * documents of the first, which needs no entries.
 */
#include "base/check.h"
#include "base/map.h"
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

/* What the fields of one path are in all types that have it, as members of a group: apart, or as multi-fields. */
struct member {
    size_t types;
    size_t full; /* of them: where it indexes full paths */
    bool splits; /* it splits paths by `delimiter` in all */
    char delimiter;
};

/*
 * The fields of a mapping by path. So a group is not compared with those of all types, nor its members pair by pair:
 * there may be a thousand types, or thousands of members.
 */
struct sealing {
    struct arena arena;
    struct map fields;       /* path to struct member; without multi-fields */
    struct map multi_fields; /* the same */
    struct map copy_targets; /* of copy_to */
};

/* Returns: the members of the path of a member of the group of `base`. */
static struct member *members_of(const struct sealing *sealing, const struct mapping_field *base,
                                 const struct mapping_field *field)
{
    struct member *member = map_get(field == base ? &sealing->fields : &sealing->multi_fields, field->path);
    INSIST(member != NULL);
    return member;
}

static void add_member(struct sealing *sealing, struct map *map, const struct mapping_field *field)
{
    struct member *member = map_get(map, field->path);
    char delimiter = 0;
    bool splits = is_path_hierarchy(field, &delimiter);
    if (member == NULL) {
        member = arena_alloc(&sealing->arena, sizeof *member);
        *member = (struct member){.splits = splits, .delimiter = delimiter};
        map_put(map, field->path, member);
    }
    member->types++;
    member->full += is_full_path(field);
    member->splits &= splits && delimiter == member->delimiter;
    for (size_t i = 0; i < field->copy_to_count; i++)
        map_put(&sealing->copy_targets, field->copy_to[i], sealing);
}

static void add_members(struct sealing *sealing, const struct mapping_field *object)
{
    for (size_t i = 0; i < object->child_count; i++) {
        const struct mapping_field *field = object->children[i];
        add_member(sealing, &sealing->fields, field);
        for (size_t j = 0; j < field->multi_count; j++)
            add_member(sealing, &sealing->multi_fields, field->multi[j]);
        add_members(sealing, field);
    }
}

/* Returns: the first member of the group of `base` that has full paths in every type that has the group; NULL: none. */
static const struct mapping_field *full_path_of_group(const struct sealing *sealing, struct mapping_field *base)
{
    size_t types = members_of(sealing, base, base)->types;
    for (size_t i = 0; i <= base->multi_count; i++) {
        const struct mapping_field *field = group_member(base, i);
        if (is_full_path(field) && members_of(sealing, base, field)->full == types)
            return field;
    }
    return NULL;
}

/*
 * Returns: whether a copy_to gives a multi-field scalars that the rest of its group does not get.
 */
static bool is_copied_alone(const struct sealing *sealing, const struct mapping_field *base,
                            const struct mapping_field *field)
{
    return field != base && map_get(&sealing->copy_targets, field->path) != NULL;
}

static void seal_group(const struct sealing *sealing, struct mapping_field *base)
{
    const struct mapping_field *full_path = full_path_of_group(sealing, base);
    for (size_t i = 0; full_path != NULL && i <= base->multi_count; i++) {
        struct mapping_field *field = group_member(base, i);
        char delimiter;
        if (is_path_hierarchy(field, &delimiter) && members_of(sealing, base, field)->splits &&
            !is_copied_alone(sealing, base, field))
            field->full_path_field = full_path;
    }
}

static void seal_below(const struct sealing *sealing, struct mapping_field *object)
{
    for (size_t i = 0; i < object->child_count; i++) {
        struct mapping_field *field = object->children[i];
        if (field__is_object(field))
            seal_below(sealing, field);
        else if (field->multi_count > 0)
            seal_group(sealing, field);
    }
}

/* Unseals the fields below one. Returns: whether a group below it has a field that splits paths. */
static bool unseal_below(struct mapping_field *object)
{
    bool splits = false;
    for (size_t i = 0; i < object->child_count; i++) {
        struct mapping_field *field = object->children[i];
        for (size_t j = 0; j <= field->multi_count; j++) {
            char delimiter;
            group_member(field, j)->full_path_field = NULL;
            splits |= field->multi_count > 0 && is_path_hierarchy(group_member(field, j), &delimiter);
        }
        splits |= unseal_below(field);
    }
    return splits;
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
    struct sealing sealing = {ARENA_INIT, MAP_INIT, MAP_INIT, MAP_INIT};
    bool splits = false;
    for (size_t i = 0; i < mapping->type_count; i++)
        splits |= unseal_below(mapping->types[i]->type.root);
    if (!splits)
        return;
    for (size_t i = 0; i < mapping->type_count; i++)
        add_members(&sealing, mapping->types[i]->type.root);
    for (size_t i = 0; i < mapping->type_count; i++)
        seal_below(&sealing, mapping->types[i]->type.root);
    for (size_t i = 0; i < mapping->type_count; i++)
        drop_entries(mapping, mapping->types[i]->type.root);
    map_deinit(&sealing.fields);
    map_deinit(&sealing.multi_fields);
    map_deinit(&sealing.copy_targets);
    arena_deinit(&sealing.arena);
}
