/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The state of a run, in parts, and the functions that need several parts. A
 * function that needs only one part takes that part as its argument.
 */
#ifndef CDDP_TRAIN_RUN_PRIV_H
#define CDDP_TRAIN_RUN_PRIV_H

#include "obs/progress.h"
#include "obs/spent.h"
#include "slurm/watch.h"
#include "train/begin.h"
#include "train/deadline.h"
#include "train/device.h"
#include "train/eval.h"
#include "train/oom.h"
#include "train/own.h"
#include "train/plateau.h"
#include "train/replay.h"
#include "train/replica.h"
#include "train/run.h"
#include "train/saver.h"
#include "train/stage.h"
#include "train/straggler.h"
#include "train/trace.h"
#include "train/turn.h"
#include "train/weigh.h"
#include "train/world.h"

/* Where, and with what, this rank computes. */
typedef struct train_compute {
    train_device_t device;
    dev_device_t *dev; /* that of [device] */
    /* env->versions with the device. NULL: that is the CPU, or nothing is
     * known. */
    char *versions;
    op_type_t type; /* of products: the outcome of train.precision */
    int local;      /* this rank's number on its host */
    int threads;    /* threads of a step, summed over teams */
    /* Cores that this rank has for itself, whatever train.threads is. */
    int cores;
    int teams; /* teams that compute leaves side by side; default mode: 1 */
} train_compute_t;

/* The samples, and the steps of an epoch over them. */
typedef struct train_splits {
    train_data_t train, valid;
    bool inputs_only;     /* the samples of [valid] have no targets */
    unsigned lone;        /* flags of the last step of an epoch: see lone.h */
    hdf5io_mark_t *marks; /* hashes of both splits, for checkpoints */
    int mark_count;
} train_splits_t;

/* Local SGD; see local_sgd.c. */
typedef struct train_local {
    bool step; /* this step uses each rank's own gradients */
    /* Ranks have made updates of their own since the last average. */
    bool apart;
    bool logged;  /* rank 0: that evaluations and checkpoints are delayed */
    double bytes; /* bytes averaged in this step */
} train_local_t;

/* Work that is due at a step boundary; local SGD may delay it. */
typedef struct train_due {
    bool check, evaluate, save;
} train_due_t;

/* Decisions from numbers that all ranks have: all ranks decide alike. */
typedef struct train_agreed {
    train_due_t due;
    bool checkpoint; /* it is time for a checkpoint */
    bool look;       /* it is time to compare the loads of ranks */
    bool stop;       /* write a checkpoint and leave */
    bool saved;      /* the checkpoint before the end is written already */
    bool ended;      /* rank 0's save in progress has ended */
    bool best;       /* the newest evaluation is the best, and not saved yet */
} train_agreed_t;

/* When to leave, so that the last checkpoint is complete before Slurm ends the
 * job; see leave.h. */
typedef struct train_leave {
    slurm_watch_t *watch; /* NULL on other ranks than rank 0, and outside of
                             Slurm */
    train_deadline_t deadline;
    bool known; /* the controller has answered */
} train_leave_t;

/* The newest evaluation. */
typedef struct train_last_eval {
    train_eval_t found;
    int64_t step; /* step after which it was made; -1: no evaluation yet */
} train_last_eval_t;

/* Measurements of this life of the run. */
typedef struct train_life {
    bool opened;        /* train_open has succeeded, so there are results */
    int64_t first_step; /* number of updates before this life */
    /* Seconds from the start of the process to the end of the first step. */
    double first_step_s;
    /* Seconds from the start of main() to the end of the first step. */
    double main_to_step_s;
    double first_step_at; /* wall-clock time of the end of the first step */
    /* Seconds summed over steps: waiting for data; in total. */
    double data_s, step_s;
    /* Seconds of waiting for communication, summed over steps. */
    double exposed_s;
    double peak_rss; /* bytes on the rank that uses most; 0: not known */
    train_oom_t oom;
} train_life_t;

/* What the run shows; see seen.h. */
typedef struct train_seen {
    obs_progress_t *progress; /* open on rank 0, else NULL */
    obs_spent_t spent;
    obs_spent_step_t parts; /* of the newest step, until it is counted */
    double loss;            /* of the newest step */
    double samples;         /* of all steps of this life */
    /* CPU time, and cores, of all ranks; 0: not summed yet */
    double cpu_s, cores;
} train_seen_t;

typedef struct train_state {
    const train_config_t *config;
    const train_env_t *env;
    train_world_t world;
    train_compute_t compute;
    train_dir_t dir;
    train_splits_t data;
    train_stage_t stage; /* copies of the shards on this node */
    nn_graph_t *graph;
    train_replica_t replica;
    train_plateau_t plateau;
    train_weigh_t weigh;  /* denominators of the current step */
    train_turn_t turn;    /* the batch of the next step */
    hdf5io_batch_t there; /* this step's, in the device's memory */
    train_replay_t replay;
    /* A benchmark's samples for every step; NULL: the loader's. */
    const hdf5io_batch_t *given;
    double lr; /* learning rate of the current step */
    train_local_t local;
    hdf5io_progress_t progress;
    hdf5io_skip_t newest; /* samples of the newest step; count 0: none yet */
    train_agreed_t agreed;
    train_leave_t leave;
    train_saving_t saving;
    train_evaluator_t evaluator;
    train_last_eval_t last_eval;
    train_life_t life;
    train_seen_t seen;
    train_straggler_t straggler;
    train_trace_t trace;
} train_state_t;

/* open.c: initialize [run] before train_open. [run] must not move after this
 * call. */
void train_state_init(train_state_t *run, const train_config_t *config,
                      const train_env_t *env, boot_t *boot);

/* step.c: make one step, and advance run->progress. All ranks get one outcome:
 * ERR_DATA or another error of the rank that met it, ERR_DIVERGED, or ERR_PEER.
 * After an error the parameters are those before the step, except that ERR_PEER
 * may come during the update or after it, and that a spike of the loss
 * (ERR_DIVERGED) is seen after it. Collective; blocks. */
err_code_t train_step(train_state_t *run, err_t *err);
/* As train_step, with [batch] instead of a batch of the loader: the same one in
 * each step, if the host is not the device. */
err_code_t train_step_batch(train_state_t *run, const hdf5io_batch_t *batch,
                            err_t *err);

/* eval.c: evaluate every validation sample once; changes no weights. All ranks
 * get one outcome. Collective; blocks. */
err_code_t train_evaluate(train_state_t *run, train_eval_t *out, err_t *err);

/* resume.c: read the checkpoint from which the run resumes, if there is one.
 * Changes nothing in the run directory. All ranks get one outcome. Collective;
 * blocks. */
err_code_t train_restore(train_state_t *run, err_t *err);
/* Read the newest checkpoint of this run again, in mid-run, into the mirror and
 * run->progress. All ranks get one outcome. Collective; blocks. */
err_code_t train_restore_again(train_state_t *run, err_t *err);

/* join.c: agree with the other ranks on build and configuration, open the group
 * of the run, and the device on which this rank computes. All ranks get one
 * outcome. Collective; blocks. */
err_code_t train_join(train_state_t *run, err_t *err);

/* open.c: do everything that comes before the first step. All ranks get one
 * outcome. train_close frees what is open, also after a failure. Collective;
 * blocks. */
err_code_t train_open(train_state_t *run, err_t *err);
/* As train_open, for a benchmark: [steps] steps per epoch with samples that the
 * caller makes, no run directory, no checkpoint. */
err_code_t train_open_bench(train_state_t *run, int64_t steps, err_t *err);
/* Begin again to read training samples, at the run's place in its epoch.
 * Local. */
err_code_t train_loader_restart(train_state_t *run, err_t *err);
void train_close(train_state_t *run);

#endif
