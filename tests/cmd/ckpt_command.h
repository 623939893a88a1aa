/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* ckpt_command: runs cddp-ckpt in a test (from the build folder), and makes
 * what it works on. */
#ifndef CDDP_TESTS_CKPT_COMMAND_H
#define CDDP_TESTS_CKPT_COMMAND_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "hdf5io/ckpt_fixture.h"

/* Run ./cddp-ckpt [arguments], with each @ replaced by [home]. Assert that it
 * exits with [status] and prints each of [texts], which end with NULL. */
static inline void expect(const char *home, const char *arguments, int status,
                          const char *const *texts)
{
    char output[16384];
    str_buf_t command = {0};
    size_t length;
    FILE *pipe;

    str_buf_add(&command, "./cddp-ckpt ");
    for (const char *c = arguments; *c != '\0'; c++)
        if (*c == '@')
            str_buf_add(&command, "%s", home);
        else
            str_buf_add(&command, "%c", *c);
    str_buf_add(&command, " 2>&1");
    pipe = popen(command.text, "r");
    cr_assert_not_null(pipe);
    length = fread(output, 1, sizeof output - 1, pipe);
    output[length] = '\0';
    cr_assert_eq(WEXITSTATUS(pclose(pipe)), status, "%s: %s", command.text,
                 output);
    for (; *texts != NULL; texts++)
        cr_assert(strstr(output, *texts), "%s: no \"%s\" in: %s", command.text,
                  *texts, output);
    str_buf_free(&command);
}

/* The last argument of expect. */
#define TEXTS(...)        \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }

/* Change a bit of the file [home]/[file]. */
static inline void flip(const char *home, const char *file)
{
    char *path = str_printf("%s/%s", home, file), byte;
    int fd = open(path, O_RDWR);

    cr_assert_geq(fd, 0);
    cr_assert_eq(pread(fd, &byte, 1, 1000), 1);
    byte ^= 1;
    cr_assert_eq(pwrite(fd, &byte, 1, 1000), 1);
    close(fd);
    free(path);
}

#define OLD "superseded-step-0000000030-00000000000000aa"
#define TMP ".tmp-step-0000000010-00000000000000ab"
#define TRASH ".trash-step-0000000005-00000000000000ac"

/* Make [home]/checkpoints with the checkpoint of step 20 and with three
 * directories that no run reads. Returns its path, to be freed. */
static inline char *leftovers_make(const char *home)
{
    static const char *const names[] = {OLD, TMP, TRASH};
    static const int steps[] = {30, 10, 5};
    char *checkpoints = str_printf("%s/checkpoints", home);

    for (int i = 0; i < 3; i++) {
        char *from = str_printf("%s/step-%010d", checkpoints, steps[i]);
        char *to = str_printf("%s/%s", home, names[i]);

        ckpt_write(checkpoints, 2, steps[i]);
        cr_assert_eq(rename(from, to), 0);
        free(to);
        free(from);
    }
    ckpt_write(checkpoints, 2, 20);
    for (int i = 0; i < 3; i++) {
        char *from = str_printf("%s/%s", home, names[i]);
        char *to = str_printf("%s/%s", checkpoints, names[i]);

        cr_assert_eq(rename(from, to), 0);
        free(to);
        free(from);
    }
    return checkpoints;
}

/* Make the file [home]/lock, which a run locks. Returns its path, to be freed.
 */
static inline char *lock_make(const char *home)
{
    char *path = str_printf("%s/lock", home);
    const int fd = open(path, O_RDWR | O_CREAT, 0600);

    cr_assert_geq(fd, 0);
    close(fd);
    return path;
}

/* Lock [home] as a run does. Closing the returned descriptor unlocks it. */
static inline int lock_take(const char *home)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char *path = lock_make(home);
    const int fd = open(path, O_RDWR);

    cr_assert_geq(fd, 0);
    cr_assert_eq(fcntl(fd, F_OFD_SETLK, &whole), 0);
    free(path);
    return fd;
}

#endif
