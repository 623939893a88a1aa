/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * place: where an optimizer's arenas lie, and who computes there: the host, a
 * GPU, or the test device. All places give the same bits.
 *
 * The functions below, and those of optim.h that have a stream, only enqueue
 * their work: it reads and writes its arguments, all in the device's memory,
 * when the stream executes it. The host's work is done at once. They neither
 * block nor allocate. What changes from step to step is read from the device's
 * memory, so a captured step can be replayed.
 *
 * A step, for one rank with the whole arena:
 *
 *     host: optim_in_fill(optim, lr, number, in), fill a case;
 *           copy both to the device
 *     optim_mask(optim, grads, stream)
 *     optim_norm(place, grads, elems, &verdict->norm, stream)
 *     optim_judge(place, &question, verdict, stream)
 *     optim_step(optim, {params, grads, in, verdict}, stream)
 *     host: copy *verdict back, wait
 *
 * Thread rule: one thread uses a place.
 */
#ifndef CDDP_OPTIM_PLACE_H
#define CDDP_OPTIM_PLACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/opt.h"
#include "base/view.h"
#include "dev/dev.h"

#define OPTIM_UNIT 4096 /* elements; ranges consist of whole units */

typedef struct optim_place optim_place_t;

/* Open the place on [dev] for arenas of up to [elems] elements. ERR_UNAVAILABLE
 * names a device that has none. */
err_code_t optim_place_open(dev_device_t *dev, size_t elems,
                            optim_place_t **out, err_t *err);
void optim_place_close(optim_place_t *place); /* NULL allowed */

/* The host: use up to [threads] threads of the ops' team. Their number changes
 * no bit. Default: 1. */
void optim_place_team(optim_place_t *place, int threads);

/* Set *norm to the norm of [elems] gradients: the root of the sum of squares,
 * which is computed in float64 over fixed blocks of OPTIM_UNIT elements and
 * along a fixed tree over the blocks. */
err_code_t optim_norm(optim_place_t *place, const float *grads, size_t elems,
                      double *norm, dev_stream_t *stream, err_t *err);

/*
 * The norm in parts. blocks: the number of blocks of an arena. part: write the
 * sums of squares of the blocks in [range] (see optim_layout_t) of the arena
 * [grads] to [blocks]. whole: the norm from the sums of all blocks.
 */
size_t optim_norm_blocks(size_t elems);
err_code_t optim_norm_part(optim_place_t *place, const float *grads,
                           view_range_t range, double *blocks,
                           dev_stream_t *stream, err_t *err);
err_code_t optim_norm_whole(optim_place_t *place, const double *blocks,
                            size_t count, double *norm, dev_stream_t *stream,
                            err_t *err);

/* Set *flag to 1 if *norm is NaN or infinite. Otherwise leave it as it is. */
err_code_t optim_norm_flag(optim_place_t *place, const double *norm,
                           double *flag, dev_stream_t *stream, err_t *err);

/* Multiply [elems] numbers by [factor]. */
err_code_t optim_scale(optim_place_t *place, float *data, size_t elems,
                       float factor, dev_stream_t *stream, err_t *err);

/* ---- is there an update? ------------------------------------------------- */

#define OPTIM_LOSSES_MAX OPT_MAP_MAX

/* What the host knows of the losses of a step. */
typedef struct optim_case {
    int64_t counts; /* 0: no target counts, so there is no update */
    /* The mean of loss k is its sum over [denominators][k], and has weight
     * [weights][k] in the loss. A loss whose denominator or weight is 0 is left
     * out. */
    double weights[OPTIM_LOSSES_MAX], denominators[OPTIM_LOSSES_MAX];
} optim_case_t;

/* Memory of the device that a verdict reads; [optim_case_t], too. */
typedef struct optim_question {
    const optim_case_t *about;
    const double *failed; /* above 0: a rank failed */
    /* The sum of loss k over all ranks is sums[k * stride]. */
    const double *sums;
    int losses, stride;
    double limit; /* the norm of gradients is reduced to this; 0: no limit */
} optim_question_t;

typedef struct optim_verdict {
    double norm;     /* of the gradients, before they are scaled */
    double loss;     /* weighted sum of means; NaN if all losses are left out */
    float factor;    /* of the gradients: at most 1, or NaN */
    int32_t sound;   /* 1: no rank failed; norm and loss, if any, are finite */
    int32_t updates; /* 1: sound, and targets count; else optim_step changes
                        nothing */
} optim_verdict_t;

/* Fill in [verdict], whose norm is already set. The factor is that of
 * torch.nn.utils.clip_grad_norm_. */
err_code_t optim_judge(optim_place_t *place, const optim_question_t *question,
                       optim_verdict_t *verdict, dev_stream_t *stream,
                       err_t *err);

#endif
