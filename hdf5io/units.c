/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/units.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"

/* The units of one shard; shards without samples have none and are left out. */
typedef struct units_run {
    int64_t unit;   /* number of its first unit */
    int64_t sample; /* number of its first sample */
    int64_t rows;   /* samples of a unit; a short last one may follow */
} units_run_t;

struct hdf5io_units {
    int64_t count, samples, usual;
    int runs;
    units_run_t run[]; /* [runs + 1]; the last one is the end of all */
};

static int by_rows(const void *a, const void *b)
{
    const units_run_t *x = a, *y = b;

    return (x->rows > y->rows) - (x->rows < y->rows);
}

/* Find the number of samples that most units have; the larger one of two that
 * are equally frequent. Short units at the ends of shards are not counted. */
static err_code_t usual_find(hdf5io_units_t *units, err_t *err)
{
    const size_t runs = (size_t)units->runs;
    units_run_t *sorted = NULL;
    int64_t most = 0, same = 0;
    err_code_t rc = mem_new(units_run_t, runs, "units", &sorted, err);

    if (rc != ERR_OK)
        return rc;
    /* [unit] becomes the number of whole units of the run. */
    for (size_t i = 0; i < runs; i++) {
        sorted[i] = units->run[i];
        sorted[i].unit =
            (units->run[i + 1].sample - sorted[i].sample) / sorted[i].rows;
    }
    qsort(sorted, runs, sizeof *sorted, by_rows);
    for (size_t i = 0; i < runs; i++) {
        if (i > 0 && sorted[i].rows != sorted[i - 1].rows)
            same = 0;
        same += sorted[i].unit;
        if (same >= most) {
            most = same;
            units->usual = sorted[i].rows;
        }
    }
    mem_free(sorted);
    return ERR_OK;
}

err_code_t hdf5io_units_open(const hdf5io_span_t *spans, int count,
                             hdf5io_units_t **out, err_t *err)
{
    hdf5io_units_t *units = NULL;
    err_code_t rc = mem_new_tail(hdf5io_units_t, run, (size_t)count + 1,
                                 "units", &units, err);

    if (rc != ERR_OK)
        return rc;
    for (int i = 0; i < count; i++) {
        const hdf5io_span_t *span = &spans[i];

        check(span->samples >= 0 && span->unit >= 1,
              "%lld samples in units of %lld", (long long)span->samples,
              (long long)span->unit);
        if (span->samples == 0)
            continue;
        units->run[units->runs++] = (units_run_t){
            .unit = units->count,
            .sample = units->samples,
            .rows = span->unit < span->samples ? span->unit : span->samples};
        units->count += (span->samples - 1) / span->unit + 1;
        units->samples += span->samples;
    }
    units->run[units->runs] =
        (units_run_t){.unit = units->count, .sample = units->samples};
    rc = units->runs == 0 ? err_set(err, ERR_DATA, "the dataset has no samples")
                          : usual_find(units, err);
    if (rc == ERR_OK)
        *out = units;
    else
        hdf5io_units_close(units);
    return rc;
}

void hdf5io_units_close(hdf5io_units_t *units)
{
    mem_free(units);
}

int64_t hdf5io_units_count(const hdf5io_units_t *units)
{
    return units->count;
}

int64_t hdf5io_units_samples(const hdf5io_units_t *units)
{
    return units->samples;
}

int64_t hdf5io_units_usual(const hdf5io_units_t *units)
{
    return units->usual;
}

hdf5io_unit_t hdf5io_units_get(const hdf5io_units_t *units, int64_t number)
{
    const units_run_t *run;
    int low = 0, high = units->runs; /* the run is in [low, high) */
    hdf5io_unit_t unit;

    check(number >= 0 && number < units->count, "unit %lld of %lld",
          (long long)number, (long long)units->count);
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;

        if (units->run[middle].unit <= number)
            low = middle;
        else
            high = middle;
    }
    run = &units->run[low];
    unit.first = run->sample + (number - run->unit) * run->rows;
    unit.count = run[1].sample - unit.first;
    if (unit.count > run->rows)
        unit.count = run->rows;
    return unit;
}

int64_t hdf5io_units_odd(const hdf5io_units_t *units, int64_t *numbers)
{
    int64_t count = 0;

    for (int i = 0; i < units->runs; i++) {
        const units_run_t *run = &units->run[i];
        const int64_t last = run[1].unit - 1;
        /* All units of a shard but the last one have the same size. */
        const bool usual = run->rows == units->usual;

        for (int64_t u = usual ? last : run->unit; u <= last; u++) {
            if (hdf5io_units_get(units, u).count == units->usual)
                continue;
            if (numbers != NULL)
                numbers[count] = u;
            count++;
        }
    }
    return count;
}

uint64_t hdf5io_units_hash(const hdf5io_units_t *units)
{
    hash_state_t *state = hash_state_open();
    uint64_t hash;

    hash_state_add(state, units->run,
                   ((size_t)units->runs + 1) * sizeof units->run[0]);
    hash = hash_state_value(state);
    hash_state_free(state);
    return hash;
}
