/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The place "cuda". Arithmetic and order of sums are those of the place "cpu",
 * and nvcc must not fuse multiplications with additions (-fmad=false), so the
 * bits are the same, too.
 *
 * The arena is divided into tiles: blocks of OPTIM_BLOCK elements, cut where a
 * run begins or ends. One launch updates all tiles of a part; a CUDA block
 * takes one tile after the other. Sums of squares of a block of elements have
 * SQUARES_LANES partial sums, as on the CPU, so as many threads compute them.
 */
#ifndef CDDP_OPTIM_CUDA_CUDA_H
#define CDDP_OPTIM_CUDA_CUDA_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "dev/dev_cuda.h"
#include "optim/place_ops.h"

/* Sums that one CUDA block adds up at once; a power of two. */
#define CUDA_CHUNK 2048

typedef struct optim_cuda {
    optim_place_t base;
    size_t blocks; /* of the largest arena */
    /* Memory of the device: sums of squares of [blocks], and of chunks of
     * CUDA_CHUNK of them. */
    double *sums, *chunks;
} optim_cuda_t;

/* What kernels know of a run that is not frozen. */
typedef struct optim_cuda_run {
    int64_t offset, elems; /* in the arena */
    int64_t state;         /* index of the first element in the slots */
    int64_t tile;          /* number of the first tile */
    /* Pairs of sums: that of the first tile; first and number of the
     * tensor's. */
    int64_t tile_sum, sums, sum_count;
    int32_t set, adapts;
} optim_cuda_run_t;

/* The tables of an optimizer; memory of the device but for [parts]. */
typedef struct optim_cuda_table {
    void *block; /* has all of them */
    optim_cuda_run_t *runs;
    optim_rule_t *rules;
    int32_t *tile_runs; /* the run of each tile */
    struct optim_cuda_part {
        int64_t tile, tiles;
        int run, runs; /* in the table above */
    } * parts;
    int64_t tiles;
    bool wide; /* state and arena agree modulo 4, so packs of 4 are aligned */
} optim_cuda_table_t;

/* What a kernel reads of an update. */
typedef struct optim_cuda_pass {
    const optim_cuda_run_t *runs;
    const optim_rule_t *rules;
    const int32_t *tile_runs;
    int64_t tile, tiles; /* tiles [tile, tile + tiles) */
    float *params;
    const float *grads;
    float *slots[OPTIM_SLOTS_MAX];
    float *average;
    double *sums, *ratios;
    const optim_in_t *in;
    const optim_verdict_t *verdict;
    float fresh, most;
    bool wide;
} optim_cuda_pass_t;

/* Launches; as the functions of optim_place_ops_t. In norm.cu: */
err_code_t optim_cuda_norm(optim_place_t *place, const float *grads,
                           size_t elems, double *norm, dev_stream_t *stream,
                           err_t *err);
err_code_t optim_cuda_norm_part(optim_place_t *place, const float *grads,
                                view_range_t range, double *blocks,
                                dev_stream_t *stream, err_t *err);
err_code_t optim_cuda_norm_whole(optim_place_t *place, const double *blocks,
                                 size_t count, double *norm,
                                 dev_stream_t *stream, err_t *err);
err_code_t optim_cuda_norm_flag(optim_place_t *place, const double *norm,
                                double *flag, dev_stream_t *stream, err_t *err);
err_code_t optim_cuda_scale(optim_place_t *place, float *data, size_t elems,
                            float factor, dev_stream_t *stream, err_t *err);
err_code_t optim_cuda_judge(optim_place_t *place,
                            const optim_question_t *question,
                            optim_verdict_t *verdict, dev_stream_t *stream,
                            err_t *err);

/* In measure.cu: the sums of all tiles; and the ratios of runs [run, run +
 * runs) from the sums. */
err_code_t optim_cuda_sums(const optim_cuda_pass_t *pass, dev_stream_t *stream,
                           err_t *err);
err_code_t optim_cuda_ratios(const optim_cuda_pass_t *pass, int run, int runs,
                             dev_stream_t *stream, err_t *err);

/* In update.cu. */
err_code_t optim_cuda_tiles(const optim_cuda_pass_t *pass, dev_stream_t *stream,
                            err_t *err);

#ifdef __cplusplus
}
#endif

#endif
