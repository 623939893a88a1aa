/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Fourier transform of a cube, for data sets that are made; small and plain. */
#ifndef CDDP_CMD_DATA_FFT_H
#define CDDP_CMD_DATA_FFT_H

#include <complex.h>
#include <stdbool.h>

enum { CMD_FFT_EDGE_MAX = 256 };

/* Transform [cube], of [edge]^3 numbers (a power of two, 2 to
 * CMD_FFT_EDGE_MAX), in place: sum of x exp(-i k x), or of k exp(i k x) if
 * [back]; neither divides by the number of sites. */
void cmd_fft_cube(double complex *cube, int edge, bool back);

#endif
