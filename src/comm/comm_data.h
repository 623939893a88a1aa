/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * comm_data: which backends the two groups of a rank have. The control group
 * works on the host's memory. The data group works on the memory of the ranks'
 * devices; comm_split_whole opens it beside the control group.
 */
#ifndef CDDP_COMM_COMM_DATA_H
#define CDDP_COMM_COMM_DATA_H

#include "comm/comm.h"

#define COMM_NCCL "nccl"

/* The backend of a control group of [size] ranks. It is [asked], what the user
 * named. If that is NULL, "auto" or "nccl", it is "self" for one rank, else
 * [usual]. Pure. */
const char *comm_control_backend(const char *asked, int size,
                                 const char *usual);

/* The backend of the data group on [dev], beside a control group whose backend
 * is [control]. It is "nccl" if the user named that ([asked]). It is "nccl",
 * too, if the user left it open (NULL or "auto"), [dev] is a GPU, and the ranks
 * are several processes ([control] is "ucx"): NCCL's documentation warns of
 * deadlocks with several GPUs in one process. Otherwise it is [control].
 * Pure. */
const char *comm_data_backend(const char *asked, const char *control,
                              const dev_device_t *dev);

/* Set *a and *b to the first two ranks of one host whose devices have the same
 * UUID, or to -1. [uuid] is that of this rank's device; "": it has none. All
 * ranks get the same answer or the same error. Collective over [control];
 * blocks. */
err_code_t comm_sharers_find(comm_group_t *control, const char *uuid, int *a,
                             int *b, err_t *err);

/* NCCL refuses two ranks of one host that share a GPU. So give this process,
 * which is rank [rank], a host name of its own (NCCL_HOSTID, unless it is set):
 * NCCL then takes the ranks for ranks of different hosts, accepts them, and
 * connects them through sockets. Call it in all ranks, before a group of the
 * backend nccl is opened and while no other thread reads the environment. */
void comm_sharing_allow(int rank);

#endif
