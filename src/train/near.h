/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* near: keeps threads on the cores near the rank's GPU. */
#ifndef CDDP_TRAIN_NEAR_H
#define CDDP_TRAIN_NEAR_H

#include "train/device.h"

/*
 * From now on the calling thread, and those that it starts (the loader's), run
 * only on those cores of its affinity mask that are on the NUMA node of
 * [device]: batches then lie in the memory from which the GPU copies fastest.
 * Changes nothing on a CPU, or if the kernel does not know the cores. Changes
 * nothing either if no core of the mask is near: Slurm has then bound the rank
 * far from its GPU, and a warning says so if [logs].
 */
void train_near_bind(const train_device_t *device, bool logs);

#endif
