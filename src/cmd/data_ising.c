/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The simulation alternates two kinds of moves, each of which keeps the
 * Boltzmann distribution. Metropolis sweeps relax short wavelengths. Wolff
 * clusters (Phys. Rev. Lett. 62, 361, 1989) relax long wavelengths, which
 * Metropolis sweeps cannot do near the critical point. Every sample is the end
 * of its own Markov chain, which starts from the ordered state, so samples are
 * independent.
 *
 * The number of moves is a function of the temperature alone. It would be wrong
 * to stop once a certain number of spins has flipped: large clusters would then
 * end a chain more often than small ones, which biases the samples.
 */
#include "cmd/data_ising.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = CMD_ISING_SIDE, SITES = CMD_ISING_SITES };

/* Number of rounds; a round is one sweep and some clusters. At the critical
 * point of this lattice the energy decorrelates within about four clusters; 24
 * rounds have more than ten times as many. */
enum { ROUNDS = 24 };

/* A site has the number row * 32 + column. Masks make the lattice periodic. */
static int site_right(int site)
{
    return (site & ~(SIDE - 1)) | ((site + 1) & (SIDE - 1));
}

static int site_left(int site)
{
    return (site & ~(SIDE - 1)) | ((site - 1) & (SIDE - 1));
}

static int site_down(int site)
{
    return (site + SIDE) & (SITES - 1);
}

static int site_up(int site)
{
    return (site - SIDE) & (SITES - 1);
}

/* A random number of 32 bits is below the result with this probability. */
static uint32_t chance(double probability)
{
    return (uint32_t)fmin(probability * 4294967296.0, 4294967295.0);
}

static void metropolis_sweep(rng_t *rng, const uint32_t accept[2],
                             int8_t spins[SITES])
{
    for (int site = 0; site < SITES; site++) {
        int field = spins[site_right(site)] + spins[site_left(site)] +
                    spins[site_down(site)] + spins[site_up(site)];
        /* flipping the spin costs twice this energy */
        int half_cost = spins[site] * field;

        /* cppcheck-suppress negativeIndex ; half_cost is -4, -2, 0, 2, 4 */
        if (half_cost <= 0 || rng_u32(rng) < accept[half_cost / 2 - 1])
            spins[site] = (int8_t)-spins[site];
    }
}

static void wolff_cluster(rng_t *rng, uint32_t join, int8_t spins[SITES])
{
    int stack[SITES];
    int depth = 0;
    int seed = (int)rng_below(rng, SITES);
    int8_t old = spins[seed];

    /* A site is flipped when it joins the cluster, so it joins only once. */
    spins[seed] = (int8_t)-old;
    stack[depth++] = seed;
    while (depth > 0) {
        int site = stack[--depth];
        int near[4] = {site_right(site), site_left(site), site_down(site),
                       site_up(site)};

        for (int i = 0; i < 4; i++) {
            if (spins[near[i]] != old || rng_u32(rng) >= join)
                continue;
            spins[near[i]] = (int8_t)-old;
            stack[depth++] = near[i];
        }
    }
}

/* Number of clusters in one round. Above the critical point clusters become
 * small (and cheap), so more of them are needed. */
static int clusters_of_round(double temperature)
{
    if (temperature < 2.35)
        return 2;
    return temperature < 2.6 ? 8 : 24;
}

double cmd_ising_critical(void)
{
    return 2.0 / log(1.0 + sqrt(2.0));
}

void cmd_ising_equilibrate(rng_t *rng, double temperature, int8_t spins[SITES])
{
    uint32_t accept[2] = {chance(exp(-4.0 / temperature)),
                          chance(exp(-8.0 / temperature))};
    uint32_t join = chance(1.0 - exp(-2.0 / temperature));
    int clusters = clusters_of_round(temperature);

    memset(spins, 1, SITES);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < clusters; i++)
            wolff_cluster(rng, join, spins);
        metropolis_sweep(rng, accept, spins);
    }
}

int cmd_ising_energy(const int8_t spins[SITES])
{
    int energy = 0;

    for (int site = 0; site < SITES; site++)
        energy -=
            spins[site] * (spins[site_right(site)] + spins[site_down(site)]);
    return energy;
}

int cmd_ising_magnet(const int8_t spins[SITES])
{
    int sum = 0;

    for (int site = 0; site < SITES; site++)
        sum += spins[site];
    return sum;
}

void cmd_ising_draw(uint64_t seed, uint64_t split, uint64_t chain,
                    int8_t spins[SITES], cmd_ising_sample_t *sample)
{
    double width = CMD_ISING_HOTTEST - CMD_ISING_COLDEST;
    float temperature;
    rng_t rng;

    rng_open(&rng, seed, RNG_ISING, split, chain);
    /* The temperature is rounded to float first, so that the label agrees with
     * the temperature in the file. */
    temperature = (float)(CMD_ISING_COLDEST + width * rng_uniform(&rng));
    cmd_ising_equilibrate(&rng, (double)temperature, spins);
    *sample = (cmd_ising_sample_t){
        .temperature = temperature,
        .phase = (double)temperature < cmd_ising_critical(),
        .energy = cmd_ising_energy(spins),
        .magnet = cmd_ising_magnet(spins),
    };
}
