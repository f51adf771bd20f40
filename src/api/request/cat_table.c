/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of the _cat calls.
 */
#include "api/request/cat_table.h"

#include <stdlib.h>

#include "api/request/api_internal.h"
#include "api/request/request_budget.h"
#include "json/filter.h"

/* Columns of one response, after ?h=. */
#define CAT_SHOWN_MAX 128

/* A column that is shown, under the name by which it was asked for. */
struct shown_column {
    size_t index;
    struct slice title;
    size_t width;
};

void cat_table_init(struct cat_table *table, const struct cat_column *columns, size_t column_count)
{
    *table = (struct cat_table){.columns = columns, .column_count = column_count};
}

struct cat_cell *cat_table_row(struct cat_table *table, struct arena *arena)
{
    size_t bytes = table->column_count * sizeof *table->cells;
    table->cells = arena_grow(arena, table->cells, table->row_count, &table->row_capacity, bytes);
    struct cat_cell *row = table->cells + table->row_count++ * table->column_count;
    memset(row, 0, bytes);
    return row;
}

/* --- Columns ------------------------------------------------------------------------------------------------------ */

static bool alias_matches(const struct cat_column *column, struct slice pattern)
{
    struct slice list = slice_from(column->aliases);
    if (json_wildcard(pattern, slice_from(column->name)))
        return true;
    while (list.len > 0) {
        size_t len = slice_find_byte(list, ',');
        if (slice_equal(slice_make(list.data, len), pattern))
            return true;
        list = slice_from_offset(list, len + 1);
    }
    return false;
}

static size_t columns_asked(const struct cat_table *table, struct slice list, struct shown_column *shown)
{
    size_t count = 0;
    while (list.len > 0) {
        size_t len = slice_find_byte(list, ',');
        struct slice pattern = slice_make(list.data, len);
        bool exact = slice_find_byte(pattern, '*') == len;
        for (size_t i = 0; i < table->column_count && count < CAT_SHOWN_MAX; i++)
            if (alias_matches(&table->columns[i], pattern))
                shown[count++] = (struct shown_column){i, exact ? pattern : slice_from(table->columns[i].name), 0};
        list = slice_from_offset(list, len + 1);
    }
    return count;
}

static size_t columns_shown(struct request *request, const struct cat_table *table, struct shown_column *shown)
{
    struct slice list = request_param(request, "h");
    size_t count = 0;
    if (list.len > 0)
        return columns_asked(table, list, shown);
    for (size_t i = 0; i < table->column_count; i++)
        if (!table->columns[i].hidden)
            shown[count++] = (struct shown_column){i, slice_from(table->columns[i].name), 0};
    return count;
}

/* --- Cells -------------------------------------------------------------------------------------------------------- */

static struct slice bytes_in_unit(struct request *request, int64_t bytes, struct slice unit)
{
    static const char letters[] = "bkmgtp";
    int64_t divisor = 1;
    for (const char *letter = letters; *letter != '\0' && *letter != unit.data[0]; letter++)
        divisor *= 1024;
    return arena_printf(request->arena, "%lld", (long long)(bytes / divisor));
}

/* "4.2kb" as Elasticsearch's ByteSizeValue writes it. */
static struct slice bytes_readable(struct request *request, int64_t bytes)
{
    static const char *const units[] = {"b", "kb", "mb", "gb", "tb", "pb"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof units / sizeof *units) {
        value /= 1024;
        unit++;
    }
    long long tenths = (long long)(value * 10);
    if (tenths % 10 == 0)
        return arena_printf(request->arena, "%lld%s", tenths / 10, units[unit]);
    return arena_printf(request->arena, "%lld.%lld%s", tenths / 10, tenths % 10, units[unit]);
}

static struct slice cell_text(struct request *request, const struct cat_cell *cell)
{
    struct slice unit = request_param(request, "bytes");
    switch (cell->kind) {
    case CAT_NULL: return SLICE_LIT("");
    case CAT_TEXT: return cell->text;
    case CAT_NUMBER: return arena_printf(request->arena, "%lld", (long long)cell->number);
    case CAT_BYTES:
        return unit.len > 0 ? bytes_in_unit(request, cell->number, unit) : bytes_readable(request, cell->number);
    }
    return SLICE_NONE;
}

/* Names are what a client has called things; a line feed in one makes no row, and no terminal obeys one. */
static struct slice cell_shown(struct request *request, const struct cat_cell *cell)
{
    struct slice text = cell_text(request, cell);
    bool harmless = true;
    for (size_t at = 0; harmless && at < text.len;)
        at += buf_glyph(text, at, &harmless);
    if (harmless)
        return text;
    tl_cleanup(buf_deinit) struct buf buf = BUF_INIT(BUF_UNLIMITED);
    buf_escape_line(&buf, text);
    return arena_copy(request->arena, buf_as_slice(&buf));
}

/* Characters, not bytes. */
static size_t text_width(struct slice text)
{
    size_t width = 0;
    for (size_t i = 0; i < text.len; i++)
        width += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    return width;
}

/* --- Order -------------------------------------------------------------------------------------------------------- */

struct cat_sort_key {
    size_t column;
    bool descending;
};

struct sort_order {
    const struct cat_table *table;
    struct cat_sort_key keys[8];
    size_t count;
};

static int cell_order(const struct cat_cell *a, const struct cat_cell *b)
{
    if (a->kind == CAT_NULL || b->kind == CAT_NULL)
        return (a->kind != CAT_NULL) - (b->kind != CAT_NULL);
    if (a->kind == CAT_TEXT)
        return slice_compare(a->text, b->text);
    return (a->number > b->number) - (a->number < b->number);
}

static int row_order(const void *left, const void *right, void *context)
{
    const struct sort_order *order = context;
    const struct cat_cell *const *a = left;
    const struct cat_cell *const *b = right;
    for (size_t i = 0; i < order->count; i++) {
        int result = cell_order(*a + order->keys[i].column, *b + order->keys[i].column);
        if (result != 0)
            return order->keys[i].descending ? -result : result;
    }
    return *a < *b ? -1 : 1; /* rows that tie stay as they were */
}

static int read_order(struct request *request, const struct cat_table *table, struct sort_order *order)
{
    struct slice list = request_param(request, "s");
    *order = (struct sort_order){.table = table};
    while (list.len > 0 && order->count < sizeof order->keys / sizeof *order->keys) {
        size_t len = slice_find_byte(list, ','), i;
        struct slice key = slice_make(list.data, len);
        size_t colon = slice_find_byte(key, ':');
        struct slice name = slice_make(key.data, colon);
        for (i = 0; i < table->column_count && !alias_matches(&table->columns[i], name); i++)
            ;
        if (i == table->column_count)
            return request_refuse(request, PROBLEM_UNSUPPORTED_OPERATION, "Unable to sort by unknown sort key `%.*s`",
                                  SLICE_ARG(name));
        order->keys[order->count++] = (struct cat_sort_key){i, slice_is(slice_from_offset(key, colon + 1), "desc")};
        list = slice_from_offset(list, len + 1);
    }
    return 0;
}

static int sorted_rows(struct request *request, const struct cat_table *table, const struct cat_cell ***ret_rows)
{
    struct sort_order order;
    const struct cat_cell **rows = arena_alloc(request->arena, (table->row_count + 1) * sizeof *rows);
    for (size_t i = 0; i < table->row_count; i++)
        rows[i] = table->cells + i * table->column_count;
    int r = read_order(request, table, &order);
    if (r == 0 && order.count > 0)
        qsort_r(rows, table->row_count, sizeof *rows, row_order, &order);
    *ret_rows = rows;
    return r;
}

/* --- Text and JSON ------------------------------------------------------------------------------------------------ */

static void pad_cell(struct buf *buf, size_t spaces)
{
    while (spaces-- > 0)
        buf_byte(buf, ' ');
}

static void write_cell(struct buf *buf, struct slice text, size_t width, bool right, bool last)
{
    size_t have = text_width(text);
    size_t spaces = have < width ? width - have : 0;
    if (right)
        pad_cell(buf, spaces);
    buf_slice(buf, text);
    if (!right && !last)
        pad_cell(buf, spaces);
    buf_byte(buf, last ? '\n' : ' ');
}

static void write_text(struct request *request, const struct cat_table *table, const struct cat_cell **rows,
                       struct shown_column *shown, size_t count, bool titles)
{
    struct buf *buf = reply_text(request, 200);
    for (size_t k = 0; k < count; k++) {
        shown[k].width = titles ? text_width(shown[k].title) : 0;
        for (size_t i = 0; i < table->row_count && !request_budget_refused(request); i++) {
            size_t width = text_width(cell_shown(request, rows[i] + shown[k].index));
            shown[k].width = width > shown[k].width ? width : shown[k].width;
        }
    }
    for (size_t k = 0; titles && k < count; k++)
        write_cell(buf, shown[k].title, shown[k].width, table->columns[shown[k].index].right, k + 1 == count);
    for (size_t i = 0; count == 0 && i < table->row_count; i++)
        buf_byte(buf, '\n'); /* a row of no columns */
    for (size_t i = 0; i < table->row_count && !request_budget_refused(request); i++)
        for (size_t k = 0; k < count; k++)
            write_cell(buf, cell_shown(request, rows[i] + shown[k].index), shown[k].width,
                       table->columns[shown[k].index].right, k + 1 == count);
}

static void write_json(struct request *request, const struct cat_table *table, const struct cat_cell **rows,
                       const struct shown_column *shown, size_t count)
{
    struct json_writer writer;
    reply_begin(request, 200, &writer);
    json_begin(&writer, '[');
    for (size_t i = 0; i < table->row_count && !request_budget_refused(request); i++) {
        json_begin(&writer, '{');
        for (size_t k = 0; k < count; k++) {
            const struct cat_cell *cell = rows[i] + shown[k].index;
            json_key_slice(&writer, shown[k].title);
            if (cell->kind == CAT_NULL)
                json_null(&writer);
            else
                json_string(&writer, cell_text(request, cell));
        }
        json_end(&writer, '}');
    }
    json_end(&writer, ']');
}

static bool wants_json(struct request *request)
{
    struct slice format = request_param(request, "format");
    struct slice accept = exchange_header(request->exchange, "Accept");
    if (format.data != NULL)
        return slice_is(format, "json") || request->form.yaml;
    return request->form.yaml || slice_starts_with(accept, SLICE_LIT("application/json")) ||
           slice_starts_with(accept, SLICE_LIT("application/vnd.elasticsearch+json"));
}

bool cat_table_help(struct request *request, const struct cat_column *columns, size_t column_count)
{
    bool help = false;
    size_t widths[3] = {0, 0, 0};
    if (request_bool(request, "help", &help) != 0 || !help)
        return false;
    for (size_t i = 0; i < column_count; i++) {
        const char *cells[] = {columns[i].name, columns[i].aliases, columns[i].description};
        for (size_t k = 0; k < 3; k++)
            widths[k] = strlen(cells[k]) > widths[k] ? strlen(cells[k]) : widths[k];
    }
    struct buf *buf = reply_text(request, 200);
    for (size_t i = 0; i < column_count; i++)
        buf_printf(buf, "%-*s | %-*s | %-*s\n", (int)widths[0], columns[i].name, (int)widths[1], columns[i].aliases,
                   (int)widths[2], columns[i].description);
    return true;
}

int cat_table_begin(struct request *request, const struct cat_column *columns, size_t column_count)
{
    int r = request_accept(request);
    if (r != 0)
        return r;
    return cat_table_help(request, columns, column_count) ? REQUEST_ANSWERED : 0;
}

int cat_table_reply(struct request *request, struct cat_table *table)
{
    struct shown_column shown[CAT_SHOWN_MAX];
    const struct cat_cell **rows;
    bool titles = false;
    size_t count = columns_shown(request, table, shown);
    int r = request_bool(request, "v", &titles);
    if (r != 0 || (r = sorted_rows(request, table, &rows)) != 0)
        return r;
    if (wants_json(request))
        write_json(request, table, rows, shown, count);
    else
        write_text(request, table, rows, shown, count, titles);
    return REQUEST_DONE;
}
