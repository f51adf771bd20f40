/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: src/cmdlog/etcd/README.md, "TLS": connections to a real etcd that requires certificates;
 * each wrong certificate is refused with a reason that names the remedy; replaced files are used.
 *
 * Method: openssl makes the certificates. A refusal is awaited as the log's last error.
 */
#include "../../lib/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../lib/etcd_fixture.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/types.h"
#include "cmdlog/cmdlog_etcd.h"

enum { PATH_BYTES = 128, LARGE = 5 << 20 };

static char directory[] = "/tmp/etcd_tls.XXXXXX";
static char own_ca[PATH_BYTES], own_ca_key[PATH_BYTES], member[PATH_BYTES], member_key[PATH_BYTES], host[PATH_BYTES],
    host_key[PATH_BYTES], foreign_ca[PATH_BYTES], foreign_ca_key[PATH_BYTES], foreign_host[PATH_BYTES],
    foreign_host_key[PATH_BYTES];
static struct etcd_fixture *etcd;

/* --- Certificates ------------------------------------------------------------------------------------------------- */

/* Makes a certificate for 127.0.0.1 that `ca` signs; NULL: a CA that signs itself. */
static void make(const char *name, const char *ca, const char *ca_key, char *ret_cert, char *ret_key)
{
    char command[1024], signer[2 * PATH_BYTES + 32] = "";
    snprintf(ret_cert, PATH_BYTES, "%s/%s.pem", directory, name);
    snprintf(ret_key, PATH_BYTES, "%s/%s-key.pem", directory, name);
    if (ca != NULL)
        snprintf(signer, sizeof signer, "-CA %s -CAkey %s -addext subjectAltName=IP:127.0.0.1", ca, ca_key);
    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=%s -keyout %s "
             "-out %s %s 2>%s/openssl.log",
             name, ret_key, ret_cert, signer, directory);
    assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): fixed arguments
}

static void make_own(void)
{
    make("own-ca", NULL, NULL, own_ca, own_ca_key);
    make("member", own_ca, own_ca_key, member, member_key);
    make("host", own_ca, own_ca_key, host, host_key);
}

static int set_up(void **state)
{
    static const char *const arguments[] = {"--cert-file",       member, "--key-file", member_key, "--client-cert-auth",
                                            "--trusted-ca-file", own_ca, NULL};
    (void)state;
    assert_non_null(mkdtemp(directory));
    make_own();
    make("foreign-ca", NULL, NULL, foreign_ca, foreign_ca_key);
    make("foreign-host", foreign_ca, foreign_ca_key, foreign_host, foreign_host_key);
    etcd = etcd_fixture_start(1, arguments);
    return 0;
}

static int tear_down(void **state)
{
    char command[64];
    (void)state;
    etcd_fixture_stop(etcd);
    snprintf(command, sizeof command, "rm -rf %s", directory);
    return system(command); // NOLINT(cert-env33-c): fixed arguments
}

/* --- Logs --------------------------------------------------------------------------------------------------------- */

static struct cmdlog *open_log(const char *url, const char *ca, const char *cert, const char *key)
{
    const struct cmdlog_etcd_options options = {
        .url = slice_from(url), .name = SLICE_LIT("a"), .ca = ca, .cert = cert, .key = key, .lease_us = 60 * TL_SECOND};
    struct cmdlog *log;
    char *reason = NULL;
    if (cmdlog_etcd_open(&options, &log, &reason) != 0)
        fail_msg("%s", reason);
    return log;
}

/* Checks that the log cannot be reached, for a reason that has the text `wanted`. */
static void expect_refusal(const char *url, const char *ca, const char *cert, const char *key, const char *wanted)
{
    struct cmdlog *log = open_log(url, ca, cert, key);
    cmdlog_position position;
    for (bool found = false; !found;) {
        assert_int_equal(cmdlog_read_head(log, clock_boot_us() + 50000, &position), CMDLOG_UNREACHABLE);
        tl_cleanup(mem_freep) char *error = cmdlog_etcd_last_error(log);
        found = strstr(error, wanted) != NULL;
    }
    cmdlog_close(log);
}

static char *url_with(const char *scheme, const char *name)
{
    static char url[PATH_BYTES];
    snprintf(url, sizeof url, "%s://%s:%d/p", scheme, name, etcd_fixture_port(etcd, 0));
    return url;
}

static void append(struct cmdlog *log, size_t len)
{
    cmdlog_position position;
    char *bytes = mem_alloc(len);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(i * 31 + i / 1000);
    const struct slice part = slice_make(bytes, len);
    assert_int_equal(cmdlog_append(log, &part, 1, &position), 0);
    mem_free(bytes);
}

static void expect_entry(struct cmdlog_cursor *cursor, size_t len)
{
    struct cmdlog_entry entry;
    int r;
    while ((r = cmdlog_next(cursor, &entry)) == CMDLOG_END)
        (void)!cmdlog_await(cursor, CMDLOG_FOREVER);
    assert_int_equal(r, 0);
    assert_int_equal(entry.bytes.len, len);
    for (size_t i = 0; i < len; i++)
        if (entry.bytes.data[i] != (char)(i * 31 + i / 1000))
            fail_msg("byte %zu differs", i);
}

static void join(struct cmdlog *log)
{
    uint64_t life;
    int r = cmdlog_join(log, SLICE_NONE, CMDLOG_FOREVER, &life);
    if (r != 0)
        fail_msg("join: %d, %s", r, cmdlog_etcd_last_error(log));
}

/* --- Cases -------------------------------------------------------------------------------------------------------- */

static void test_tls_appends_and_follows_any_size(void **state)
{
    struct cmdlog_cursor *cursor;
    cmdlog_position genesis;
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    (void)state;
    struct cmdlog *log = open_log(etcd_fixture_url(etcd, "sizes"), own_ca, host, host_key);
    assert_int_equal(cmdlog_create_genesis(log, SLICE_LIT("genesis"), CMDLOG_FOREVER), 0);
    assert_int_equal(cmdlog_read_genesis(log, CMDLOG_FOREVER, &bytes, &genesis), 0);
    join(log);
    assert_int_equal(cmdlog_follow(log, genesis + 1, &cursor), 0);
    static const size_t sizes[] = {1, 1000, 16384, 16385, LARGE, 5};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        append(log, sizes[i]);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        expect_entry(cursor, sizes[i]);
    cmdlog_unfollow(cursor);
    assert_int_equal(cmdlog_leave(log, CMDLOG_FOREVER), 0);
    cmdlog_close(log);
    buf_deinit(&bytes);
}

static void test_tls_refusals_name_the_remedy(void **state)
{
    (void)state;
    expect_refusal(url_with("https", "127.0.0.1"), foreign_ca, host, host_key, "--cluster-ca");
    expect_refusal(url_with("https", "localhost"), own_ca, host, host_key, "certificate is not for [localhost]");
    expect_refusal(url_with("https", "127.0.0.1"), own_ca, NULL, NULL, "--cluster-cert, --cluster-key");
    expect_refusal(url_with("https", "127.0.0.1"), own_ca, foreign_host, foreign_host_key,
                   "refuses the certificate in --cluster-cert");
    expect_refusal(url_with("http", "127.0.0.1"), NULL, NULL, NULL, "https:// in --cluster");
    struct etcd_fixture *plain = etcd_fixture_start(1, NULL);
    char url[PATH_BYTES];
    snprintf(url, sizeof url, "https://127.0.0.1:%d/p", etcd_fixture_port(plain, 0));
    expect_refusal(url, own_ca, NULL, NULL, "http:// in --cluster");
    etcd_fixture_stop(plain);
}

static void test_invalid_tls_options_are_refused(void **state)
{
    (void)state;
    const struct {
        const char *url, *ca, *cert, *key, *reason;
    } wrong[] = {
        {"http://127.0.0.1:1/p", own_ca, NULL, NULL, "--cluster-ca needs https://"},
        {"http://127.0.0.1:1/p", NULL, host, host_key, "--cluster-cert needs https://"},
        {"https://127.0.0.1:1,http://127.0.0.1:2/p", own_ca, NULL, NULL, "give all the same"},
        {"http://127.0.0.1:1,https://127.0.0.1:2/p", NULL, NULL, NULL, "give all the same"},
        {"https://127.0.0.1:1/p", own_ca, host, NULL, "--cluster-cert needs --cluster-key"},
        {"https://127.0.0.1:1/p", own_ca, NULL, host_key, "--cluster-key needs --cluster-cert"},
        {"https://127.0.0.1:1/p", "/nowhere", NULL, NULL, "--cluster-ca /nowhere: No such file"},
        {"https://127.0.0.1:1/p", own_ca_key, NULL, NULL, "is not PEM, or has no certificate"},
        {"https://127.0.0.1:1/p", own_ca, host, member_key, "not the key of the certificate"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const struct cmdlog_etcd_options options = {.url = slice_from(wrong[i].url),
                                                    .name = SLICE_LIT("a"),
                                                    .ca = wrong[i].ca,
                                                    .cert = wrong[i].cert,
                                                    .key = wrong[i].key};
        struct cmdlog *log;
        char *reason = NULL;
        assert_int_equal(cmdlog_etcd_open(&options, &log, &reason), TL_ERR_IO);
        if (strstr(reason, wrong[i].reason) == NULL)
            fail_msg("case %zu: %s", i, reason);
        mem_free(reason);
    }
}

/* All certificates are replaced, those of the member, which restarts, and those of the open log. */
static void test_replaced_files_are_used_by_next_connection(void **state)
{
    (void)state;
    struct cmdlog *log = open_log(etcd_fixture_url(etcd, "replaced"), own_ca, host, host_key);
    join(log);
    append(log, 10);
    etcd_fixture_kill(etcd, 0);
    make_own();
    etcd_fixture_restart(etcd, 0);
    append(log, 20);
    cmdlog_close(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tls_appends_and_follows_any_size),
        cmocka_unit_test(test_tls_refusals_name_the_remedy),
        cmocka_unit_test(test_invalid_tls_options_are_refused),
        cmocka_unit_test(test_replaced_files_are_used_by_next_connection),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
