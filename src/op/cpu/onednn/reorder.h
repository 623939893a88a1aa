/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What the kernels on oneDNN share. cpu_scratch_t plans the op's scratch:
 * buffers that live during one call, and the scratchpad of the primitives
 * behind them. A port stands between a tensor as it lies outside of the op and
 * the layout that a primitive wants: nothing if they agree, else a reorder
 * through a buffer in scratch.
 */
#ifndef CDDP_OP_CPU_ONEDNN_REORDER_H
#define CDDP_OP_CPU_ONEDNN_REORDER_H

#include "op/cpu/onednn/onednn.h"

/* One op's engine and scratch plan; the first member of every kernel's state.
 */
typedef struct cpu_scratch {
    cpu_engine_t engine;
    size_t kept;  /* bytes of buffers of every phase */
    size_t taken; /* the same and those of this phase */
    size_t most;  /* the largest taken so far */
} cpu_scratch_t;

/* A phase (forward, gradient of x, gradient of w) begins: phases use the same
 * scratch one after the other. cpu_scratch_keep: the buffers so far belong to
 * every phase. */
void cpu_scratch_restart(cpu_scratch_t *scratch);
void cpu_scratch_keep(cpu_scratch_t *scratch);
/* A buffer of [bytes]: its offset in scratch. */
size_t cpu_scratch_take(cpu_scratch_t *scratch, size_t bytes);
/* All primitives are made: tell the op how much scratch it needs. */
void cpu_scratch_finish(const cpu_scratch_t *scratch, op_t *op);
/* Run [prim] in a call with [args]. */
err_code_t cpu_scratch_run(const cpu_scratch_t *scratch, cpu_prim_t *prim,
                           const op_args_t *args, err_t *err);

typedef struct cpu_reorder {
    bool direct; /* the layouts agree */
    cpu_prim_t prim;
    size_t at; /* of the buffer in scratch */
} cpu_reorder_t;

/* A tensor that lies in layout [outside] and is read in layout [inside]. */
err_code_t cpu_reorder_open_in(cpu_reorder_t *reorder, cpu_scratch_t *scratch,
                               const cpu_md_t *outside, const cpu_md_t *inside,
                               err_t *err);
/* A tensor that is written in layout [inside] and shall lie in [outside]. */
err_code_t cpu_reorder_open_out(cpu_reorder_t *reorder, cpu_scratch_t *scratch,
                                const cpu_md_t *inside, const cpu_md_t *outside,
                                err_t *err);
void cpu_reorder_close(cpu_reorder_t *reorder); /* zeroed: allowed */

/* Bring in the tensor at [data]; *inside is where to read it. */
err_code_t cpu_reorder_read(cpu_reorder_t *reorder,
                            const cpu_scratch_t *scratch, const op_args_t *args,
                            const void *data, const void **inside, err_t *err);
/* The same, but into the buffer [inside] of the caller; not for a port whose
 * layouts agree. */
err_code_t cpu_reorder_read_to(cpu_reorder_t *reorder,
                               const cpu_scratch_t *scratch,
                               const op_args_t *args, const void *data,
                               void *inside, err_t *err);
/* Where to write the tensor that shall come to [data]; after writing it,
 * cpu_reorder_flush brings it there. */
void *cpu_reorder_place(const cpu_reorder_t *reorder, const op_args_t *args,
                        void *data);
err_code_t cpu_reorder_flush(cpu_reorder_t *reorder,
                             const cpu_scratch_t *scratch,
                             const op_args_t *args, void *data, err_t *err);

/*
 * For kernels that want plain tensors: x and dx of an op whose input may lie in
 * a private layout. Opened first, as its buffers are kept.
 */
typedef struct cpu_plain {
    cpu_reorder_t x, dx;
} cpu_plain_t;

err_code_t cpu_plain_open(cpu_plain_t *plain, cpu_scratch_t *scratch,
                          const op_t *op, err_t *err);
void cpu_plain_close(cpu_plain_t *plain);

#endif
