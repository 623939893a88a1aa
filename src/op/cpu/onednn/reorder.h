/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What the ops on oneDNN share. cpu_scratch_t plans the op's scratch memory:
 * buffers for one call, then the scratchpad of the primitives. cpu_reorder_t
 * converts a tensor between its layout outside the op and the layout that a
 * primitive needs, through a buffer in scratch. It does nothing if the two
 * layouts are equal.
 */
#ifndef CDDP_OP_CPU_ONEDNN_REORDER_H
#define CDDP_OP_CPU_ONEDNN_REORDER_H

#include "op/cpu/onednn/onednn.h"

/* Engine and scratch plan of one op; the first member of the state of every op
 * that uses this header. */
typedef struct cpu_scratch {
    cpu_engine_t engine;
    size_t kept;  /* bytes of the buffers that all phases share */
    size_t taken; /* [kept] plus the bytes of this phase's buffers */
    size_t most;  /* the largest value of [taken] so far */
} cpu_scratch_t;

/* Begin a phase (forward, gradient of x, gradient of w). Phases run one after
 * the other and use the same memory. */
void cpu_scratch_restart(cpu_scratch_t *scratch);
/* Let all phases share the buffers taken so far. */
void cpu_scratch_keep(cpu_scratch_t *scratch);
/* Take a buffer of [bytes]. Returns its offset in scratch, in bytes. */
size_t cpu_scratch_take(cpu_scratch_t *scratch, size_t bytes);
/* Set the scratch size of the op, after all primitives are made. */
void cpu_scratch_finish(const cpu_scratch_t *scratch, op_t *op);
/* Run [prim] in a call with [args]. */
err_code_t cpu_scratch_run(const cpu_scratch_t *scratch, cpu_prim_t *prim,
                           const op_args_t *args, err_t *err);

/* C = A B + bias; bias is unused without cpu_matmul_spec_t.bias. */
typedef struct cpu_factors {
    const void *a, *b, *bias;
    void *c;
} cpu_factors_t;

/* Run [prim], made by cpu_prim_matmul. */
err_code_t cpu_scratch_matmul(const cpu_scratch_t *scratch, cpu_prim_t *prim,
                              const op_args_t *args, cpu_factors_t with,
                              err_t *err);

/* [scratch] is that of the op. It must stay where it was when the reorder was
 * opened. */
typedef struct cpu_reorder {
    const cpu_scratch_t *scratch;
    bool direct; /* the layouts are equal */
    cpu_prim_t prim;
    size_t at; /* offset of the buffer in scratch, in bytes */
} cpu_reorder_t;

/* For a tensor that has layout [outside] and is read in layout [inside]. */
err_code_t cpu_reorder_open_in(cpu_reorder_t *reorder, cpu_scratch_t *scratch,
                               const cpu_md_t *outside, const cpu_md_t *inside,
                               err_t *err);
/* For a tensor that is written in layout [inside] and needs layout [outside].
 */
err_code_t cpu_reorder_open_out(cpu_reorder_t *reorder, cpu_scratch_t *scratch,
                                const cpu_md_t *inside, const cpu_md_t *outside,
                                err_t *err);
void cpu_reorder_close(cpu_reorder_t *reorder); /* [reorder] may be zeroed */

/* Convert the tensor at [data]. Sets *inside to the result, which is [data]
 * itself if the layouts are equal. */
err_code_t cpu_reorder_read(cpu_reorder_t *reorder, const op_args_t *args,
                            const void *data, const void **inside, err_t *err);
/* Convert the tensor at [data] into the caller's buffer [inside]. The layouts
 * must differ. */
err_code_t cpu_reorder_read_to(cpu_reorder_t *reorder, const op_args_t *args,
                               const void *data, void *inside, err_t *err);
/* cpu_reorder_place: the buffer in which to write a tensor for [data].
 * cpu_reorder_flush: convert the written tensor to [data]. */
void *cpu_reorder_place(const cpu_reorder_t *reorder, const op_args_t *args,
                        void *data);
err_code_t cpu_reorder_flush(cpu_reorder_t *reorder, const op_args_t *args,
                             void *data, err_t *err);

/*
 * For ops that need plain tensors: the reorders of x and dx if the input has a
 * private layout. Call cpu_plain_open before other buffers are taken, because
 * all phases share its buffers.
 */
typedef struct cpu_plain {
    cpu_reorder_t x, dx;
} cpu_plain_t;

err_code_t cpu_plain_open(cpu_plain_t *plain, cpu_scratch_t *scratch,
                          const op_t *op, err_t *err);
void cpu_plain_close(cpu_plain_t *plain);

#endif
