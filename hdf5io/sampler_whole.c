/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Order 2 of `full`: one bijection of all samples. */
#include "base/bijection.h"
#include "base/mem.h"
#include "base/rng.h"
#include "hdf5io/sampler_priv.h"

typedef struct whole {
    uint64_t samples, seed;
    bijection_t order;
} whole_t;

static err_code_t whole_open(const hdf5io_sampler_config_t *config,
                             void **state, err_t *err)
{
    whole_t *whole = NULL;
    err_code_t rc = mem_new(whole_t, 1, "the sampler", &whole, err);

    if (rc != ERR_OK)
        return rc;
    whole->samples = (uint64_t)config->samples;
    whole->seed = config->seed;
    *state = whole;
    return ERR_OK;
}

static void whole_close(void *state)
{
    mem_free(state);
}

static void whole_epoch_set(void *state, int64_t epoch)
{
    whole_t *whole = state;
    rng_t rng;

    rng_open(&rng, whole->seed, RNG_ORDER, (uint64_t)epoch, 0);
    bijection_open(&whole->order, whole->samples, &rng);
}

static void whole_index(void *state, int64_t first, int64_t count,
                        int64_t *index)
{
    const whole_t *whole = state;

    for (int64_t i = 0; i < count; i++)
        index[i] = (int64_t)bijection_at(&whole->order, (uint64_t)(first + i));
}

const sampler_kind_t sampler_whole = {.open = whole_open,
                                      .close = whole_close,
                                      .epoch_set = whole_epoch_set,
                                      .index = whole_index};
