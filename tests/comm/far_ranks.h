/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A rank with a test device of its own, for tests of groups over a device. */
#ifndef CDDP_TESTS_COMM_FAR_RANKS_H
#define CDDP_TESTS_COMM_FAR_RANKS_H

#include "comm/comm.h"

typedef struct far_rank {
    int rank, size;
    comm_group_t *control; /* on the host */
    comm_group_t *group;   /* on the device */
    dev_device_t *dev;
    dev_stream_t *stream; /* on which the rank computes */
    dev_event_t *event;   /* on [stream] */
} far_rank_t;

typedef struct far_plan {
    const char *backend; /* of both groups */
    int order;           /* of the device: dev_far_order_t */
    double timeout;      /* of both groups, in seconds */
} far_plan_t;

/* Open the device and the control group, and then the group on the device. */
err_code_t far_rank_open(far_rank_t *far, const far_plan_t *plan,
                         const comm_oob_t *oob, err_t *err);
err_code_t far_rank_join(far_rank_t *far, const far_plan_t *plan, err_t *err);
/* Close what is open. */
void far_rank_close(far_rank_t *far);

/* A block of the device with a copy of [from] that is made late. The next
 * collective begins behind the copy if [after]. */
err_code_t far_rank_put(far_rank_t *far, void *to, const void *from,
                        size_t bytes, bool after, err_t *err);
/* Copy from the device and wait. */
err_code_t far_rank_get(far_rank_t *far, void *to, const void *from,
                        size_t bytes, err_t *err);

#endif
