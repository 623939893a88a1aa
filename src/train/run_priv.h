/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The state of a run, in parts, and the functions that work on several of them.
 * A function that needs one part takes that part.
 */
#ifndef CDDP_TRAIN_RUN_PRIV_H
#define CDDP_TRAIN_RUN_PRIV_H

#include "hdf5io/loader.h"
#include "train/begin.h"
#include "train/data.h"
#include "train/eval.h"
#include "train/plateau.h"
#include "train/replica.h"
#include "train/run.h"
#include "train/weigh.h"
#include "train/world.h"

/* What this rank computes with. */
typedef struct train_compute {
    int threads; /* of a step, all teams together */
    int cores;   /* that this rank has to itself, whatever train.threads is */
    int teams;   /* that compute leaves side by side; 1 in the default mode */
    bool bf16;   /* what train.precision came to */
} train_compute_t;

/* The samples, and the steps of an epoch over them. */
typedef struct train_splits {
    train_data_t train, valid;
    unsigned lone;        /* of the last step of an epoch: see lone.h */
    hdf5io_mark_t *marks; /* hashes of both splits, for checkpoints */
    int mark_count;
} train_splits_t;

/* Local SGD: see local_sgd.c. */
typedef struct train_local {
    bool step;    /* this step uses each rank's own gradients */
    bool apart;   /* ranks differ since the last average */
    bool logged;  /* rank 0 has logged that evaluations and saves are delayed */
    double bytes; /* averaged in this step */
} train_local_t;

/* What is to do at a step boundary; local SGD may delay it. */
typedef struct train_due {
    bool check, evaluate, save;
} train_due_t;

/* Decisions that all ranks share, as they all know what led to them. */
typedef struct train_agreed {
    train_due_t due;
    bool checkpoint; /* the time for one has come */
    bool stop;       /* write a checkpoint and leave */
    bool saved;      /* the checkpoint to leave with is written */
} train_agreed_t;

/* The newest evaluation. */
typedef struct train_last_eval {
    train_eval_t found;
    int64_t step; /* after which it was made; -1: there is none */
} train_last_eval_t;

/* What this life of the run has measured. */
typedef struct train_life {
    bool opened;           /* train_open has succeeded: there are results */
    int64_t first_step;    /* updates before this life */
    double first_step_s;   /* end of the first step, since the process began */
    double main_to_step_s; /* the same, since main() began */
    double first_step_at;  /* the same, wall clock */
    double data_s, step_s; /* sums over steps: waiting for data; all */
    double exposed_s;      /* sum over steps: waiting for communication */
    double peak_rss;       /* bytes, of the rank with most; 0: not known */
} train_life_t;

typedef struct train_state {
    const train_config_t *config;
    const train_env_t *env;
    train_world_t world;
    train_compute_t compute;
    train_dir_t dir;
    train_splits_t data;
    nn_graph_t *graph;
    train_replica_t replica;
    train_plateau_t plateau;
    train_weigh_t weigh; /* of the step under way */
    train_local_t local;
    hdf5io_progress_t progress;
    train_agreed_t agreed;
    train_evaluator_t evaluator;
    train_last_eval_t last_eval;
    train_life_t life;
} train_state_t;

/* open.c: a state before train_open. [run] must not move from here on. */
void train_state_init(train_state_t *run, const train_config_t *config,
                      const train_env_t *env, boot_t *boot);

/* step.c: one update. All ranks get the same outcome. Collective. */
err_code_t train_step(train_state_t *run, err_t *err);
/* The same with [batch] instead of what the loader reads. */
err_code_t train_step_batch(train_state_t *run, const hdf5io_batch_t *batch,
                            err_t *err);

/* Where the time of a step goes, in seconds; begin is a clock instant. */
typedef struct train_times {
    double begin, data, forward, backward;
    double tree; /* reductions beside those of buckets; none of it overlaps */
} train_times_t;

/*
 * local_sgd.c. due: is the next step one on own gradients? begin, after
 * ddp_step_begin, tells the reducer. check: ERR_DIVERGED or ERR_DATA for a
 * gradient that is not finite, while this rank can still tell the others, who
 * never see it. end averages if it is time; collective. apart: ranks differ, so
 * what is due has to wait, which it logs once.
 */
bool train_local_due(const train_state_t *run);
void train_local_begin(train_state_t *run);
err_code_t train_local_check(const train_state_t *run,
                             const hdf5io_batch_t *batch, err_t *err);
err_code_t train_local_end(train_state_t *run, train_times_t *times,
                           err_t *err);
bool train_local_apart(train_state_t *run);

/* flags.c: write to [flags] what signals and clocks ask for. */
void train_flags_fill(const train_state_t *run, double *flags);

/* leaves.c: the sums of a step in reproducible mode, into the places where the
 * default mode has them. [own] is this rank's own error so far. Collective. */
err_code_t train_leaves_step(train_state_t *run, const hdf5io_batch_t *batch,
                             train_times_t *times, err_code_t *own, err_t *err);

/* leaves.c: an evaluation step in reproducible mode. The first call sums over
 * the leaves of this rank, and is local: its errors are known before anybody
 * reduces. The second adds the ranks' sums, into [sums] from EVAL_FLAGS on. */
err_code_t train_leaves_eval(train_state_t *run, const hdf5io_batch_t *batch,
                             err_t *err);
err_code_t train_leaves_eval_reduce(train_state_t *run,
                                    const hdf5io_batch_t *batch, double *sums,
                                    err_t *err);

/* eval.c: every validation sample once; changes no weights. Collective. */
err_code_t train_evaluate(train_state_t *run, train_eval_t *out, err_t *err);

/* checkpoint.c: write one. Collective. */
err_code_t train_checkpoint(train_state_t *run, err_t *err);

/* resume.c: read the checkpoint that the run goes on from, if there is one.
 * Changes nothing in the run directory. Collective. */
err_code_t train_restore(train_state_t *run, err_t *err);

/* open.c: everything up to the first step, and its undoing. Collective. */
err_code_t train_open(train_state_t *run, err_t *err);
/* The same for a benchmark: [steps] steps an epoch of samples that the caller
 * makes, no run directory, no checkpoint. */
err_code_t train_open_bench(train_state_t *run, int64_t steps, err_t *err);
void train_close(train_state_t *run);

#endif
