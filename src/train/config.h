/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* config: the run file as a checked struct. The option table train_options is
 * its only description: YAML, --set, the resolved config.yaml and
 * docs/CONFIG.md all use it. */
#ifndef CDDP_TRAIN_CONFIG_H
#define CDDP_TRAIN_CONFIG_H

#include "base/opt.h"
#include "ddp/ddp.h"
#include "hdf5io/checkpoint.h"
#include "hdf5io/dataset.h"
#include "optim/optim.h"
#include "slurm/job.h"

typedef enum train_io {
    TRAIN_IO_INDEPENDENT,
    TRAIN_IO_MPI,
    TRAIN_IO_STAGE /* of data.io only */
} train_io_t;

typedef enum train_samples {
    TRAIN_SAMPLES_ROWS,
    TRAIN_SAMPLES_FILES
} train_samples_t;

typedef enum train_diverge {
    TRAIN_DIVERGE_STOP,
    TRAIN_DIVERGE_ROLLBACK
} train_diverge_t;

typedef enum train_scale {
    TRAIN_SCALE_NONE,
    TRAIN_SCALE_LINEAR,
    TRAIN_SCALE_SQRT
} train_scale_t;

typedef enum train_precision {
    TRAIN_FP32,
    TRAIN_BF16,
    TRAIN_PRECISION_AUTO,
    TRAIN_TF32
} train_precision_t;

typedef enum train_recompute {
    TRAIN_RECOMPUTE_NONE,
    TRAIN_RECOMPUTE_BLOCKS
} train_recompute_t;

typedef enum train_tb {
    TRAIN_TB_AUTO,
    TRAIN_TB_TRUE,
    TRAIN_TB_FALSE
} train_tb_t;

typedef enum train_async {
    TRAIN_ASYNC_AUTO,
    TRAIN_ASYNC_TRUE,
    TRAIN_ASYNC_FALSE
} train_async_t;

typedef enum train_best_by {
    TRAIN_BEST_NONE,
    TRAIN_BEST_ACCURACY,
    TRAIN_BEST_LOSS
} train_best_by_t;

typedef enum train_verify {
    TRAIN_VERIFY_CACHE,
    TRAIN_VERIFY_DISK
} train_verify_t;

/* The value of checkpoint.writers: one of its words, or a number. */
typedef enum train_writers {
    TRAIN_WRITERS_AUTO,
    TRAIN_WRITERS_NODE,
    TRAIN_WRITERS_RANK,
    TRAIN_WRITERS_NUMBER
} train_writers_t;

typedef enum train_trace_kind {
    TRAIN_TRACE_NONE,
    TRAIN_TRACE_CHROME
} train_trace_kind_t;

typedef struct train_config {
    struct {
        char *name;
        char *dir; /* resolved by train_config_read */
        int64_t seed;
    } run;
    struct {
        opt_texts_t train, valid;
        opt_map_t input, target; /* maps of hdf5io_field_t; see train_field */
        int64_t sequence;  /* tokens per sample; 0: samples are indexed along
                              dimension 0 */
        int samples;       /* train_samples_t */
        int shuffle;       /* hdf5io_shuffle_t */
        int64_t lanes;     /* 0: order 1 of shuffle: chunk */
        bool lanes_chosen; /* the run file sets [lanes]; see order.h */
        int64_t prefetch;
        int64_t threads;    /* 0: 2, or 1 if the rank has one core */
        int64_t open_files; /* 0: half of what the process may open */
        int64_t memory;     /* bytes; 0: see train_limits_pool */
        int io;             /* train_io_t */
        char *stage_dir;    /* "": see train/stage.c */
        int validate;       /* train_validate_t, see same.h */
    } data;
    /* subtrees of the run file */
    const tree_t *model, *loss, *metrics, *optimizer, *schedule;
    optim_ema_t ema;
    struct {
        int64_t epochs, batch, accumulate, threads, log_every;
        double clip_norm, clip_value;
        int device; /* index in dev_choices */
        bool share_gpu, graphs;
        int precision; /* train_precision_t */
        int recompute; /* train_recompute_t */
        int scale_lr;  /* train_scale_t */
        int64_t base_batch;
        opt_every_t eval_every;
        bool reproducible;
        int64_t microbatch, leaf_threads;
    } train;
    ddp_config_t ddp;
    struct {
        opt_every_t every;
        int64_t keep, keep_every; /* keep_every: steps; 0: none */
        int io;                   /* train_io_t */
        opt_ints_t writers;       /* a number, or a train_writers_t */
        int verify;               /* train_verify_t */
        int best;                 /* train_best_by_t */
        int async;                /* train_async_t */
        double reserve;           /* seconds */
        int64_t failures;         /* of saves in a row, which end the run */
        int64_t format;           /* version of the manifest */
        char *init; /* a safetensors file, or a directory; "": random weights */
        char *local; /* a directory of each node; "": none */
        opt_every_t local_every;
        opt_texts_t init_skip;
    } checkpoint;
    struct {
        double timeout;      /* seconds */
        double io_timeout;   /* seconds */
        opt_texts_t signals; /* names, see slurm_signal_choose */
        int diverge;         /* train_diverge_t */
        double spike;        /* standard deviations; 0: off */
        int64_t rollbacks;   /* at most HDF5IO_SKIPS_MAX */
        int64_t io_retries;  /* at most RETRY_TRIES_MOST */
    } fault;
    struct {
        double every;     /* seconds */
        int tensorboard;  /* train_tb_t */
        char *prometheus; /* a directory; "": none */
        int trace;        /* train_trace_kind_t */
        char *trace_steps;
    } obs;
} train_config_t;

extern const opt_row_t train_options[];

/*
 * Fill [config] from the parsed run file [tree], which must outlive [config],
 * and check the rules that involve several keys. run.dir becomes the directory
 * of a run of [job] (see dir_name.h); files of statistics are replaced by the
 * numbers in them. [job] NULL: the job is not known yet, so
 * {array} and {job} stay in run.dir. train_config_free frees [config].
 * ERR_CONFIG with file:line:column.
 */
err_code_t train_config_read(const tree_t *tree, const slurm_job_t *job,
                             train_config_t *config, err_t *err);
void train_config_free(train_config_t *config);

/* Field number [index] of data.input or data.target. */
const hdf5io_field_t *train_field(const opt_map_t *fields, int index);

/* Name of the choice [shuffle] of data.shuffle. */
const char *train_config_shuffle(int shuffle);

/* The factor by which train.scale_lr multiplies the optimizer's learning
 * rate. */
double train_lr_factor(const train_config_t *config);

/* Are checkpoints written while training goes on? */
bool train_config_async(const train_config_t *config);

/* Read obs.trace_steps, "FIRST:LAST". False: it is no such text. */
bool train_trace_steps(const train_config_t *config, int64_t *first,
                       int64_t *last);

/* A hash of all resolved values: equal configurations have equal hashes. */
uint64_t train_config_hash(const train_config_t *config);

#endif
