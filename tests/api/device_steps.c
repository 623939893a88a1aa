/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "api/device_steps.h"

#include <stdbool.h>
#include <stdlib.h>

#include "api/check.h"

enum { ELEMS = 1000, STEPS = 3 };

static const cddp_view_t views[] = {{"a", 0, 600}, {"b", 600, 400}};

/* One step: each rank gives its own numbers in two gradients. If [hooked], the
 * second half of both must have the numbers of the last rank (last_turn). */
static cddp_code_t step(cddp_group_t *group, cddp_ddp_t *ddp, int number,
                        bool hooked, cddp_error_t *error)
{
    const int rank = cddp_group_rank(group), size = cddp_group_size(group);
    const float sum = (float)(size * (size + 1)) / 2;
    double count = rank + 1;
    float numbers[ELEMS];

    for (int i = 0; i < ELEMS; i++)
        numbers[i] = (float)((rank + 1) * (i + number));
    cddp_group_report(group, number, "step");
    cddp_ddp_begin(ddp);
    OK(cddp_device_copy(group, cddp_ddp_grads(ddp), numbers, sizeof numbers,
                        CDDP_TO_DEVICE, error));
    OK(cddp_device_copy(group, cddp_ddp_sums(ddp), &count, sizeof count,
                        CDDP_TO_DEVICE, error));
    OK(cddp_ddp_ready(ddp, 0, error));
    OK(cddp_ddp_ready(ddp, 1, error));
    OK(cddp_ddp_wait(ddp, error));
    OK(cddp_device_copy(group, numbers, cddp_ddp_grads(ddp), sizeof numbers,
                        CDDP_FROM_DEVICE, error));
    OK(cddp_device_copy(group, &count, cddp_ddp_sums(ddp), sizeof count,
                        CDDP_FROM_DEVICE, error));
    for (int i = 0; i < ELEMS; i++) {
        const cddp_view_t *view = &views[i >= 600];
        const bool second = (size_t)i - view->offset >= view->count / 2;

        CHECK(numbers[i] ==
              (hooked && second ? (float)size : sum) * (float)(i + number));
    }
    CHECK(count == sum);
    return cddp_group_check(group, error);
}

cddp_code_t device_steps(cddp_group_t *group, const char *options,
                         const cddp_hook_t *hook, cddp_error_t *error)
{
    const cddp_hook_t *hooks[] = {hook, NULL};
    const cddp_ddp_config_t config = {.views = views,
                                      .view_count = 2,
                                      .elems = ELEMS,
                                      .sums = 1,
                                      .options = options,
                                      .hooks = hooks};
    cddp_ddp_t *ddp = NULL;
    cddp_code_t code = cddp_ddp_open(group, &config, &ddp, error);

    for (int s = 0; code == CDDP_OK && s < STEPS; s++)
        code = step(group, ddp, s, hook != NULL, error);
    cddp_ddp_close(ddp);
    return code;
}

/* ---- a hook that works in the memory of the GPU -------------------------- */

typedef struct last {
    const fake_cuda_t *fake; /* to which the context of the table points */
    float *sums, *all;       /* [elems] and [size * elems], of the GPU */
    size_t size;
} last_t;

static void last_close(void *state)
{
    last_t *last = state;

    last->fake->free(last->sums);
    last->fake->free(last->all);
    free(last);
}

static cddp_code_t last_open(const cddp_hook_plan_t *plan, void **state,
                             cddp_error_t *error)
{
    last_t *last = calloc(1, sizeof *last);

    CHECK(last != NULL);
    last->fake = *(const fake_cuda_t *const *)plan->context;
    last->size = (size_t)plan->size;
    last->sums = last->fake->alloc(plan->elems * sizeof(float));
    last->all = last->fake->alloc(last->size * plan->elems * sizeof(float));
    *state = last;
    CHECK(last->sums != NULL && last->all != NULL);
    return CDDP_OK;
}

/* Sum the first half of a bucket, and take the last rank's numbers for the
 * other half. */
static cddp_code_t last_turn(void *state, const cddp_hook_bucket_t *bucket,
                             int turn, cddp_wire_t *wire, cddp_error_t *error)
{
    const last_t *last = state;
    const size_t count = bucket->count, half = count / 2;
    float *sums = last->sums + bucket->offset;
    float *all = last->all + last->size * bucket->offset;
    const float *theirs = all + (last->size - 1) * count;
    void *stream = cddp_wire_stream(wire);

    CHECK(stream != NULL);
    if (turn == 0) {
        CHECK(last->fake->copy(stream, sums, bucket->grads,
                               count * sizeof *sums) == 0);
        OK(cddp_wire_sum(wire, sums, count, CDDP_FLOAT32, error));
        return cddp_wire_gather(wire, bucket->grads, count * sizeof *all, all,
                                error);
    }
    OK(cddp_wire_wait(wire, error));
    CHECK(last->fake->copy(stream, bucket->grads, sums, half * sizeof *sums) ==
          0);
    CHECK(last->fake->copy(stream, bucket->grads + half, theirs + half,
                           (count - half) * sizeof *sums) == 0);
    return CDDP_OK;
}

cddp_hook_t device_hook(const fake_cuda_t **fake)
{
    return (cddp_hook_t){.name = "last",
                         .context = fake,
                         .turns = 2,
                         .open = last_open,
                         .close = last_close,
                         .turn = last_turn,
                         .place = CDDP_HOOK_DEVICE};
}
