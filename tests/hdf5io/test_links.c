/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Datasets behind soft and external links, in whatever file they are, give the
 * numbers of the same data in one plain file. */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hdf5io/digest.h"
#include "open.h"

static char *directory;
static open_setup_t setup;

static void start(void)
{
    char *parts;

    open_begin(&directory, &setup, "master.h5");
    parts = files_path(directory, "parts");
    cr_assert_eq(mkdir(parts, 0777), 0);
    free(parts);
}

static void stop(void)
{
    unsetenv("HDF5_EXT_PREFIX");
    open_end(directory, &setup);
}

TestSuite(links, .init = start, .fini = stop);

static hid_t create(const char *name)
{
    return files_create(directory, name);
}

/* Add a dataset larger than the data whose numbers are no samples: a reader
 * that looks for the link target's bytes in this file finds these. */
static void pad(hid_t file)
{
    static const char bytes[1 << 17] = {1};
    hsize_t size = sizeof bytes;
    hid_t space = H5Screate_simple(1, &size, NULL);
    hid_t set = H5Dcreate2(file, "pad", H5T_STD_I8LE, space, H5P_DEFAULT,
                           H5P_DEFAULT, H5P_DEFAULT);

    H5Dwrite(set, H5T_STD_I8LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes);
    H5Dclose(set);
    H5Sclose(space);
}

/* Make [name] with external links /spins and /phase to those of [target]. */
static void link_both(const char *name, const char *target, bool padded)
{
    hid_t file = create(name);

    if (padded)
        pad(file);
    H5Lcreate_external(target, "/spins", file, "spins", H5P_DEFAULT,
                       H5P_DEFAULT);
    H5Lcreate_external(target, "/phase", file, "phase", H5P_DEFAULT,
                       H5P_DEFAULT);
    H5Fclose(file);
}

/* The 40 samples of master.h5 must be those that were written. */
static void check_samples(const char *what)
{
    hdf5io_dataset_t *dataset = open_dataset(&setup);

    cr_assert_eq(hdf5io_dataset_samples(dataset), 40, "%s", what);
    cr_assert_eq(open_wrong_orders(dataset, 40), 0, "%s", what);
    hdf5io_dataset_close(dataset);
}

static void check_refused(err_code_t code, const char *const *texts)
{
    hdf5io_dataset_t *dataset = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_dataset_open(&setup.config, &dataset, &err), code, "%s",
                 err.text);
    for (; *texts != NULL; texts++)
        cr_assert_not_null(strstr(err.text, *texts), "\"%s\" lacks \"%s\"",
                           err.text, *texts);
}

#define CHECK_REFUSED(code, ...) \
    check_refused((code), (const char *const[]){__VA_ARGS__, NULL})

Test(links, an_external_link_gives_the_target_in_any_layout)
{
    for (int layout = 0; layout < FILES_LAYOUTS; layout++) {
        char what[64];

        for (int padded = 0; padded < 2; padded++) {
            snprintf(what, sizeof what, "layout %d, %s master", layout,
                     padded ? "large" : "small");
            open_write(directory, "parts/data.h5", (files_layout_t)layout, 0,
                       40);
            link_both("master.h5", "parts/data.h5", padded != 0);
            check_samples(what);
        }
    }
}

Test(links, a_target_in_two_files_and_one_here)
{
    hid_t file;

    open_write(directory, "parts/a.h5", FILES_USERBLOCK, 0, 40);
    open_write(directory, "parts/b.h5", FILES_CONTIGUOUS, 0, 40);
    file = create("master.h5");
    H5Lcreate_external("parts/a.h5", "/spins", file, "spins", H5P_DEFAULT,
                       H5P_DEFAULT);
    H5Lcreate_external("parts/b.h5", "/phase", file, "phase", H5P_DEFAULT,
                       H5P_DEFAULT);
    H5Fclose(file);
    check_samples("two targets");
    open_write(directory, "master.h5", FILES_CONTIGUOUS, 0, 40);
    file = H5Fopen(setup.patterns[0], H5F_ACC_RDWR, H5P_DEFAULT);
    H5Ldelete(file, "spins", H5P_DEFAULT);
    H5Lcreate_external("parts/a.h5", "/spins", file, "spins", H5P_DEFAULT,
                       H5P_DEFAULT);
    H5Fclose(file);
    check_samples("one here, one there");
}

Test(links, soft_links_chains_and_groups)
{
    hid_t file, group;

    open_write(directory, "parts/data.h5", FILES_CONTIGUOUS, 0, 40);
    /* master -> parts/middle.h5 -> data.h5 in the same directory */
    link_both("parts/middle.h5", "data.h5", true);
    link_both("master.h5", "parts/middle.h5", true);
    check_samples("a chain");
    /* soft -> group behind an external link -> dataset */
    file = create("master.h5");
    pad(file);
    group = H5Gcreate2(file, "deep", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("parts/middle.h5", "/", group, "all", H5P_DEFAULT,
                       H5P_DEFAULT);
    H5Gclose(group);
    H5Lcreate_soft("/deep/all/spins", file, "first", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("first", file, "spins", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("deep/all/phase", file, "phase", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    check_samples("soft links");
}

Test(links, names_are_found_where_hdf5_finds_them)
{
    char *path = files_path(directory, "parts"), *target;

    open_write(directory, "parts/data.h5", FILES_CONTIGUOUS, 0, 40);
    link_both("master.h5", "data.h5", true);
    CHECK_REFUSED(ERR_DATA, "master.h5: /spins is an external link to data.h5",
                  "there is no file of that name");
    setenv("HDF5_EXT_PREFIX", path, 1);
    check_samples("by HDF5_EXT_PREFIX");
    unsetenv("HDF5_EXT_PREFIX");
    cr_assert_eq(chdir(path), 0);
    check_samples("from the working directory");
    cr_assert_eq(chdir("/"), 0);
    /* in the directory of the file that the shard, a symbolic link, points
     * to */
    link_both("parts/real.h5", "data.h5", true);
    target = files_path(directory, "parts/real.h5");
    unlink(setup.patterns[0]);
    cr_assert_eq(symlink(target, setup.patterns[0]), 0);
    check_samples("beside the real file");
    free(target);
    free(path);
}

Test(links, an_absolute_name)
{
    char *path = files_path(directory, "parts/data.h5");

    open_write(directory, "parts/data.h5", FILES_GZIP, 0, 40);
    link_both("master.h5", path, true);
    check_samples("absolute");
    free(path);
}

Test(links, a_link_that_leads_nowhere_is_named)
{
    hid_t file;

    link_both("parts/middle.h5", "gone.h5", false);
    link_both("master.h5", "parts/middle.h5", false);
    CHECK_REFUSED(ERR_DATA, "parts/middle.h5: /spins is an external link to "
                            "gone.h5:/spins");
    open_write(directory, "parts/gone.h5", FILES_CONTIGUOUS, 0, 40);
    check_samples("and there it is");
    file = create("master.h5");
    H5Lcreate_external("parts/gone.h5", "/spin", file, "spins", H5P_DEFAULT,
                       H5P_DEFAULT);
    H5Lcreate_soft("/phases", file, "phase", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    CHECK_REFUSED(ERR_DATA,
                  "master.h5: /spins is an external link to "
                  "parts/gone.h5:/spin, but",
                  "has no such object");
    setup.input.path = (char *)"/phase";
    CHECK_REFUSED(ERR_DATA, "master.h5: /phase is a soft link to /phases");
}

Test(links, links_in_a_circle_end)
{
    hid_t file = create("master.h5");

    H5Lcreate_soft("/phase", file, "spins", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/spins", file, "phase", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    CHECK_REFUSED(ERR_DATA, "is a soft link to", "too many");
    link_both("master.h5", "parts/b.h5", false);
    link_both("parts/b.h5", "../master.h5", false);
    CHECK_REFUSED(ERR_DATA, "is an external link to", "cycle");
}

/* There are 10^8 paths of depth eight through these ten names. */
Test(links, groups_in_themselves_are_looked_at_for_a_while, .timeout = 120)
{
    char name[16];
    hid_t file = create("master.h5");
    hid_t group =
        H5Gcreate2(file, "/raw", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "again%d", i);
        H5Lcreate_hard(file, "/raw", group, name, H5P_DEFAULT, H5P_DEFAULT);
    }
    H5Gclose(group);
    H5Fclose(file);
    CHECK_REFUSED(ERR_DATA, "no dataset /spins",
                  "the first 2048 objects in it are no datasets");
}

Test(links, a_target_that_is_truncated_is_named)
{
    char *path = files_path(directory, "parts/data.h5");

    open_write(directory, "parts/data.h5", FILES_CONTIGUOUS, 0, 4000);
    link_both("master.h5", "parts/data.h5", true);
    files_truncate(path, files_bytes(path) - 100);
    CHECK_REFUSED(ERR_DATA,
                  "is an external link to parts/data.h5:/spins, but "
                  "this file does not open: ",
                  path, "truncated");
    free(path);
}

/* HDF5 would wait for a writer of the pipe, with its lock held. */
Test(links, a_pipe_in_place_of_the_target_is_refused, .timeout = 30)
{
    char *path = files_path(directory, "parts/data.h5");
    hid_t file;

    cr_assert_eq(mkfifo(path, 0600), 0);
    link_both("master.h5", "parts/data.h5", true);
    CHECK_REFUSED(ERR_DATA, "is an external link to parts/data.h5:/spins", path,
                  "is not a file");
    /* a pipe is also not opened while names are listed for a message, or behind
     * a link */
    file = create("master.h5");
    H5Lcreate_external("parts/data.h5", "/", file, "other", H5P_DEFAULT,
                       H5P_DEFAULT);
    H5Fclose(file);
    CHECK_REFUSED(ERR_DATA, "has no dataset /spins");
    link_both("parts/middle.h5", "data.h5", false);
    link_both("master.h5", "parts/middle.h5", false);
    CHECK_REFUSED(ERR_DATA, "parts/middle.h5: /spins is an external link to "
                            "data.h5:/spins");
    free(path);
}

/* Two ranks of a host may find different targets because of different
 * prefixes. */
Test(links, other_targets_are_another_place)
{
    char *path = files_path(directory, "parts"), *other;
    uint64_t places[3];

    other = files_path(directory, "other");
    cr_assert_eq(mkdir(other, 0777), 0);
    open_write(directory, "parts/data.h5", FILES_CONTIGUOUS, 0, 40);
    open_write(directory, "other/data.h5", FILES_CONTIGUOUS, 0, 40);
    link_both("master.h5", "data.h5", true);
    for (int i = 0; i < 3; i++) {
        hdf5io_dataset_t *dataset;

        setenv("HDF5_EXT_PREFIX", i == 1 ? other : path, 1);
        dataset = open_dataset(&setup);
        places[i] = hdf5io_dataset_place(dataset);
        hdf5io_dataset_close(dataset);
    }
    cr_assert_eq(places[0], places[2]);
    cr_assert_neq(places[0], places[1]);
    free(other);
    free(path);
}
