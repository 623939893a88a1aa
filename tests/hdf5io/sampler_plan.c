/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "sampler_plan.h"

#include <criterion/criterion.h>
#include <stdlib.h>

const hdf5io_span_t plan_uneven[PLAN_SPANS] = {
    {1000, 64}, {0, 64},  {64, 64},   {63, 64}, {1, 1},    {700, 64},
    {129, 64},  {300, 7}, {512, 200}, {5, 64},  {2048, 64}};

plan_t plan_open(const hdf5io_span_t *spans, int count, int64_t batch,
                 int64_t lanes)
{
    plan_t plan = {.batch = batch,
                   .lanes = lanes,
                   .shuffle = HDF5IO_SHUFFLE_CHUNK,
                   .seed = 3};
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_units_open(spans, count, &plan.units, &err), ERR_OK,
                 "%s", err.text);
    plan.samples = hdf5io_units_samples(plan.units);
    return plan;
}

plan_t plan_even(int64_t samples, int64_t unit, int64_t batch, int64_t lanes)
{
    return plan_open(&(hdf5io_span_t){samples, unit}, 1, batch, lanes);
}

hdf5io_sampler_t *plan_sampler(const plan_t *plan, int rank, int size,
                               int64_t epoch)
{
    const hdf5io_sampler_config_t config = {.samples = plan->samples,
                                            .batch = plan->batch,
                                            .rank = rank,
                                            .size = size,
                                            .grain = plan->grain,
                                            .shuffle = plan->shuffle,
                                            .seed = plan->seed,
                                            .order = 2,
                                            .lanes = plan->lanes,
                                            .units = plan->units};
    hdf5io_sampler_t *sampler = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_sampler_open(&config, &sampler, &err), ERR_OK, "%s",
                 err.text);
    hdf5io_sampler_epoch_set(sampler, epoch);
    return sampler;
}

int64_t *plan_order(const plan_t *plan, int64_t epoch)
{
    hdf5io_sampler_t *sampler = plan_sampler(plan, 0, 1, epoch);
    int64_t *order = calloc((size_t)plan->samples, sizeof *order);

    hdf5io_sampler_index(sampler, 0, plan->samples, order);
    hdf5io_sampler_close(sampler);
    return order;
}

/* Unit of each sample. */
int64_t *plan_units(const plan_t *plan)
{
    int64_t *unit = calloc((size_t)plan->samples, sizeof *unit);

    for (int64_t u = 0; u < hdf5io_units_count(plan->units); u++) {
        const hdf5io_unit_t got = hdf5io_units_get(plan->units, u);

        for (int64_t i = 0; i < got.count; i++)
            unit[got.first + i] = u;
    }
    return unit;
}
