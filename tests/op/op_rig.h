/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A rig holds one op with all its tensors and speaks plain doubles, whatever
 * the op's type and layouts are. A private layout for x is borrowed from a conv
 * of the same output shape; flatten converts it (forward: to plain, backward:
 * from plain). Failures are Criterion's assertions.
 */
#ifndef CDDP_TESTS_OP_OP_RIG_H
#define CDDP_TESTS_OP_OP_RIG_H

#include "op_cases.h"

typedef struct op_rig {
    const char *name; /* of the case */
    bool weighed;     /* is it one with weights of samples? */
    const op_backend_ops_t *backend;
    op_config_t config;
    op_t *op;
    op_t *donor;         /* of x's layout, or NULL */
    op_t *x_way, *y_way; /* flattens between layouts and plain, or NULL */
    /* The same of the inputs after the first. */
    op_t *other_donor[OP_INPUTS_MAX - 1], *other_way[OP_INPUTS_MAX - 1];
    void *other[OP_INPUTS_MAX - 1], *dother[OP_INPUTS_MAX - 1];
    void *way_scratch;
    op_desc_t params[OP_PARAMS_MAX];
    int param_count;
    void *x, *y, *dx, *dy;
    op_args_t args;
    double loss_sum;
    int64_t correct;
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
    RIG_P2, /* params[2], params[3] */
    RIG_P3,
    RIG_DP2,
    RIG_DP3,
    RIG_X1, /* the second and the third input */
    RIG_X2,
    RIG_DX1,
    RIG_DX2,
    RIG_TENSORS
} op_rig_tensor_t;

/* Open and fill x, params, dy, targets with values that depend on the case
 * only: distinct, in (-1, 1), none near 0 (so that no kink is near). */
void op_rig_open(op_rig_t *rig, const op_case_t *test, const char *backend,
                 op_type_t type, int threads);
void op_rig_close(op_rig_t *rig);

/* Elements of [tensor]; 0: this op has none. */
int64_t op_rig_count(const op_rig_t *rig, op_rig_tensor_t tensor);
/* Copy it to or from doubles in plain order. */
void op_rig_get(op_rig_t *rig, op_rig_tensor_t tensor, double *values);
void op_rig_set(op_rig_t *rig, op_rig_tensor_t tensor, const double *values);

/* Fill everything that the next call must write with NaN, scratch too. */
void op_rig_spoil_forward(op_rig_t *rig);
void op_rig_spoil_backward(op_rig_t *rig);

void op_rig_forward(op_rig_t *rig);
void op_rig_backward(op_rig_t *rig);

bool op_rig_is_loss(const op_rig_t *rig);
/* Can x and the other inputs of this case be stored as bfloat16
 * (op_case_t.bf16) for [backend]? */
bool op_rig_lies(const op_backend_ops_t *backend, const op_case_t *test);
/* Does this kind round the factors of its products with compute_type
 * OP_BFLOAT16? */
bool op_rig_rounds(op_kind_t kind);
/* The case's configuration with numbers of [type]; tokens stay tokens. */
op_config_t op_rig_config(const op_case_t *test, op_type_t type);
/* The same for all cases: allocate zeroed [count] doubles; freed with free. */
double *op_rig_doubles(int64_t count);

#endif
