/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "crash_scenes.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "ckpt_fixture.h"
#include "hdf5io/checkpoint_prune.h"
#include "hdf5io/checkpoint_repair.h"
#include "hdf5io/checkpoint_sweep.h"

#define RANKS 2
#define LATER 90 /* seed and step of the next save */
/* 0: the value of ckpt_fixture.h */
typedef struct save {
    int64_t step;
    int keep;
    int64_t keep_every;
    const hdf5io_best_t *best;
    bool together; /* all ranks write one shard */
    bool later;    /* the save leaves old checkpoints to hdf5io_sweep */
} save_t;

static void body_save(ckpt_rank_t *rank, void *context)
{
    const save_t *save = context;

    rank->config.io = NULL;
    if (save->step != 0)
        rank->state.progress.step = save->step;
    if (save->keep != 0)
        rank->config.keep = save->keep;
    rank->config.keep_every = save->keep_every;
    rank->config.best = save->best;
    rank->config.retire_later = save->later;
    rank->config.heads = save->together ? ckpt_heads_together : NULL;
    ckpt_body_write(rank, NULL);
}

static err_code_t save_run(const char *home, int64_t seed, save_t save,
                           err_t *err)
{
    ckpt_rank_t *ranks = ckpt_ranks_run(home, RANKS, seed, body_save, &save);
    const err_code_t rc = ranks[0].code;

    err_copy(err, &ranks[0].err);
    ckpt_ranks_free(ranks, RANKS);
    return rc;
}

/* ---- what was there before ----------------------------------------------- */

static void save_whole(const char *home, int64_t seed, save_t save)
{
    err_t err = ERR_INIT;

    cr_assert_eq(save_run(home, seed, save, &err), ERR_OK, "%s", err.text);
}

static void prepare_nothing(const char *home)
{
    (void)home;
}

static void prepare_one(const char *home)
{
    save_whole(home, 10, (save_t){0});
}

static void prepare_four(const char *home)
{
    for (int64_t step = 1; step <= 4; step++)
        save_whole(home, step, (save_t){.keep = 4});
}

/* A run ended before it had deleted three retired checkpoints. */
static void prepare_remainders(const char *home)
{
    for (int64_t step = 1; step <= 4; step++)
        save_whole(home, step, (save_t){.keep = 1, .later = true});
}

static void prepare_best(const char *home)
{
    const hdf5io_best_t best = {"valid_loss", 0.5, 5};

    save_whole(home, 5, (save_t){.best = &best});
    save_whole(home, 8, (save_t){0});
    save_whole(home, 10, (save_t){0});
}

static void prepare_best_last(const char *home)
{
    const hdf5io_best_t best = {"valid_loss", 0.5, 30};

    save_whole(home, 10, (save_t){0});
    save_whole(home, 20, (save_t){0});
    save_whole(home, 30, (save_t){.best = &best});
}

static void entry_rename(const char *home, const char *from, const char *to)
{
    char *old = str_printf("%s/%s", home, from);
    char *new = str_printf("%s/%s", home, to);

    cr_assert_eq(rename(old, new), 0, "%s", strerror(errno));
    free(new);
    free(old);
}

/* A run was killed after it wrote the manifest of step 15, and before it gave
 * the directory its name. */
static void prepare_debris(const char *home)
{
    save_whole(home, 10, (save_t){0});
    save_whole(home, 15, (save_t){0});
    entry_rename(home, "step-0000000015",
                 ".tmp-step-0000000015-00000000000000aa");
    save_whole(home, 15, (save_t){0});
    entry_rename(home, "step-0000000015",
                 ".trash-step-0000000015-00000000000000bb");
}

static void prepare_three(const char *home)
{
    save_whole(home, 10, (save_t){0});
    save_whole(home, 20, (save_t){0});
    save_whole(home, 30, (save_t){0});
}

static void prepare_leftovers(const char *home)
{
    prepare_three(home);
    entry_rename(home, "step-0000000030",
                 "superseded-step-0000000030-00000000000000aa");
    entry_rename(home, "step-0000000020",
                 ".trash-step-0000000020-00000000000000bb");
    save_whole(home, 25, (save_t){0});
}

static void prepare_superseded(const char *home)
{
    prepare_three(home);
    entry_rename(home, "step-0000000030",
                 "superseded-step-0000000030-00000000000000aa");
}

/* ---- acts ---------------------------------------------------------------- */

static err_code_t act_save(const char *home, err_t *err)
{
    return save_run(home, 20, (save_t){0}, err);
}

static err_code_t act_together(const char *home, err_t *err)
{
    return save_run(home, 20, (save_t){.together = true}, err);
}

static err_code_t act_replace(const char *home, err_t *err)
{
    return save_run(home, 20, (save_t){.step = 10, .keep = 1}, err);
}

static err_code_t act_retire(const char *home, err_t *err)
{
    return save_run(home, 20, (save_t){.keep = 1}, err);
}

static bool goes_on(void *context)
{
    (void)context;
    return false;
}

static err_code_t act_sweep(const char *home, err_t *err)
{
    (void)err;
    hdf5io_sweep(&hdf5io_io_system,
                 &(hdf5io_sweep_t){.directory = home, .stop = goes_on});
    return ERR_OK;
}

static err_code_t act_retire_later(const char *home, err_t *err)
{
    const save_t save = {.keep = 1, .later = true};
    const err_code_t rc = save_run(home, 20, save, err);

    return rc == ERR_OK ? act_sweep(home, err) : rc;
}

/* The run continues from step 20, though there is a checkpoint of step 30. */
static err_code_t act_back(const char *home, err_t *err)
{
    return save_run(home, 25, (save_t){0}, err);
}

static err_code_t act_best(const char *home, err_t *err)
{
    const hdf5io_best_t best = {"valid_loss", 0.25, 20};

    return save_run(home, 20,
                    (save_t){.keep = 1, .keep_every = 4, .best = &best}, err);
}

static err_code_t act_supersede(const char *home, err_t *err)
{
    char *path = str_printf("%s/step-0000000010", home);
    bool elsewhere;
    const err_code_t rc =
        hdf5io_checkpoint_supersede(home, path, 10, &elsewhere, err);

    free(path);
    return rc;
}

static err_code_t act_prune(const char *home, err_t *err)
{
    hdf5io_leftover_t *list = NULL;
    int count = 0;
    err_code_t rc = hdf5io_prune_list(home, &list, &count, err);

    for (int i = 0; rc == ERR_OK && i < count; i++)
        rc = hdf5io_prune_remove(&list[i], err);
    free(list);
    return rc;
}

/* The superseded checkpoint becomes a normal one again. */
static err_code_t act_repair(const char *home, err_t *err)
{
    hdf5io_entry_t *list = NULL;
    int count = 0;
    err_code_t rc =
        hdf5io_dir_list_all(&hdf5io_io_system, home, &list, &count, err);

    for (int i = 0; rc == ERR_OK && i < count; i++)
        if (list[i].kind == HDF5IO_SUPERSEDED)
            rc = hdf5io_repair_check(home, &list[i], err) == ERR_OK
                     ? hdf5io_repair_adopt(home, &list[i], err)
                     : err->code;
    free(list);
    return rc;
}

#define SAVE false, 19
#define SAVE_NFS true, 19
#define RENAMES false, 3

const crash_scene_t crash_scenes[] = {
    {"first", SAVE, prepare_nothing, act_save, {{0, 0}}, {20, 20}},
    {"next", SAVE, prepare_one, act_save, {{10, 10}}, {20, 20}},
    {"together", SAVE, prepare_one, act_together, {{10, 10}}, {20, 20}},
    {"replace", SAVE, prepare_one, act_replace, {{10, 10}}, {20, 10}},
    {"replace on NFS",
     SAVE_NFS,
     prepare_one,
     act_replace,
     {{10, 10}},
     {20, 10}},
    {"retire", SAVE, prepare_four, act_retire, {{4, 4}}, {20, 20}},
    {"retire later", SAVE, prepare_four, act_retire_later, {{4, 4}}, {20, 20}},
    {"sweep", RENAMES, prepare_remainders, act_sweep, {{4, 4}}, {4, 4}},
    {"best", SAVE, prepare_best, act_best, {{10, 10}}, {20, 20}},
    {"debris", SAVE, prepare_debris, act_save, {{15, 15}}, {20, 20}},
    {"back", SAVE, prepare_three, act_back, {{30, 30}, {20, 20}}, {25, 25}},
    {"back before the best",
     SAVE,
     prepare_best_last,
     act_back,
     {{30, 30}, {20, 20}},
     {25, 25}},
    {"supersede",
     RENAMES,
     prepare_three,
     act_supersede,
     {{30, 30}, {20, 20}, {10, 10}},
     {10, 10}},
    {"prune", RENAMES, prepare_leftovers, act_prune, {{25, 25}}, {25, 25}},
    {"repair",
     RENAMES,
     prepare_superseded,
     act_repair,
     {{20, 20}, {30, 30}},
     {30, 30}},
};
const int crash_scene_count = sizeof crash_scenes / sizeof *crash_scenes;

/* ---- what is found ------------------------------------------------------- */

char *crash_root_make(void)
{
    char *home, *real;

    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1);
    home = ckpt_home_make();
    real = realpath(home, NULL);
    cr_assert_not_null(real);
    free(home);
    return real;
}

static void body_find(ckpt_rank_t *rank, void *context)
{
    rank->config.io = NULL;
    ckpt_body_read(rank, context);
}

/* The seed of the state that [rank] has read: the number of its step, or 20
 * (see act_replace); 0: neither. */
static int64_t seed_of(const ckpt_rank_t *rank)
{
    const int64_t seeds[] = {rank->info.progress.step, 20};
    int64_t seed = 0;

    for (int i = 0; i < 2 && seed == 0; i++) {
        ckpt_state_t want;

        ckpt_state_make(&want, seeds[i]);
        if (ckpt_state_same(&rank->state, &want))
            seed = seeds[i];
        ckpt_state_free(&want);
    }
    return seed;
}

crash_state_t crash_find(const char *home, err_code_t *code, err_t *err)
{
    ckpt_rank_t *ranks = ckpt_ranks_run(home, RANKS, 1, body_find, NULL);
    crash_state_t found = {0, 0};

    *code = ranks[0].code;
    err_copy(err, &ranks[0].err);
    for (int r = 0; r < RANKS; r++) {
        cr_assert_eq(ranks[r].code, ranks[0].code);
        cr_assert_eq(ranks[r].found, ranks[0].found);
    }
    if (*code == ERR_OK && ranks[0].found) {
        found =
            (crash_state_t){seed_of(&ranks[0]), ranks[0].info.progress.step};
        cr_assert_neq(found.seed, 0, "%s has bits that were never saved",
                      ranks[0].info.path);
        cr_assert(ckpt_state_same(&ranks[0].state, &ranks[1].state));
    }
    ckpt_ranks_free(ranks, RANKS);
    return found;
}

void crash_best_judge(const char *home)
{
    hdf5io_best_t best;
    err_t err = ERR_INIT;
    char *path;

    cr_assert_eq(hdf5io_best_read(&hdf5io_io_system, home, &best, &err), ERR_OK,
                 "%s", err.text);
    if (best.step < 0)
        return;
    path = str_printf("%s/step-%010d", home, (int)best.step);
    cr_assert_eq(hdf5io_checkpoint_verify(path, NULL, &err), ERR_OK,
                 "the best one: %s", err.text);
    free(path);
}

static bool same_state(crash_state_t a, crash_state_t b)
{
    return a.seed == b.seed && a.step == b.step;
}

bool crash_allowed(const crash_scene_t *scene, crash_state_t found, bool done,
                   bool failed)
{
    if (same_state(found, scene->after) && !failed)
        return true;
    if (done)
        return false;
    if (same_state(found, scene->before[0])) /* may be none */
        return true;
    for (int i = 1; i < CRASH_STATES_MAX; i++)
        if (found.seed != 0 && same_state(found, scene->before[i]))
            return true;
    return false;
}

void crash_go_on(const char *home)
{
    save_whole(home, LATER, (save_t){0});
    ckpt_expect(home, RANKS, LATER);
    cr_assert_eq(ckpt_count(home, "."), 0);
}
