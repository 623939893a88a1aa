/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Weights and samples by the formula of tests/python/make_preset_reference.py,
 * for the tests that read its numbers. */
#ifndef CDDP_TESTS_NN_PRESET_FORMULA_H
#define CDDP_TESTS_NN_PRESET_FORMULA_H

#include <jansson.h>

#include "nn/fixture.h"

#define PRESET_STEPS 20
/* Relative; PyTorch's own float32 may be further away, by what is recorded. */
#define PRESET_TOLERANCE 1e-5
#define PRESET_NOISE 4.0

/* Random bits: of number [z]; the first number of what is called [name]. */
uint64_t preset_mix(uint64_t z);
uint64_t preset_key(const char *name);

void preset_weights(const nn_graph_t *graph, float *params);

/* Samples and targets of step [step] into the fixture's batch. */
void preset_batch(const fixture_t *f, int64_t samples, int64_t step);

/* tests/data/[name]; a failed one fails the test. The caller frees it. */
json_t *preset_load(const char *name);

#endif
