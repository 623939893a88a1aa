/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Simulates the two-dimensional Ising model on a periodic square lattice, for
 * `cddp-data make ising`. Units: J = k_B = 1; no external field.
 */
#ifndef CDDP_CMD_DATA_ISING_H
#define CDDP_CMD_DATA_ISING_H

#include <stdint.h>

#include "base/rng.h"

enum { CMD_ISING_SIDE = 32, CMD_ISING_SITES = 32 * 32 };

/* Temperatures of samples are drawn uniformly between these. */
#define CMD_ISING_COLDEST 1.0
#define CMD_ISING_HOTTEST 3.54

typedef struct cmd_ising_sample {
    float temperature;
    int8_t phase; /* 1: ordered, below the critical temperature; 0: above */
    int energy;   /* energy of the whole lattice, -2048 .. 2048 */
    int magnet;   /* sum of the spins */
} cmd_ising_sample_t;

/* Onsager's critical temperature 2 / ln(1 + sqrt 2). */
double cmd_ising_critical(void);

/* Bring [spins] (each +1 or -1) to equilibrium at [temperature], from the fully
 * ordered state. The number of moves depends on the temperature only. */
void cmd_ising_equilibrate(rng_t *rng, double temperature,
                           int8_t spins[CMD_ISING_SITES]);

int cmd_ising_energy(const int8_t spins[CMD_ISING_SITES]);
int cmd_ising_magnet(const int8_t spins[CMD_ISING_SITES]);

/* Draw one sample by its own Markov chain. Pure in ([seed], [split], [chain]):
 * the result depends neither on threads nor on how many samples are drawn. */
void cmd_ising_draw(uint64_t seed, uint64_t split, uint64_t chain,
                    int8_t spins[CMD_ISING_SITES], cmd_ising_sample_t *sample);

#endif
