/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * PowerSGD (Vogels, Karimireddy, Jaggi, "PowerSGD: Practical low-rank gradient
 * compression for distributed optimization", NeurIPS 2019), with the semantics
 * of PyTorch's hook: each gradient matrix M is approximated by P Q^T of low
 * rank. Vectors, and matrices that compression would make little smaller, are
 * sent without it; before start_step all gradients are.
 *
 * - turn 0: M += residual; Q (from the last step, or random) is made
 *   orthonormal; P = M Q is summed over ranks in one message, together with all
 *   that is not compressed.
 * - turn 1: P is made orthonormal; Q = M^T P; residual = M - P Q^T; Q is summed
 *   over ranks.
 * - turn 2: M = P Q^T, from equal P and Q on all ranks.
 *
 * If the op backend of a device has this arithmetic (op/op_lowrank.h), the
 * device computes all turns, and only messages leave the memory of the device.
 * For equal P and Q, host and device compute the same bits of P Q^T.
 *
 * Both products are linear in M, so the sums give the P Q^T that one rank would
 * compute from the sum of all M. Summed over ranks, the gradients used and the
 * residuals equal the gradients. PyTorch's residual is the difference to the
 * mean over all ranks, ours is the difference to the rank's own part of P Q^T.
 * Summed over ranks both residuals are equal, but ours does not grow with the
 * differences between ranks.
 */
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "ddp/powersgd.h"

static const opt_row_t powersgd_rows[] = {
    {.name = "rank",
     .type = OPT_INT,
     .offset = offsetof(powersgd_options_t, rank),
     .fallback = "1",
     .min = 1,
     .max = 1024,
     .help = "number of columns of P and Q; more columns approximate better, "
             "but more bytes are sent"},
    {.name = "start_step",
     .type = OPT_INT,
     .offset = offsetof(powersgd_options_t, start_step),
     .fallback = "1000",
     .min = 0,
     .max = 1e15,
     .unit = "steps",
     .help = "number of updates of the run before compression begins"},
    {.name = "min_compression",
     .type = OPT_REAL,
     .offset = offsetof(powersgd_options_t, min_compression),
     .fallback = "2",
     .min = 1,
     .max = 1e9,
     .help =
         "compress a matrix if its size is reduced by more than this factor"},
    {.name = "error_feedback",
     .type = OPT_BOOL,
     .offset = offsetof(powersgd_options_t, error_feedback),
     .fallback = "true",
     .help = "true: add the approximation error to the next step's gradients; "
             "the stored error takes as much memory as the gradients"},
    {.name = "warm_start",
     .type = OPT_BOOL,
     .offset = offsetof(powersgd_options_t, warm_start),
     .fallback = "true",
     .help = "true: begin with the Q of the last step; false: begin with "
             "random numbers"},
    {.name = NULL}};

/* ---- opening ------------------------------------------------------------- */

static bool compressed(const powersgd_t *sgd, const ddp_hook_view_t *view)
{
    double sent = (double)(view->rows + view->columns) *
                  (double)sgd->options.rank * sgd->options.min_compression;

    return view->rows > 0 && sent < (double)view->count;
}

/* Add [view] to the part if it is a matrix that gets compressed. */
static void view_enter(powersgd_t *sgd, powersgd_part_t *part,
                       const ddp_hook_view_t *view, uint64_t number)
{
    size_t rank = (size_t)sgd->options.rank;

    if (!compressed(sgd, view))
        return;
    sgd->matrices[part->first + part->count] =
        (powersgd_matrix_t){.shape = {.rows = view->rows,
                                      .columns = view->columns,
                                      .rank = (int)sgd->options.rank},
                            .grad = view->offset,
                            .p = part->message + part->message_count,
                            .q = part->q + part->q_count,
                            .number = number};
    part->message_count += rank * (size_t)view->rows;
    part->q_count += rank * (size_t)view->columns;
    part->count++;
}

/* Plan the places of all numbers. *messages is set to the total length of all
 * messages, in elements. */
static void parts_plan(powersgd_t *sgd, size_t *messages)
{
    const ddp_hook_plan_t *plan = sgd->plan;
    uint64_t number = 0;
    int first = 0;

    *messages = 0;
    for (int b = 0; b < plan->bucket_count; b++) {
        const ddp_hook_bucket_t *bucket = &plan->buckets[b];
        powersgd_part_t *part = &sgd->parts[b];

        *part = (powersgd_part_t){
            .first = first, .message = *messages, .q = sgd->q_count};
        for (int v = 0; v < bucket->view_count; v++)
            if (!compressed(sgd, &bucket->views[v]))
                part->message_count += bucket->views[v].count;
        for (int v = 0; v < bucket->view_count; v++)
            view_enter(sgd, part, &bucket->views[v], number++);
        first += part->count;
        *messages += part->message_count;
        sgd->q_count += part->q_count;
    }
    sgd->matrix_count = first;
}

/* Allocate [count] zeros in the memory that has the gradients. */
static err_code_t floats_alloc(const powersgd_t *sgd, size_t count, float **out,
                               err_t *err)
{
    void *block = NULL;
    err_code_t rc;

    if (sgd->plan->dev == NULL)
        return mem_new(float, count, "PowerSGD", out, err);
    rc = count == 0 ? ERR_OK
                    : dev_alloc(sgd->plan->dev, count * sizeof **out,
                                "PowerSGD", &block, err);
    *out = block;
    return rc;
}

static void floats_free(const powersgd_t *sgd, float *block)
{
    if (sgd->plan->dev == NULL)
        mem_free(block);
    else
        dev_free(sgd->plan->dev, block);
}

static void powersgd_close(void *state)
{
    powersgd_t *sgd = state;

    op_lowrank_close(sgd->device);
    floats_free(sgd, sgd->residual);
    floats_free(sgd, sgd->q);
    floats_free(sgd, sgd->messages);
    mem_free(sgd->parts);
    mem_free(sgd->matrices);
    mem_free(sgd);
}

static size_t powersgd_bytes(const void *state)
{
    const powersgd_t *sgd = state;
    const size_t kept = sgd->options.error_feedback ? sgd->plan->elems : 0;

    return sizeof(float) * (sgd->message_count + sgd->q_count + kept);
}

static err_code_t powersgd_alloc(powersgd_t *sgd, err_t *err)
{
    const ddp_hook_plan_t *plan = sgd->plan;
    size_t views = 0;
    err_code_t rc;

    for (int b = 0; b < plan->bucket_count; b++)
        views += (size_t)plan->buckets[b].view_count;
    rc = mem_new(powersgd_matrix_t, views, "PowerSGD", &sgd->matrices, err);
    if (rc == ERR_OK)
        rc = mem_new(powersgd_part_t, (size_t)plan->bucket_count, "PowerSGD",
                     &sgd->parts, err);
    if (rc != ERR_OK)
        return rc;
    parts_plan(sgd, &sgd->message_count);
    if (plan->counted)
        return ERR_OK;
    rc = floats_alloc(sgd, sgd->message_count, &sgd->messages, err);
    if (rc == ERR_OK)
        rc = floats_alloc(sgd, sgd->q_count, &sgd->q, err);
    if (rc == ERR_OK && sgd->options.error_feedback)
        rc = floats_alloc(sgd, plan->elems, &sgd->residual, err);
    if (rc == ERR_OK && plan->dev != NULL)
        rc = powersgd_device_open(sgd, err);
    return rc;
}

static err_code_t powersgd_open(const ddp_hook_plan_t *plan, void **state,
                                err_t *err)
{
    powersgd_t *sgd = NULL;
    err_code_t rc;

    rc = mem_new(powersgd_t, 1, "PowerSGD", &sgd, err);
    if (rc != ERR_OK)
        return rc;
    sgd->options = *(const powersgd_options_t *)plan->options;
    sgd->plan = plan;
    rc = powersgd_alloc(sgd, err);
    if (rc != ERR_OK) {
        powersgd_close(sgd);
        return rc;
    }
    *state = sgd;
    return ERR_OK;
}

/* ---- a step -------------------------------------------------------------- */

static void powersgd_begin(void *state, int64_t step)
{
    powersgd_t *sgd = state;

    sgd->step = step;
}

/* Fill vector [k] of Q with random numbers, which are equal on all ranks. */
static void q_draw(const powersgd_t *sgd, const powersgd_matrix_t *matrix,
                   int k)
{
    float *q = sgd->q + matrix->q + (int64_t)k * matrix->shape.columns;
    rng_t rng;

    rng_open(&rng, (uint64_t)sgd->step, RNG_LOWRANK, matrix->number,
             (uint64_t)k);
    for (int64_t i = 0; i < matrix->shape.columns; i++)
        q[i] = (float)rng_normal(&rng);
}

/* Make Q orthonormal. A vector that depends on the others (at first all are
 * zero) is replaced by a random vector. One try is enough, as a random vector
 * is never in the span of the others. */
static void q_prepare(const powersgd_t *sgd, const powersgd_matrix_t *matrix)
{
    float *q = sgd->q + matrix->q;
    int rank = matrix->shape.rank;
    int64_t count = matrix->shape.columns;

    for (int k = 0; !sgd->options.warm_start && k < rank; k++)
        q_draw(sgd, matrix, k);
    for (int tries = 0; tries < rank; tries++) {
        int k = lowrank_orthonormalize(q, rank, count);

        if (k == rank)
            return;
        q_draw(sgd, matrix, k);
    }
    lowrank_orthonormalize(q, rank, count);
}

static err_code_t floats_copy(const powersgd_t *sgd, float *to,
                              const float *from, size_t count,
                              const ddp_wire_t *wire, err_t *err)
{
    if (sgd->device != NULL)
        return powersgd_device_copy(to, from, count, wire, err);
    memcpy(to, from, count * sizeof *to);
    return ERR_OK;
}

/* The number of elements of the views from *v on that are not compressed and
 * lie beside each other. *v moves behind these views. */
static size_t plain_span(const powersgd_t *sgd, const ddp_hook_bucket_t *bucket,
                         int *v)
{
    const ddp_hook_view_t *views = bucket->views;
    const size_t first = views[*v].offset;
    size_t count = 0;

    for (; *v < bucket->view_count && !compressed(sgd, &views[*v]) &&
           views[*v].offset == first + count;
         (*v)++)
        count += views[*v].count;
    return count;
}

/* Copy the gradients of [bucket] that are not compressed to the front of its
 * message or, with [back], their sums from there to the bucket. On a GPU each
 * copy is an operation of its own, so neighbours are copied together. */
static err_code_t plain_copy(const powersgd_t *sgd,
                             const ddp_hook_bucket_t *bucket, bool back,
                             const ddp_wire_t *wire, err_t *err)
{
    float *at = sgd->messages + sgd->parts[bucket->index].message;
    err_code_t rc = ERR_OK;
    int v = 0;

    while (rc == ERR_OK && v < bucket->view_count) {
        const ddp_hook_view_t *view = &bucket->views[v];
        float *grads = bucket->grads + (view->offset - bucket->offset);
        size_t count;

        if (compressed(sgd, view)) {
            v++;
            continue;
        }
        count = plain_span(sgd, bucket, &v);
        rc = floats_copy(sgd, back ? grads : at, back ? at : grads, count, wire,
                         err);
        at += count;
    }
    return rc;
}

/* Compute a turn of one matrix, whose gradients are at [m]. */
static void matrix_run(const powersgd_t *sgd, const powersgd_matrix_t *matrix,
                       op_lowrank_turn_t turn, float *m)
{
    const lowrank_t *shape = &matrix->shape;
    const size_t elems = (size_t)(shape->rows * shape->columns);
    float *residual =
        sgd->residual == NULL ? NULL : sgd->residual + matrix->grad;
    float *p = sgd->messages + matrix->p, *q = sgd->q + matrix->q;

    if (turn == OP_LOWRANK_M) {
        lowrank_expand(shape, p, q, m);
    } else if (turn == OP_LOWRANK_P) {
        for (size_t e = 0; residual != NULL && e < elems; e++)
            m[e] += residual[e];
        q_prepare(sgd, matrix);
        lowrank_right(shape, m, q, p);
    } else {
        lowrank_orthonormalize(p, shape->rank, shape->rows);
        lowrank_left(shape, m, p, q);
        if (residual != NULL)
            lowrank_rest(shape, m, p, q, residual);
    }
}

/* Compute a turn of all matrices of [bucket]. */
static err_code_t matrices_run(powersgd_t *sgd, const ddp_hook_bucket_t *bucket,
                               op_lowrank_turn_t turn, const ddp_wire_t *wire,
                               err_t *err)
{
    const powersgd_part_t *part = &sgd->parts[bucket->index];

    if (sgd->device != NULL)
        return powersgd_device_run(sgd, part, turn, wire, err);
    for (int i = part->first; i < part->first + part->count; i++)
        matrix_run(sgd, &sgd->matrices[i], turn,
                   bucket->grads + (sgd->matrices[i].grad - bucket->offset));
    return ERR_OK;
}

static err_code_t turn_p(powersgd_t *sgd, const ddp_hook_bucket_t *bucket,
                         ddp_wire_t *wire, err_t *err)
{
    const powersgd_part_t *part = &sgd->parts[bucket->index];
    err_code_t rc = plain_copy(sgd, bucket, false, wire, err);

    if (rc == ERR_OK)
        rc = matrices_run(sgd, bucket, OP_LOWRANK_P, wire, err);
    return rc == ERR_OK ? ddp_wire_sum(wire, sgd->messages + part->message,
                                       part->message_count, COMM_FLOAT32, err)
                        : rc;
}

static err_code_t turn_q(powersgd_t *sgd, const ddp_hook_bucket_t *bucket,
                         ddp_wire_t *wire, err_t *err)
{
    const powersgd_part_t *part = &sgd->parts[bucket->index];
    err_code_t rc = ddp_wire_wait(wire, err);

    if (rc == ERR_OK)
        rc = plain_copy(sgd, bucket, true, wire, err);
    if (rc != ERR_OK || part->count == 0)
        return rc;
    rc = matrices_run(sgd, bucket, OP_LOWRANK_Q, wire, err);
    return rc == ERR_OK ? ddp_wire_sum(wire, sgd->q + part->q, part->q_count,
                                       COMM_FLOAT32, err)
                        : rc;
}

static err_code_t turn_m(powersgd_t *sgd, const ddp_hook_bucket_t *bucket,
                         ddp_wire_t *wire, err_t *err)
{
    err_code_t rc = ddp_wire_wait(wire, err);

    return rc == ERR_OK ? matrices_run(sgd, bucket, OP_LOWRANK_M, wire, err)
                        : rc;
}

static err_code_t powersgd_turn(void *state, const ddp_hook_bucket_t *bucket,
                                int turn, ddp_wire_t *wire, err_t *err)
{
    powersgd_t *sgd = state;

    if (sgd->step < sgd->options.start_step)
        return turn == 0 ? ddp_wire_sum(wire, bucket->grads, bucket->count,
                                        COMM_FLOAT32, err)
                         : ddp_wire_wait(wire, err);
    if (turn == 0)
        return turn_p(sgd, bucket, wire, err);
    return turn == 1 ? turn_q(sgd, bucket, wire, err)
                     : turn_m(sgd, bucket, wire, err);
}

static int powersgd_parts(void *state, ddp_hook_part_t *parts)
{
    powersgd_t *sgd = state;
    int count = 0;

    if (sgd->residual != NULL) {
        parts[count] = (ddp_hook_part_t){.name = "residual",
                                         .data = sgd->residual,
                                         .count = sgd->plan->elems,
                                         .own = true,
                                         .device = sgd->device != NULL};
        count++;
    }
    if (sgd->options.warm_start && sgd->q_count > 0) {
        parts[count] = (ddp_hook_part_t){.name = "powersgd_q",
                                         .data = sgd->q,
                                         .count = sgd->q_count,
                                         .device = sgd->device != NULL};
        count++;
    }
    return count;
}

const ddp_hook_ops_t ddp_hook_powersgd = {
    .row = {.name = "powersgd",
            .help = "Matrices are sent as products of two thin matrices "
                    "(Vogels et al., 2019), with error feedback",
            .options = powersgd_rows},
    .option_bytes = sizeof(powersgd_options_t),
    .turns = 3,
    .open = powersgd_open,
    .close = powersgd_close,
    .begin = powersgd_begin,
    .turn = powersgd_turn,
    .parts = powersgd_parts,
    .bytes = powersgd_bytes,
    .fits = powersgd_device_fits};
