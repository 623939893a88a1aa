/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Order 2 of `chunk`. A bijection permutes the units; [place] is the number of
 * a unit in this order. The samples in this order are the line. The line is cut
 * into L lanes. A step takes its samples from all lanes, lane 0 first: of n
 * samples lane l gives numbers [n l / L, n (l + 1) / L), rounded down. A lane
 * is as long as what all steps together take from it. So lanes are equal where
 * L divides the batch and the batch divides the samples.
 *
 * Even lanes are read forwards, odd lanes backwards. So the two lanes that meet
 * within a unit read it at the same time, both in their first window or both in
 * their last one, and a rank that owns both reads the unit once.
 *
 * A window of a lane is up to SAMPLER_UNITS consecutive places, as far as they
 * are in the lane. Its samples are mixed by another bijection. Nothing depends
 * on windows before, so any step can be the first one.
 *
 * If all units had the usual size, a place would begin at position place *
 * usual size of the line. The places of the odd units are found by the inverse
 * of the bijection and sorted, once per epoch: 16 bytes for each odd unit.
 */
#include <stdlib.h>

#include "base/bijection.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/rng.h"
#include "hdf5io/sampler_priv.h"

/* An odd unit: its place, and the position in the line at which it ends. */
typedef struct lanes_odd {
    int64_t place, end;
} lanes_odd_t;

/* The current window of a lane: positions [first, first + count) of the line,
 * which consist of [units] parts of units. */
typedef struct lanes_window {
    int64_t first, count;          /* count 0: no window yet */
    int64_t begin[SAMPLER_UNITS];  /* of each part, from [first] on */
    int64_t sample[SAMPLER_UNITS]; /* number of its first sample */
    int units;
    bijection_t mix;
} lanes_window_t;

typedef struct lanes {
    const hdf5io_units_t *units; /* not owned */
    int64_t batch, lanes, samples;
    uint64_t seed;
    int64_t epoch;
    bijection_t order; /* place -> unit */
    lanes_odd_t *odd;  /* [odds], ascending */
    int64_t *numbers;  /* [odds], of the odd units */
    int64_t odds;
    lanes_window_t *windows; /* [lanes] */
} lanes_t;

/* ---- the line ------------------------------------------------------------ */

/* Position in the line at which [place] begins; place 0 .. number of units. */
static int64_t line_begin(const lanes_t *lanes, int64_t place)
{
    const int64_t usual = hdf5io_units_usual(lanes->units);
    int64_t low = 0, high = lanes->odds; /* odd units below [place] */

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if (lanes->odd[middle].place < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? place * usual
                    : lanes->odd[low - 1].end +
                          (place - lanes->odd[low - 1].place - 1) * usual;
}

/* The place that holds position [at] of the line. */
static int64_t line_place(const lanes_t *lanes, int64_t at)
{
    const int64_t usual = hdf5io_units_usual(lanes->units);
    int64_t low = 0, high = lanes->odds, place, begin;

    /* Pass over the odd units that end at or before [at]. */
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if (lanes->odd[middle].end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    begin = low == 0 ? 0 : lanes->odd[low - 1].end;
    place = low == 0 ? 0 : lanes->odd[low - 1].place + 1;
    place += (at - begin) / usual;
    /* The next odd unit may be larger than the usual ones. */
    if (low < lanes->odds && place > lanes->odd[low].place)
        place = lanes->odd[low].place;
    return place;
}

static int by_place(const void *a, const void *b)
{
    const lanes_odd_t *x = a, *y = b;

    return (x->place > y->place) - (x->place < y->place);
}

/* Find the odd units in the order of the epoch. */
static void odd_find(lanes_t *lanes)
{
    const int64_t usual = hdf5io_units_usual(lanes->units);
    int64_t end = 0, next = 0; /* of the line, behind place next - 1 */

    for (int64_t i = 0; i < lanes->odds; i++) {
        const int64_t number = lanes->numbers[i];
        lanes_odd_t *odd = &lanes->odd[i];

        odd->place = (int64_t)bijection_place(&lanes->order, (uint64_t)number);
        odd->end = hdf5io_units_get(lanes->units, number).count;
    }
    if (lanes->odds > 1)
        qsort(lanes->odd, (size_t)lanes->odds, sizeof *lanes->odd, by_place);
    for (int64_t i = 0; i < lanes->odds; i++) {
        lanes_odd_t *odd = &lanes->odd[i];

        end += (odd->place - next) * usual + odd->end;
        next = odd->place + 1;
        odd->end = end;
    }
    check(line_begin(lanes, hdf5io_units_count(lanes->units)) == lanes->samples,
          "%lld units end at %lld of %lld samples",
          (long long)hdf5io_units_count(lanes->units),
          (long long)line_begin(lanes, hdf5io_units_count(lanes->units)),
          (long long)lanes->samples);
}

/* ---- lanes --------------------------------------------------------------- */

/* Number of samples that the lanes below [lane] give to a step of [count]. */
static int64_t lanes_below(const lanes_t *lanes, int64_t count, int64_t lane)
{
    return count * lane / lanes->lanes;
}

/* Position of the line at which [lane] (0 .. lanes) begins. */
static int64_t lane_begin(const lanes_t *lanes, int64_t lane)
{
    return lanes->samples / lanes->batch *
               lanes_below(lanes, lanes->batch, lane) +
           lanes_below(lanes, lanes->samples % lanes->batch, lane);
}

/* A sample of a lane: its position on the line. */
typedef struct lanes_spot {
    int64_t lane, at;
} lanes_spot_t;

/* Where position [position] of the epoch's order is on the line. */
static lanes_spot_t spot_find(const lanes_t *lanes, int64_t position)
{
    const int64_t step = position / lanes->batch,
                  left = lanes->samples - step * lanes->batch;
    const int64_t count = left < lanes->batch ? left : lanes->batch;
    const int64_t slot = position % lanes->batch;
    /* the last lane with lanes_below(lane) <= slot */
    const int64_t lane = ((slot + 1) * lanes->lanes - 1) / count;
    const int64_t each = lanes_below(lanes, lanes->batch, lane + 1) -
                         lanes_below(lanes, lanes->batch, lane);
    const int64_t done = step * each + slot - lanes_below(lanes, count, lane);

    check(lane >= 0 && lane < lanes->lanes &&
              slot >= lanes_below(lanes, count, lane) &&
              slot < lanes_below(lanes, count, lane + 1),
          "sample %lld of a step of %lld is in lane %lld", (long long)slot,
          (long long)count, (long long)lane);
    return (lanes_spot_t){.lane = lane,
                          .at = lane % 2 == 0
                                    ? lane_begin(lanes, lane) + done
                                    : lane_begin(lanes, lane + 1) - 1 - done};
}

/* First place of the window of [lane] that contains [place]. Windows count from
 * the end at which the lane begins to read. May be negative, in a lane that is
 * read backwards. */
static int64_t window_place(const lanes_t *lanes, int64_t lane, int64_t place,
                            int64_t *number)
{
    int64_t from;

    if (lane % 2 == 0) {
        from = line_place(lanes, lane_begin(lanes, lane));
        *number = (place - from) / SAMPLER_UNITS;
        return from + *number * SAMPLER_UNITS;
    }
    from = line_place(lanes, lane_begin(lanes, lane + 1) - 1);
    *number = (from - place) / SAMPLER_UNITS;
    return from - (*number + 1) * SAMPLER_UNITS + 1;
}

/* Add what [window] has of the unit at [place]. */
static void window_add(const lanes_t *lanes, lanes_window_t *window,
                       int64_t place, int64_t begin, int64_t end)
{
    const int64_t number =
        (int64_t)bijection_at(&lanes->order, (uint64_t)place);
    const int64_t skipped = begin - line_begin(lanes, place);

    if (window->units == 0)
        window->first = begin;
    window->begin[window->units] = window->count;
    window->sample[window->units] =
        hdf5io_units_get(lanes->units, number).first + skipped;
    window->units++;
    window->count += end - begin;
}

/* Make the window of [spot] the current one of its lane. */
static void window_fill(lanes_t *lanes, const lanes_spot_t *spot)
{
    lanes_window_t *window = &lanes->windows[spot->lane];
    const int64_t from = lane_begin(lanes, spot->lane);
    const int64_t stop = lane_begin(lanes, spot->lane + 1);
    int64_t place, number;
    rng_t rng;

    if (window->count > 0 && spot->at >= window->first &&
        spot->at < window->first + window->count)
        return;
    window->units = 0;
    window->count = 0;
    place =
        window_place(lanes, spot->lane, line_place(lanes, spot->at), &number);
    for (int64_t p = place; p < place + SAMPLER_UNITS; p++) {
        int64_t begin, end;

        if (p < 0 || p >= hdf5io_units_count(lanes->units))
            continue;
        begin = line_begin(lanes, p);
        end = line_begin(lanes, p + 1);
        begin = begin < from ? from : begin;
        end = end > stop ? stop : end;
        if (begin < end)
            window_add(lanes, window, p, begin, end);
    }
    check(window->count > 0 && spot->at >= window->first &&
              spot->at < window->first + window->count,
          "position %lld of lane %lld is not in its window of %lld",
          (long long)spot->at, (long long)spot->lane, (long long)window->count);
    rng_open(&rng, lanes->seed, RNG_ORDER, (uint64_t)lanes->epoch,
             (uint64_t)(spot->lane + 1) << SAMPLER_LANE_SHIFT |
                 (uint64_t)number);
    bijection_open(&window->mix, (uint64_t)window->count, &rng);
}

/* ---- the kind ------------------------------------------------------------ */

static void lanes_close(void *state)
{
    lanes_t *lanes = state;

    if (lanes == NULL)
        return;
    mem_free(lanes->windows);
    mem_free(lanes->numbers);
    mem_free(lanes->odd);
    mem_free(lanes);
}

static err_code_t lanes_open(const hdf5io_sampler_config_t *config,
                             void **state, err_t *err)
{
    lanes_t *lanes = NULL;
    err_code_t rc = mem_new(lanes_t, 1, "the sampler", &lanes, err);

    if (rc != ERR_OK)
        return rc;
    lanes->units = config->units;
    lanes->batch = config->batch;
    lanes->lanes =
        config->lanes < config->batch ? config->lanes : config->batch;
    lanes->samples = config->samples;
    lanes->seed = config->seed;
    lanes->odds = hdf5io_units_odd(config->units, NULL);
    rc = mem_new(lanes_odd_t, (size_t)lanes->odds, "the order of an epoch",
                 &lanes->odd, err);
    if (rc == ERR_OK)
        rc = mem_new(int64_t, (size_t)lanes->odds, "the order of an epoch",
                     &lanes->numbers, err);
    if (rc == ERR_OK)
        rc = mem_new(lanes_window_t, (size_t)lanes->lanes,
                     "the shuffle windows", &lanes->windows, err);
    if (rc != ERR_OK) {
        lanes_close(lanes);
        return rc;
    }
    hdf5io_units_odd(config->units, lanes->numbers);
    *state = lanes;
    return ERR_OK;
}

static void lanes_epoch_set(void *state, int64_t epoch)
{
    lanes_t *lanes = state;
    rng_t rng;

    lanes->epoch = epoch;
    for (int64_t l = 0; l < lanes->lanes; l++)
        lanes->windows[l].count = 0;
    rng_open(&rng, lanes->seed, RNG_ORDER, (uint64_t)epoch, 0);
    bijection_open(&lanes->order, (uint64_t)hdf5io_units_count(lanes->units),
                   &rng);
    odd_find(lanes);
}

static void lanes_index(void *state, int64_t first, int64_t count,
                        int64_t *index)
{
    lanes_t *lanes = state;

    for (int64_t i = 0; i < count; i++) {
        const lanes_spot_t spot = spot_find(lanes, first + i);
        const lanes_window_t *window = &lanes->windows[spot.lane];
        int64_t at;
        int part = 0;

        window_fill(lanes, &spot);
        at = (int64_t)bijection_at(&window->mix,
                                   (uint64_t)(spot.at - window->first));
        while (part + 1 < window->units && window->begin[part + 1] <= at)
            part++;
        index[i] = window->sample[part] + at - window->begin[part];
    }
}

const sampler_kind_t sampler_lanes = {.open = lanes_open,
                                      .close = lanes_close,
                                      .epoch_set = lanes_epoch_set,
                                      .index = lanes_index};
