/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The few functions of the OpenMP runtime that cddp calls, declared as in the
 * OpenMP specification. <omp.h> belongs to a compiler, and clang's comes in a
 * package that would bring a second runtime; cddp needs the runtime that
 * oneDNN uses.
 */
#ifndef CDDP_SIMD_OPENMP_H
#define CDDP_SIMD_OPENMP_H

void omp_set_num_threads(int threads);
int omp_get_max_threads(void);
int omp_get_num_threads(void);
int omp_get_thread_num(void);

#endif
