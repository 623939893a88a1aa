/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Sampled energies compared with the exact ones of the finite torus (Kaufman,
 * Phys. Rev. 76, 1232, 1949), and magnetisation with Yang's formula. */
#include "cmd/data_ising.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

/* Logarithm of the sum of [count] terms signs[i] * exp(logs[i]). */
static double log_sum(const double *logs, const int *signs, int count)
{
    double most = logs[0], sum = 0;

    for (int i = 1; i < count; i++)
        most = fmax(most, logs[i]);
    for (int i = 0; i < count; i++)
        sum += signs[i] * exp(logs[i] - most);
    return most + log(sum);
}

/* ln Z of the 32x32 torus at inverse temperature [k]. */
static double log_partition(double k)
{
    const int side = CMD_ISING_SIDE;
    double logs[4] = {0};
    int signs[4] = {1, 1, 1, 1};

    for (int l = 0; l < 2 * side; l++) {
        double c = cosh(2 * k) / tanh(2 * k) - cos(l * M_PI / side);
        double gamma = l == 0 ? 2 * k + log(tanh(k)) : acosh(c);
        double half = side * fabs(gamma) / 2;
        int part = l % 2 == 1 ? 0 : 2;

        /* 2 cosh and 2 sinh, without overflow */
        logs[part] += half + log1p(exp(-2 * half));
        logs[part + 1] += half + log1p(-exp(-2 * half));
        if (gamma < 0)
            signs[part + 1] = -signs[part + 1];
    }
    return -log(2.0) + side * side / 2.0 * log(2 * sinh(2 * k)) +
           log_sum(logs, signs, 4);
}

static double exact_energy(double temperature)
{
    double k = 1 / temperature, h = 1e-5;

    return -(log_partition(k + h) - log_partition(k - h)) / (2 * h);
}

static double exact_variance(double temperature)
{
    double k = 1 / temperature, h = 1e-3;

    return (log_partition(k + h) - 2 * log_partition(k) +
            log_partition(k - h)) /
           (h * h);
}

Test(exact, agrees_with_onsager)
{
    /* The known value at T = 2 on the infinite lattice is -1.74556 per spin. */
    cr_assert_float_eq(exact_energy(2.0) / CMD_ISING_SITES, -1.74556, 2e-5);
}

static void check_energy(double temperature, int samples)
{
    int8_t spins[CMD_ISING_SITES];
    double sum = 0, expected = exact_energy(temperature);
    double sigma = sqrt(exact_variance(temperature) / samples);
    rng_t rng;

    for (int i = 0; i < samples; i++) {
        rng_open(&rng, 7, RNG_ISING, 99, (uint64_t)i);
        cmd_ising_equilibrate(&rng, temperature, spins);
        sum += cmd_ising_energy(spins);
    }
    cr_expect(fabs(sum / samples - expected) < 4 * sigma,
              "T = %g: energy %.2f, exact %.2f +- %.2f", temperature,
              sum / samples, expected, sigma);
}

Test(ising, energy_is_exact_at_all_temperatures)
{
    const double temperatures[] = {1.0,  1.6, 2.0,  2.2,  2.2692, 2.34,
                                   2.36, 2.5, 2.59, 2.61, 3.0,    3.54};

    for (size_t i = 0; i < sizeof temperatures / sizeof temperatures[0]; i++)
        check_energy(temperatures[i], 400);
}

Test(ising, magnetisation_follows_yang)
{
    double expected = pow(1 - pow(sinh(2 / 2.0), -4), 0.125), sum = 0;
    int8_t spins[CMD_ISING_SITES];
    int up = 0, samples = 400;
    rng_t rng;

    for (int i = 0; i < samples; i++) {
        rng_open(&rng, 7, RNG_ISING, 98, (uint64_t)i);
        cmd_ising_equilibrate(&rng, 2.0, spins);
        sum += abs(cmd_ising_magnet(spins)) / (double)CMD_ISING_SITES;
        up += cmd_ising_magnet(spins) > 0;
    }
    cr_expect_float_eq(sum / samples, expected, 0.006);
    /* Both signs are equally frequent, within five standard deviations of a
     * fair coin. */
    cr_expect(abs(up - samples / 2) < 50, "%d of %d up", up, samples);
}

Test(ising, energy_and_magnet_of_known_states)
{
    int8_t spins[CMD_ISING_SITES];

    memset(spins, 1, sizeof spins);
    cr_expect_eq(cmd_ising_energy(spins), -2 * CMD_ISING_SITES);
    cr_expect_eq(cmd_ising_magnet(spins), CMD_ISING_SITES);
    spins[0] = -1; /* a corner, whose bonds wrap around both edges */
    cr_expect_eq(cmd_ising_energy(spins), -2 * CMD_ISING_SITES + 8);
    for (int i = 0; i < CMD_ISING_SITES; i++)
        spins[i] = (i + i / CMD_ISING_SIDE) % 2 ? 1 : -1;
    cr_expect_eq(cmd_ising_energy(spins), 2 * CMD_ISING_SITES);
    cr_expect_eq(cmd_ising_magnet(spins), 0);
}

Test(ising, draw_is_pure_and_labels_by_the_critical_temperature)
{
    int8_t first[CMD_ISING_SITES], second[CMD_ISING_SITES];
    cmd_ising_sample_t a, b;
    double sum = 0;

    cr_expect_float_eq(cmd_ising_critical(), 2.269185314213022, 1e-12);
    for (uint64_t i = 0; i < 300; i++) {
        cmd_ising_draw(3, 0, i, first, &a);
        cr_expect(a.temperature >= 1.0f && a.temperature <= 3.54f);
        cr_expect_eq(a.phase, (double)a.temperature < cmd_ising_critical());
        cr_expect_eq(a.energy, cmd_ising_energy(first));
        cr_expect_eq(a.magnet, cmd_ising_magnet(first));
        sum += (double)a.temperature;
    }
    cr_expect_float_eq(sum / 300, 2.27, 0.2);
    cmd_ising_draw(3, 0, 5, first, &a);
    cmd_ising_draw(3, 0, 5, second, &b);
    cr_expect_eq(memcmp(first, second, sizeof first), 0);
    cmd_ising_draw(3, 1, 5, second, &b);
    cr_expect_neq(memcmp(first, second, sizeof first), 0, "split is a key");
    cr_expect_neq((double)a.temperature, (double)b.temperature);
    cmd_ising_draw(4, 0, 5, second, &b);
    cr_expect_neq(memcmp(first, second, sizeof first), 0, "seed is a key");
}
