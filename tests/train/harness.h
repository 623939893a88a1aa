/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * harness: runs whole trainings inside a test, in a temporary directory, with
 * ranks as threads. The data is a small two-class problem that a model with
 * few weights learns.
 */
#ifndef CDDP_TESTS_TRAIN_HARNESS_H
#define CDDP_TESTS_TRAIN_HARNESS_H

#include "train/run.h"

#define HARNESS_RANKS_MAX 16
#define HARNESS_FEATURES 12

typedef struct harness {
    char dir[256]; /* directory of the test; removed by harness_close */
    const char *settings[16]; /* --set assignments, NULL-terminated */
    train_resume_t resume;
    const char *resume_path;
    const char *predict; /* the file of --predict; NULL: train */
    int restarts;        /* how often the job was restarted */
    /* signal that a look finds; NULL: there is none */
    slurm_signal_t (*signal)(void);
    slurm_signal_t (*signal_start)(void); /* the signal in start-up */
    const ddp_hook_ops_t *const *hooks;   /* hooks beside the built-in ones */
} harness_t;

/* Make a directory with train.h5 of [samples] and valid.h5 of 64 samples.
 * Datasets: inputs /x [12]; class /y (0 or 1); words /w [3] (0 to 4); real
 * numbers /z [2]; probabilities /h [2], 1 for the sample's class and 0 for the
 * other one; weights /v, 0 for every seventh sample and 1 for the others. */
void harness_open(harness_t *harness, int samples);
void harness_close(harness_t *harness);

/* Read the run file with the settings, as a run reads it. The caller frees
 * *tree and, on success, [config]. */
err_code_t harness_config(const harness_t *harness, tree_t **tree,
                          train_config_t *config, err_t *err);

/* Run on [ranks] threads. Returns the error code of all ranks (they must
 * agree), the message of the rank that reports in [err], and the outcome of
 * rank 0 in [out]. */
err_code_t harness_run(const harness_t *harness, int ranks,
                       train_outcome_t *out, err_t *err);

/* Run one rank, whose connection is [boot]; this closes [boot]. [backend] is
 * the backend that "auto" means for its group. */
err_code_t harness_rank_run(const harness_t *harness, boot_t *boot,
                            const char *backend, train_outcome_t *out,
                            err_t *err);

/* Like harness_run, and asserts that the run succeeds. */
void harness_run_ok(const harness_t *harness, int ranks, train_outcome_t *out);

/* From now on the [looks]-th look for a signal, counted over all ranks, finds
 * one that asks for a checkpoint. */
void harness_interrupt(harness_t *harness, int looks);

/* Run to the end, interrupted at every [looks]-th look for a signal. Life i of
 * the run has lives[i % 2] ranks. Returns the number of lives. */
int harness_run_interrupted(harness_t *harness, int looks, const int lives[2],
                            train_outcome_t *out);

/* Like harness_run_ok. Returns what the run prints on standard error; free()
 * it. */
char *harness_listen(const harness_t *harness, int ranks);

/* Add a copy of /x to train.h5 and valid.h5: [name], in compressed chunks of
 * [rows] samples. [h5]: only HDF5 can undo its filters. */
void harness_chunks_add(const harness_t *harness, const char *name, int rows,
                        bool h5);

/* Overwrite the label of [row] in train.h5, or read it. */
void harness_label_set(const harness_t *harness, int row, int label);
int harness_label_get(const harness_t *harness, int row);

/* Overwrite all features of [row] in train.h5 with [value]. */
void harness_input_set(const harness_t *harness, int row, float value);

/* The number of lines with this event in the run's lives.jsonl. */
int harness_events(const harness_t *harness, const char *event);

/* Read the values of [key] from the rows of metrics.jsonl that describe
 * evaluations, or else steps, into [values], which has space for [room]
 * numbers. null becomes NaN. Returns the number of values. */
int harness_values(const harness_t *harness, bool evaluations, const char *key,
                   double *values, int room);

/* Assert that the newest checkpoints of both runs are of step [step] (-1: any
 * step) and have the same tensors. Elements may differ by at most [tolerance]
 * times max(magnitude, 1); 0: they are equal bit for bit. A failure message
 * names [what]. */
void harness_compare(const harness_t *a, const harness_t *b, int64_t step,
                     double tolerance, const char *what);

#endif
