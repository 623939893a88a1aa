/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "report/bins.h"

#include <string.h>

void report_bin_merge(report_bin_t *to, const report_bin_t *from)
{
    if (from->count == 0)
        return;
    if (to->count == 0 || from->least < to->least)
        to->least = from->least;
    if (to->count == 0 || from->most > to->most)
        to->most = from->most;
    to->sum += from->sum;
    to->count += from->count;
}

/* Make each two bins one. */
static void bins_halve(report_bins_t *bins)
{
    const int half = (bins->used + 1) / 2;

    for (int i = 0; i < half; i++) {
        report_bin_t both = bins->bins[2 * i];

        if (2 * i + 1 < bins->used)
            report_bin_merge(&both, &bins->bins[2 * i + 1]);
        bins->bins[i] = both;
    }
    memset(bins->bins + half, 0,
           (size_t)(bins->used - half) * sizeof bins->bins[0]);
    bins->used = half;
    bins->shift++;
}

void report_bins_add(report_bins_t *bins, int64_t step, double value)
{
    const report_bin_t one = {value, value, value, 1};

    while (step >> bins->shift >= REPORT_BINS)
        bins_halve(bins);
    const int at = (int)(step >> bins->shift);

    report_bin_merge(&bins->bins[at], &one);
    if (bins->used <= at)
        bins->used = at + 1;
}

double report_bin_mean(const report_bin_t *bin)
{
    return bin->sum / (double)bin->count;
}
