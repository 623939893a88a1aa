/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Ranks as threads, each with a data directory of its own, as if they were on
 * hosts with local disks. */
#include "train/same.h"

#include <criterion/criterion.h>
#include <regex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../hdf5io/open.h"
#include "lib/ranks.h"
#include "train/vote.h"

#define RANKS 3
#define ROWS 20000

typedef struct plan {
    char *directory[RANKS];
    train_validate_t how;
    err_code_t code; /* expected of all ranks */
    const char *say; /* expected message, a regular expression; NULL: none */
    atomic_int alive;
    /* digests of shard 0 that each rank finds */
    uint64_t first[RANKS], full[RANKS];
} plan_t;

static void count_alive(void *context)
{
    atomic_fetch_add((atomic_int *)context, 1);
}

static bool is_like(const char *text, const char *pattern)
{
    regex_t regex;
    bool like;

    if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0)
        return false;
    like = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return like;
}

static int same_main(const comm_oob_t *oob, void *argument)
{
    plan_t *plan = argument;
    const comm_config_t config = {.backend = "threads", .timeout = 20};
    comm_group_t *group = NULL;
    hdf5io_dataset_t *dataset = NULL;
    train_marks_t marks = {0};
    train_votes_t votes;
    open_setup_t setup;
    err_t err = ERR_INIT;
    err_code_t rc;
    bool speaker;

    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    votes = train_votes_of_group(group);
    open_setup(&setup, plan->directory[oob->rank], "part-*.h5");
    RANKS_OK(hdf5io_dataset_open(&setup.config, &dataset, &err), err);
    rc = train_same(&(train_same_t){.group = group,
                                    .what = "data.train",
                                    .how = plan->how,
                                    .alive = count_alive,
                                    .context = &plan->alive},
                    dataset, &marks, &err);
    RANKS_CHECK(oob->rank > 0 || rc == ERR_OK);
    if (rc == ERR_OK && marks.quick != NULL)
        plan->first[oob->rank] = marks.quick[0];
    if (rc == ERR_OK && marks.full != NULL)
        plan->full[oob->rank] = marks.full[0];
    rc = train_vote(&votes, rc, &speaker, &err);
    if (rc != plan->code ||
        (plan->say != NULL && !is_like(err.text, plan->say)))
        fprintf(stderr, "rank %d: status %d: %s\n", oob->rank, (int)rc,
                err.text);
    RANKS_CHECK(rc == plan->code);
    RANKS_CHECK(plan->say == NULL || is_like(err.text, plan->say));
    train_marks_free(&marks);
    hdf5io_dataset_close(dataset);
    open_setup_free(&setup);
    comm_group_close(group);
    return 0;
}

/* Write three shards into each rank's directory, with equal contents. */
static void plan_open(plan_t *plan)
{
    char name[32];

    memset(plan, 0, sizeof *plan);
    for (int r = 0; r < RANKS; r++) {
        plan->directory[r] = files_make();
        for (int s = 0; s < 3; s++) {
            snprintf(name, sizeof name, "part-%d.h5", s);
            open_write(plan->directory[r], name,
                       r == 1 ? FILES_GZIP : FILES_CONTIGUOUS, s * ROWS, ROWS);
        }
    }
}

static void plan_close(plan_t *plan)
{
    for (int r = 0; r < RANKS; r++)
        files_remove(plan->directory[r]);
}

static void expect(plan_t *plan, err_code_t rc, const char *say)
{
    plan->code = rc;
    plan->say = say;
    cr_assert_eq(ranks_threads(RANKS, same_main, plan), 0);
}

Test(same, copies_are_the_same_data_compressed_or_not)
{
    plan_t plan;

    plan_open(&plan);
    for (int how = 0; how < 3; how++) {
        plan.how = (train_validate_t)how;
        memset(plan.first, 0, sizeof plan.first);
        memset(plan.full, 0, sizeof plan.full);
        expect(&plan, ERR_OK, NULL);
        cr_assert_eq(plan.first[0] != 0, how != TRAIN_VALIDATE_NONE);
        cr_assert_eq(plan.full[0] != 0, how == TRAIN_VALIDATE_FULL);
        for (int r = 1; r < RANKS; r++) {
            cr_assert_eq(plan.first[r], plan.first[0]);
            cr_assert_eq(plan.full[r], plan.full[0]);
        }
    }
    cr_assert_gt(atomic_load(&plan.alive), 0);
    plan_close(&plan);
}

/* Ranks of one host that read the same files share the work. Their digests are
 * those that one rank alone finds. */
Test(same, who_shares_the_work_finds_the_same_marks)
{
    plan_t plan, mates;
    char *own[RANKS];

    plan_open(&plan);
    plan.how = TRAIN_VALIDATE_FULL;
    expect(&plan, ERR_OK, NULL);
    memset(&mates, 0, sizeof mates);
    mates.how = TRAIN_VALIDATE_FULL;
    for (int r = 0; r < RANKS; r++)
        mates.directory[r] = plan.directory[r == 1 ? 0 : r];
    memcpy(own, mates.directory, sizeof own);
    expect(&mates, ERR_OK, NULL);
    for (int r = 0; r < RANKS; r++) {
        cr_assert_eq(mates.first[r], plan.first[0]);
        cr_assert_eq(mates.full[r], plan.full[0]);
    }
    plan_close(&plan);
}

Test(same, other_labels_are_refused)
{
    plan_t plan;

    plan_open(&plan);
    open_write(plan.directory[2], "part-1.h5", FILES_CONTIGUOUS, ROWS + 1,
               ROWS);
    expect(&plan, ERR_DATA,
           "^rank 2 on .*: data.train: .*/part-1.h5 holds other numbers in "
           "/spins here than on ");
    plan_close(&plan);
}

/* Only one label differs; the number of samples is equal. */
Test(same, one_number_is_found_by_full_alone)
{
    /* a row between two of the pieces that a quick check reads */
    const int64_t at = 700;
    plan_t plan;
    char *path;

    plan_open(&plan);
    path = files_path(plan.directory[1], "part-2.h5");
    files_poke(path, "/phase", at,
               open_phase(2 * ROWS + at, 0) > 0 ? 0.0 : 1.0);
    expect(&plan, ERR_OK, NULL);
    plan.how = TRAIN_VALIDATE_FULL;
    expect(&plan, ERR_DATA,
           "^rank 1 on .*part-2.h5 holds other numbers in /phase here than");
    free(path);
    plan_close(&plan);
}

Test(same, other_numbers_of_samples_are_refused_whatever_is_looked_at)
{
    plan_t plan;

    plan_open(&plan);
    open_write(plan.directory[1], "part-1.h5", FILES_CONTIGUOUS, ROWS,
               ROWS - 1);
    for (int how = 0; how < 3; how++) {
        plan.how = (train_validate_t)how;
        expect(
            &plan, ERR_DATA,
            "^rank 1 on .*part-1.h5 holds 19999 samples here, but 20000 on ");
    }
    plan_close(&plan);
}

/* The total number of samples is equal, but the shards are cut elsewhere. */
Test(same, a_missing_shard_is_named)
{
    plan_t plan;
    char *path;

    plan_open(&plan);
    path = files_path(plan.directory[1], "part-1.h5");
    cr_assert_eq(unlink(path), 0);
    open_write(plan.directory[1], "part-2.h5", FILES_CONTIGUOUS, ROWS,
               2 * ROWS);
    expect(&plan, ERR_DATA,
           "^rank 1 on .*: 2 shards are here, but 3 on .*: number 2 is "
           ".*/part-2.h5 here and part-1.h5 there");
    free(path);
    plan_close(&plan);
}

Test(same, another_type_is_refused)
{
    const files_column_t columns[] = {
        {"/spins", 2, {3, 4}, H5T_STD_I16LE, open_spin},
        {"/phase", 0, {0}, H5T_STD_I64LE, open_phase}};
    plan_t plan;
    char *path, name[32];

    plan_open(&plan);
    for (int s = 0; s < 3; s++) {
        snprintf(name, sizeof name, "part-%d.h5", s);
        path = files_path(plan.directory[2], name);
        files_write(path, FILES_CONTIGUOUS, s * ROWS, ROWS, columns, 2);
        free(path);
    }
    plan.how = TRAIN_VALIDATE_NONE;
    expect(&plan, ERR_DATA,
           "^rank 2 on .*part-0.h5 have another shape or type here than on ");
    plan_close(&plan);
}

/* Overwrite the bytes of a chunk of dataset [name] in the file [path]. */
static void chunk_spoil(const char *path, const char *name)
{
    char bytes[32] = "not what gzip has written here.";
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    hid_t space = H5Dget_space(set);
    haddr_t at = HADDR_UNDEF;
    FILE *raw;

    cr_assert_geq(H5Dget_chunk_info(set, space, 0, NULL, NULL, &at, NULL), 0);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
    raw = fopen(path, "r+");
    cr_assert_not_null(raw);
    cr_assert_eq(fseek(raw, (long)at, SEEK_SET), 0);
    cr_assert_eq(fwrite(bytes, sizeof bytes, 1, raw), 1);
    cr_assert_eq(fclose(raw), 0);
}

/* A rank that cannot read its file reports that, and no rank reports different
 * data. */
Test(same, a_file_that_cannot_be_read_is_no_other_data)
{
    plan_t plan;
    char *path;

    plan_open(&plan);
    path = files_path(plan.directory[1], "part-0.h5");
    chunk_spoil(path, "/spins");
    for (int how = 0; how < 2; how++) {
        plan.how = (train_validate_t)how;
        expect(&plan, ERR_DATA, "^rank 1 on .*part-0.h5: cannot read /spins");
    }
    free(path);
    plan_close(&plan);
}
