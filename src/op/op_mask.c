/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/op_mask.h"

#include <math.h>

#include "base/rng.h"

op_mask_t op_mask_make(const op_config_t *config, const op_args_t *args)
{
    const op_step_t *step = args->step;
    /* One block of Philox under the seed mixes epoch and purpose into a key. */
    uint32_t seed[2] = {(uint32_t)step->seed, (uint32_t)(step->seed >> 32)};
    uint32_t counter[4] = {(uint32_t)step->epoch, (uint32_t)(step->epoch >> 32),
                           RNG_DROPOUT, 0};
    uint32_t mixed[4];
    op_mask_t mask;

    rng_philox(seed, counter, mixed);
    mask.key[0] = mixed[0];
    mask.key[1] = mixed[1];
    mask.layer = (uint32_t)args->layer;
    mask.threshold = (uint32_t)llround(ldexp(config->rate, 32) > 4294967295.0
                                           ? 4294967295.0
                                           : ldexp(config->rate, 32));
    mask.factor = (float)(1.0 / (1.0 - config->rate));
    return mask;
}

void op_mask_block(const op_mask_t *mask, uint64_t sample, uint32_t block,
                   uint32_t out[4])
{
    uint32_t counter[4] = {block, mask->layer, (uint32_t)sample,
                           (uint32_t)(sample >> 32)};

    rng_philox(mask->key, counter, out);
}
