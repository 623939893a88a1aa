/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/plan.h"

#include "base/check.h"
#include "base/mem.h"

/* All known batches together have at most this many samples (8 bytes each),
 * unless one batch alone has more. */
#define PLAN_SAMPLES ((int64_t)1 << 17)

struct hdf5io_plan {
    hdf5io_plan_config_t config;
    int64_t epoch, step;   /* of the next batch to plan */
    int64_t planned;       /* batches so far */
    plan_batch_t *batches; /* [most]: batch n is at n modulo most */
    int64_t most;
    int64_t *samples; /* of all batches */
};

/* Number of batches that a plan knows. Each has at most [each] samples. */
static int64_t batches_of(int64_t most, int64_t each)
{
    const int64_t fit = PLAN_SAMPLES / (each > 0 ? each : 1);
    const int64_t batches = fit < most ? fit : most;

    return batches > 1 ? batches : 1;
}

uint64_t hdf5io_plan_bytes(int64_t most, int64_t each)
{
    return (uint64_t)batches_of(most, each) *
           (sizeof(plan_batch_t) + (uint64_t)each * sizeof(int64_t));
}

err_code_t hdf5io_plan_open(const hdf5io_plan_config_t *config,
                            hdf5io_plan_t **out, err_t *err)
{
    const int64_t each = hdf5io_sampler_share_max(config->sampler);
    hdf5io_plan_t *plan = NULL;
    err_code_t rc = mem_new(hdf5io_plan_t, 1, "the plan", &plan, err);

    if (rc != ERR_OK)
        return rc;
    plan->config = *config;
    plan->epoch = config->epoch;
    plan->step = config->step;
    if (plan->step >= hdf5io_sampler_steps(config->sampler)) {
        plan->step = 0;
        plan->epoch++;
    }
    plan->most = batches_of(config->most, each);
    rc = mem_new(plan_batch_t, (size_t)plan->most, "the plan", &plan->batches,
                 err);
    if (rc == ERR_OK)
        rc = mem_new(int64_t, (size_t)(plan->most * each), "the plan",
                     &plan->samples, err);
    if (rc != ERR_OK) {
        hdf5io_plan_close(plan);
        return rc;
    }
    for (int64_t i = 0; i < plan->most; i++)
        plan->batches[i].index = plan->samples + i * each;
    *out = plan;
    return ERR_OK;
}

void hdf5io_plan_close(hdf5io_plan_t *plan)
{
    if (plan == NULL)
        return;
    mem_free(plan->samples);
    mem_free(plan->batches);
    mem_free(plan);
}

int64_t hdf5io_plan_most(const hdf5io_plan_t *plan)
{
    return plan->most;
}

/* Plan the next batch. False: there is none. */
static bool plan_next(hdf5io_plan_t *plan)
{
    plan_batch_t *batch = &plan->batches[plan->planned % plan->most];
    hdf5io_sampler_t *sampler = plan->config.sampler;
    hdf5io_share_t share;

    if (plan->epoch >= plan->config.epochs)
        return false;
    hdf5io_sampler_epoch_set(sampler, plan->epoch);
    share = hdf5io_sampler_share(sampler, plan->step);
    check(share.count <= hdf5io_sampler_share_max(sampler),
          "step %lld has %lld samples, the plan holds %lld",
          (long long)plan->step, (long long)share.count,
          (long long)hdf5io_sampler_share_max(sampler));
    hdf5io_sampler_index(sampler, share.first, share.count, batch->index);
    batch->epoch = plan->epoch;
    batch->step = plan->step;
    batch->count = share.count;
    batch->global = share.global;
    plan->planned++;
    if (++plan->step >= hdf5io_sampler_steps(sampler)) {
        plan->step = 0;
        plan->epoch++;
    }
    return true;
}

const plan_batch_t *hdf5io_plan_get(hdf5io_plan_t *plan, int64_t number)
{
    check(number >= 0 && number >= plan->planned - plan->most,
          "batch %lld was forgotten: %lld were planned, %lld are known",
          (long long)number, (long long)plan->planned, (long long)plan->most);
    while (plan->planned <= number)
        if (!plan_next(plan))
            return NULL;
    return &plan->batches[number % plan->most];
}
