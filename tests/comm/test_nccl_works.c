/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Groups of NCCL: collectives that end in another order than they began. */
#include <criterion/criterion.h>

#include "comm/comm_ops.h"
#include "comm/comm_split.h"
#include "cuda/emu.h"
#include "lib/ranks.h"

#define TIMEOUT 60 /* no rank of a working group takes so long */
#define MANY (COMM_WORKS_MAX + 50)

typedef struct rig {
    comm_group_t *control, *group;
    dev_device_t *dev;
    dev_stream_t *stream;
    void *data; /* [2] doubles of the device, all 0 */
} rig_t;

static err_code_t rig_open(rig_t *rig, const comm_oob_t *oob, err_t *err)
{
    comm_config_t config = {.backend = "ucx", .timeout = TIMEOUT};
    err_code_t rc;

    ranks_transports();
    rc = comm_group_open(&config, oob, &rig->control, err);
    if (rc == ERR_OK)
        rc = dev_open("cuda", 0, &rig->dev, err);
    if (rc == ERR_OK)
        rc = dev_stream_open(rig->dev, DEV_STREAM_COMPUTE, &rig->stream, err);
    if (rc == ERR_OK)
        rc =
            dev_alloc(rig->dev, 2 * sizeof(double), "numbers", &rig->data, err);
    config =
        (comm_config_t){.backend = "nccl", .timeout = TIMEOUT, .dev = rig->dev};
    return rc == ERR_OK
               ? comm_split_whole(rig->control, &config, &rig->group, err)
               : rc;
}

static void rig_close(rig_t *rig)
{
    comm_group_close(rig->group);
    dev_free(rig->dev, rig->data);
    dev_stream_close(rig->stream);
    dev_close(rig->dev);
    comm_group_close(rig->control);
}

static comm_state_t sum_start(rig_t *rig, int at, comm_work_t **work,
                              err_t *err)
{
    return comm_allreduce_start(rig->group, (double *)rig->data + at, 1,
                                COMM_FLOAT64, COMM_SUM, work, err);
}

static int works_main(const comm_oob_t *oob, void *argument)
{
    comm_work_t *first = NULL, *works[COMM_WORKS_MAX] = {NULL};
    err_t err = ERR_INIT;
    rig_t rig = {0};

    (void)argument;
    RANKS_OK(rig_open(&rig, oob, &err), err);
    RANKS_CHECK(sum_start(&rig, 0, &first, &err) == COMM_PENDING);
    for (int i = 0; i < MANY; i++) {
        RANKS_CHECK(sum_start(&rig, 1, &works[0], &err) == COMM_PENDING);
        RANKS_OK(comm_work_wait_on(works[0], rig.stream, &err), err);
    }
    for (int i = 1; i < COMM_WORKS_MAX; i++)
        RANKS_CHECK(sum_start(&rig, 1, &works[i], &err) == COMM_PENDING);
    RANKS_CHECK(sum_start(&rig, 1, &works[0], &err) == COMM_FAILED);
    RANKS_CHECK(err.code == ERR_CONFIG);
    for (int i = 1; i < COMM_WORKS_MAX; i++)
        RANKS_OK(comm_work_wait_on(works[i], rig.stream, &err), err);
    RANKS_OK(comm_work_wait_on(first, rig.stream, &err), err);
    RANKS_OK(dev_stream_wait(rig.stream, &err), err);
    rig_close(&rig);
    return 0;
}

/* Many sums of syncbatchnorm may begin and end while a bucket is in flight.
 * Only works that have not ended count towards COMM_WORKS_MAX. */
Test(nccl_works, one_may_outlast_many_others)
{
    int results[RANKS_MAX];

    emu_open();
    cr_assert_eq(ranks_forks(2, 2 * TIMEOUT, works_main, NULL, results), 0);
}
