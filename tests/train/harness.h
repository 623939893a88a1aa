/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * harness: whole runs inside a test, in a directory of their own, with ranks as
 * threads. The data is a small two-class problem that a model of a few weights
 * learns.
 */
#ifndef CDDP_TESTS_TRAIN_HARNESS_H
#define CDDP_TESTS_TRAIN_HARNESS_H

#include "train/run.h"

#define HARNESS_RANKS_MAX 16
#define HARNESS_FEATURES 12

typedef struct harness {
    char dir[256];            /* of the test; removed by harness_close */
    const char *settings[16]; /* --set assignments, NULL-terminated */
    train_resume_t resume;
    const char *resume_path;
    int restarts;                       /* of the job */
    slurm_signal_t (*signal)(void);     /* NULL: none */
    const ddp_hook_ops_t *const *hooks; /* beside the built-in ones */
} harness_t;

/* Make a directory with train.h5 of [samples] and valid.h5 of 64 samples: /x
 * [12], its class /y, the words /w [3] (0 to 4), real numbers /z [2], /h [2], 1
 * for its class and 0 for the other one, and /v, 0 for every seventh sample and
 * 1 for the others. */
void harness_open(harness_t *harness, int samples);
void harness_close(harness_t *harness);

/* The run file with the settings, as a run would read it; the caller frees
 * *tree, and on success [config]. */
err_code_t harness_config(const harness_t *harness, tree_t **tree,
                          train_config_t *config, err_t *err);

/* Run on [ranks] threads; the code of all ranks (they must agree), the
 * speaker's sentence in [err], rank 0's outcome in [out]. */
err_code_t harness_run(const harness_t *harness, int ranks,
                       train_outcome_t *out, err_t *err);

/* The same, and asserts that it ends well. */
void harness_run_ok(const harness_t *harness, int ranks, train_outcome_t *out);

/* From now on the [looks]-th look for a signal, whichever rank's it is, finds
 * one that asks for a checkpoint. */
void harness_interrupt(harness_t *harness, int looks);

/* Run to the end, interrupted every [looks] looks; life i has lives[i % 2]
 * ranks. Returns the number of lives. */
int harness_run_interrupted(harness_t *harness, int looks, const int lives[2],
                            train_outcome_t *out);

/* The same, and returns what the run says on standard error; free() it. */
char *harness_listen(const harness_t *harness, int ranks);

/* Overwrite the label of [row] in train.h5, or read it. */
void harness_label_set(const harness_t *harness, int row, int label);
int harness_label_get(const harness_t *harness, int row);

/* The values of [key] in the rows of metrics.jsonl that are of steps, or of
 * evaluations, into [values] of [room]; null is NaN. Returns how many. */
int harness_values(const harness_t *harness, bool evaluations, const char *key,
                   double *values, int room);

/* The newest checkpoints of both runs are of step [step] (-1: any) and hold the
 * same tensors, whose elements differ by at most [tolerance] times their size
 * or one (0: bit for bit); asserts, with [what] for the sentence. */
void harness_compare(const harness_t *a, const harness_t *b, int64_t step,
                     double tolerance, const char *what);

#endif
