/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Storage that never answers the thread of a checkpoint: the run does not wait
 * for it for ever. */
#include <criterion/criterion.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "hdf5io/checkpoint.h"
#include "train/harness.h"

/* The step whose checkpoint never comes to an end. */
static _Atomic int64_t stuck_at;

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

err_code_t
__wrap_hdf5io_checkpoint_write(const hdf5io_checkpoint_config_t *config,
                               const hdf5io_progress_t *progress,
                               const hdf5io_tensor_t *tensors, int count,
                               hdf5io_checkpoint_info_t *info, err_t *err)
{
    static sem_t never;

    if (progress->step == stuck_at) {
        sem_init(&never, 0, 0);
        while (sem_wait(&never) != 0)
            continue;
    }
    return __real_hdf5io_checkpoint_write(config, progress, tensors, count,
                                          info, err);
}

/* A program ends by _exit then. Here the threads of the run stay. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "report_thread_leaks=0";
}

/* Make a run whose save of [step] never ends. */
static void stuck_run(const char *const *settings, int64_t step)
{
    train_outcome_t out;
    harness_t harness;
    err_t err = ERR_INIT;
    char word[80];

    harness_open(&harness, 101);
    harness.settings[0] = "train.batch=24"; /* 5 steps in an epoch */
    harness.settings[1] = "train.epochs=2";
    harness.settings[2] = "checkpoint.async=true";
    harness.settings[3] = "fault.timeout=1 s";
    harness.settings[4] = "fault.io_timeout=1 s";
    for (int i = 0; settings[i] != NULL; i++)
        harness.settings[5 + i] = settings[i];
    stuck_at = step;
    cr_expect_eq(harness_run(&harness, 1, &out, &err), ERR_IO, "%s", err.text);
    snprintf(word, sizeof word, "not answered the checkpoint of step %d",
             (int)step);
    cr_expect(strstr(err.text, word), "%s", err.text);
    cr_expect(out.stuck && out.speaker);
    harness_close(&harness);
}

Test(save_stuck, the_next_save_gives_it_up, .timeout = 240)
{
    stuck_run((const char *const[]){"checkpoint.every=2 steps", NULL}, 2);
}

Test(save_stuck, the_end_of_the_run_gives_it_up, .timeout = 240)
{
    stuck_run((const char *const[]){"checkpoint.every=9 steps", NULL}, 9);
}

/* The last checkpoint of the run, for which it waits. */
Test(save_stuck, the_last_save_is_given_up, .timeout = 240)
{
    stuck_run((const char *const[]){"checkpoint.every=never", NULL}, 10);
}
