/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* config.h for the emulated plugin, which has code for every GPU, whatever the
 * real one is built for. */
#ifndef CDDP_TESTS_CUDA_ARCHS_CONFIG_H
#define CDDP_TESTS_CUDA_ARCHS_CONFIG_H

#include_next <config.h>

#undef CUDA_ARCHS
#define CUDA_ARCHS " 75 80 86 89 90 100 120"

#endif
