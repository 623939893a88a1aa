/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Fourier transform of a cube, for making data sets. The code is short rather
 * than fast. */
#ifndef CDDP_CMD_DATA_FFT_H
#define CDDP_CMD_DATA_FFT_H

#include <complex.h>
#include <stdbool.h>

enum { CMD_FFT_EDGE_MAX = 256 };

/* Transform [cube] of [edge]^3 numbers in place; [edge] is a power of two, from
 * 2 to CMD_FFT_EDGE_MAX. Element k becomes the sum over sites x of cube[x]
 * exp(-i k x), with a plus sign in the exponent if [back]. Neither direction
 * divides by the number of sites. */
void cmd_fft_cube(double complex *cube, int edge, bool back);

#endif
