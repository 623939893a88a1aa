/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Positions in the 1 to 3 spatial dimensions of tensors [N, C, ...]. Missing
 * dimensions come first and have size 1. A plane is one channel of a sample.
 */
#ifndef CDDP_OP_CUDA_DEVICE_SPACE_CUH
#define CDDP_OP_CUDA_DEVICE_SPACE_CUH

#include "op/cuda/device/each.cuh"
#include "op/cuda/device/index.cuh"

typedef struct space {
    int size[OP_SPACE_MAX];
    index_divisor_t by[OP_SPACE_MAX]; /* the sizes */
    int64_t count;                    /* their product */
} space_t;

/* Position of an element: its plane, and its index in each dimension. */
typedef struct place {
    int64_t plane;
    int at[OP_SPACE_MAX];
} place_t;

/* [count] numbers, one for each spatial dimension, as three. */
static inline void space_three(const int64_t *from, int count, int fill,
                               int to[OP_SPACE_MAX])
{
    for (int d = 0; d < OP_SPACE_MAX; d++) {
        const int from_d = d - (OP_SPACE_MAX - count);

        to[d] = from_d < 0 ? fill : (int)from[from_d];
    }
}

static inline space_t space_of(const op_desc_t *desc)
{
    space_t space;

    space_three(desc->dims + 2, desc->ndim - 2, 1, space.size);
    for (int d = 0; d < OP_SPACE_MAX; d++)
        space.by[d] = index_divisor_of(space.size[d]);
    space.count = op_desc_space(desc);
    return space;
}

static inline int64_t space_planes(const op_desc_t *desc)
{
    return desc->dims[0] * desc->dims[1];
}

/* The position of element [i]. */
static __device__ __forceinline__ place_t space_place(const space_t &space,
                                                      int64_t i)
{
    place_t place;

    for (int d = OP_SPACE_MAX - 1; d >= 0; d--)
        place.at[d] = (int)index_split(&i, space.by[d]);
    place.plane = i;
    return place;
}

/* The index in its plane of the element at [at]. */
static __device__ __forceinline__ int64_t space_index(const space_t &space,
                                                      const int *at)
{
    return ((int64_t)at[0] * space.size[1] + at[1]) * space.size[2] + at[2];
}

/*
 * Kernels on [outer, space, inner] treat LANES elements of inner at once: plain
 * tensors of float32 are [planes, space, 1] with LANES of 1, and those with
 * channels last [samples, space, pitch] of bfloat16 with LANES of 8. Item i of
 * a tensor is the elements i * LANES .. Functions take inner / LANES, [packs].
 */
typedef struct item {
    place_t place; /* place.plane is the index in outer */
    int64_t lane;  /* the index in inner */
} item_t;

template <int LANES>
static __device__ __forceinline__ item_t
space_item(const space_t &space, const index_divisor_t &packs, int64_t i)
{
    item_t item;

    item.lane = LANES == 1 ? 0 : index_split(&i, packs) * LANES;
    item.place = space_place(space, i);
    return item;
}

/* The index in its tensor of the element at position [at], for the outer index
 * and the lane of [item]. */
template <int LANES>
static __device__ __forceinline__ int64_t space_at(const space_t &space,
                                                   const index_divisor_t &packs,
                                                   const item_t &item,
                                                   const int *at)
{
    const int64_t first = item.place.plane * space.count;

    return (first + space_index(space, at)) * (packs.by * LANES) + item.lane;
}

/* A box: from <= at < to in each dimension. BOX_EACH(box, at) is a loop over
 * its positions in row-major order. */
typedef struct box {
    int from[OP_SPACE_MAX], to[OP_SPACE_MAX];
} box_t;

#define BOX_EACH(box, at)                                         \
    for (at[0] = (box).from[0]; at[0] < (box).to[0]; at[0]++)     \
        for (at[1] = (box).from[1]; at[1] < (box).to[1]; at[1]++) \
            for (at[2] = (box).from[2]; at[2] < (box).to[2]; at[2]++)

#endif
