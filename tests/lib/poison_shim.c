/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes that end the program: preloaded (LD_PRELOAD), it looks through the values that the program under test gives to
 * RocksDB in a batch, which it does while it applies an entry of its log. One that has the bytes "poison" ends the
 * process as the file says that TIDELOCK_TEST_POISON names: "abort", "fault" or "kill" (as the kernel does for want of
 * memory); while there is no such file nothing is looked for.
 *
 * Only for a program that has RocksDB as a shared library.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void end_as_told(void)
{
    const char *name = getenv("TIDELOCK_TEST_POISON");
    char how[16] = "";
    int file = name == NULL ? -1 : open(name, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    ssize_t len = read(file, how, sizeof how - 1);
    (void)close(file);
    if (len <= 0)
        return;
    if (strcmp(how, "kill") == 0)
        (void)kill(getpid(), SIGKILL);
    if (strcmp(how, "fault") == 0) {
        (void)signal(SIGSEGV, SIG_DFL);
        (void)raise(SIGSEGV);
    }
    abort();
}

static void look(const char *value, size_t len)
{
    if (memmem(value, len, "poison", strlen("poison")) != NULL)
        end_as_told();
}

typedef void put_function(void *batch, void *family, const char *key, size_t key_len, const char *value, size_t len);
typedef void put_ts_function(void *batch, void *family, const char *key, size_t key_len, const char *ts, size_t ts_len,
                             const char *value, size_t len);

void rocksdb_writebatch_put_cf(void *batch, void *family, const char *key, size_t key_len, const char *value,
                               size_t len);
void rocksdb_writebatch_put_cf_with_ts(void *batch, void *family, const char *key, size_t key_len, const char *ts,
                                       size_t ts_len, const char *value, size_t len);

__attribute__((visibility("default"))) void rocksdb_writebatch_put_cf(void *batch, void *family, const char *key,
                                                                      size_t key_len, const char *value, size_t len)
{
    static put_function *real;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "rocksdb_writebatch_put_cf");
    look(value, len);
    real(batch, family, key, key_len, value, len);
}

__attribute__((visibility("default"))) void rocksdb_writebatch_put_cf_with_ts(void *batch, void *family,
                                                                              const char *key, size_t key_len,
                                                                              const char *ts, size_t ts_len,
                                                                              const char *value, size_t len)
{
    static put_ts_function *real;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "rocksdb_writebatch_put_cf_with_ts");
    look(value, len);
    real(batch, family, key, key_len, ts, ts_len, value, len);
}
