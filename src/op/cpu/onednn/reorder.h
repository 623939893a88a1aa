/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What the kernels on oneDNN share. cpu_scratch_t plans the op's scratch
 * memory: buffers that live during one call, then the scratchpad of the
 * primitives. cpu_reorder_t converts a tensor between its layout outside of the
 * op and the layout that a primitive wants, through a buffer in scratch. It
 * does nothing if the two layouts agree.
 */
#ifndef CDDP_OP_CPU_ONEDNN_REORDER_H
#define CDDP_OP_CPU_ONEDNN_REORDER_H

#include "op/cpu/onednn/onednn.h"

/* One op's engine and scratch plan; the first member of every kernel's state.
 */
typedef struct cpu_scratch {
    cpu_engine_t engine;
    size_t kept;  /* bytes of the buffers that every phase shares */
    size_t taken; /* [kept] plus the bytes of this phase's buffers */
    size_t most;  /* the largest value of [taken] so far */
} cpu_scratch_t;

/* Begin a phase (forward, gradient of x, gradient of w). Phases use the same
 * memory one after the other. */
void cpu_scratch_restart(cpu_scratch_t *scratch);
/* The buffers taken so far belong to every phase. */
void cpu_scratch_keep(cpu_scratch_t *scratch);
/* Take a buffer of [bytes]; returns its offset in scratch, in bytes. */
size_t cpu_scratch_take(cpu_scratch_t *scratch, size_t bytes);
/* All primitives are made: tell the op how much scratch it needs. */
void cpu_scratch_finish(const cpu_scratch_t *scratch, op_t *op);
/* Run [prim] in a call with [args]. */
err_code_t cpu_scratch_run(const cpu_scratch_t *scratch, cpu_prim_t *prim,
                           const op_args_t *args, err_t *err);

typedef struct cpu_reorder {
    bool direct; /* the layouts agree */
    cpu_prim_t prim;
    size_t at; /* offset of the buffer in scratch, in bytes */
} cpu_reorder_t;

/* For a tensor whose layout is [outside] and that is read in layout [inside].
 */
err_code_t cpu_reorder_open_in(cpu_reorder_t *reorder, cpu_scratch_t *scratch,
                               const cpu_md_t *outside, const cpu_md_t *inside,
                               err_t *err);
/* For a tensor that is written in layout [inside] and whose layout is
 * [outside]. */
err_code_t cpu_reorder_open_out(cpu_reorder_t *reorder, cpu_scratch_t *scratch,
                                const cpu_md_t *inside, const cpu_md_t *outside,
                                err_t *err);
void cpu_reorder_close(cpu_reorder_t *reorder); /* zeroed: allowed */

/* Convert the tensor at [data]; *inside is where to read the result. */
err_code_t cpu_reorder_read(cpu_reorder_t *reorder,
                            const cpu_scratch_t *scratch, const op_args_t *args,
                            const void *data, const void **inside, err_t *err);
/* Convert the tensor at [data] into the buffer [inside] of the caller. Only
 * where the layouts differ. */
err_code_t cpu_reorder_read_to(cpu_reorder_t *reorder,
                               const cpu_scratch_t *scratch,
                               const op_args_t *args, const void *data,
                               void *inside, err_t *err);
/* Where to write a tensor that belongs at [data]. After it is written,
 * cpu_reorder_flush converts it to [data]. */
void *cpu_reorder_place(const cpu_reorder_t *reorder, const op_args_t *args,
                        void *data);
err_code_t cpu_reorder_flush(cpu_reorder_t *reorder,
                             const cpu_scratch_t *scratch,
                             const op_args_t *args, void *data, err_t *err);

/*
 * For kernels that want plain tensors: x and dx of an op whose input may have a
 * private layout. Open it first, as every phase keeps its buffers.
 */
typedef struct cpu_plain {
    cpu_reorder_t x, dx;
} cpu_plain_t;

err_code_t cpu_plain_open(cpu_plain_t *plain, cpu_scratch_t *scratch,
                          const op_t *op, err_t *err);
void cpu_plain_close(cpu_plain_t *plain);

#endif
