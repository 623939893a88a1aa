/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Storage never answers the thread that writes a checkpoint: the run does not
 * wait for ever. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/thread.h"
#include "hdf5io/checkpoint.h"
#include "hdf5io/nodeset.h"
#include "train/saves.h"

/* The step whose checkpoint never comes to an end: on rank 0, or on all ranks.
 */
static _Atomic int64_t stuck_at;
static _Atomic bool stuck_all;

err_code_t
__real_hdf5io_checkpoint_write(const hdf5io_checkpoint_config_t *config,
                               const hdf5io_progress_t *progress,
                               const hdf5io_tensor_t *tensors, int count,
                               hdf5io_checkpoint_info_t *info, err_t *err);
err_code_t
__wrap_hdf5io_checkpoint_write(const hdf5io_checkpoint_config_t *config,
                               const hdf5io_progress_t *progress,
                               const hdf5io_tensor_t *tensors, int count,
                               hdf5io_checkpoint_info_t *info, err_t *err);

static void storage_wait(int64_t step, int rank)
{
    sem_t never;

    if (step != stuck_at || (rank != 0 && !stuck_all))
        return;
    sem_init(&never, 0, 0);
    while (sem_wait(&never) != 0)
        continue;
}

err_code_t
__wrap_hdf5io_checkpoint_write(const hdf5io_checkpoint_config_t *config,
                               const hdf5io_progress_t *progress,
                               const hdf5io_tensor_t *tensors, int count,
                               hdf5io_checkpoint_info_t *info, err_t *err)
{
    storage_wait(progress->step, config->votes->rank);
    return __real_hdf5io_checkpoint_write(config, progress, tensors, count,
                                          info, err);
}

err_code_t __real_hdf5io_nodeset_write(const hdf5io_nodeset_t *set,
                                       const hdf5io_progress_t *progress,
                                       const hdf5io_tensor_t *tensors,
                                       int count, uint64_t *nonce, err_t *err);
err_code_t __wrap_hdf5io_nodeset_write(const hdf5io_nodeset_t *set,
                                       const hdf5io_progress_t *progress,
                                       const hdf5io_tensor_t *tensors,
                                       int count, uint64_t *nonce, err_t *err);
err_code_t __wrap_hdf5io_nodeset_write(const hdf5io_nodeset_t *set,
                                       const hdf5io_progress_t *progress,
                                       const hdf5io_tensor_t *tensors,
                                       int count, uint64_t *nonce, err_t *err)
{
    storage_wait(progress->step, set->checkpoint->votes->rank);
    return __real_hdf5io_nodeset_write(set, progress, tensors, count, nonce,
                                       err);
}

/* cddp-train ends by _exit then. In this test the threads of the run stay. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "report_thread_leaks=0";
}

/* Prepare a run with checkpoint.async whose save of [step] never ends. [every]
 * and [more] (or NULL) are settings. */
static void stuck_open(harness_t *harness, const char *every, const char *more,
                       int64_t step)
{
    saves_open(harness, "checkpoint.async=true", every, "fault.timeout=1 s");
    harness->settings[6] = "fault.io_timeout=1 s";
    harness->settings[7] = more;
    stuck_at = step;
}

/* Run on one rank. Storage does not answer [what]. */
static void stuck_make(const harness_t *harness, const char *what)
{
    train_outcome_t out;
    err_t err = ERR_INIT;
    char word[80];

    cr_expect_eq(harness_run(harness, 1, &out, &err), ERR_IO, "%s", err.text);
    snprintf(word, sizeof word, "not answered the %s of step %d", what,
             (int)stuck_at);
    cr_expect(strstr(err.text, word), "%s", err.text);
    cr_expect_eq(strstr(err.text, "of checkpoint.local") != NULL,
                 strcmp(what, "checkpoint") != 0, "%s", err.text);
    cr_expect(out.stuck && out.speaker);
}

static void stuck_run(const char *every, int64_t step)
{
    harness_t harness;

    stuck_open(&harness, every, NULL, step);
    stuck_make(&harness, "checkpoint");
    harness_close(&harness);
}

Test(save_stuck, the_next_save_gives_it_up, .timeout = 240)
{
    stuck_run("checkpoint.every=2 steps", 2);
}

Test(save_stuck, the_end_of_the_run_gives_it_up, .timeout = 240)
{
    stuck_run("checkpoint.every=9 steps", 9);
}

/* The run waits for its last checkpoint, but not for ever. */
Test(save_stuck, the_last_save_is_given_up, .timeout = 240)
{
    stuck_run("checkpoint.every=never", 10);
}

/* Without checkpoint.async training waits for each checkpoint, but not for
 * ever. */
Test(save_stuck, a_save_between_steps_is_given_up, .timeout = 240)
{
    harness_t harness;

    stuck_open(&harness, "checkpoint.every=2 steps", NULL, 2);
    harness.settings[0] = "checkpoint.async=false";
    stuck_make(&harness, "checkpoint");
    harness_close(&harness);
}

/* Prepare a run like that of stuck_open, but its local checkpoint of step 2
 * never ends. Returns a setting, which the caller frees after the run. */
static char *stuck_local_open(harness_t *harness)
{
    char *option;

    stuck_open(harness, "checkpoint.every=9 steps",
               "checkpoint.local_every=2 steps", 2);
    option = str_printf("checkpoint.local=%s/local", harness->dir);
    harness->settings[8] = option;
    return option;
}

/* The run directory says that the run ended with [status]. */
static void recorded(const harness_t *harness, int status)
{
    static const char *const names[] = {"exit.json", "summary.json"};
    char *want = str_printf("\"status\": %d,", status);

    for (int i = 0; i < 2; i++) {
        char *path = str_printf("%s/run/%s", harness->dir, names[i]);
        char *text = NULL;
        err_t err = ERR_INIT;

        cr_assert_eq(file_read(path, &text, NULL, &err), ERR_OK, "%s",
                     err.text);
        cr_expect_not_null(strstr(text, want), "%s: %s", names[i], text);
        cr_expect(i > 0 || strstr(text, "not answered the local checkpoint"),
                  "%s", text);
        free(text);
        free(path);
    }
    cr_expect_eq(harness_events(harness, "end"), 1);
    free(want);
}

/* The message names the storage of checkpoint.local. The storage of the run
 * directory answers, so the end of the run is recorded there. */
Test(save_stuck, a_local_checkpoint_is_given_up, .timeout = 240)
{
    harness_t harness;
    char *option = stuck_local_open(&harness);

    stuck_make(&harness, "local checkpoint");
    recorded(&harness, ERR_IO);
    free(option);
    harness_close(&harness);
}

typedef struct one {
    const harness_t *harness;
    boot_t *boot;
    err_code_t rc;
} one_t;

static void *one_run(void *argument)
{
    one_t *one = argument;
    train_outcome_t out;
    err_t err = ERR_INIT;

    one->rc = harness_rank_run(one->harness, one->boot, "threads", &out, &err);
    return NULL;
}

/* The storage of checkpoint.local answers no rank: each rank knows only that
 * its own storage does not answer, and rank 0 records this. */
Test(save_stuck, storage_that_answers_no_rank_is_recorded, .timeout = 240)
{
    const boot_config_t config = {.timeout = 20.0};
    one_t ranks[2];
    pthread_t threads[2];
    boot_t *boots[2];
    harness_t harness;
    err_t err = ERR_INIT;
    char *option = stuck_local_open(&harness);

    stuck_all = true;
    cr_assert_eq(boot_threads_open(2, &config, boots, &err), ERR_OK);
    for (int r = 0; r < 2; r++) {
        ranks[r] = (one_t){.harness = &harness, .boot = boots[r]};
        cr_assert_eq(
            thread_start("rank", one_run, &ranks[r], &threads[r], &err),
            ERR_OK);
    }
    for (int r = 0; r < 2; r++)
        pthread_join(threads[r], NULL);
    cr_expect(ranks[0].rc == ERR_PEER && ranks[1].rc == ERR_PEER);
    recorded(&harness, ERR_PEER);
    free(option);
    harness_close(&harness);
}

/* Step 3 has a label of no class: all ranks end with this error. Rank 0, which
 * waits for storage, must report it. On a very busy machine the ranks may give
 * each other up before. Then the test checks less. */
Test(save_stuck, an_error_of_all_ranks_is_said, .timeout = 240)
{
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;
    err_code_t rc;

    stuck_open(&harness, "checkpoint.every=2 steps", "data.shuffle=none", 2);
    harness_label_set(&harness, 2 * 24 + 1, 9);
    rc = harness_run(&harness, 2, &out, &err);
    cr_expect(rc == ERR_DATA || rc == ERR_PEER, "%s", err.text);
    cr_expect(out.stuck);
    cr_expect(out.speaker || rc == ERR_PEER, "%s", err.text);
    harness_close(&harness);
}
