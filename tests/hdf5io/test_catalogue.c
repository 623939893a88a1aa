/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Facts that ranks find by turns, pack, and merge. No file is opened. */
#include "hdf5io/catalogue.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "catalogue_facts.h"

enum { SHARDS = 37, FIELDS = 2, RANKS = 5 };

static char names[SHARDS][16];
static char *paths[SHARDS];

static void start(void)
{
    for (int i = 0; i < SHARDS; i++) {
        snprintf(names[i], sizeof names[i], "part-%d.h5", i);
        paths[i] = names[i];
    }
}

TestSuite(catalogue, .init = start, .timeout = 60);

static hdf5io_catalogue_t *catalogue_make(void)
{
    hdf5io_catalogue_t *made = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_catalogue_open(paths, SHARDS, FIELDS, &made, &err),
                 ERR_OK, "%s", err.text);
    return made;
}

/* Columns of shard [i]: every tenth shard is in chunks. */
static void columns_make(int i, catalogue_column_t columns[FIELDS])
{
    memset(columns, 0, FIELDS * sizeof *columns);
    columns[0] = (catalogue_column_t){.type = {CONVERT_F32, true},
                                      .ndim = 3,
                                      .dims = {3, 32, 31},
                                      .way = i % 10 == 9 ? HDF5IO_WAY_FILTER
                                                         : HDF5IO_WAY_PREAD,
                                      .located = i % 10 != 9};
    columns[1] = (catalogue_column_t){.type = {CONVERT_I64, false},
                                      .band = i % 10 == 9 ? 64 : 0,
                                      .located = i % 10 != 9};
}

static catalogue_facts_t facts_make(int i, catalogue_column_t columns[FIELDS])
{
    const bool located = i % 10 != 9;

    columns_make(i, columns);
    return (catalogue_facts_t){
        .bytes = UINT64_C(10000000) + (uint64_t)i,
        .changed = -INT64_C(5) * i,
        .inode = UINT64_MAX - (uint64_t)i,
        .place = (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15),
        .rows = 100 + i,
        .cached = located ? 0 : 4096,
        .columns = columns,
        .offsets = {located ? 4096 : 0, located ? UINT64_C(9000000) : 0},
        .digested = i % 7 != 6,
        .digests = {UINT64_MAX - (uint64_t)i, (uint64_t)i}};
}

static void facts_set(hdf5io_catalogue_t *catalogue, int i)
{
    catalogue_column_t columns[FIELDS];
    const catalogue_facts_t facts = facts_make(i, columns);
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_catalogue_set(catalogue, i, &facts, &err), ERR_OK, "%s",
                 err.text);
}

static void facts_expect(const hdf5io_catalogue_t *catalogue, int i)
{
    catalogue_column_t columns[FIELDS];
    const catalogue_facts_t want = facts_make(i, columns);
    catalogue_facts_t got;

    cr_assert(hdf5io_catalogue_get(catalogue, i, &got), "shard %d", i);
    catalogue_facts_compare(&got, &want, FIELDS);
}

Test(catalogue, shapes_are_stored_once)
{
    hdf5io_catalogue_t *catalogue = catalogue_make();
    catalogue_facts_t facts;

    cr_assert_eq(hdf5io_catalogue_missing(catalogue), 0);
    cr_assert_not(hdf5io_catalogue_get(catalogue, 3, &facts));
    for (int i = SHARDS; i-- > 0;)
        facts_set(catalogue, i);
    cr_assert_eq(hdf5io_catalogue_missing(catalogue), SHARDS);
    cr_assert_eq(hdf5io_catalogue_shapes(catalogue), 2);
    for (int i = 0; i < SHARDS; i++) {
        facts_expect(catalogue, i);
        cr_assert_str_eq(hdf5io_catalogue_path(catalogue, i), paths[i]);
    }
    hdf5io_catalogue_close(catalogue);
}

/* Each rank knows every RANKS-th shard. After all have merged the facts of all,
 * each knows everything. */
Test(catalogue, ranks_that_look_by_turns_know_all)
{
    hdf5io_catalogue_t *ranks[RANKS];
    void *packed[RANKS];
    size_t bytes[RANKS];
    err_t err = ERR_INIT;

    for (int r = 0; r < RANKS; r++) {
        ranks[r] = catalogue_make();
        for (int i = r; i < SHARDS; i += RANKS)
            facts_set(ranks[r], i);
        cr_assert_eq(hdf5io_catalogue_missing(ranks[r]), r == 0 ? 1 : 0);
        cr_assert_eq(hdf5io_catalogue_pack(ranks[r], r, RANKS, &packed[r],
                                           &bytes[r], &err),
                     ERR_OK, "%s", err.text);
    }
    for (int r = 0; r < RANKS; r++) {
        for (int from = 0; from < RANKS; from++)
            cr_assert_eq(hdf5io_catalogue_merge(ranks[r], packed[from],
                                                bytes[from], &err),
                         ERR_OK, "%s", err.text);
        cr_assert_eq(hdf5io_catalogue_missing(ranks[r]), SHARDS);
        cr_assert_eq(hdf5io_catalogue_shapes(ranks[r]), 2);
        for (int i = 0; i < SHARDS; i++)
            facts_expect(ranks[r], i);
    }
    for (int r = 0; r < RANKS; r++) {
        mem_free(packed[r]);
        hdf5io_catalogue_close(ranks[r]);
    }
}

/* Shard 4 is packed with other facts than those that are known. */
static err_code_t merge_changed(void (*change)(catalogue_facts_t *facts,
                                               catalogue_column_t *columns),
                                err_t *err)
{
    hdf5io_catalogue_t *known = catalogue_make(), *other = catalogue_make();
    catalogue_column_t columns[FIELDS];
    catalogue_facts_t facts = facts_make(4, columns);
    void *packed = NULL;
    size_t bytes = 0;
    err_code_t rc;

    facts_set(known, 4);
    change(&facts, columns);
    cr_assert_eq(hdf5io_catalogue_set(other, 4, &facts, err), ERR_OK);
    cr_assert_eq(hdf5io_catalogue_pack(other, 0, 1, &packed, &bytes, err),
                 ERR_OK);
    rc = hdf5io_catalogue_merge(known, packed, bytes, err);
    facts_expect(known, 4);
    mem_free(packed);
    hdf5io_catalogue_close(other);
    hdf5io_catalogue_close(known);
    return rc;
}

static void change_bytes(catalogue_facts_t *facts, catalogue_column_t *columns)
{
    (void)columns;
    facts->bytes++;
}

static void change_time(catalogue_facts_t *facts, catalogue_column_t *columns)
{
    (void)columns;
    facts->changed++;
}

static void change_shape(catalogue_facts_t *facts, catalogue_column_t *columns)
{
    (void)facts;
    columns[0].dims[1] = 16;
}

static void change_way(catalogue_facts_t *facts, catalogue_column_t *columns)
{
    (void)facts;
    columns[1].way = HDF5IO_WAY_EDGES;
}

static void change_offset(catalogue_facts_t *facts, catalogue_column_t *columns)
{
    (void)columns;
    facts->offsets[0] += 512;
}

static void change_digest(catalogue_facts_t *facts, catalogue_column_t *columns)
{
    (void)columns;
    facts->digests[1]++;
}

Test(catalogue, facts_that_contradict_are_refused_by_name)
{
    void (*const changes[])(catalogue_facts_t *, catalogue_column_t *) = {
        change_bytes, change_time,   change_shape,
        change_way,   change_offset, change_digest};

    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        err_t err = ERR_INIT;

        cr_assert_eq(merge_changed(changes[i], &err), ERR_DATA, "change %zu",
                     i);
        cr_assert_not_null(strstr(err.text, "part-4.h5"), "%s", err.text);
    }
}

/* Merge [bytes] bytes at [packed] into an empty catalogue, in a block of
 * exactly this size, so that sanitizers see reads beyond it. */
static err_code_t merge_alone(const void *packed, size_t bytes)
{
    hdf5io_catalogue_t *catalogue = catalogue_make();
    char *copy = malloc(bytes > 0 ? bytes : 1);
    err_t err = ERR_INIT;
    err_code_t rc;

    cr_assert_not_null(copy);
    memcpy(copy, packed, bytes);
    rc = hdf5io_catalogue_merge(catalogue, copy, bytes, &err);
    cr_assert(rc == ERR_OK || err.text[0] != '\0');
    free(copy);
    hdf5io_catalogue_close(catalogue);
    return rc;
}

Test(catalogue, damaged_bytes_are_refused_or_harmless)
{
    hdf5io_catalogue_t *catalogue = catalogue_make();
    unsigned char *all;
    void *packed = NULL;
    size_t bytes = 0;
    err_t err = ERR_INIT;

    for (int i = 0; i < 12; i++)
        facts_set(catalogue, i);
    cr_assert_eq(hdf5io_catalogue_pack(catalogue, 0, 1, &packed, &bytes, &err),
                 ERR_OK);
    cr_assert_eq(merge_alone(packed, bytes), ERR_OK);
    for (size_t cut = 0; cut < bytes; cut++)
        cr_assert_eq(merge_alone(packed, cut), ERR_DATA, "%zu bytes", cut);
    all = packed;
    for (size_t at = 0; at < bytes; at++)
        for (int bit = 0; bit < 8; bit++) {
            err_code_t rc;

            all[at] ^= (unsigned char)(1U << bit);
            rc = merge_alone(packed, bytes);
            cr_assert(rc == ERR_OK || rc == ERR_DATA);
            all[at] ^= (unsigned char)(1U << bit);
        }
    mem_free(packed);
    hdf5io_catalogue_close(catalogue);
}

Test(catalogue, packed_facts_of_other_shards_are_refused)
{
    hdf5io_catalogue_t *catalogue = catalogue_make(), *fewer = NULL;
    void *packed = NULL;
    size_t bytes = 0;
    err_t err = ERR_INIT;

    facts_set(catalogue, 0);
    cr_assert_eq(hdf5io_catalogue_pack(catalogue, 0, 1, &packed, &bytes, &err),
                 ERR_OK);
    cr_assert_eq(hdf5io_catalogue_open(paths, SHARDS - 1, FIELDS, &fewer, &err),
                 ERR_OK);
    cr_assert_eq(hdf5io_catalogue_merge(fewer, packed, bytes, &err), ERR_DATA);
    hdf5io_catalogue_close(fewer);
    cr_assert_eq(hdf5io_catalogue_open(paths, SHARDS, FIELDS + 1, &fewer, &err),
                 ERR_OK);
    cr_assert_eq(hdf5io_catalogue_merge(fewer, packed, bytes, &err), ERR_DATA);
    hdf5io_catalogue_close(fewer);
    cr_assert_eq(hdf5io_catalogue_open(paths, 0, FIELDS, &fewer, &err), ERR_OK);
    cr_assert_eq(hdf5io_catalogue_merge(fewer, packed, bytes, &err), ERR_DATA);
    hdf5io_catalogue_close(fewer);
    mem_free(packed);
    hdf5io_catalogue_close(catalogue);
}
