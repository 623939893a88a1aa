/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Weights and samples by the formula of tests/python/make_preset_reference.py,
 * for tests that compare with its results. */
#ifndef CDDP_TESTS_NN_PRESET_FORMULA_H
#define CDDP_TESTS_NN_PRESET_FORMULA_H

#include <jansson.h>

#include "nn/fixture.h"

#define PRESET_STEPS 20
/* Relative tolerance. If the recorded error of PyTorch's own float32 is larger
 * than this, PRESET_NOISE times that error is allowed. */
#define PRESET_TOLERANCE 1e-5
#define PRESET_NOISE 4.0

/* preset_mix: random bits from the number [z]. preset_key: the number at which
 * the sequence called [name] begins. */
uint64_t preset_mix(uint64_t z);
uint64_t preset_key(const char *name);

void preset_weights(const nn_graph_t *graph, float *params);

/* Fill the fixture's batch with the samples and targets of step [step]. */
void preset_batch(const fixture_t *f, int64_t samples, int64_t step);

/* Load tests/data/[name]; the test fails if that fails. The caller frees the
 * result. */
json_t *preset_load(const char *name);

#endif
