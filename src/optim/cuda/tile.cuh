/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The tiles of an update, and what all of its kernels read of the step. */
#ifndef CDDP_OPTIM_CUDA_TILE_CUH
#define CDDP_OPTIM_CUDA_TILE_CUH

#include "op/cuda/launch.h"
#include "optim/cuda/cuda.h"

/* Elements [from, to) of the arena. */
typedef struct tile {
    int32_t run;
    int64_t from, to;
} tile_t;

/* Tile number [number] of all tiles. */
static __device__ __forceinline__ tile_t
tile_find(const optim_cuda_pass_t &pass, int64_t number)
{
    const int32_t index = pass.tile_runs[number];
    const optim_cuda_run_t *run = &pass.runs[index];
    const int64_t end = run->offset + run->elems;
    const int64_t block = run->offset / OPTIM_UNIT + (number - run->tile);
    const int64_t from = block * OPTIM_UNIT, to = from + OPTIM_UNIT;
    const tile_t tile = {index, from > run->offset ? from : run->offset,
                         to < end ? to : end};

    return tile;
}

static __device__ __forceinline__ bool
pass_updates(const optim_cuda_pass_t &pass)
{
    return pass.verdict == NULL || pass.verdict->updates != 0;
}

/* How gradients are clipped. */
typedef struct clip {
    float factor, most;
} clip_t;

static __device__ __forceinline__ clip_t clip_of(const optim_cuda_pass_t &pass)
{
    const clip_t clip = {pass.verdict == NULL ? 1.0f : pass.verdict->factor,
                         pass.most};

    return clip;
}

static __device__ __forceinline__ float clip_apply(const clip_t &clip, float g)
{
    g *= clip.factor;
    return clip.most > 0 ? optim_clamp(g, clip.most) : g;
}

/* Read the scalars of set [set]. */
template <typename S>
static __device__ __forceinline__ S scalars_of(const optim_cuda_pass_t &pass,
                                               int32_t set)
{
    return *reinterpret_cast<const S *>(optim_in_sets(pass.in)[set].scalars);
}

#endif
