/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalog in SPACE_CATALOG. An index, its mapping, and each named object have a key each. So a
 * new field writes only a mapping, and a view of an earlier timestamp loads the catalog of that
 * timestamp.
 */
#include "base/big_endian.h"
#include "base/check.h"
#include "base/magic.h"
#include "core/catalog/catalog.h"
#include "core/catalog/catalog_internal.h"
#include "core/catalog/settings.h"
#include "json/json.h"
#include "mapping/mapping.h"

/*
 * Version 2 of an index's record adds whether it may have documents with a routing. Before, that
 * was not recorded: such an index may have them. Version 3 adds deletes_forgotten; a record
 * where it is 0 has version 2.
 */
enum { INDEX_RECORD_VERSION = 3, OBJECT_RECORD_VERSION = 1, INDEX_KEY_BYTES = 5, OBJECT_KEY_BYTES_MAX = 1 + 4096 };

/* First byte of the keys of each kind. */
static const char kind_letters[CATALOG_KIND_COUNT] = {
    [CATALOG_TEMPLATES] = 't', [CATALOG_SCRIPTS] = 's',         [CATALOG_FILE_SCRIPTS] = 'f', [CATALOG_CLUSTER] = 'c',
    [CATALOG_COPIES] = 'r',    [CATALOG_INDEX_TEMPLATES] = 'x', [CATALOG_COMPONENTS] = 'y',
    [CATALOG_USERS] = 'u',     [CATALOG_ROLES] = 'o',           [CATALOG_API_KEYS] = 'k',
};

static struct slice index_key(char *bytes, char letter, uint32_t number)
{
    REQUIRE(letter == 'i' || letter == 'm');
    bytes[0] = letter;
    big_endian_put_u32(bytes + 1, number);
    return slice_make(bytes, INDEX_KEY_BYTES);
}

static bool index_key_parse(struct slice key, uint32_t *ret_number)
{
    struct slice rest = slice_from_offset(key, 1);

    return key.len == INDEX_KEY_BYTES && slice_take_u32be(&rest, ret_number) && *ret_number != 0;
}

/* --- Records ------------------------------------------------------------------------------------------------------ */

/* Appends a text that may be absent: 0, or its length + 1 and its bytes. */
static void put_text(struct buf *buf, struct slice text)
{
    buf_varint(buf, text.data == NULL ? 0 : text.len + 1);
    if (text.data != NULL)
        buf_slice(buf, text);
}

static bool take_text(struct slice *bytes, struct slice *ret_text)
{
    uint64_t len;

    *ret_text = SLICE_NONE;
    return slice_take_varint(bytes, &len) && (len == 0 || slice_take(bytes, (size_t)len - 1, ret_text));
}

static void put_flag(struct buf *buf, enum catalog_flag flag)
{
    REQUIRE(flag >= CATALOG_FLAG_UNSET && flag <= CATALOG_FLAG_TRUE); /* what take_flag() reads */
    buf_varint(buf, (uint64_t)(flag + 1));
}

static void encode_index(struct buf *buf, const struct catalog_index *index)
{
    REQUIRE(index->dialect < DIALECT_COUNT); /* else it cannot be decoded */
    struct buf settings = BUF_INIT(BUF_UNLIMITED);

    settings_render(index->settings, true, &settings);
    buf_varint(buf, index->deletes_forgotten > 0 ? INDEX_RECORD_VERSION : INDEX_RECORD_VERSION - 1);
    put_text(buf, index->name);
    put_text(buf, index->uuid);
    buf_varint(buf, index->created_ms);
    buf_varint(buf, index->closed);
    buf_varint(buf, index->dialect);
    put_text(buf, buf_as_slice(&settings));
    buf_deinit(&settings);
    buf_varint(buf, index->alias_count);
    for (size_t i = 0; i < index->alias_count; i++) {
        const struct catalog_alias *alias = &index->aliases[i];
        put_text(buf, alias->name);
        put_text(buf, alias->filter);
        put_text(buf, alias->index_routing);
        put_text(buf, alias->search_routing);
        put_flag(buf, alias->write_index);
        put_flag(buf, alias->hidden);
    }
    buf_varint(buf, index->may_have_routings);
    if (index->deletes_forgotten > 0)
        buf_varint(buf, index->deletes_forgotten);
}

static bool take_flag(struct slice *bytes, enum catalog_flag *ret_flag)
{
    uint64_t value;

    if (!slice_take_varint(bytes, &value) || value > 2)
        return false;
    *ret_flag = (enum catalog_flag)((int)value - 1);
    return true;
}

static bool take_aliases(struct slice *bytes, struct arena *arena, struct catalog_index_spec *spec)
{
    uint64_t count;

    if (!slice_take_varint(bytes, &count) || count > CATALOG_ALIASES_MAX)
        return false;
    struct catalog_alias *aliases = arena_zalloc(arena, ((size_t)count + 1) * sizeof(*aliases));
    for (uint64_t i = 0; i < count; i++)
        if (!take_text(bytes, &aliases[i].name) || !take_text(bytes, &aliases[i].filter) ||
            !take_text(bytes, &aliases[i].index_routing) || !take_text(bytes, &aliases[i].search_routing) ||
            !take_flag(bytes, &aliases[i].write_index) || !take_flag(bytes, &aliases[i].hidden))
            return false;
    spec->aliases = aliases;
    spec->alias_count = (size_t)count;
    return true;
}

static bool decode_settings(struct slice json, struct arena *arena, struct catalog_index_spec *spec)
{
    struct settings *settings = arena_zalloc(arena, sizeof(*settings));
    struct json_doc parsed;
    struct problem problem;

    if (json_parse_stored(arena, json, &parsed) < 0 ||
        settings_parse_stored(parsed.root, arena, settings, &problem) != 0)
        return false;
    spec->settings = settings;
    return true;
}

static int decode_index(struct slice bytes, struct arena *arena, struct catalog_index_spec *ret_spec)
{
    struct catalog_index_spec spec = {0};
    struct slice settings;
    uint64_t version, closed, dialect, may_have_routings = true;

    if (!slice_take_varint(&bytes, &version) || version == 0 || version > INDEX_RECORD_VERSION ||
        !take_text(&bytes, &spec.name) || !take_text(&bytes, &spec.uuid) ||
        !slice_take_varint(&bytes, &spec.created_ms) || !slice_take_varint(&bytes, &closed) ||
        !slice_take_varint(&bytes, &dialect) || dialect >= DIALECT_COUNT || !take_text(&bytes, &settings) ||
        !take_aliases(&bytes, arena, &spec) || !decode_settings(settings, arena, &spec) ||
        (version >= 2 && !slice_take_varint(&bytes, &may_have_routings)) ||
        (version >= 3 && !slice_take_varint(&bytes, &spec.deletes_forgotten)) || spec.name.len == 0)
        return tl_trace(TL_ERR_CORRUPT);
    spec.closed = closed != 0;
    spec.may_have_routings = may_have_routings != 0;
    spec.dialect = (enum dialect)dialect;
    *ret_spec = spec;
    return 0;
}

static void encode_object(struct buf *buf, const struct catalog_object *object)
{
    buf_varint(buf, OBJECT_RECORD_VERSION);
    put_text(buf, object->lang);
    put_text(buf, object->body);
    put_text(buf, object->options);
}

static int decode_object(struct slice key, struct slice bytes, struct catalog_object *ret_object)
{
    struct catalog_object object = {.name = slice_from_offset(key, 1)};
    uint64_t version;

    if (!slice_take_varint(&bytes, &version) || version != OBJECT_RECORD_VERSION || !take_text(&bytes, &object.lang) ||
        !take_text(&bytes, &object.body) || !take_text(&bytes, &object.options) || object.name.len == 0)
        return tl_trace(TL_ERR_CORRUPT);
    *ret_object = object;
    return 0;
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

/* Returns: the bytes of the record. */
static size_t put_mapping_record(uint32_t number, const struct mapping *mapping, struct store_batch *batch)
{
    struct buf value = BUF_INIT(BUF_UNLIMITED);
    char key[INDEX_KEY_BYTES];

    mapping_encode(mapping, &value);
    store_batch_put(batch, SPACE_CATALOG, index_key(key, 'm', number), buf_as_slice(&value));
    size_t bytes = value.len;
    buf_deinit(&value);
    return bytes;
}

size_t catalog__put_mapping(struct catalog **catalog, uint32_t number, const struct mapping *mapping,
                            struct store_batch *batch)
{
    REQUIRE(mapping != NULL && batch != NULL);
    size_t bytes = put_mapping_record(number, mapping, batch);

    catalog__set_mapping(catalog, number, mapping);
    return bytes;
}

size_t catalog__put_index(struct catalog **catalog, const struct catalog_index_spec *spec, bool rewrites,
                          struct store_batch *batch)
{
    REQUIRE(spec->number != 0 && spec->name.len > 0);
    const struct catalog_index *existing = catalog_index(*catalog, spec->name);
    struct buf value = BUF_INIT(BUF_UNLIMITED);
    char key[INDEX_KEY_BYTES];

    REQUIRE(existing == NULL || existing->number == spec->number); /* names are unique */
    REQUIRE(spec->alias_count <= CATALOG_ALIASES_MAX);             /* else it could not be loaded */
    bool puts_mapping = rewrites || existing == NULL || existing->mapping != spec->mapping;
    catalog__set_index(catalog, spec);
    encode_index(&value, catalog_index_by_number(*catalog, spec->number));
    store_batch_put(batch, SPACE_CATALOG, index_key(key, 'i', spec->number), buf_as_slice(&value));
    size_t bytes = value.len;
    buf_deinit(&value);
    return puts_mapping ? bytes + put_mapping_record(spec->number, spec->mapping, batch) : bytes;
}

void catalog__drop_index(struct catalog **catalog, uint32_t number, struct store_batch *batch)
{
    REQUIRE(catalog_index_by_number(*catalog, number) != NULL); /* else the batch deletes records that do not exist */
    char key[INDEX_KEY_BYTES];

    store_batch_delete(batch, SPACE_CATALOG, index_key(key, 'i', number));
    store_batch_delete(batch, SPACE_CATALOG, index_key(key, 'm', number));
    catalog__remove_index(catalog, number);
}

static struct slice object_key(struct buf *buf, enum catalog_kind kind, struct slice name)
{
    REQUIRE(kind < CATALOG_KIND_COUNT && kind_letters[kind] != '\0'); /* a new kind needs a letter */
    buf_byte(buf, kind_letters[kind]);
    buf_slice(buf, name);
    return buf_as_slice(buf);
}

size_t catalog__put_object(struct catalog **catalog, enum catalog_kind kind, const struct catalog_object *object,
                           struct store_batch *batch)
{
    REQUIRE(object->name.len > 0);
    struct buf key = BUF_INIT(OBJECT_KEY_BYTES_MAX), value = BUF_INIT(BUF_UNLIMITED);

    encode_object(&value, object);
    store_batch_put(batch, SPACE_CATALOG, object_key(&key, kind, object->name), buf_as_slice(&value));
    size_t bytes = value.len;
    buf_deinit(&key);
    buf_deinit(&value);
    catalog__set_object(catalog, kind, object->name, object);
    return bytes;
}

void catalog__drop_object(struct catalog **catalog, enum catalog_kind kind, struct slice name,
                          struct store_batch *batch)
{
    REQUIRE(name.len > 0);
    struct buf key = BUF_INIT(OBJECT_KEY_BYTES_MAX);

    store_batch_delete(batch, SPACE_CATALOG, object_key(&key, kind, name));
    catalog__set_object(catalog, kind, name, NULL);
    buf_deinit(&key);
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static int load_mapping(const struct view *view, uint32_t number, struct mapping **ret_mapping)
{
    struct store_value value;
    char key[INDEX_KEY_BYTES];
    int r = view_get(view, SPACE_CATALOG, index_key(key, 'm', number), &value);

    if (r != 0)
        return r == STORE_NOT_FOUND ? tl_trace(TL_ERR_CORRUPT) : r;
    r = mapping_decode(value.bytes, ret_mapping);
    store_value_release(&value);
    return r;
}

static int load_index(const struct view *view, struct slice key, struct slice value, struct catalog **catalog)
{
    tl_cleanup(mapping_unrefp) struct mapping *mapping = NULL;
    struct catalog_index_spec spec;
    struct arena arena = ARENA_INIT;
    uint32_t number;
    int r = index_key_parse(key, &number) ? decode_index(value, &arena, &spec) : TL_ERR_CORRUPT;

    if (r == 0 && catalog_index(*catalog, spec.name) != NULL)
        r = tl_trace(TL_ERR_CORRUPT); /* two indices of one name */
    if (r == 0)
        r = load_mapping(view, number, &mapping);
    if (r == 0) {
        spec.number = number;
        spec.mapping = mapping;
        catalog__set_index(catalog, &spec);
    }
    arena_deinit(&arena);
    return r;
}

static int load_object(enum catalog_kind kind, struct slice key, struct slice value, struct catalog **catalog)
{
    struct catalog_object object;
    int r = decode_object(key, value, &object);

    if (r == 0)
        catalog__set_object(catalog, kind, object.name, &object);
    return r;
}

/* Loads all keys with a first byte: indices, or objects of a kind. */
static int load_letter(const struct view *view, char letter, int kind, struct catalog **catalog)
{
    REQUIRE(letter == (kind < 0 ? 'i' : kind_letters[kind]));
    char end = (char)(letter + 1);
    struct view_iter *iter = view_iter_new(view, SPACE_CATALOG, slice_make(&letter, 1), slice_make(&end, 1));
    int r = 0;

    for (view_iter_seek_first(iter); r == 0 && view_iter_valid(iter); view_iter_next(iter))
        r = kind < 0 ? load_index(view, view_iter_key(iter), view_iter_value(iter), catalog)
                     : load_object((enum catalog_kind)kind, view_iter_key(iter), view_iter_value(iter), catalog);
    if (r == 0)
        r = view_iter_status(iter);
    view_iter_free(iter);
    return r;
}

int catalog_load(const struct view *view, struct catalog **ret_catalog)
{
    REQUIRE(view->store != NULL && ret_catalog != NULL);
    tl_cleanup(catalog_unrefp) struct catalog *catalog = catalog__new();
    int r = load_letter(view, 'i', -1, &catalog);

    for (int kind = 0; kind < CATALOG_KIND_COUNT && r == 0; kind++)
        r = load_letter(view, kind_letters[kind], kind, &catalog);
    if (r != 0)
        return r;
    *ret_catalog = tl_steal(catalog);
    return 0;
}

/* --- Digest ------------------------------------------------------------------------------------------------------- */

static uint64_t digest_objects(const struct catalog *catalog, enum catalog_kind kind, struct buf *buf)
{
    uint64_t digest = 0;

    for (size_t i = 0; i < catalog_object_count(catalog, kind); i++) {
        const struct catalog_object *object = catalog_object_at(catalog, kind, i);
        buf_clear(buf);
        buf_byte(buf, kind_letters[kind]);
        put_text(buf, object->name);
        encode_object(buf, object);
        digest = digest * 31 + slice_hash(buf_as_slice(buf));
    }
    return digest;
}

uint64_t catalog__digest(const struct catalog *catalog)
{
    REQUIRE(MAGIC_VALID(catalog, CATALOG_MAGIC));
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    uint64_t digest = 0;

    for (size_t i = 0; i < catalog->count; i++) {
        const struct catalog_index *index = &catalog->by_name[i]->index;
        buf_clear(&buf);
        buf_u32be(&buf, index->number);
        encode_index(&buf, index);
        mapping_encode(index->mapping, &buf);
        digest = digest * 31 + slice_hash(buf_as_slice(&buf));
    }
    for (int kind = 0; kind < CATALOG_KIND_COUNT; kind++)
        digest = digest * 31 + digest_objects(catalog, (enum catalog_kind)kind, &buf);
    buf_deinit(&buf);
    return digest;
}
