/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every route, called with n and with 2n of everything that a client can send more of: the work grows in proportion.
 *
 * Generated from routes.def. The program is compiled once more with the compiler's coverage hook, which counts each
 * basic block that runs; bytes that are copied, compared or searched by the C library count as work too, and
 * allocations are added up, freed or not. Nothing is measured in time. Compared are
 *
 *  1. parts: the parts of each row's path, its parameters and headers, filled with n and 2n letters, names, patterns,
 *     escapes, …;
 *  2. bodies: of each handler the cases of complexity_cases.def, in which lists, keys, texts and depths are n and 2n
 *     long, and bodies that fit nothing. A handler without a line there fails the test: each new call must define how
 *     its body grows;
 *  3. holdings: servers that hold n and 2n documents, indices, aliases, locks, …, and the same small request;
 *  4. templates: bulks of n and 2n items that create indices, of a server with templates as large and little memory.
 *
 * Work and bytes grow by GROWTH at most. Cases that multiply two things of the request by their nature are marked with
 * the reason.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/api_fixture.h"
#include "../../lib/unit.h"
#include "calls.h"

#include "api/request/api_internal.h"
#include "api/request/growth_table.h"
#include "base/alloc.h"
#include "base/budget.h"
#include "base/log.h"

#define GROWTH 2.5
#define WORK_SLACK 30000
#define BYTES_SLACK ((size_t)192 << 10)
#ifdef COUNTED
#define SIZE 400
#else /* nothing is counted: only that all of it goes well */
#define SIZE 40
#endif

/* --- Counters ----------------------------------------------------------------------------------------------------- */

struct step_counter {
    uint64_t work, bytes;
    struct step_counter *next;
};

static struct step_counter *_Atomic counters;

#ifdef COUNTED
static _Thread_local struct step_counter *mine;

void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
void *__real_memcpy(void *, const void *, size_t);
void *__real_memmove(void *, const void *, size_t);
void *__real_memset(void *, int, size_t);
int __real_memcmp(const void *, const void *, size_t);
void *__real_memchr(const void *, int, size_t);
size_t __real_strlen(const char *);
void *__wrap_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_realloc(void *, size_t);
void *__wrap_memcpy(void *, const void *, size_t);
void *__wrap_memmove(void *, const void *, size_t);
void *__wrap_memset(void *, int, size_t);
int __wrap_memcmp(const void *, const void *, size_t);
void *__wrap_memchr(const void *, int, size_t);
size_t __wrap_strlen(const char *);
void __sanitizer_cov_trace_pc(void);

static struct step_counter *counter_new(void)
{
    mine = __real_calloc(1, sizeof *mine); /* stays: another thread may add it up when this one has ended */
    mine->next = atomic_load(&counters);
    while (!atomic_compare_exchange_weak(&counters, &mine->next, mine))
        continue;
    return mine;
}

static struct step_counter *counter(void)
{
    return mine != NULL ? mine : counter_new();
}

void __sanitizer_cov_trace_pc(void)
{
    counter()->work++;
}

/* The C library looks at so many bytes in the time of a block. */
static void look_at(size_t bytes)
{
    counter()->work += bytes / 16;
}

void *__wrap_malloc(size_t size)
{
    counter()->bytes += size;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    counter()->bytes += count * size;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *pointer, size_t size)
{
    counter()->bytes += size;
    return __real_realloc(pointer, size);
}

void *__wrap_memcpy(void *to, const void *from, size_t size)
{
    look_at(size);
    return __real_memcpy(to, from, size);
}

void *__wrap_memmove(void *to, const void *from, size_t size)
{
    look_at(size);
    return __real_memmove(to, from, size);
}

void *__wrap_memset(void *to, int byte, size_t size)
{
    look_at(size);
    return __real_memset(to, byte, size);
}

int __wrap_memcmp(const void *one, const void *two, size_t size)
{
    size_t same = 0;
    int difference = __real_memcmp(one, two, size);
    while (difference != 0 && same + 16 <= size && __real_memcmp(one, two, 16) == 0)
        same += 16, one = (const char *)one + 16, two = (const char *)two + 16;
    look_at(difference == 0 ? size : same);
    return difference;
}

void *__wrap_memchr(const void *in, int byte, size_t size)
{
    void *found = __real_memchr(in, byte, size);
    look_at(found == NULL ? size : (size_t)((char *)found - (const char *)in));
    return found;
}

size_t __wrap_strlen(const char *text)
{
    size_t len = __real_strlen(text);
    look_at(len);
    return len;
}
#endif

struct cost {
    uint64_t work, bytes;
};

static struct cost counted_now(void)
{
    struct cost cost = {0};
    for (const struct step_counter *counter = atomic_load(&counters); counter != NULL; counter = counter->next) {
        cost.work += counter->work;
        cost.bytes += counter->bytes;
    }
    return cost;
}

/* --- Judging ------------------------------------------------------------------------------------------------------ */

static unsigned judged, failed;

static bool is_traced(void)
{
    return getenv("COMPLEXITY_TRACE") != NULL;
}

/* Calls with n of something. Returns: false after an unexpected result, which the callee has printed. */
typedef bool measure(void *context, size_t n, struct cost *ret_cost);

static bool grows_too_much(struct cost one, struct cost two)
{
    return (double)two.work > GROWTH * (double)one.work + WORK_SLACK ||
           (double)two.bytes > GROWTH * (double)one.bytes + (double)BYTES_SLACK;
}

/* What costs more from some size on takes a step there. That is no growth: it does so once. */
static void judge(const char *what, const char *how, measure *of, void *context, size_t n)
{
    struct cost costs[3];
    judged++;
    if (!of(context, n, &costs[0]) || !of(context, 2 * n, &costs[1])) {
        failed++;
        return;
    }
    if (is_traced())
        print_message("%s: %llu, %llu; %llu, %llu\n", what, (unsigned long long)costs[0].work,
                      (unsigned long long)costs[1].work, (unsigned long long)costs[0].bytes,
                      (unsigned long long)costs[1].bytes);
    if (!grows_too_much(costs[0], costs[1]))
        return;
    if (of(context, 4 * n, &costs[2]) && !grows_too_much(costs[1], costs[2]))
        return;
    failed++;
    print_error("%s, %.120s: work %llu, %llu, %llu; bytes %llu, %llu, %llu\n", what, how,
                (unsigned long long)costs[0].work, (unsigned long long)costs[1].work, (unsigned long long)costs[2].work,
                (unsigned long long)costs[0].bytes, (unsigned long long)costs[1].bytes,
                (unsigned long long)costs[2].bytes);
}

static struct cost since(struct cost before)
{
    struct cost now = counted_now();
    return (struct cost){now.work - before.work, now.bytes - before.bytes};
}

/* --- Bodies ------------------------------------------------------------------------------------------------------- */

static bool cost_of_case(void *context, size_t n, struct cost *ret_cost)
{
    const struct call_case *growing = context;
    struct api_fixture fixture = {0};
    struct call_names names = {0};
    calls_open(&fixture, &names);
    struct cost before = counted_now();
    bool well = true;
    for (size_t i = 0; i < CALL_STEPS_MAX && growing->steps[i] != NULL; i++) {
        bool last = i + 1 == CALL_STEPS_MAX || growing->steps[i + 1] == NULL;
        int status = calls_ask_text(&fixture, growing->steps[i], n, &names, is_traced());
        if (status / 100 != 2 && !(last && growing->kind == REFUSED)) {
            print_error("%s: %.200s answers %d with %zu\n", growing->handler, growing->steps[i], status, n);
            well = false;
        }
    }
    *ret_cost = since(before);
    call_names_deinit(&names);
    api_fixture_close(&fixture);
    return well;
}

static const char *last_step(const struct call_case *growing)
{
    const char *last = "";
    for (size_t i = 0; i < CALL_STEPS_MAX && growing->steps[i] != NULL; i++)
        last = growing->steps[i];
    return last;
}

static void test_bodies(void **state)
{
    const char *only = getenv("COMPLEXITY_ONLY");
    (void)state;
    for (size_t i = 0; i < call_case_count; i++) {
        const struct call_case *growing = &call_cases[i];
        if (growing->steps[0] == NULL || (only != NULL && strcmp(only, growing->handler) != 0))
            continue;
        size_t n = growing->size == 0 || growing->size > SIZE ? SIZE : growing->size;
        struct cost cost;
        if (growing->kind == MULTIPLIES)
            failed += !cost_of_case((void *)(uintptr_t)growing, n, &cost);
        else
            judge(growing->handler, last_step(growing), cost_of_case, (void *)(uintptr_t)growing, n);
    }
    print_message("%u judged\n", judged);
    assert_int_equal(failed, 0);
}

/* Every call says how its body grows, and nothing is said of calls that are not there. */
static void test_all_handlers(void **state)
{
    (void)state;
    for (size_t i = 0; i < call_row_count; i++) {
        bool known = false;
        for (size_t j = 0; j < call_case_count && !known; j++)
            known = strcmp(call_rows[i].handler, call_cases[j].handler) == 0;
        if (!known)
            fail_msg("%s %s: complexity_cases.def has no line for %s", call_rows[i].methods, call_rows[i].pattern,
                     call_rows[i].handler);
    }
    for (size_t j = 0; j < call_case_count; j++) {
        bool known = false;
        for (size_t i = 0; i < call_row_count && !known; i++)
            known = strcmp(call_rows[i].handler, call_cases[j].handler) == 0;
        if (!known)
            fail_msg("complexity_cases.def has a line for %s, which no row calls", call_cases[j].handler);
    }
}

/* --- Parts -------------------------------------------------------------------------------------------------------- */

static const char *const fillings[] = {
    "^a^",   "^a,^", "@a$@",         "^a*^",      "^*,^",     "@-a$@",      "@a$*,-*a$@", "^%2F^",    "^%2Fa^",
    "^9^",   "^-^",  "^<x-{now}>,^", "^**.^",     "^(a OR ^", "^a b ^",     "^\"a\" ^",   "@w,v,wa@", "^<a{{^",
    "^%3A^", "^a.^", "^[^",          "^{\"a\":^", "@{}@",     "^\xc3\xa9^", "@0.0.0.$@",  "^$:^",     "^%252F^",
};

/* Bodies that no call wants as they are. */
static const char *const odd_bodies[] = {
    "{\"a\":[@[1,2]@]}",
    "{@\"k$\":1@}",
    "{@\"k\":1@}",
    "{\"k\":\"^a^\"}",
    "{\"k\":\"^\\u00e9^\"}",
    "{\"k\":^9^}",
    "[^[^",
    "^{\"a\":^",
    "^{}\n^",
    "^\n^",
    "{\"query\":^{\"bool\":{\"must\":[^",
    "{\"docs\":[@$@]}",
    "[@\"$\"@]",
    "{\"^k.^\":1}",
    "^ ^{}",
    "{\"query\":{\"match_all\":{}},@\"x$\":{\"y\":1}@}",
};

static bool with_body(const char *method)
{
    return strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0;
}

struct asking {
    struct api_fixture *fixture;
    struct call_names *names;
    const struct call_row *row;
    char method[8];
    /* The part that grows: one of these. */
    size_t part;       /* SIZE_MAX: none */
    const char *param; /* NULL: none */
    size_t param_len;
    const char *header; /* NULL: none */
    bool body;
    const char *filling;
};

static bool cost_of_asking(void *context, size_t n, struct cost *ret_cost)
{
    struct asking *asking = context;
    char *filled = calls_grow(asking->filling, n, asking->names),
         *path = calls_path(asking->row, asking->part, filled, asking->names);
    struct buf target = BUF_INIT(BUF_UNLIMITED);
    struct call_header header = {0};
    buf_printf(&target, "%s", path);
    if (asking->param != NULL)
        buf_printf(&target, "?%.*s=%s", (int)asking->param_len, asking->param, filled);
    buf_byte(&target, '\0');
    if (asking->header != NULL)
        header = (struct call_header){asking->header, filled};
    const char *body = asking->body ? filled : with_body(asking->method) ? "{}" : NULL;
    struct cost before = counted_now();
    (void)calls_ask(asking->fixture, asking->method, target.data, body, header, asking->names, is_traced());
    *ret_cost = since(before);
    buf_deinit(&target);
    mem_free(path);
    mem_free(filled);
    return true;
}

static void try_filled(struct asking *asking)
{
    char what[256];
    snprintf(what, sizeof what, "%s %s%s%.*s%s", asking->method, asking->row->pattern, asking->param != NULL ? "?" : "",
             (int)asking->param_len, asking->param != NULL ? asking->param : "",
             asking->header != NULL ? asking->header : "");
    judge(what, asking->filling, cost_of_asking, asking, SIZE);
}

static void try_part(struct asking asking, size_t part, const char *filling)
{
    asking.part = part;
    asking.filling = filling;
    try_filled(&asking);
}

/*
 * Many calls have the same parameters, which one place of the program reads: those of a name are filled where it comes
 * up first, and in two more calls.
 */
enum { PARAM_CALLS = 3 };

static bool is_tried_enough(const char *name, size_t len)
{
    static struct {
        const char *name;
        size_t len;
        unsigned calls;
    } seen[512];
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        if (seen[i].name == NULL)
            seen[i].name = name, seen[i].len = len;
        if (seen[i].len == len && memcmp(seen[i].name, name, len) == 0)
            return seen[i].calls++ >= PARAM_CALLS;
    }
    fail_msg("more parameters than were thought of");
    return true;
}

static void try_params(struct asking asking, const char *names)
{
    for (asking.param = names; *asking.param != '\0'; asking.param += asking.param_len) {
        asking.param += strspn(asking.param, " ~+-");
        asking.param_len = strcspn(asking.param, " ");
        if (asking.param_len > 0 && is_tried_enough(asking.param, asking.param_len))
            continue;
        for (size_t i = 0; i < sizeof fillings / sizeof *fillings && asking.param_len > 0; i++) {
            asking.filling = fillings[i];
            try_filled(&asking);
        }
    }
}

static void try_header(struct asking asking, const char *name, const char *filling)
{
    asking.header = name;
    asking.filling = filling;
    try_filled(&asking);
}

static void try_odd_body(struct asking asking, const char *text)
{
    asking.body = true;
    asking.filling = text;
    try_filled(&asking);
}

static bool is_first_of_handler(size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (strcmp(call_rows[j].handler, call_rows[i].handler) == 0)
            return false;
    return true;
}

static const char common_params[] = "pretty human error_trace filter_path format session transaction timestamp as_of "
                                    "fencing_token distribute_timestamps ^x^";
static const char *const header_names[] = {"Accept",         "Content-Type", "Tidelock-Session", "Tidelock-Transaction",
                                           "Tidelock-After", "User-Agent"};

static void try_row(size_t i)
{
    struct api_fixture fixture = {0};
    struct call_names names = {0};
    struct asking asking = {.fixture = &fixture, .names = &names, .row = &call_rows[i], .part = SIZE_MAX};
    calls_open(&fixture, &names);
    calls_method(&call_rows[i], asking.method, sizeof asking.method);
    for (size_t part = 0; part < calls_part_count(&call_rows[i]); part++)
        for (size_t j = 0; j < sizeof fillings / sizeof *fillings; j++)
            try_part(asking, part, fillings[j]);
    if (is_first_of_handler(i)) {
        try_params(asking, call_rows[i].params);
        for (size_t j = 0; j < sizeof odd_bodies / sizeof *odd_bodies; j++)
            try_odd_body(asking, odd_bodies[j]);
    }
    if (i % 40 == 2) { /* what all calls have is looked at in one place of the program */
        try_params(asking, common_params);
        for (size_t j = 0; j < sizeof header_names / sizeof *header_names; j++)
            for (size_t k = 0; k < sizeof fillings / sizeof *fillings; k++)
                try_header(asking, header_names[j], fillings[k]);
    }
    call_names_deinit(&names);
    api_fixture_close(&fixture);
}

static void test_parts(void **state)
{
    const char *only = getenv("COMPLEXITY_ONLY");
    (void)state;
    judged = failed = 0;
    for (size_t i = 0; i < call_row_count; i++)
        if (only == NULL || strcmp(only, call_rows[i].handler) == 0)
            try_row(i);
    print_message("%u judged\n", judged);
    assert_int_equal(failed, 0);
}

/* --- Holdings ----------------------------------------------------------------------------------------------------- */

/* What a server may hold more of. */
static const struct {
    const char *what;
    const char *each[3]; /* asked n times */
    const char *once;    /* or once, grown */
} holdings[] = {
    {"documents", {"PUT /w/_doc/d$\n{\"k\":\"k$\",\"t\":\"some words $\",\"n\":$}"}, NULL},
    {"documents that were", {"PUT /w/_doc/d$\n{\"k\":\"k$\"}", "DELETE /w/_doc/d$"}, NULL},
    {"versions", {"PUT /w/_doc/1\n{\"n\":$}"}, NULL},
    {"values", {NULL}, "PUT /w/_doc/1\n{\"n\":[@$@],\"k\":[@\"k$\"@]}"},
    {"fields", {NULL}, "PUT /w/_mapping\n{\"properties\":{@\"f$\":{\"type\":\"long\"}@}}"},
    {"words", {NULL}, "PUT /w/_doc/1\n{\"t\":\"^word ^\",\"k\":\"^k^\"}"},
    {"indices", {"PUT /i$"}, NULL},
    {"aliases", {NULL}, "POST /_aliases\n{\"actions\":[@{\"add\":{\"index\":\"w\",\"alias\":\"a$\"}}@]}"},
    {"templates", {"PUT /_template/t$\n{\"index_patterns\":[\"t$*\"]}"}, NULL},
    {"scripts", {"PUT /_scripts/s$\n{\"script\":{\"lang\":\"painless\",\"source\":\"return $\"}}"}, NULL},
    {"settings",
     {NULL},
     "PUT /_template/t\n{\"index_patterns\":[@\"x$\"@],\"mappings\":{\"properties\":{@\"f$\":{\"type\":\"long\"}@}}}"},
    {"locks",
     {NULL},
     "POST /_lock\n{\"session\":\"`S`\",\"locks\":[@{\"mode\":\"exclusive\",\"index\":\"x\",\"path\":\"/p$/q\"}@]}"},
    {"locks on documents",
     {NULL},
     "POST /_lock\n{\"session\":\"`S`\",\"locks\":[@{\"mode\":\"exclusive\",\"index\":\"x\",\"id\":\"p$\"}@]}"},
    {"a deep lock",
     {NULL},
     "POST /_lock\n{\"session\":\"`S`\",\"locks\":[{\"mode\":\"exclusive\",\"index\":\"x\",\"path\":\"^/p^\"}]}"},
    {"sessions", {"POST /_session\n{\"ttl\":\"1h\"}"}, NULL},
    {"holders",
     {"POST /_session\n{\"ttl\":\"1h\"}",
      "POST /_lock\n{\"session\":\"`S`\",\"locks\":[{\"mode\":\"shared\",\"index\":\"x\",\"path\":\"/p\"}]}"},
     NULL},
    {"transactions", {"POST /_transaction\n{\"mode\":\"update\",\"timeout\":\"10m\"}"}, NULL},
    {"queries", {"POST /_transaction\n{\"mode\":\"query\",\"timeout\":\"10m\"}"}, NULL},
    {"changes of a transaction", {"PUT /z/_doc/d$?transaction=`T`\n{\"n\":$}"}, NULL},
    {"points in time", {"POST /w/_pit?keep_alive=1h"}, NULL},
};

#define HOLDINGS (sizeof holdings / sizeof *holdings)
#ifdef COUNTED
#define HELD 250
#else
#define HELD 10
#endif

static void fill(struct api_fixture *fixture, size_t holding, size_t n, struct call_names *names)
{
    calls_open(fixture, names);
    if (holdings[holding].once != NULL && calls_ask_text(fixture, holdings[holding].once, n, names, false) / 100 != 2)
        fail_msg("%s are not taken", holdings[holding].what);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < 3 && holdings[holding].each[j] != NULL; j++) {
            struct buf text = BUF_INIT(BUF_UNLIMITED);
            (void)calls_grow_into(&text, holdings[holding].each[j], '\0', i, i, names);
            buf_byte(&text, '\0');
            if (calls_ask_text(fixture, text.data, i, names, false) / 100 != 2)
                fail_msg("%s: %s is not taken", holdings[holding].what, text.data);
            buf_deinit(&text);
        }
}

/* Servers that hold HELD, 2 HELD and, once there is doubt, 4 HELD. */
struct held {
    size_t holding;
    const struct call_row *row;
    struct api_fixture fixtures[3];
    struct call_names names[3];
    bool open[3];
};

static bool cost_of_row(void *context, size_t n, struct cost *ret_cost)
{
    struct held *held = context;
    size_t i = n / HELD / 2;
    if (!held->open[i])
        fill(&held->fixtures[i], held->holding, n, &held->names[i]);
    held->open[i] = true;
    struct asking asking = {
        .fixture = &held->fixtures[i], .names = &held->names[i], .row = held->row, .part = SIZE_MAX, .filling = ""};
    calls_method(held->row, asking.method, sizeof asking.method);
    return cost_of_asking(&asking, n, ret_cost);
}

/* What ends things comes last, so that the others find them. */
static bool ends(const struct call_row *row)
{
    return strncmp(row->methods, "DELETE", 6) == 0 || strstr(row->handler, "rollback") != NULL ||
           strstr(row->handler, "commit") != NULL || strstr(row->handler, "close") != NULL;
}

static void test_holdings(void **state)
{
    (void)state;
    judged = failed = 0;
    for (size_t holding = 0; holding < HOLDINGS; holding++) {
        struct held held = {.holding = holding};
        char what[256];
        for (int ending = 0; ending < 2; ending++)
            for (size_t row = 0; row < call_row_count; row++) {
                held.row = &call_rows[row];
                snprintf(what, sizeof what, "%s with more %s", call_rows[row].pattern, holdings[holding].what);
                if (ends(&call_rows[row]) == (ending == 1))
                    judge(what, call_rows[row].methods, cost_of_row, &held, HELD);
            }
        for (size_t i = 0; i < 3; i++)
            if (held.open[i]) {
                call_names_deinit(&held.names[i]);
                api_fixture_close(&held.fixtures[i]);
            }
    }
    print_message("%u judged\n", judged);
    assert_int_equal(failed, 0);
}

/* --- Templates ---------------------------------------------------------------------------------------------------- */

/* A template, and a bulk that creates the indices to which it applies. */
struct creation {
    const char *template, *bulk;
};

static bool cost_of_creation(void *context, size_t n, struct cost *ret_cost)
{
    const struct creation *creation = context;
    struct budget budget;
    struct api_fixture fixture = {.budget = &budget};
    struct call_names names = {0};
    budget_init(&budget, SIZE_MAX / 2);
    calls_open(&fixture, &names);
    bool well = calls_ask_text(&fixture, creation->template, n, &names, is_traced()) == 200;
    budget.limit = (size_t)256 << 20;
    struct growth_promise all = {0}; /* of another command: what adds to the catalog is measured, and refused */
    struct growth_terms terms = {.budget = &budget, .level = BUDGET_RETAINED, .room = 1, .alone = SIZE_MAX};
    struct growth growth = {.other_bytes = budget_share(&budget, BUDGET_RETAINED) - mem_used() - 1024};
    well = growth_table_promise(fixture.api->growth, &terms, &growth, &all) && well;
    struct cost before = counted_now();
    well = calls_ask_text(&fixture, creation->bulk, n, &names, is_traced()) == 429 && well;
    *ret_cost = since(before);
    growth_promise_end(&all);
    if (!well)
        print_error("%s: not refused with %zu\n", creation->bulk, n);
    call_names_deinit(&names);
    api_fixture_close(&fixture);
    return well;
}

/* Templates are not read for each item, nor for each index. */
static void test_templates_of_new_indices(void **state)
{
    static const char fields[] =
        "PUT /_template/y\n{\"index_patterns\":[\"y*\"],\"mappings\":{\"properties\":{@\"f$\":{\"type\":\"long\"}@}}}";
    static const char patterns[] = "PUT /_template/y\n{\"index_patterns\":[@\"*y$\"@]}";
    static const char one[] = "POST /_bulk\n^{\"index\":{\"_index\":\"y\",\"_id\":\"$\"}}\n{\"n\":$}\n^";
    static const char many[] = "POST /_bulk\n^{\"index\":{\"_index\":\"yy$\",\"_id\":\"1\"}}\n{\"n\":$}\n^";
    const struct creation creations[] = {{fields, one}, {fields, many}, {patterns, one}, {patterns, many}};
    (void)state;
    judged = failed = 0;
    for (size_t i = 0; i < sizeof creations / sizeof *creations; i++)
        judge(creations[i].bulk, creations[i].template, cost_of_creation, (void *)(uintptr_t)&creations[i], SIZE);
    assert_int_equal(failed, 0);
}

int main(void)
{
    log_set_level(LOG_ERROR);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_handlers), cmocka_unit_test(test_bodies),
                                       cmocka_unit_test(test_parts), cmocka_unit_test(test_holdings),
                                       cmocka_unit_test(test_templates_of_new_indices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
