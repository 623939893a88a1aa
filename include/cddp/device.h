/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The device of the ranks of a group: cddp_run_config_t.device. If it is a GPU,
 * the gradients and sums of a reducer (<cddp/ddp.h>) are in its memory, where
 * kernels of the program can write them. All other functions work in the host's
 * memory, as with "cpu": collectives of the group, models, data, checkpoints.
 * If a rank cannot use its GPU, cddp_run returns CDDP_UNAVAILABLE in all ranks
 * before the ranks run, and says why.
 */
#ifndef CDDP_DEVICE_H
#define CDDP_DEVICE_H

#include <stddef.h>

#include <cddp/group.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cddp_copy { CDDP_TO_DEVICE, CDDP_FROM_DEVICE } cddp_copy_t;

/* The index of this rank's GPU, for cudaSetDevice; -1 on the CPU. */
int cddp_group_device(const cddp_group_t *group);

/* Copy [bytes] bytes between the host's memory and that of the device, which on
 * the CPU is the host's, too. What other streams of the GPU write must be
 * complete before. Blocks until the bytes are there. Local. After an error the
 * device can usually not be used any more: return the error from the rank's
 * function, so that the other ranks learn of it. */
cddp_code_t cddp_device_copy(cddp_group_t *group, void *to, const void *from,
                             size_t bytes, cddp_copy_t how,
                             cddp_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
