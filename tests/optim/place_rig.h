/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * place_rig: an optimizer of a few tensors on any device, and the steps that a
 * run makes with it: norm, verdict, update. All arenas are memory of the
 * device; the rig copies.
 */
#ifndef TESTS_OPTIM_PLACE_RIG_H
#define TESTS_OPTIM_PLACE_RIG_H

#include "optim/optim.h"

#define PLACE_UNITS 7
/* the last unit is incomplete */
#define PLACE_ELEMS ((size_t)PLACE_UNITS * OPTIM_UNIT - 100)
#define PLACE_LOSSES 2

/* Views that begin and end anywhere in a unit, and some that span several
 * units. */
extern const optim_view_t place_views[5];

typedef struct place_config {
    const char *optimizer;      /* the run file's value */
    const view_range_t *ranges; /* NULL: the whole arena */
    int range_count;
    double decay;       /* of the moving average; 0: none */
    double limit, most; /* clipping by norm and by value; 0: none */
} place_config_t;

/* The memory of a step on the device, in one block. */
typedef struct place_step {
    optim_verdict_t verdict;
    optim_case_t about;
    double failed, sums[2 * PLACE_LOSSES];
} place_step_t;

typedef struct place_rig {
    place_config_t config;
    dev_device_t *dev;
    dev_stream_t *stream;
    optim_t *optim;
    float *params, *grads; /* of the device, as what follows */
    place_step_t *step;
    optim_in_t *in;
    /* Of the host: what a step copies to the device, and its verdict. */
    place_step_t step_host;
    optim_in_t *in_host;
    float *numbers; /* source of copies, which may be pending after an error */
    optim_verdict_t verdict;
} place_rig_t;

/* Open device [index] of [backend], and an optimizer on it. An error fails the
 * test. */
void place_rig_open(place_rig_t *rig, const char *backend, int index,
                    const place_config_t *config);
/* As place_rig_open, on a device that is open. The error is that of the first
 * call that fails; close the rig in any case. */
err_code_t place_rig_try(place_rig_t *rig, dev_device_t *dev,
                         const place_config_t *config, err_t *err);
void place_rig_close(place_rig_t *rig); /* but not the device of try */

/* The gradients of step [number], counted from 1; the losses and whatever else
 * a step reads are such that there is an update. */
void place_rig_grads(size_t elems, int64_t number, float *out);
void place_rig_case(place_rig_t *rig, int64_t number);

/* Enqueue: copy rig->step_host and in_host to the device; norm, verdict and
 * update; copy the verdict back. write, compute and read are its parts. */
err_code_t place_rig_write(place_rig_t *rig, err_t *err);
err_code_t place_rig_compute(place_rig_t *rig, err_t *err);
err_code_t place_rig_read(place_rig_t *rig, err_t *err);

/* A whole step with place_rig_grads, and a wait. */
err_code_t place_rig_step(place_rig_t *rig, int64_t number, err_t *err);

/* Copy [bytes] to, or from, the device, and wait. */
void place_rig_put(place_rig_t *rig, void *to, const void *from, size_t bytes);
void place_rig_get(place_rig_t *rig, void *to, const void *from, size_t bytes);

/* Compare parameters, state and verdict, bit by bit. */
void place_rig_same(place_rig_t *a, place_rig_t *b, const char *what);

#endif
