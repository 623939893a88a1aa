/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The GPUs that a rank sees, for cddp-info --topology: where each is, how they
 * reach each other and the network, and what NCCL can use of that. */
#ifndef CDDP_CMD_INFO_GPUS_H
#define CDDP_CMD_INFO_GPUS_H

#include <stddef.h>

/* Write the lines, each indented by four spaces, to [out] of [room] bytes (cut
 * if they are longer). If there is no GPU, write one line that says why. */
void info_gpus(char *out, size_t room);

#endif
