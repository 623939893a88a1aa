/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Which GPUs a build has code for. */
#ifndef CDDP_DEV_DEV_CUDA_ARCH_H
#define CDDP_DEV_DEV_CUDA_ARCH_H

#include <stdbool.h>

/*
 * Does a build for [archs] run on a GPU of compute capability [arch] (90 for
 * 9.0)? [archs] is a list of words as configure has it: "80" is code for 8.x
 * with x >= 0 and, if it is the last word without a letter, also code that the
 * driver compiles for anything newer; "90a" is code for 9.0 alone. See the CUDA
 * C++ Programming Guide, "Binary Compatibility" and "PTX Compatibility".
 */
bool dev_cuda_arch_fits(const char *archs, int arch);

#endif
