/* SPDX-License-Identifier: Apache-2.0 */
/* Files and directories. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

static void make_file(const char *folder, const char *name, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, "bytes", 5), 0);
    close(fd);
}

static void test_remove_tree_removes_contents_but_follows_no_link(void **state)
{
    (void)state;
    char folder[] = "/tmp/tidelock-file-XXXXXX", kept[128], path[128];
    struct stat stat_buf;
    assert_non_null(mkdtemp(folder));
    snprintf(kept, sizeof kept, "%s.kept", folder);
    assert_int_equal(mkdir(kept, 0700), 0);
    make_file(kept, "file", path, sizeof path);

    char other[128], deep[128];
    snprintf(other, sizeof other, "%s/link", folder);
    assert_int_equal(symlink(kept, other), 0);
    snprintf(deep, sizeof deep, "%s/deep", folder);
    assert_int_equal(mkdir(deep, 0700), 0);
    make_file(deep, "file", other, sizeof other);

    file_remove_tree(folder);
    assert_int_equal(lstat(folder, &stat_buf), -1);
    assert_int_equal(stat(path, &stat_buf), 0);
    assert_int_equal(stat_buf.st_size, 5);
    file_remove_tree(kept);
    file_remove_tree(kept);
    assert_int_equal(lstat(kept, &stat_buf), -1);
}

static void test_write_all_fails_on_file_without_write_access(void **state)
{
    (void)state;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(file_write_all(fd, "x", 1), -1);
    assert_int_equal(file_write_all(fd, "", 0), 0);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_remove_tree_removes_contents_but_follows_no_link),
        cmocka_unit_test(test_write_all_fails_on_file_without_write_access),
    };
    return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
