/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What a wait for the device can find out without calling it: faults of ranks
 * and of NCCL, and that the device makes no progress. */
#include "base/clock.h"
#include "comm/nccl/nccl_group.h"

/* Return a fault of the group or of NCCL. NCCL sees that a connection broke
 * before the group beside this one knows which rank is to blame. So such an
 * error is returned only if that group finds no fault within the timeout. */
static err_code_t faults_look(nccl_group_t *group, err_t *err)
{
    ncclResult_t state = ncclSuccess;
    err_code_t rc = nccl_fault(group, err);

    if (rc != ERR_OK || group->comm == NULL ||
        group->nccl->CommGetAsyncError(group->comm, &state) != ncclSuccess)
        return rc;
    if (nccl_broken(state) &&
        comm_still_for(&group->broken, 1, clock_now()) < group->base.timeout)
        return ERR_OK;
    return nccl_check(group, state, "a collective", err);
}

/* The device may write the marks at any time. [ended] is read first, so that
 * a collective which begins between the two reads counts as begun. */
static comm_marks_t marks_read(const nccl_group_t *group)
{
    const volatile comm_marks_t *marks = group->marks;
    const uint64_t ended = marks->ended;

    return (comm_marks_t){.begun = marks->begun, .ended = ended};
}

/* A device that is in a collective may be waiting for other ranks. The group
 * beside this one finds out from its beats which rank is to blame. Only if it
 * finds nothing does this rank give up, after twice the timeout. */
err_code_t nccl_look(comm_group_t *base, double waited, err_t *err)
{
    nccl_group_t *group = (nccl_group_t *)base;
    const comm_marks_t marks = marks_read(group);
    const bool inside = marks.begun > marks.ended;
    const double most = inside ? 2 * base->timeout : base->timeout;
    const double still =
        comm_still_for(&group->marked, marks.begun + marks.ended, clock_now());
    err_code_t rc = faults_look(group, err);

    if (rc != ERR_OK || waited < most || still < most)
        return rc;
    return err_set(err, ERR_UNAVAILABLE,
                   inside ? "collective %llu of NCCL has not ended on its GPU "
                            "within %.0f s"
                          : "its GPU has not ended what comes before "
                            "collective %llu of NCCL within %.0f s",
                   (unsigned long long)(inside ? marks.begun : marks.begun + 1),
                   most);
}

static err_code_t group_look(void *context, double waited, err_t *err)
{
    return nccl_look(context, waited, err);
}

err_code_t nccl_stream_wait(nccl_group_t *group, err_t *err)
{
    return dev_stream_wait_or(group->stream, group_look, group, err);
}
