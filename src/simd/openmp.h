/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The few calls of the OpenMP runtime that we make, as the OpenMP specification
 * declares them. <omp.h> belongs to a compiler, and clang's comes in a package
 * that would bring a second runtime; we only want the one that oneDNN runs on.
 */
#ifndef CDDP_SIMD_OPENMP_H
#define CDDP_SIMD_OPENMP_H

void omp_set_num_threads(int threads);
int omp_get_max_threads(void);
int omp_get_num_threads(void);
int omp_get_thread_num(void);

#endif
