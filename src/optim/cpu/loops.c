/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The loops of all kinds of optimizers. */
#include <string.h>

#include "optim/cpu/cpu.h"
#include "simd/vector.h"

/* Elements of a cache line, and how many elements ahead to prefetch. (The
 * processor's own prefetching stops at the end of a small page.) */
#define LINE 16
#define AHEAD 256

/* A state that an element of arith.h may lack is a local variable here: the
 * compiler knows that its address is not NULL, and vectorises the loop. */

/* ---- sgd ----------------------------------------------------------------- */

SIMD_CLONES static void sgd_plain(float *restrict p,
                                  const float *restrict grads, size_t elems,
                                  optim_sgd_t s)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++)
        p[i] = optim_sgd(p[i], grads[i], NULL, &s);
}

SIMD_CLONES static void sgd_momentum(float *restrict p,
                                     const float *restrict grads,
                                     float *restrict buffer, size_t elems,
                                     optim_sgd_t s)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++) {
        float b = buffer[i];

        p[i] = optim_sgd(p[i], grads[i], &b, &s);
        buffer[i] = b;
    }
}

static void sgd_loop(const optim_cpu_piece_t *u)
{
    optim_sgd_t s;

    memcpy(&s, u->scalars, sizeof s);
    if (u->loop == OPTIM_SGD_PLAIN)
        sgd_plain(u->params, u->grads, u->elems, s);
    else
        sgd_momentum(u->params, u->grads, u->slots[0], u->elems, s);
}

/* ---- adam ---------------------------------------------------------------- */

SIMD_CLONES static void adam_plain(float *restrict p,
                                   const float *restrict grads,
                                   float *restrict mean, float *restrict square,
                                   size_t elems, optim_adam_t s)
{
    size_t i = 0;

    for (; i + LINE <= elems; i += LINE) {
        __builtin_prefetch(p + i + AHEAD, 1);
        __builtin_prefetch(grads + i + AHEAD);
        __builtin_prefetch(mean + i + AHEAD, 1);
        __builtin_prefetch(square + i + AHEAD, 1);
        SIMD_INDEPENDENT
        for (size_t j = i; j < i + LINE; j++)
            p[j] = optim_adam(p[j], grads[j], mean + j, square + j, NULL, &s);
    }
    for (; i < elems; i++)
        p[i] = optim_adam(p[i], grads[i], mean + i, square + i, NULL, &s);
}

SIMD_CLONES static void adam_most(float *restrict p,
                                  const float *restrict grads,
                                  float *restrict mean, float *restrict square,
                                  float *restrict most, size_t elems,
                                  optim_adam_t s)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++) {
        float top = most[i];

        p[i] = optim_adam(p[i], grads[i], mean + i, square + i, &top, &s);
        most[i] = top;
    }
}

static void adam_loop(const optim_cpu_piece_t *u)
{
    optim_adam_t s;

    memcpy(&s, u->scalars, sizeof s);
    if (u->loop == OPTIM_ADAM)
        adam_plain(u->params, u->grads, u->slots[0], u->slots[1], u->elems, s);
    else
        adam_most(u->params, u->grads, u->slots[0], u->slots[1], u->slots[2],
                  u->elems, s);
}

/* ---- rmsprop ------------------------------------------------------------- */

SIMD_CLONES static void rmsprop_plain(float *restrict p,
                                      const float *restrict grads,
                                      float *restrict square, size_t elems,
                                      optim_rmsprop_t s)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++)
        p[i] = optim_rmsprop(p[i], grads[i], square + i, NULL, NULL, &s);
}

SIMD_CLONES static void rmsprop_centered(float *restrict p,
                                         const float *restrict grads,
                                         float *restrict square,
                                         float *restrict mean, size_t elems,
                                         optim_rmsprop_t s)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++) {
        float m = mean[i];

        p[i] = optim_rmsprop(p[i], grads[i], square + i, &m, NULL, &s);
        mean[i] = m;
    }
}

SIMD_CLONES static void rmsprop_momentum(float *restrict p,
                                         const float *restrict grads,
                                         float *restrict square,
                                         float *restrict buffer, size_t elems,
                                         optim_rmsprop_t s)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++) {
        float b = buffer[i];

        p[i] = optim_rmsprop(p[i], grads[i], square + i, NULL, &b, &s);
        buffer[i] = b;
    }
}

SIMD_CLONES static void
rmsprop_both(float *restrict p, const float *restrict grads,
             float *restrict square, float *restrict mean,
             float *restrict buffer, size_t elems, optim_rmsprop_t s)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++) {
        float m = mean[i], b = buffer[i];

        p[i] = optim_rmsprop(p[i], grads[i], square + i, &m, &b, &s);
        mean[i] = m;
        buffer[i] = b;
    }
}

static void rmsprop_loop(const optim_cpu_piece_t *u)
{
    float *const *slots = u->slots;
    optim_rmsprop_t s;

    memcpy(&s, u->scalars, sizeof s);
    if (u->loop == OPTIM_RMSPROP_PLAIN)
        rmsprop_plain(u->params, u->grads, slots[0], u->elems, s);
    else if (u->loop == OPTIM_RMSPROP_CENTERED)
        rmsprop_centered(u->params, u->grads, slots[0], slots[1], u->elems, s);
    else if (u->loop == OPTIM_RMSPROP_MOMENTUM)
        rmsprop_momentum(u->params, u->grads, slots[0], slots[2], u->elems, s);
    else
        rmsprop_both(u->params, u->grads, slots[0], slots[1], slots[2],
                     u->elems, s);
}

/* ---- lamb, lars ---------------------------------------------------------- */

SIMD_CLONES static void lamb_moments(const float *restrict grads,
                                     float *restrict mean,
                                     float *restrict square, size_t elems,
                                     optim_lamb_t s)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++)
        optim_lamb_moments(grads[i], mean + i, square + i, &s);
}

SIMD_CLONES static void lamb_direction(const float *restrict p,
                                       const float *restrict mean,
                                       const float *restrict square,
                                       float *restrict out, size_t elems,
                                       optim_lamb_t s)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++)
        out[i] = optim_lamb_direction(p[i], mean[i], square[i], &s);
}

SIMD_CLONES static void lamb_move(float *restrict p, const float *restrict mean,
                                  const float *restrict square, size_t elems,
                                  float rate, optim_lamb_t s)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++)
        p[i] -= rate * optim_lamb_direction(p[i], mean[i], square[i], &s);
}

SIMD_CLONES static void lars_loop(float *restrict p,
                                  const float *restrict grads,
                                  float *restrict buffer, size_t elems,
                                  float rate, optim_lars_t s)
{
#pragma omp simd
    for (size_t i = 0; i < elems; i++)
        p[i] = optim_lars(p[i], grads[i], buffer + i, rate, &s);
}

void optim_cpu_lamb_moments(const optim_cpu_piece_t *u)
{
    optim_lamb_t s;

    memcpy(&s, u->scalars, sizeof s);
    lamb_moments(u->grads, u->slots[0], u->slots[1], u->elems, s);
}

void optim_cpu_lamb_direction(const optim_cpu_piece_t *u, float *out)
{
    optim_lamb_t s;

    memcpy(&s, u->scalars, sizeof s);
    lamb_direction(u->params, u->slots[0], u->slots[1], out, u->elems, s);
}

static void lamb_update(const optim_cpu_piece_t *u)
{
    optim_lamb_t s;

    memcpy(&s, u->scalars, sizeof s);
    lamb_move(u->params, u->slots[0], u->slots[1], u->elems, u->rate, s);
}

static void lars_update(const optim_cpu_piece_t *u)
{
    optim_lars_t s;

    memcpy(&s, u->scalars, sizeof s);
    lars_loop(u->params, u->grads, u->slots[0], u->elems, u->rate, s);
}

/* ---- all ----------------------------------------------------------------- */

void optim_cpu_loop(const optim_cpu_piece_t *piece)
{
    switch (piece->loop) {
    case OPTIM_SGD_PLAIN:
    case OPTIM_SGD_MOMENTUM:
        sgd_loop(piece);
        break;
    case OPTIM_ADAM:
    case OPTIM_ADAM_MOST:
        adam_loop(piece);
        break;
    case OPTIM_LAMB:
        lamb_update(piece);
        break;
    case OPTIM_LARS:
        lars_update(piece);
        break;
    default:
        rmsprop_loop(piece);
    }
}

SIMD_CLONES void optim_cpu_average(float *restrict average,
                                   const float *restrict params, size_t elems,
                                   float fresh, bool first)
{
    if (first) {
        memcpy(average, params, elems * sizeof *average);
        return;
    }
#pragma omp simd
    for (size_t i = 0; i < elems; i++)
        average[i] = optim_average_next(average[i], params[i], fresh);
}
