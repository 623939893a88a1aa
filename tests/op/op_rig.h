/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A rig has one op with all its tensors. Its functions exchange values as
 * plain doubles, whatever the op's type and layouts are. A private layout for
 * x is borrowed from a conv of the same output shape, and an op of kind
 * flatten converts it (forward: to plain, backward: from plain). Failures are
 * Criterion's assertions.
 */
#ifndef CDDP_TESTS_OP_OP_RIG_H
#define CDDP_TESTS_OP_OP_RIG_H

#include "op_cases.h"
#include "op_rig_dev.h"

typedef struct op_rig {
    const char *name; /* name of the case */
    bool weighed;     /* do samples have weights? */
    const op_backend_ops_t *backend;
    op_rig_dev_t mem; /* device and memory */
    op_config_t config;
    op_t *op;
    op_t *donor; /* the conv whose output layout x has; NULL: x is plain */
    /* ops that convert between the layouts of x and y and plain; NULL: plain */
    op_t *x_way, *y_way;
    /* donor and x_way of the inputs after the first. */
    op_t *other_donor[OP_INPUTS_MAX - 1], *other_way[OP_INPUTS_MAX - 1];
    void *other[OP_INPUTS_MAX - 1], *dother[OP_INPUTS_MAX - 1];
    void *way_scratch;
    op_desc_t params[OP_PARAMS_MAX];
    int param_count;
    void *x, *y, *dx, *dy;
    op_args_t args;
    op_step_t step; /* the scale of the loss is scales[1] */
    double loss_sum;
    double correct;
} op_rig_t;

typedef enum op_rig_tensor {
    RIG_X,
    RIG_Y,
    RIG_DX,
    RIG_DY,
    RIG_W,  /* params[0] */
    RIG_B,  /* params[1] */
    RIG_DW, /* dparams[0] */
    RIG_DB, /* dparams[1] */
    RIG_P2, /* params[2] */
    RIG_P3,
    RIG_DP2,
    RIG_DP3,
    RIG_X1, /* the second input */
    RIG_X2,
    RIG_DX1,
    RIG_DX2,
    RIG_TENSORS
} op_rig_tensor_t;

/* Open the op and fill x, the parameters, dy and the targets. The values depend
 * on the case only, are distinct and in (-1, 1), and not near 0, where
 * activations have kinks. */
void op_rig_open(op_rig_t *rig, const op_case_t *test, const char *backend,
                 op_type_t type, int threads);

/* The same, on a device of one's choice. */
typedef struct op_rig_on {
    const char *backend;
    int index; /* of the device */
    op_type_t type;
    int threads;
} op_rig_on_t;

void op_rig_open_on(op_rig_t *rig, const op_case_t *test,
                    const op_rig_on_t *on);
void op_rig_close(op_rig_t *rig);

/* Number of elements of [tensor]; 0: the op has no such tensor. */
int64_t op_rig_count(const op_rig_t *rig, op_rig_tensor_t tensor);
/* Copy [tensor] to [values], or [values] to [tensor], in plain order. */
void op_rig_get(op_rig_t *rig, op_rig_tensor_t tensor, double *values);
void op_rig_set(op_rig_t *rig, op_rig_tensor_t tensor, const double *values);
/* Divide w_hh of lstm and gru by the root of the number of features, as for
 * initial weights; other kinds stay as they are. For comparisons with rounded
 * factors: float32 and float64 may round an h near a tie to different sides. In
 * tf32 that is 2^-11 in an h between 0.5 and 1, and 2^-11 |w| in each sum of
 * the next step. With |w| up to 1 it grows from step to step (seen: 2.3e-3
 * after 21 steps of 37 features); divided by 6 it is below 1e-4, and dies out.
 */
void op_rig_divide_w_hh(op_rig_t *rig);

/* Fill all memory that the next call must write with NaN, including scratch. */
void op_rig_spoil_forward(op_rig_t *rig);
void op_rig_spoil_backward(op_rig_t *rig);

void op_rig_forward(op_rig_t *rig);
void op_rig_backward(op_rig_t *rig);

bool op_rig_is_loss(const op_rig_t *rig);
/* Can x and the other inputs of this case be stored as bfloat16
 * (op_case_t.bf16) by [backend]? */
bool op_rig_lies(const op_backend_ops_t *backend, const op_case_t *test);
/* Does an op of this kind round the factors of its products if compute_type is
 * OP_BFLOAT16? */
bool op_rig_rounds(op_kind_t kind);
/* The configuration of the case with numbers of [type]; token inputs keep their
 * type. */
op_config_t op_rig_config(const op_case_t *test, op_type_t type);
/* Allocate [count] doubles that are zero; free() them. */
double *op_rig_doubles(int64_t count);

#endif
