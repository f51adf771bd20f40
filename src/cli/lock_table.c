/* SPDX-License-Identifier: Apache-2.0 */
/* The table of locks for a terminal; see lock_table.h. */
#include "cli/lock_table.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "base/alloc.h"
#include "base/types.h"
#include "cli/escape.h"
#include "json/each.h"

enum column { LOCK, MODE, STATE, OWNER, SINCE, WAITS_FOR, COLUMN_COUNT };

static const char *const titles[COLUMN_COUNT] = {"lock", "mode", "state", "owner", "since", "waits for"};

enum {
    COLUMNS_DEFAULT = 80,
    GAP = 2,
    NARROW = 8 /* a column of texts gets no narrower while another can be left out */
};

struct row {
    char *cells[COLUMN_COUNT];
    size_t lock; /* which of the reply's */
    bool waiting;
};

struct table {
    struct row *rows;
    size_t count;
    size_t capacity;
    unsigned widths[COLUMN_COUNT]; /* 0: left out */
};

/* --- Texts -------------------------------------------------------------------------------------------------------- */

/* Looks at the character at `text`. Returns: its width; *ret_len is 0 where it is not to be shown. */
static unsigned measure_glyph(const char *text, size_t *ret_len, size_t *ret_bytes)
{
    wchar_t wide;
    mbstate_t state = {0};
    size_t len = mbrtowc(&wide, text, strlen(text), &state);
    bool whole = len != (size_t)-1 && len != (size_t)-2 && len != 0;
    int width = whole ? wcwidth(wide) : -1;
    *ret_bytes = whole ? len : 1;
    *ret_len = width >= 0 ? len : 0;
    return width >= 0 ? (unsigned)width : 1;
}

static unsigned text_width(const char *text)
{
    unsigned width = 0;
    size_t len, bytes;
    for (; *text != '\0'; text += bytes)
        width += measure_glyph(text, &len, &bytes);
    return width;
}

/* Appends characters up to a width. Returns: where it stopped; *width is the rest of it. */
static const char *put_head(const char *text, unsigned *width, struct buf *to)
{
    size_t len, bytes;
    for (; *text != '\0'; text += bytes) {
        unsigned wide = measure_glyph(text, &len, &bytes);
        if (wide > *width)
            break;
        *width -= wide;
        if (len > 0)
            buf_append(to, text, len);
        else
            buf_byte(to, '?');
    }
    return text;
}

/* Returns: the end of `text` that has at most the width. */
static const char *tail_within(const char *text, unsigned width)
{
    size_t len, bytes;
    for (unsigned left = text_width(text); left > width; text += bytes)
        left -= measure_glyph(text, &len, &bytes);
    return text;
}

/* Appends the text in exactly the width: padded, or without its middle. */
static void put_fitted(const char *text, unsigned width, struct buf *to)
{
    unsigned left = width;
    if (text_width(text) > width) {
        unsigned head = width / 2;
        const char *rest = put_head(text, &head, to);
        left = width - width / 2 - 1 + head;
        buf_lit(to, "…");
        text = tail_within(rest, left);
    }
    put_head(text, &left, to);
    while (left-- > 0)
        buf_byte(to, ' ');
}

/* --- Cells -------------------------------------------------------------------------------------------------------- */

static const char *text_of(yyjson_val *object, const char *key)
{
    return yyjson_get_str(yyjson_obj_get(object, key));
}

/* What names mean is locked, too. Returns: whether it is that. */
static bool print_name(yyjson_val *lock, struct buf *to)
{
    if (text_of(lock, "names") != NULL)
        buf_lit(to, "all names");
    else if (text_of(lock, "named") != NULL)
        buf_printf(to, "name %s", text_of(lock, "named"));
    else if (text_of(lock, "scripts") != NULL)
        buf_lit(to, "all scripts");
    else if (text_of(lock, "script") != NULL)
        buf_printf(to, "script %s", text_of(lock, "script"));
    else
        return false;
    return true;
}

static void print_lock(yyjson_val *lock, struct buf *to)
{
    const char *index = text_of(lock, "index");
    const char *id = text_of(lock, "id");
    const char *path = text_of(lock, "path");
    const char *type = text_of(lock, "type");
    if (index == NULL && print_name(lock, to))
        return;
    buf_printf(to, "%s", index != NULL ? index : "/");
    if (type != NULL && id != NULL)
        buf_printf(to, "/%s", type);
    if (id != NULL)
        buf_printf(to, "/%s", id);
    else if (path != NULL)
        buf_printf(to, ":%s", path);
}

static void print_owner(yyjson_val *owner, struct buf *to)
{
    yyjson_val *transaction = yyjson_obj_get(owner, "transaction");
    yyjson_val *session = yyjson_obj_get(owner, "session");
    const char *name = text_of(owner, "name");
    yyjson_val *write = yyjson_obj_get(owner, "write");
    const char *cleanup_of = text_of(owner, "cleanup_of");
    if (cleanup_of != NULL) {
        buf_printf(to, "cleanup of %s", name != NULL ? name : cleanup_of);
        return;
    }
    if (write != NULL)
        buf_printf(to, "write %llu", (unsigned long long)yyjson_get_uint(write));
    if (transaction != NULL)
        buf_printf(to, "transaction #%llu", (unsigned long long)yyjson_get_uint(transaction));
    if (name != NULL)
        buf_printf(to, "%s%s", to->len > 0 ? " of " : "", name);
    else if (session != NULL)
        buf_printf(to, "%ssession #%llu", to->len > 0 ? " of " : "", (unsigned long long)yyjson_get_uint(session));
}

static void print_since(yyjson_val *owner, struct buf *to)
{
    char text[32];
    struct tm at;
    time_t now = time(NULL);
    time_t since = (time_t)(yyjson_get_uint(yyjson_obj_get(owner, "since")) / TL_SECOND);
    if (localtime_r(&since, &at) == NULL)
        return;
    bool recent = now - since < 20 * 3600;
    strftime(text, sizeof text, recent ? "%H:%M:%S" : "%b %d", &at);
    buf_printf(to, "%s", text);
}

/* The blocking owner, and where that is not obvious, its lock. */
static void print_waits_for(yyjson_val *lock, yyjson_val *waiter, struct buf *to)
{
    yyjson_val *other = yyjson_obj_get(waiter, "waits_for");
    if (other == NULL)
        return;
    tl_cleanup(buf_deinit) struct buf owner = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf own = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf its = BUF_INIT(BUF_UNLIMITED);
    print_owner(other, &owner);
    print_lock(lock, &own);
    print_lock(other, &its);
    buf_printf(to, "%s%.*s", yyjson_get_bool(yyjson_obj_get(other, "waiting")) ? "after " : "",
               SLICE_ARG(buf_as_slice(&owner)));
    if (!slice_equal(buf_as_slice(&own), buf_as_slice(&its)))
        buf_printf(to, " (%.*s)", SLICE_ARG(buf_as_slice(&its)));
}

static char *cell_of(struct buf *text)
{
    const char *harmless = escape_terminal_slice(buf_as_slice(text));
    buf_deinit(text);
    return mem_strdup(harmless, strlen(harmless));
}

static void add_row(struct table *table, yyjson_val *lock, size_t number, yyjson_val *owner, bool waiting)
{
    struct buf texts[COLUMN_COUNT];
    for (int i = 0; i < COLUMN_COUNT; i++)
        texts[i] = BUF_INIT(BUF_UNLIMITED);
    print_lock(lock, &texts[LOCK]);
    buf_printf(&texts[MODE], "%s", text_of(owner, "mode") != NULL ? text_of(owner, "mode") : "?");
    buf_printf(&texts[STATE], "%s", waiting ? "waiting" : "held");
    print_owner(owner, &texts[OWNER]);
    print_since(owner, &texts[SINCE]);
    print_waits_for(lock, owner, &texts[WAITS_FOR]);

    if (table->count == table->capacity) {
        table->capacity = table->capacity == 0 ? 16 : 2 * table->capacity;
        table->rows = mem_realloc(table->rows, table->capacity * sizeof *table->rows);
    }
    struct row *row = &table->rows[table->count++];
    row->lock = number;
    row->waiting = waiting;
    for (int i = 0; i < COLUMN_COUNT; i++)
        row->cells[i] = cell_of(&texts[i]);
}

static void read_reply(struct table *table, yyjson_val *reply)
{
    size_t i, k, count, owners;
    yyjson_val *lock, *owner;
    json_arr_foreach (yyjson_obj_get(reply, "locks"), i, count, lock) {
        json_arr_foreach (yyjson_obj_get(lock, "holders"), k, owners, owner)
            add_row(table, lock, i, owner, false);
        json_arr_foreach (yyjson_obj_get(lock, "waiters"), k, owners, owner)
            add_row(table, lock, i, owner, true);
    }
}

static void table_deinit(struct table *table)
{
    for (size_t i = 0; i < table->count; i++)
        for (int k = 0; k < COLUMN_COUNT; k++)
            mem_free(table->rows[i].cells[k]);
    mem_free(table->rows);
}

/* --- What fits ---------------------------------------------------------------------------------------------------- */

static unsigned total_width(const struct table *table)
{
    unsigned total = 0;
    for (int i = 0; i < COLUMN_COUNT; i++)
        if (table->widths[i] > 0)
            total += table->widths[i] + (total > 0 ? GAP : 0);
    return total;
}

/* Takes from the widest of the columns of texts. Returns: whether the table is narrow enough then. */
static bool shrink_columns(struct table *table, unsigned columns, unsigned least)
{
    while (total_width(table) > columns) {
        enum column widest = LOCK;
        if (table->widths[OWNER] > table->widths[widest])
            widest = OWNER;
        if (table->widths[WAITS_FOR] > table->widths[widest])
            widest = WAITS_FOR;
        if (table->widths[widest] <= least)
            return false;
        table->widths[widest]--;
    }
    return true;
}

/* Less important columns are left out before the others become too narrow to be read. */
static void fit_columns(struct table *table, unsigned columns)
{
    static const enum column spare[] = {SINCE, MODE, WAITS_FOR, STATE};
    for (int i = 0; i < COLUMN_COUNT; i++) {
        table->widths[i] = text_width(titles[i]);
        for (size_t k = 0; k < table->count; k++) {
            unsigned width = text_width(table->rows[k].cells[i]);
            table->widths[i] = width > table->widths[i] ? width : table->widths[i];
        }
    }
    for (size_t i = 0; i < sizeof spare / sizeof *spare && !shrink_columns(table, columns, NARROW); i++)
        table->widths[spare[i]] = 0;
    (void)shrink_columns(table, columns, 1);
}

/* Lines of the table when at most `shown` of each queue are shown, and one says how many more there are. */
static size_t lines_with(const struct table *table, size_t shown)
{
    size_t lines = 0, place = 0;
    for (size_t i = 0; i < table->count; i++) {
        bool same = i > 0 && table->rows[i].waiting && table->rows[i - 1].waiting &&
                    table->rows[i].lock == table->rows[i - 1].lock;
        place = same ? place + 1 : 0;
        if (!table->rows[i].waiting || place <= shown)
            lines++;
    }
    return lines;
}

static void print_row(const struct table *table, char *const *cells, struct buf *to)
{
    bool begun = false;
    for (int i = 0; i < COLUMN_COUNT; i++) {
        if (table->widths[i] == 0)
            continue;
        buf_printf(to, "%*s", begun ? GAP : 0, "");
        put_fitted(cells[i], table->widths[i], to);
        begun = true;
    }
    while (to->len > 0 && to->data[to->len - 1] == ' ')
        buf_chop(to, 1);
    buf_byte(to, '\n');
}

/* Of a queue the first `shown`; not more than `lines` in all. */
static void print_rows(const struct table *table, size_t shown, size_t lines, struct buf *to)
{
    size_t printed = 0;
    for (size_t i = 0; i < table->count; i++) {
        size_t last = i; /* of its queue */
        while (table->rows[i].waiting && last + 1 < table->count && table->rows[last + 1].waiting &&
               table->rows[last + 1].lock == table->rows[i].lock)
            last++;
        if (printed + 1 == lines && i + 1 < table->count) {
            buf_printf(to, "… and %zu more\n", table->count - i);
            return;
        }
        size_t first_hidden = i + shown;
        for (; i < first_hidden && i < last; i++, printed++)
            print_row(table, table->rows[i].cells, to);
        if (i < last)
            buf_printf(to, "… and %zu more wait\n", last - i + 1);
        else
            print_row(table, table->rows[i].cells, to);
        i = last;
        printed++;
    }
}

void lock_table_print(yyjson_val *reply, bool whole_screen, struct buf *to)
{
    struct table table = {0};
    struct winsize size = {0};
    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    setlocale(LC_CTYPE, "C.UTF-8"); /* for the width of characters */
    read_reply(&table, reply);
    if (table.count == 0) {
        buf_lit(to, LOCK_TABLE_EMPTY);
        return;
    }
    size_t lines =
        whole_screen && size.ws_row > 2 ? size.ws_row - 2u : table.count; /* of rows; with their titles one more */
    size_t shown = lines < table.count ? lines : table.count;
    while (shown > 0 && lines_with(&table, shown) > lines)
        shown--;
    fit_columns(&table, size.ws_col > 1 ? size.ws_col - 1u : COLUMNS_DEFAULT);
    print_row(&table, (char *const *)titles, to);
    print_rows(&table, shown, lines, to);
    table_deinit(&table);
}
