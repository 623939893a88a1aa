/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Saves in a thread: the files have the bytes of a save between steps, although
 * the tensors change meanwhile; one save follows another; and what is wrong on
 * one rank is the outcome of all ranks.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "lib/ranks.h"
#include "train/patience.h"
#include "train/saver.h"

#define TENSORS 4
#define ELEMS 3000 /* of each tensor */
#define TIMEOUT 30.0
#define SAVES 100

/* Seconds: fault.timeout, and fault.io_timeout (0: as long as fault.timeout).
 */
static double patience = TIMEOUT, storage_patience;

/* ---- what a rank may lack ------------------------------------------------ */

/* The call that fails on this rank, which is a thread. */
static _Thread_local const char *lacking;

err_code_t __real_hdf5io_share_buffer(hdf5io_share_t *share, err_t *err);
err_code_t __wrap_hdf5io_share_buffer(hdf5io_share_t *share, err_t *err);
err_code_t __wrap_hdf5io_share_buffer(hdf5io_share_t *share, err_t *err)
{
    if (lacking != NULL && strcmp(lacking, "memory") == 0)
        return err_set(err, ERR_MEMORY, "there is no memory");
    return __real_hdf5io_share_buffer(share, err);
}

err_code_t __real_train_patience_open(comm_group_t *group, double timeout,
                                      double limit, train_patience_t **out,
                                      err_t *err);
err_code_t __wrap_train_patience_open(comm_group_t *group, double timeout,
                                      double limit, train_patience_t **out,
                                      err_t *err);
err_code_t __wrap_train_patience_open(comm_group_t *group, double timeout,
                                      double limit, train_patience_t **out,
                                      err_t *err)
{
    if (lacking != NULL && strcmp(lacking, "thread") == 0)
        return err_set(err, ERR_MEMORY, "there is no thread");
    return __real_train_patience_open(group, timeout, limit, out, err);
}

/* ---- one rank ------------------------------------------------------------ */

/* What the ranks of a test do, and in which directories. */
typedef struct plan {
    char *plain, *behind; /* checkpoints between steps, and of the saver */
    int size;
} plan_t;

/* The state of a rank: a whole tensor, one in parts, one of zeros and, last,
 * the state of a hook. */
typedef struct rank {
    comm_group_t *group;
    hdf5io_votes_t votes;
    float data[TENSORS][ELEMS];
    hdf5io_tensor_t tensors[TENSORS];
    hdf5io_part_t parts[8];
    train_kept_t kept;
    train_saver_t *saver;
    int published, alone;
} rank_t;

static err_code_t exchange(void *context, const void *mine, size_t bytes,
                           void *all, err_t *err)
{
    return comm_allgather(((rank_t *)context)->group, mine, bytes, all, err);
}

/* The state after [step]. */
static void state_make(rank_t *rank, int64_t step)
{
    for (int t = 0; t < TENSORS; t++)
        for (int e = 0; e < ELEMS; e++)
            rank->data[t][e] =
                t == 2 ? 0 : (float)(step * 1000 + t) + (float)e / 8192;
}

static void kept_make(rank_t *rank)
{
    static const char *const names[TENSORS] = {"model/a", "optimizer/m/a",
                                               "model/b", "hook/residual"};
    const int size = rank->votes.size;

    for (int t = 0; t < TENSORS; t++)
        rank->tensors[t] = (hdf5io_tensor_t){.name = names[t],
                                             .ndim = 2,
                                             .dims = {ELEMS / 10, 10},
                                             .data = rank->data[t]};
    for (int r = 0; r < size; r++) {
        const int64_t first = (int64_t)ELEMS * r / size;

        rank->parts[r] = (hdf5io_part_t){
            .rank = r,
            .first = first,
            .count = (int64_t)ELEMS * (r + 1) / size - first,
            .data = r == rank->votes.rank ? &rank->data[1][first] : NULL};
    }
    rank->tensors[1].parts = rank->parts;
    rank->tensors[1].part_count = size;
    rank->kept = (train_kept_t){
        .tensors = rank->tensors, .count = TENSORS, .hook_count = 1};
}

/* Open a rank and its saver. rank_close closes it, also after a failure. */
static err_code_t rank_open(const comm_oob_t *oob, rank_t *rank, err_t *err)
{
    const comm_config_t config = {
        .backend = oob->size == 1 ? "self" : "threads", .timeout = patience};
    train_saver_plan_t plan;
    err_code_t rc = comm_group_open(&config, oob, &rank->group, err);

    rank->votes = (hdf5io_votes_t){.context = rank,
                                   .rank = oob->rank,
                                   .size = oob->size,
                                   .exchange = exchange};
    if (rc != ERR_OK)
        return rc;
    kept_make(rank);
    rc = hdf5io_share_open(rank->tensors, TENSORS, oob->rank, oob->size,
                           &rank->kept.share, err);
    plan = (train_saver_plan_t){
        .parent = rank->group,
        .io_timeout = storage_patience > 0 ? storage_patience : patience,
        .kept = &rank->kept,
        .copies = true};
    return rc == ERR_OK ? train_saver_open(&plan, &rank->saver, err) : rc;
}

static void rank_close(rank_t *rank)
{
    train_saver_close(rank->saver);
    hdf5io_share_close(rank->kept.share);
    comm_group_close(rank->group);
}

static hdf5io_checkpoint_config_t config_of(rank_t *rank, const char *directory)
{
    return (hdf5io_checkpoint_config_t){.directory = directory,
                                        .votes = &rank->votes,
                                        .keep = 2,
                                        .config_text = ""};
}

static err_code_t refuse(void *context, err_t *err)
{
    const rank_t *rank = context;

    return rank->votes.rank == 0 ? err_set(err, ERR_IO, "it is not ours")
                                 : ERR_OK;
}

static void count(void *context, double seconds)
{
    rank_t *rank = context;

    rank->published += seconds >= 0;
}

static train_save_t
save_of(rank_t *rank, const hdf5io_checkpoint_config_t *config, int64_t step)
{
    return (train_save_t){.config = config,
                          .progress = {.step = step, .best = -1},
                          .saved_step = -1,
                          .context = rank,
                          .published = count};
}

/* ---- running ranks ------------------------------------------------------- */

static plan_t plan_open(int size)
{
    char plain[] = "/tmp/cddp-saver-XXXXXX",
         behind[] = "/tmp/cddp-saver-XXXXXX";

    cr_assert_not_null(mkdtemp(plain));
    cr_assert_not_null(mkdtemp(behind));
    return (plan_t){str_dup(plain), str_dup(behind), size};
}

static void plan_close(plan_t *plan)
{
    file_remove_tree(plan->plain, NULL);
    file_remove_tree(plan->behind, NULL);
    free(plan->plain);
    free(plan->behind);
}

/* Run [body] on all ranks: each opens a saver before and closes it after. */
typedef int (*body_t)(rank_t *rank, const plan_t *plan);

typedef struct call {
    const plan_t *plan;
    body_t body;
} call_t;

static int rank_main(const comm_oob_t *oob, void *argument)
{
    const call_t *call = argument;
    rank_t *rank = calloc(1, sizeof *rank);
    err_t err = ERR_INIT;
    int failed = 1;

    if (rank == NULL)
        return 1;
    if (rank_open(oob, rank, &err) == ERR_OK)
        failed = call->body(rank, call->plan);
    else
        fprintf(stderr, "%s\n", err.text);
    rank_close(rank);
    free(rank);
    return failed;
}

static void ranks_run(const plan_t *plan, body_t body)
{
    call_t call = {plan, body};

    cr_assert_eq(ranks_threads(plan->size, rank_main, &call), 0);
}

/* ---- the same bytes ------------------------------------------------------ */

static int both_ways(rank_t *rank, const plan_t *plan)
{
    hdf5io_checkpoint_config_t config = config_of(rank, plan->plain);
    train_save_t save = save_of(rank, &config, 3);
    double seconds = -1;
    err_t err = ERR_INIT;

    state_make(rank, 3);
    RANKS_OK(hdf5io_checkpoint_write(&config, &save.progress, rank->tensors,
                                     TENSORS, NULL, &err),
             err);
    config.directory = plan->behind;
    RANKS_CHECK(!train_saver_busy(rank->saver));
    train_saver_start(rank->saver, &save);
    RANKS_CHECK(train_saver_busy(rank->saver));
    /* What a backward changes, then what an update changes. */
    memset(rank->data[TENSORS - 1], 0x7f, sizeof rank->data[TENSORS - 1]);
    RANKS_CHECK(train_saver_settle(rank->saver) >= 0);
    memset(rank->data, 0x7f, sizeof rank->data);
    RANKS_OK(train_saver_join(rank->saver, &seconds, &err), err);
    RANKS_CHECK(seconds >= 0 && !train_saver_busy(rank->saver));
    RANKS_CHECK(rank->published == 1);
    return 0;
}

static void shards_compare(const plan_t *plan)
{
    for (int r = 0; r < plan->size; r++) {
        const char *const homes[] = {plan->plain, plan->behind};
        char *bytes[2] = {NULL, NULL};
        size_t counts[2] = {0, 0};
        err_t err = ERR_INIT;

        for (int i = 0; i < 2; i++) {
            char *path =
                str_printf("%s/step-%010d/shard-%d.h5", homes[i], 3, r);

            cr_assert_eq(file_read(path, &bytes[i], &counts[i], &err), ERR_OK,
                         "%s", err.text);
            free(path);
        }
        cr_assert_eq(counts[0], counts[1]);
        cr_assert_eq(memcmp(bytes[0], bytes[1], counts[0]), 0,
                     "shard %d of %d differs", r, plan->size);
        free(bytes[0]);
        free(bytes[1]);
    }
}

Test(saver, writes_the_bytes_of_a_save_between_steps, .timeout = 120)
{
    static const int sizes[] = {1, 2, 4};

    for (int i = 0; i < 3; i++) {
        plan_t plan = plan_open(sizes[i]);

        ranks_run(&plan, both_ways);
        shards_compare(&plan);
        plan_close(&plan);
    }
}

/* ---- one after the other ------------------------------------------------- */

static int many(rank_t *rank, const plan_t *plan)
{
    const hdf5io_checkpoint_config_t config = config_of(rank, plan->behind);
    double seconds;
    err_t err = ERR_INIT;

    for (int64_t step = 1; step <= SAVES; step++) {
        const train_save_t save = save_of(rank, &config, step);

        state_make(rank, step);
        train_saver_start(rank->saver, &save);
        train_saver_settle(rank->saver);
        state_make(rank, -step);
        RANKS_OK(train_saver_join(rank->saver, &seconds, &err), err);
    }
    RANKS_CHECK(rank->published == SAVES);
    return 0;
}

/* Read back the newest checkpoint. */
static int newest_read(rank_t *rank, const plan_t *plan)
{
    const hdf5io_checkpoint_config_t config = config_of(rank, plan->behind);
    hdf5io_checkpoint_info_t info;
    bool found = false;
    err_t err = ERR_INIT;

    RANKS_OK(hdf5io_checkpoint_read(&config, NULL, rank->tensors, TENSORS,
                                    &found, &info, &err),
             err);
    RANKS_CHECK(found && info.progress.step == SAVES);
    RANKS_CHECK(rank->data[0][5] == (float)(SAVES * 1000) + 5.0f / 8192);
    return 0;
}

Test(saver, saves_follow_each_other, .timeout = 300)
{
    plan_t plan = plan_open(2);

    ranks_run(&plan, many);
    ranks_run(&plan, newest_read);
    plan_close(&plan);
}

static sem_t answer; /* of storage */

static err_code_t silent(void *context, err_t *err)
{
    (void)context;
    (void)err;
    while (sem_wait(&answer) != 0)
        continue;
    return ERR_OK;
}

static void waits_note(void *context)
{
    (void)context;
    sem_post(&answer);
}

/* A save in progress is finished when the saver is closed. Storage answers only
 * after training has said that it waits. */
static int start_only(rank_t *rank, const plan_t *plan)
{
    const hdf5io_checkpoint_config_t config = config_of(rank, plan->behind);
    train_save_t save = save_of(rank, &config, SAVES);

    save.allowed = silent;
    save.waits = waits_note;
    state_make(rank, SAVES);
    train_saver_start(rank->saver, &save);
    train_saver_close(rank->saver);
    rank->saver = NULL;
    RANKS_CHECK(rank->published == 1);
    return 0;
}

Test(saver, closing_finishes_the_save, .timeout = 120)
{
    plan_t plan = plan_open(2);

    sem_init(&answer, 0, 0);
    ranks_run(&plan, start_only);
    ranks_run(&plan, newest_read);
    plan_close(&plan);
}

/* ---- what is wrong ------------------------------------------------------- */

/* One number of the last rank is not finite, in its part of a tensor. */
static int spoilt(rank_t *rank, const plan_t *plan)
{
    const hdf5io_checkpoint_config_t config = config_of(rank, plan->behind);
    const train_save_t save = save_of(rank, &config, 4);
    double seconds;
    err_t err = ERR_INIT;

    state_make(rank, 4);
    if (rank->votes.rank == rank->votes.size - 1)
        rank->data[1][ELEMS - 1] = NAN;
    train_saver_start(rank->saver, &save);
    RANKS_CHECK(train_saver_join(rank->saver, &seconds, &err) == ERR_DIVERGED);
    RANKS_CHECK(strstr(err.text, "optimizer/m/a") != NULL);
    RANKS_CHECK(rank->published == 0);
    return 0;
}

static int refused(rank_t *rank, const plan_t *plan)
{
    const hdf5io_checkpoint_config_t config = config_of(rank, plan->behind);
    train_save_t save = save_of(rank, &config, 4);
    double seconds;
    err_t err = ERR_INIT;

    state_make(rank, 4);
    save.allowed = refuse;
    train_saver_start(rank->saver, &save);
    RANKS_CHECK(train_saver_join(rank->saver, &seconds, &err) == ERR_IO);
    RANKS_CHECK(strstr(err.text, "it is not ours") != NULL);
    RANKS_CHECK(rank->published == 0);
    return 0;
}

Test(saver, one_rank_speaks_for_all, .timeout = 120)
{
    plan_t plan = plan_open(3);

    ranks_run(&plan, spoilt);
    ranks_run(&plan, refused);
    cr_assert_eq(rmdir(plan.behind), 0, "something was left in it");
    plan_close(&plan);
}

/* Rank 1 cannot open its saver: no rank gets one, and none waits for it. */
typedef struct lack {
    const char *what, *words;
} lack_t;

static int lack_main(const comm_oob_t *oob, void *argument)
{
    const lack_t *lack = argument;
    rank_t *rank = calloc(1, sizeof *rank);
    err_t err = ERR_INIT;
    err_code_t rc;

    if (rank == NULL)
        return 1;
    lacking = oob->rank == 1 ? lack->what : NULL;
    rc = rank_open(oob, rank, &err);
    lacking = NULL;
    RANKS_CHECK(rc == ERR_MEMORY && rank->saver == NULL);
    RANKS_CHECK(strstr(err.text, "rank 1 on ") != NULL);
    RANKS_CHECK(strstr(err.text, lack->words) != NULL);
    rank_close(rank);
    free(rank);
    return 0;
}

Test(saver, a_rank_without_one_keeps_no_other_waiting, .timeout = 120)
{
    lack_t lacks[] = {{"memory", "there is no memory"},
                      {"thread", "there is no thread"}};

    for (int i = 0; i < 2; i++)
        cr_expect_eq(ranks_threads(3, lack_main, &lacks[i]), 0, "%s",
                     lacks[i].what);
}

/* A rank that leaves ends the saves of the others. */
static int deserted(rank_t *rank, const plan_t *plan)
{
    const hdf5io_checkpoint_config_t config = config_of(rank, plan->behind);
    const train_save_t save = save_of(rank, &config, 4);
    double seconds;
    err_t err = ERR_INIT;

    if (rank->votes.rank == 1)
        return 0;
    state_make(rank, 4);
    train_saver_start(rank->saver, &save);
    RANKS_CHECK(train_saver_join(rank->saver, &seconds, &err) == ERR_PEER);
    RANKS_CHECK(err.culprit == 1 && rank->published == 0);
    return 0;
}

Test(saver, ends_with_a_rank_that_leaves, .timeout = 120)
{
    plan_t plan = plan_open(3);

    ranks_run(&plan, deserted);
    plan_close(&plan);
}

/* ---- storage that does not answer ---------------------------------------- */

/* What the thread of a stuck saver uses must stay. */
static rank_t *left;

static int stuck_main(const comm_oob_t *oob, void *argument)
{
    const plan_t *plan = argument;
    rank_t *rank = calloc(1, sizeof *rank);
    static hdf5io_checkpoint_config_t config;
    train_save_t save;
    double seconds;
    err_t err = ERR_INIT;

    left = rank;
    if (rank == NULL)
        return 1;
    RANKS_OK(rank_open(oob, rank, &err), err);
    RANKS_CHECK(train_saver_wait(NULL) && train_saver_wait(rank->saver));
    config = config_of(rank, plan->behind);
    save = save_of(rank, &config, 4);
    save.allowed = silent;
    state_make(rank, 4);
    train_saver_start(rank->saver, &save);
    RANKS_CHECK(!train_saver_stuck(rank->saver));
    RANKS_CHECK(!train_saver_wait(rank->saver));
    RANKS_CHECK(train_saver_stuck(rank->saver));
    RANKS_CHECK(train_saver_join(rank->saver, &seconds, &err) == ERR_IO);
    RANKS_CHECK(strstr(err.text, "not answered the checkpoint of step 4"));
    train_saver_close(rank->saver); /* neither waits nor frees */
    return 0;
}

Test(saver, storage_that_never_answers_is_given_up, .timeout = 120)
{
    plan_t plan = plan_open(1);

    patience = 0.1;
    sem_init(&answer, 0, 0);
    cr_assert_eq(ranks_threads(1, stuck_main, &plan), 0);
    cr_assert(left != NULL && train_saver_stuck(left->saver));
    plan_close(&plan);
}

/* Storage answers this rank only after this rank has said that it waits alone.
 */
static void alone_note(void *context, double seconds)
{
    rank_t *rank = context;

    rank->alone += seconds > storage_patience;
    sem_post(&answer);
}

/* Rank 0 waits for storage, and rank 1 gives up the save. */
static int alone_wait(rank_t *rank, const plan_t *plan)
{
    const hdf5io_checkpoint_config_t config = config_of(rank, plan->behind);
    train_save_t save = save_of(rank, &config, 4);
    double seconds;
    err_t err = ERR_INIT;

    if (rank->votes.rank == 1) {
        err_set_peer(&err, 0, NULL, "it makes no progress");
        train_saver_tell(rank->saver, &err);
        return 0;
    }
    save.allowed = silent;
    save.alone = alone_note;
    state_make(rank, 4);
    train_saver_start(rank->saver, &save);
    RANKS_CHECK(train_saver_join(rank->saver, &seconds, &err) == ERR_PEER);
    RANKS_CHECK(err.culprit == 0 && !train_saver_stuck(rank->saver));
    RANKS_CHECK(rank->alone == 1 && rank->published == 0);
    return 0;
}

Test(saver, a_rank_that_waits_alone_says_so, .timeout = 120)
{
    plan_t plan = plan_open(2);

    storage_patience = 0.05;
    sem_init(&answer, 0, 0);
    ranks_run(&plan, alone_wait);
    plan_close(&plan);
}
