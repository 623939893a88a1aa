/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The state of a run, and what the files that are parts of it offer. */
#ifndef CDDP_TRAIN_RUN_PRIV_H
#define CDDP_TRAIN_RUN_PRIV_H

#include "hdf5io/loader.h"
#include "obs/metrics.h"
#include "train/data.h"
#include "train/eval.h"
#include "train/patience.h"
#include "train/replica.h"
#include "train/run.h"
#include "train/rundir.h"
#include "train/vote.h"

/* What the loss of a step is divided by; see weigh.c below. */
enum {
    WEIGH_DENOMINATOR,
    WEIGH_COUNTED, /* elements of targets that count */
    WEIGH_SUMS
};

typedef struct train_weigh {
    double sums[NN_FIELDS_MAX][WEIGH_SUMS]; /* of each loss: of all ranks, once
                                               finished */
    double own[NN_FIELDS_MAX];              /* this rank's denominators */
    comm_work_t *work;
} train_weigh_t;

/* Local SGD; see local_sgd.c below. */
typedef struct train_local {
    bool step;    /* the step under way is on this rank's own gradients */
    bool apart;   /* ranks differ since the last average */
    bool told;    /* that something waits for it */
    double bytes; /* averaged in this step */
} train_local_t;

/* What step boundaries have to do; with local SGD it may wait. */
typedef struct train_due {
    bool check, evaluate, save;
} train_due_t;

typedef struct train_state {
    const train_config_t *config;
    const train_env_t *env;
    boot_t *boot;        /* NULL once closed */
    comm_group_t *group; /* control and data group: one and the same on CPUs */
    train_votes_t votes;
    train_patience_t *patience; /* NULL: one rank */
    int rank, size, threads;
    int cores;     /* that this rank has to itself, whatever train.threads */
    int teams;     /* that compute leaves side by side; 1 in the default mode */
    bool bf16;     /* what train.precision came to */
    bool speaker;  /* result of the last vote */
    bool owns_dir; /* this run holds the run directory's lock */
    bool accepted; /* until then nothing in the directory is changed */
    bool opened;   /* train_open is through: there are results */
    bool first;    /* what the command line says of resuming counts */
    char *resumed; /* the checkpoint that the run goes on from; NULL: none */
    train_rundir_t *rundir; /* rank 0 */
    h5mpi_t *mpi;           /* io: mpi */
    nn_graph_t *graph;
    train_data_t train, valid;
    unsigned lone; /* of the last step of an epoch: see train_lone_check */
    hdf5io_mark_t *marks; /* of both, as checkpoints keep them */
    int mark_count;
    train_replica_t replica;
    obs_metrics_t *metrics; /* rank 0 */
    train_weigh_t weigh;    /* of the step under way */
    train_local_t local;
    train_due_t due;
    hdf5io_progress_t progress;
    int64_t first_step;     /* of this life */
    double last_checkpoint; /* clock */
    int64_t saved_step;     /* of the newest checkpoint; -1: none */
    bool checkpoint_due;    /* agreed by all ranks in the last step */
    bool stop;              /* agreed: checkpoint and leave */
    bool saved;             /* the checkpoint to leave with is written */
    double first_step_s;    /* since the process was started */
    double main_to_step_s;  /* since main() */
    double first_step_at;   /* wall clock */
    double data_s, step_s;  /* sums over the steps of this life */
    double exposed_s;       /* of communication, too */
    double peak_rss;        /* bytes, of the rank with most; 0: not yet known */
    train_eval_room_t room;
    train_eval_t eval;
    int64_t eval_step; /* step of eval, -1: none */
    const char *phase;
} train_state_t;

/* phase.c: say where this rank is, to peers and for the record. */
void train_phase_set(train_state_t *run, const char *phase);
/* The same for a phase in which storage may be slow, until train_storage_end;
 * called again in it when there is progress. */
void train_storage_begin(train_state_t *run, const char *phase);
void train_storage_end(train_state_t *run);

/*
 * weigh.c: what a step's loss is divided by, in run->weigh. Where the targets
 * decide, the sums of all ranks are added while forward runs; else they are
 * known beforehand. begin and finish are collective, in this order, whatever
 * happens to a rank in between; finish may be called again and then does
 * nothing. [batch] NULL: this rank has an error and adds nothing.
 */
err_code_t train_weigh_begin(train_state_t *run, const hdf5io_batch_t *batch,
                             err_t *err);
err_code_t train_weigh_finish(train_state_t *run, err_t *err);
/* Reproducible mode: both, along the tree of leaves. */
err_code_t train_weigh_leaves(train_state_t *run, const hdf5io_batch_t *batch,
                              err_t *err);
/* What the gradients of each loss are multiplied by: its weight over its
 * denominator; 0 if nothing counts (on any rank; in a local step, on this one).
 * False: all are 0, and there is nothing to update with. */
bool train_weigh_scales(const train_state_t *run, double scales[NN_FIELDS_MAX]);

/* The means of a step's losses, whose sums over all ranks are in [tail] (see
 * replica.h), into [out]; NaN where nothing counts. Their weighted sum into
 * [sum]; false, and NaN, if nothing counts in any. */
bool train_weigh_losses(const train_state_t *run, const double *tail,
                        double out[NN_FIELDS_MAX], double *sum);

/* step.c: one update. All ranks get the same outcome. */
err_code_t train_step(train_state_t *run, err_t *err);
/* The same with [batch] instead of what the loader reads. */
err_code_t train_step_batch(train_state_t *run, const hdf5io_batch_t *batch,
                            err_t *err);

/* Where the time of a step goes, seconds; begin is a clock instant. */
typedef struct train_times {
    double begin, data, forward, backward;
    double tree; /* reducing apart from buckets, all of it exposed */
} train_times_t;

/*
 * local_sgd.c: whether the step that comes is on own gradients; begin says so
 * to the reducer, behind ddp_step_begin. check finds a gradient that is no
 * number while others can still be told, as they will not see it. end averages
 * if it is time, when the step's progress is known; collective. apart: ranks
 * differ, so that what is due has to wait; says so once.
 */
bool train_local_due(const train_state_t *run);
void train_local_begin(train_state_t *run);
err_code_t train_local_check(train_state_t *run, const hdf5io_batch_t *batch,
                             err_t *err);
err_code_t train_local_end(train_state_t *run, train_times_t *times,
                           err_t *err);
bool train_local_apart(train_state_t *run);

/* flags.c: what signals and clocks ask for, into a tail or a vector of its own.
 */
void train_flags_fill(train_state_t *run, double *flags);

/* batch_part.c: the samples from [from] on of [whole], as nn takes them. */
nn_batch_t train_batch_part(const train_state_t *run,
                            const hdf5io_batch_t *whole, int64_t from);

/* leaves.c: a step's sums in reproducible mode. [own] is this rank's own error
 * so far; the sums land where the default mode has them. Collective. */
err_code_t train_leaves_step(train_state_t *run, const hdf5io_batch_t *batch,
                             train_times_t *times, err_code_t *own, err_t *err);

/* eval.c: choose the metrics, and make room for their sums. Local. */
err_code_t train_eval_open(train_state_t *run, err_t *err);
/* The names of what an evaluation of this run tells; the numbers mean nothing.
 * There are validation shards. */
void train_eval_names(train_state_t *run, train_eval_t *out);
void train_eval_close(train_state_t *run);

/* eval_forward.c: forward of [count] samples by team [member]; what was found
 * is written to [sums], which begin at EVAL_FLAGS. */
err_code_t train_eval_forward(train_state_t *run, int member,
                              const nn_batch_t *batch, int64_t count,
                              double *sums, err_t *err);

/* leaves.c: an evaluation step in reproducible mode: this rank's leaves folded,
 * then, from EVAL_FLAGS on, summed over ranks into [sums]. The first is local,
 * so that its errors are known before anybody reduces. */
err_code_t train_leaves_eval_open(train_state_t *run, err_t *err);
err_code_t train_leaves_eval(train_state_t *run, const hdf5io_batch_t *batch,
                             err_t *err);
err_code_t train_leaves_eval_reduce(train_state_t *run,
                                    const hdf5io_batch_t *batch, double *sums,
                                    err_t *err);

/* eval.c: every validation sample once; changes no state. Collective. */
err_code_t train_evaluate(train_state_t *run, train_eval_t *out, err_t *err);

/* resume.c. Collective; restore changes nothing in the run directory. */
err_code_t train_checkpoint(train_state_t *run, err_t *err);
err_code_t train_restore(train_state_t *run, err_t *err);

/* open.c: everything up to the first step, and its undoing. Collective. */
err_code_t train_open(train_state_t *run, err_t *err);
/* The same for a benchmark: [steps] steps an epoch of data that the caller
 * makes, no run directory, no checkpoint. */
err_code_t train_open_bench(train_state_t *run, int64_t steps, err_t *err);
void train_close(train_state_t *run);

#endif
