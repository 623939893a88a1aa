/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/file.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "lib/facts.h"

static char directory[] = "/tmp/cddp-file-XXXXXX";

static void setup(void)
{
    cr_assert_not_null(mkdtemp(directory));
}

static void teardown(void)
{
    err_t err = ERR_INIT;

    cr_assert_eq(file_remove_tree(directory, &err), ERR_OK, "%s", err.text);
    cr_assert_neq(access(directory, F_OK), 0);
}

TestSuite(file, .init = setup, .fini = teardown);

/* Path of [name] in the test's directory; the caller frees it. */
static char *below(const char *name)
{
    return str_printf("%s/%s", directory, name);
}

static int entries(void)
{
    DIR *list = opendir(directory);
    int count = 0;

    while (readdir(list) != NULL)
        count++;
    closedir(list);
    return count - 2;
}

Test(file, what_is_published_can_be_read)
{
    char *path = below("a"), *text = NULL;
    size_t size = 100000, bytes = 0, i;
    char *data = malloc(size);
    err_t err = ERR_INIT;

    for (i = 0; i < size; i++)
        data[i] = (char)(i % 251);
    cr_assert_eq(file_publish(path, data, size, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(file_read(path, &text, &bytes, &err), ERR_OK);
    cr_assert_eq(bytes, size);
    cr_assert_eq(memcmp(text, data, size), 0);
    cr_assert_eq(text[bytes], '\0');
    cr_assert_eq(entries(), 1);
    free(text);
    free(data);
    free(path);
}

Test(file, publishing_replaces_and_leaves_no_debris)
{
    char *path = below("a"), *text = NULL;
    err_t err = ERR_INIT;
    size_t bytes;

    cr_assert_eq(file_publish(path, "one", 3, &err), ERR_OK);
    cr_assert_eq(file_publish(path, "", 0, &err), ERR_OK);
    cr_assert_eq(file_read(path, &text, &bytes, &err), ERR_OK);
    cr_assert_eq(bytes, 0);
    cr_assert_str_eq(text, "");
    cr_assert_eq(entries(), 1);
    free(text);
    free(path);
}

Test(file, a_failed_publish_leaves_no_debris)
{
    char *path = below("d"), *expected;
    err_t err = ERR_INIT;

    cr_assert_eq(mkdir(path, 0700), 0);
    cr_assert_eq(file_publish(path, "x", 1, &err), ERR_IO);
    expected = str_printf("%s: Is a directory", path);
    cr_assert_not_null(strstr(err.text, expected), "%s", err.text);
    cr_assert_eq(entries(), 1);
    free(expected);
    free(path);
}

Test(file, absent_paths_are_named)
{
    char *path = below("none/a"), *text = NULL, *expected;
    err_t err = ERR_INIT;
    size_t bytes;

    cr_assert_eq(file_read(path, &text, &bytes, &err), ERR_IO);
    expected = str_printf("%s: No such file", path);
    cr_assert_not_null(strstr(err.text, expected), "%s", err.text);
    cr_assert_null(text);
    cr_assert_eq(file_sync(path, &err), ERR_IO);
    cr_assert_not_null(strstr(err.text, expected), "%s", err.text);
    cr_assert_eq(file_publish(path, "x", 1, &err), ERR_IO);
    cr_assert_eq(strncmp(err.text, "cannot create ", 14), 0);
    cr_assert_not_null(strstr(err.text, path));
    cr_assert_eq(file_read(directory, &text, &bytes, &err), ERR_DATA);
    cr_assert_not_null(strstr(err.text, "is a directory"));
    free(expected);
    free(path);
}

Test(file, directories_are_made_with_parents)
{
    char *path = below("a/b//c/"), *file = below("f"), *under = below("f/g");
    err_t err = ERR_INIT;
    struct stat info;

    cr_assert_eq(file_make_dirs(path, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(file_make_dirs(path, &err), ERR_OK);
    cr_assert_eq(stat(path, &info), 0);
    cr_assert(S_ISDIR(info.st_mode));
    cr_assert_eq(file_sync(path, &err), ERR_OK);
    cr_assert_eq(file_publish(file, "x", 1, &err), ERR_OK);
    cr_assert_eq(file_make_dirs(file, &err), ERR_IO);
    cr_assert_not_null(strstr(err.text, "Not a directory"));
    cr_assert_eq(file_make_dirs(under, &err), ERR_IO);
    cr_assert_not_null(strstr(err.text, under));
    cr_assert_eq(file_make_dirs("", &err), ERR_IO);
    free(under);
    free(file);
    free(path);
}

Test(file, trees_go_whole_and_links_are_not_followed)
{
    char *tree = below("t"), *deep = below("t/a/b"), *keep = below("keep");
    char *kept = below("keep/file"), *link = below("t/a/link");
    char *leaf = below("t/a/b/leaf");
    err_t err = ERR_INIT;

    cr_assert_eq(file_make_dirs(deep, &err), ERR_OK);
    cr_assert_eq(file_make_dirs(keep, &err), ERR_OK);
    cr_assert_eq(file_publish(kept, "x", 1, &err), ERR_OK);
    cr_assert_eq(file_publish(leaf, "x", 1, &err), ERR_OK);
    cr_assert_eq(symlink(keep, link), 0);
    cr_assert_eq(file_remove_tree(tree, &err), ERR_OK, "%s", err.text);
    cr_assert_neq(access(tree, F_OK), 0);
    cr_assert_eq(access(kept, F_OK), 0);
    cr_assert_eq(file_remove_tree(tree, &err), ERR_OK);
    cr_assert_eq(symlink(keep, tree), 0);
    cr_assert_eq(file_remove_tree(tree, &err), ERR_OK);
    cr_assert_eq(access(kept, F_OK), 0);
    cr_assert_eq(file_remove_tree(kept, &err), ERR_OK);
    cr_assert_neq(access(kept, F_OK), 0);
    free(leaf);
    free(link);
    free(kept);
    free(keep);
    free(deep);
    free(tree);
}

/* A limit of the file size simulates a disk that becomes full within a file. */
Test(file, a_write_that_fails_keeps_the_old_file_and_no_debris)
{
    const struct rlimit limit = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
    char *path = below("a"), *data = calloc(1, 8192), *text = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(file_publish(path, "old", 3, &err), ERR_OK);
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cr_assert_eq(file_publish(path, data, 8192, &err), ERR_IO);
    cr_assert_not_null(strstr(err.text, "cannot write "));
    cr_assert_not_null(strstr(err.text, "File too large"));
    cr_assert_eq(file_read(path, &text, NULL, &err), ERR_OK);
    cr_assert_str_eq(text, "old");
    cr_assert_eq(entries(), 1);
    free(text);
    free(data);
    free(path);
}

Test(file, a_file_in_the_way_is_named)
{
    char *path = below("f"), *deep = below("f/g/h"), *expected;
    err_t err = ERR_INIT;

    cr_assert_eq(file_publish(path, "x", 1, &err), ERR_OK);
    cr_assert_eq(file_make_dirs(deep, &err), ERR_IO);
    expected = str_printf("%s/g: Not a directory", path);
    cr_assert_not_null(strstr(err.text, expected), "%s", err.text);
    free(expected);
    cr_assert_eq(file_remove_tree(deep, &err), ERR_IO);
    expected = str_printf("%s: Not a directory", deep);
    cr_assert_not_null(strstr(err.text, expected), "%s", err.text);
    free(expected);
    free(deep);
    free(path);
}

/* /proc/self/mem can be opened, but page 0 cannot be read. */
Test(file, a_read_that_fails_is_told)
{
    char *text = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(file_read("/proc/self/mem", &text, NULL, &err), ERR_IO);
    FACTS(err.text, "/proc/self/mem", "Input/output error");
    cr_assert_null(text);
}

/* In a child process, since its standard descriptors are closed. */
Test(file, no_file_takes_the_place_of_a_closed_output)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        for (int fd = 0; fd <= STDERR_FILENO; fd++)
            close(fd);
        file_standard_open();
        _exit(dup(0) > STDERR_FILENO && write(1, "x", 1) < 0 ? 0 : 1);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0);
}

/* ---- only regular files -------------------------------------------------- */

/* Open [name] as a file of a run directory. An alarm ends the test if it
 * blocks. */
static err_code_t open_own(const char *name, int flags, int *fd, err_t *err)
{
    char *path = below(name);
    err_code_t code;

    alarm(20);
    code = file_open_regular(path, flags, FILE_OWN, fd, err);
    alarm(0);
    free(path);
    return code;
}

Test(file, a_planted_link_is_not_followed)
{
    const int ways[] = {O_RDONLY, O_WRONLY, O_RDWR | O_CREAT,
                        O_WRONLY | O_CREAT | O_APPEND | O_TRUNC};
    char *victim = below("victim"), *link = below("metrics.jsonl");
    char *text = NULL, *expected;
    err_t err = ERR_INIT;
    int fd = -1;

    cr_assert_eq(file_publish(victim, "precious", 8, &err), ERR_OK);
    cr_assert_eq(symlink(victim, link), 0);
    expected = str_printf("%s is a symbolic link", link);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        cr_assert_eq(open_own("metrics.jsonl", ways[i], &fd, &err), ERR_DATA);
        cr_assert_eq(errno, ELOOP);
        cr_assert_not_null(strstr(err.text, expected), "%s", err.text);
        cr_assert_eq(fd, -1);
    }
    cr_assert_eq(file_read_own(link, &text, NULL, &err), ERR_DATA);
    cr_assert_null(text);
    cr_assert_eq(file_read(link, &text, NULL, &err), ERR_OK);
    cr_assert_str_eq(text, "precious");
    free(expected);
    free(text);
    free(link);
    free(victim);
}

Test(file, a_fifo_is_refused_and_not_waited_for)
{
    const int ways[] = {O_RDONLY, O_WRONLY, O_RDWR | O_CREAT};
    char *fifo = below("manifest.json"), *expected, *text = NULL;
    err_t err = ERR_INIT;
    int fd = -1;

    cr_assert_eq(mkfifo(fifo, 0600), 0);
    expected = str_printf("%s is a fifo", fifo);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        cr_assert_eq(open_own("manifest.json", ways[i], &fd, &err), ERR_DATA);
        cr_assert_not_null(strstr(err.text, expected), "%s", err.text);
        cr_assert_eq(fd, -1);
    }
    alarm(20);
    cr_assert_eq(file_read(fifo, &text, NULL, &err), ERR_DATA);
    alarm(0);
    cr_assert_not_null(strstr(err.text, expected), "%s", err.text);
    free(expected);
    free(fifo);
}

Test(file, directories_and_devices_are_no_files)
{
    char *text = NULL;
    err_t err = ERR_INIT;
    int fd = -1;

    cr_assert_eq(open_own(".", O_RDONLY, &fd, &err), ERR_DATA);
    cr_assert_eq(open_own(".", O_WRONLY, &fd, &err), ERR_DATA);
    cr_assert_eq(file_read("/dev/zero", &text, NULL, &err), ERR_DATA);
    cr_assert_str_eq(err.text,
                     "/dev/zero is a device: expected a regular file");
    cr_assert_eq(fd, -1);
}

Test(file, a_regular_file_is_opened_as_ever)
{
    char *path = below("a"), *text = NULL;
    err_t err = ERR_INIT;
    int fd = -1;

    cr_assert_eq(open_own("b", O_RDONLY, &fd, &err), ERR_IO);
    cr_assert_eq(errno, ENOENT);
    cr_assert_eq(file_publish(path, "old", 3, &err), ERR_OK);
    cr_assert_eq(open_own("a", O_WRONLY | O_CREAT | O_TRUNC, &fd, &err), ERR_OK,
                 "%s", err.text);
    cr_assert_eq(write(fd, "n", 1), 1);
    close(fd);
    cr_assert_eq(file_read_own(path, &text, NULL, &err), ERR_OK);
    cr_assert_str_eq(text, "n");
    free(text);
    free(path);
}

static void touch(const char *name)
{
    char *path = below(name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

    cr_assert_geq(fd, 0, "%s", path);
    close(fd);
    free(path);
}

Test(file, a_sweep_takes_drafts_and_nothing_else)
{
    static const char *const drafts[] = {"a.1-000000000.tmp",
                                         "config.yaml.4711-123456789.tmp",
                                         "x-1.y.7-1000000000.tmp"};
    static const char *const others[] = {"a",
                                         "a.tmp",
                                         "notes-7.tmp",
                                         ".1-0.tmp",
                                         "a.1-00000000.tmp",
                                         "a.1-000000000.tmp.old",
                                         "a.-000000000.tmp",
                                         "a1-000000000.tmp",
                                         "a.1-000000000x.tmp"};
    const size_t other_count = sizeof others / sizeof others[0];
    err_t err = ERR_INIT;
    char *path = below("nowhere");

    for (size_t i = 0; i < sizeof drafts / sizeof drafts[0]; i++)
        touch(drafts[i]);
    for (size_t i = 0; i < other_count; i++)
        touch(others[i]);
    cr_assert_eq(file_sweep(directory, &err), ERR_OK, "%s", err.text);
    cr_expect_eq(entries(), (int)other_count);
    for (size_t i = 0; i < other_count; i++) {
        char *kept = below(others[i]);

        cr_expect_eq(access(kept, F_OK), 0, "%s", kept);
        free(kept);
    }
    cr_expect_eq(file_sweep(path, &err), ERR_IO);
    cr_expect_not_null(strstr(err.text, "nowhere"), "%s", err.text);
    free(path);
}
