/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The memory and the device of a rig. A rig works on blocks of host memory.
 * For a device whose memory the host cannot access, each block has a copy
 * there: a call copies all blocks to the device, runs the op with pointers to
 * the copies, waits, and copies all blocks back.
 */
#ifndef CDDP_TESTS_OP_OP_RIG_DEV_H
#define CDDP_TESTS_OP_OP_RIG_DEV_H

#include "op/op.h"

#define OP_RIG_BLOCKS 64

typedef struct op_rig_block {
    char *host;  /* [bytes], then guard bytes if [guards] */
    char *copy;  /* on the device; NULL: calls use [host] */
    bool guards; /* false: the memory is the caller's */
    size_t bytes;
} op_rig_block_t;

typedef struct op_rig_dev {
    const char *name; /* of the case, for messages */
    dev_device_t *dev;
    dev_stream_t *stream;
    op_rig_block_t blocks[OP_RIG_BLOCKS];
    int count;
} op_rig_dev_t;

/* Open device [index] of the device backend with the name of the op backend
 * [backend]; if there is none, the CPU. */
void op_rig_dev_open(op_rig_dev_t *rig, const char *name, const char *backend,
                     int index);
/* Also frees all blocks. */
void op_rig_dev_close(op_rig_dev_t *rig);

/* A zeroed block followed by guard bytes, because oneDNN generates its kernels
 * at run time and no sanitizer checks them. */
void *op_rig_block(op_rig_dev_t *rig, size_t bytes);
void op_rig_block_free(op_rig_dev_t *rig, void *block);
/* Let calls use [bytes] bytes of the caller's memory, too. */
void op_rig_block_add(op_rig_dev_t *rig, void *block, size_t bytes);

/* Call op_forward or op_backward with pointers into the blocks, and wait. */
typedef err_code_t op_rig_call_fn(op_t *op, const op_args_t *args, err_t *err);
err_code_t op_rig_call(op_rig_dev_t *rig, op_rig_call_fn *call, op_t *op,
                       const op_args_t *args, err_t *err);

/* Copy [bytes] bytes of the host at [memory] to a new block of the device
 * "cuda", let [call] enqueue what it wants to do with the block at [at], and
 * copy the block back. */
typedef void op_rig_cuda_fn(const op_backend_ops_t *backend, void *at,
                            dev_stream_t *stream, const void *context);
void op_rig_cuda_call(void *memory, size_t bytes, op_rig_cuda_fn *call,
                      const void *context);

#endif
