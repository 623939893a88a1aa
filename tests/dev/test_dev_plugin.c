/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Which files are loaded as the CUDA plugin, and what is said of all others.
 * The plugin is a stand-in (stand_in.c); wrong ones are made by changing some
 * of its bytes.
 */
#include "dev/dev_plugin.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "build_id.h"
#include "dev/dev.h"
#include "lib/facts.h"

#define GOOD "tests/dev/.libs/stand_in.so"
#define OLD "tests/dev/.libs/stand_in_old.so"
/* Its constant has another name. */
#define OTHER "tests/dev/.libs/stand_in_other.so"

/* Name [path] as the plugin; expect an error, and return its sentence. */
static const char *refusal(const char *path, err_t *err)
{
    const cddp_cuda_t *cuda = NULL;

    *err = (err_t)ERR_INIT;
    setenv("CDDP_CUDA_PLUGIN", path, 1);
    cr_expect_eq(dev_plugin_get(&cuda, err), ERR_UNAVAILABLE, "%s", path);
    cr_expect_null(cuda);
    return err->text;
}

#define REFUSED(path, ...)                        \
    do {                                          \
        err_t err_;                               \
                                                  \
        FACTS(refusal(path, &err_), __VA_ARGS__); \
    } while (0)

static char *contents(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    char *text;

    cr_assert_not_null(file, "%s", path);
    fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    text = malloc(*bytes);
    cr_assert_eq(fread(text, 1, *bytes, file), *bytes);
    fclose(file);
    return text;
}

/* A file of its own, which the caller removes. */
static void write_file(char *path, const char *text, size_t bytes)
{
    FILE *file;

    sprintf(path, "stand-in.%d.so", (int)getpid());
    file = fopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(text, 1, bytes, file), bytes);
    fclose(file);
}

/* A copy of the stand-in in which [to] stands instead of [from], which is as
 * long. */
static void altered(char *path, const char *from, const char *to)
{
    size_t bytes;
    char *text = contents(GOOD, &bytes), *at;

    cr_assert_eq(strlen(from), strlen(to));
    at = memmem(text, bytes, from, strlen(from));
    cr_assert_not_null(at, "%s", from);
    while (at != NULL) {
        memcpy(at, to, strlen(to));
        at = memmem(text, bytes, from, strlen(from));
    }
    write_file(path, text, bytes);
    free(text);
}

Test(plugin, loaded)
{
    const cddp_cuda_t *cuda = NULL, *again = NULL;
    err_t err = ERR_INIT;

    setenv("CDDP_CUDA_PLUGIN", GOOD, 1);
    cr_assert_eq(dev_plugin_get(&cuda, &err), ERR_OK, "%s", err.text);
    cr_expect_str_eq(cuda->built_for, "tests");
    cr_expect_eq(dev_plugin_get(&again, NULL), ERR_OK);
    cr_expect_eq(again, cuda);
}

/* One without tables is no reason to crash. */
Test(plugin, no_devices)
{
    dev_device_t *dev = NULL;
    err_t err = ERR_INIT;

    setenv("CDDP_CUDA_PLUGIN", GOOD, 1);
    cr_expect_eq(dev_open("cuda", 0, &dev, &err), ERR_UNAVAILABLE);
    FACTS(err.text, "plugin");
    cr_expect_null(dev);
}

Test(plugin, absent)
{
    REFUSED("no/such/plugin.so", "no/such/plugin.so", "no CUDA plugin");
    REFUSED(GOOD "/plugin.so", "no CUDA plugin");
}

/* An empty name means the installed plugin. */
Test(plugin, installed)
{
    const cddp_cuda_t *cuda;
    err_t err = ERR_INIT;

    setenv("CDDP_CUDA_PLUGIN", "", 1);
    if (dev_plugin_get(&cuda, &err) != ERR_OK)
        cr_expect(strstr(err.text, "libcddp_cuda.so") ||
                      strstr(err.text, "driver"),
                  "%s", err.text);
}

Test(plugin, no_file)
{
    REFUSED("tests", "tests", "directory");
    REFUSED("/dev/null", "/dev/null");
}

Test(plugin, not_readable)
{
    char path[64];
    size_t bytes;
    char *text = contents(GOOD, &bytes);

    write_file(path, text, bytes);
    free(text);
    chmod(path, 0);
    if (geteuid() == 0 && seteuid(65534) != 0)
        cr_skip_test("root cannot become another user");
    REFUSED(path, path, "ermission");
    cr_expect_eq(seteuid(getuid()), 0);
    unlink(path);
}

/* A file of any length ends in a sentence, or is complete but for its tables
 * of sections, which nobody reads. */
Test(plugin, truncated)
{
    size_t bytes, refused = 0;
    char *text = contents(GOOD, &bytes), path[64];

    for (size_t length = 0; length < bytes; length += bytes / 97) {
        const cddp_cuda_t *cuda;
        err_t err = ERR_INIT;

        write_file(path, text, length);
        setenv("CDDP_CUDA_PLUGIN", path, 1);
        if (dev_plugin_get(&cuda, &err) != ERR_OK) {
            FACTS(err.text, path);
            refused++;
        }
        unlink(path);
    }
    cr_expect_gt(refused, 40);
    free(text);
}

Test(plugin, other_build)
{
    char path[64], other[] = BUILD_ID;

    other[strlen(other) - 1] ^= 1;
    altered(path, BUILD_ID, other);
    REFUSED(path, path, BUILD_ID, other);
    unlink(path);
}

Test(plugin, other_interface)
{
    REFUSED(OLD, OLD, "interface");
}

Test(plugin, not_ours)
{
    REFUSED(OTHER, OTHER, "cddp_cuda");
}

Test(plugin, library_missing)
{
    char path[64];

    altered(path, "libc.so.6", "libq.so.6");
    REFUSED(path, path, "libq.so.6", "LD_LIBRARY_PATH");
    unlink(path);
}
