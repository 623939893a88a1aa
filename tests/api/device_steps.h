/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Steps of a reducer in the memory of the emulated GPU, whose sums are
 * checked. */
#ifndef CDDP_TESTS_API_DEVICE_STEPS_H
#define CDDP_TESTS_API_DEVICE_STEPS_H

#include "cddp/cddp.h"
#include "cuda/fake_cuda.h"

/* Open a reducer with [options] and do some steps. [hook]: the program's own
 * one, which must have the results of device_hook; NULL: none. CDDP_DATA: a sum
 * is wrong. */
cddp_code_t device_steps(cddp_group_t *group, const char *options,
                         const cddp_hook_t *hook, cddp_error_t *error);

/* A hook with CDDP_HOOK_DEVICE, called "last". It sums the first half of each
 * bucket, and takes the last rank's numbers for the other half. *fake outlives
 * it. */
cddp_hook_t device_hook(const fake_cuda_t **fake);

#endif
