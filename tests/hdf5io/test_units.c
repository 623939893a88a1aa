/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/units.h"

#include <criterion/criterion.h>
#include <string.h>

#include "open.h"

static hdf5io_units_t *open_units(const hdf5io_span_t *spans, int count)
{
    hdf5io_units_t *units = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_units_open(spans, count, &units, &err), ERR_OK, "%s",
                 err.text);
    return units;
}

Test(units, never_cross_shards)
{
    static const hdf5io_span_t spans[] = {{10, 4}, {0, 4}, {3, 8}, {8, 4}};
    static const hdf5io_unit_t expected[] = {{0, 4},  {4, 4},  {8, 2},
                                             {10, 3}, {13, 4}, {17, 4}};
    hdf5io_units_t *units = open_units(spans, 4);

    cr_assert_eq(hdf5io_units_count(units), 6);
    cr_assert_eq(hdf5io_units_samples(units), 21);
    for (int i = 0; i < 6; i++) {
        const hdf5io_unit_t unit = hdf5io_units_get(units, i);

        cr_assert_eq(unit.first, expected[i].first);
        cr_assert_eq(unit.count, expected[i].count);
    }
    hdf5io_units_close(units);
}

Test(units, the_odd_ones_are_listed)
{
    static const hdf5io_span_t spans[] = {{10, 4}, {0, 4}, {3, 8}, {9, 3}};
    hdf5io_units_t *units = open_units(spans, 4);
    int64_t odd[4] = {-1, -1, -1, -1};

    /* sizes 4 4 2, 3, 3 3 3 */
    cr_assert_eq(hdf5io_units_usual(units), 3);
    cr_assert_eq(hdf5io_units_odd(units, NULL), 3);
    cr_assert_eq(hdf5io_units_odd(units, odd), 3);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(odd[i], i);
    hdf5io_units_close(units);
}

Test(units, the_hash_changes_with_the_limits)
{
    static const hdf5io_span_t spans[] = {{10, 4}, {6, 4}};
    static const hdf5io_span_t empty[] = {{10, 4}, {0, 1}, {6, 4}};
    static const hdf5io_span_t chunks[] = {{10, 5}, {6, 4}};
    static const hdf5io_span_t border[] = {{8, 4}, {8, 4}};
    hdf5io_units_t *a = open_units(spans, 2), *b = open_units(empty, 3);
    hdf5io_units_t *c = open_units(chunks, 2), *d = open_units(border, 2);

    cr_assert_eq(hdf5io_units_hash(a), hdf5io_units_hash(b));
    cr_assert_neq(hdf5io_units_hash(a), hdf5io_units_hash(c));
    cr_assert_neq(hdf5io_units_hash(a), hdf5io_units_hash(d));
    hdf5io_units_close(d);
    hdf5io_units_close(c);
    hdf5io_units_close(b);
    hdf5io_units_close(a);
}

Test(units, no_samples_are_refused)
{
    hdf5io_units_t *units = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_units_open(&(hdf5io_span_t){0, 4}, 1, &units, &err),
                 ERR_DATA);
    cr_assert_not_null(strstr(err.text, "no samples"));
    cr_assert_null(units);
}

/* ---- of files ------------------------------------------------------------ */

static char *directory;
static open_setup_t setup;

static void start(void)
{
    open_begin(&directory, &setup, "*.h5");
}

static void stop(void)
{
    open_end(directory, &setup);
}

static hdf5io_units_t *open_units_of(const hdf5io_dataset_t *dataset)
{
    hdf5io_units_t *units = NULL;
    int64_t rows[3];

    hdf5io_dataset_unit_rows(dataset, rows);
    cr_assert_eq(hdf5io_dataset_units(dataset, rows, &units, NULL), ERR_OK);
    return units;
}

TestSuite(dataset_units, .init = start, .fini = stop);

/* Chunks of the larger field, /spins, have 34 rows (files.c). Without chunks so
 * few samples are not put together. */
Test(dataset_units, are_rows_of_chunks_or_small)
{
    hdf5io_dataset_t *dataset;
    hdf5io_units_t *units;

    open_write(directory, "0.h5", FILES_CHUNKED, 0, 100);
    open_write(directory, "1.h5", FILES_CONTIGUOUS, 100, 7);
    open_write(directory, "2.h5", FILES_GZIP, 107, 100);
    dataset = open_dataset(&setup);
    units = open_units_of(dataset);
    cr_assert_eq(hdf5io_units_samples(units), 207);
    cr_assert_eq(hdf5io_units_count(units), 3 + 7 + 3);
    cr_assert_eq(hdf5io_units_get(units, 1).first, 34);
    cr_assert_eq(hdf5io_units_get(units, 2).count, 32);
    cr_assert_eq(hdf5io_units_get(units, 3).first, 100);
    cr_assert_eq(hdf5io_units_get(units, 3).count, 1);
    cr_assert_eq(hdf5io_units_get(units, 12).first, 107 + 68);
    hdf5io_units_close(units);
    hdf5io_dataset_close(dataset);
}

/* A large contiguous set: 20 bytes a sample, 1024 units of 9 samples or more.
 */
Test(dataset_units, grow_with_the_data)
{
    hdf5io_dataset_t *dataset;
    hdf5io_units_t *units;

    open_write(directory, "0.h5", FILES_CONTIGUOUS, 0, 9 * 1024 + 500);
    dataset = open_dataset(&setup);
    units = open_units_of(dataset);
    cr_assert_eq(hdf5io_units_usual(units), 9);
    cr_assert_eq(hdf5io_units_count(units), (9 * 1024 + 500 - 1) / 9 + 1);
    hdf5io_units_close(units);
    hdf5io_dataset_close(dataset);
}
