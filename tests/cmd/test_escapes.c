/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The commands (run from the build folder) print names that a file contains.
 * No such name may control the terminal: here it would set the terminal's
 * title.
 */
#include <criterion/criterion.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "hdf5io/ckpt_fixture.h"
#include "hdf5io/h5.h"

#define NAME "\033]0;owned\a"
#define SHOWN "\\x1b]0;owned\\x07"

/* Run [command]. Assert that it exits with [status], that its output shows NAME
 * in escaped form, and that the output is valid UTF-8 without control
 * characters. */
static void expect(const char *command, int status)
{
    char output[16384], *shown;
    char *both = str_printf("%s 2>&1", command);
    FILE *pipe = popen(both, "r");
    size_t length;

    cr_assert_not_null(pipe);
    length = fread(output, 1, sizeof output - 1, pipe);
    output[length] = '\0';
    cr_assert_eq(strlen(output), length, "%s: a NUL is printed", command);
    cr_expect_eq(WEXITSTATUS(pclose(pipe)), status, "%s: %s", command, output);
    shown = str_visible_dup(output);
    cr_expect_str_eq(output, shown, "%s", command);
    cr_expect_not_null(strstr(output, SHOWN), "%s: %s", command, shown);
    free(shown);
    free(both);
}

static void expect_for(const char *format, const char *path, int status)
{
    str_buf_t command = {0};

    for (const char *c = format; *c != '\0'; c++)
        if (*c == '@')
            str_buf_add(&command, "'%s'", path);
        else
            str_buf_add(&command, "%c", *c);
    expect(command.text, status);
    str_buf_free(&command);
}

static void file_make(const char *path)
{
    hsize_t one = 1;
    hid_t file, space, set;

    h5_lock();
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    space = H5Screate_simple(1, &one, NULL);
    set = H5Dcreate2(file, NAME, H5T_NATIVE_INT, space, H5P_DEFAULT,
                     H5P_DEFAULT, H5P_DEFAULT);
    cr_assert_geq(set, 0);
    H5Dclose(set);
    set =
        H5Acreate2(file, NAME, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert_geq(set, 0);
    H5Aclose(set);
    H5Sclose(space);
    cr_assert_geq(H5Fclose(file), 0);
    h5_unlock();
}

Test(escapes, a_dataset)
{
    char *home = ckpt_home_make();
    char *path = str_printf("%s/" NAME ".h5", home);

    file_make(path);
    expect_for("./cddp-data info @", path, 0);
    expect_for("./cddp-data verify @", path, 0);
    cr_assert_eq(truncate(path, 100), 0);
    expect_for("./cddp-data info @", path, 65);
    expect_for("./cddp-data verify @", path, 65);
    free(path);
    ckpt_home_remove(home);
}

static void body_rename(ckpt_rank_t *rank, void *context)
{
    (void)context;
    rank->state.tensors[1].name = NAME;
    ckpt_body_write(rank, NULL);
}

Test(escapes, a_tensor)
{
    char *home = ckpt_home_make();
    char *plain = str_printf("%s/plain", home);
    char *pair;

    ckpt_ranks_free(ckpt_ranks_run(home, 2, 10, body_rename, NULL), 2);
    expect_for("./cddp-ckpt show @", home, 0);
    ckpt_write(plain, 2, 10);
    pair = str_printf("./cddp-ckpt diff '%s/step-0000000010' @", plain);
    expect_for(pair, home, 1);
    free(pair);
    free(plain);
    ckpt_home_remove(home);
}

Test(escapes, a_run_directory)
{
    char *home = ckpt_home_make();
    char *run = str_printf("%s/" NAME, home);
    char *path = str_printf("%s/config.yaml", run);
    FILE *file;

    cr_assert_eq(mkdir(run, 0777), 0);
    expect_for("./cddp-report --list @", run, 65);
    file = fopen(path, "we");
    cr_assert_not_null(file);
    fclose(file);
    expect_for("./cddp-report --list @", home, 0);
    free(path);
    free(run);
    ckpt_home_remove(home);
}

Test(escapes, a_run_file)
{
    char *home = ckpt_home_make();
    char *path = str_printf("%s/run.yaml", home);
    FILE *file = fopen(path, "we");

    cr_assert_not_null(file);
    fprintf(file, "run: {\"\\e]0;owned\\a\": 1}\n");
    fclose(file);
    expect_for("./cddp-train --check @", path, 78);
    expect_for("./cddp-train @", path, 78);
    expect_for("./cddp-train --check '" NAME "'", path, 78);
    expect_for("./cddp-info '" NAME "'", path, 64);
    free(path);
    ckpt_home_remove(home);
}
