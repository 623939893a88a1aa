/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The device of the ranks of a group: cddp_run_config_t.device. If it is a GPU,
 * the gradients and sums of a reducer (<cddp/ddp.h>) are in its memory, where
 * kernels of the program can write them. All other functions work in the host's
 * memory, as with "cpu": collectives of the group, models, data, checkpoints.
 * If a rank cannot use its GPU, cddp_run returns CDDP_UNAVAILABLE in all ranks
 * before the ranks run, and says why.
 *
 * NCCL sums the memory of the GPUs if there are several ranks, which are
 * processes (cddp_run_config_t.local is 0), each with a GPU of its own. If a
 * rank then finds no NCCL, cddp_run returns CDDP_UNAVAILABLE in all ranks. In
 * all other cases, and if cddp_run_config_t.backend is "ucx", the sums pass
 * through the host's memory: that is slower, but needs no NCCL. Ranks that
 * share a GPU use NCCL only if the backend is "nccl": this sets NCCL_HOSTID in
 * the environment of each rank, and is meant for tests. CDDP_CONFIG: the
 * backend is "nccl", but the device is the CPU, or the ranks are threads of one
 * process.
 *
 * If the ranks use NCCL and one of them fails, its peers' GPUs may wait for it
 * for ever. Then the calls of the peers return CDDP_PEER. After that a rank
 * must not use CUDA any more: it returns from its function, and its process
 * ends by _Exit, since exit handlers of CUDA might not return.
 *
 * Sub-groups of a group that uses NCCL use it, too, each with a communicator of
 * its own. NCCL does not promise that two communicators work at the same time.
 * So between cddp_ddp_begin and cddp_ddp_wait a rank begins no step of another
 * reducer, and ranks that are in several groups take the groups in the same
 * order.
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
