/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Predicts whether the opener must accept or refuse the requested datasets. */
#include "fuzz/dataset_target.h"

static void target_judge(target_t *target, case_verdict_t verdict,
                         const char *why)
{
    if (verdict == CASE_GOOD || target->verdict == CASE_BAD)
        return;
    target->verdict = verdict;
    target->why = why;
}

/* Judge one column: whether the dataset exists, can be opened, and holds
 * numbers. */
static const case_set_t *target_judge_column(target_t *target, int shard,
                                             int field)
{
    const case_model_t *model = &target->model;
    const int found = case_find(model, shard, target->fields[field].path);
    const case_set_t *set = found < 0 ? NULL : &model->sets[found];
    const uint64_t elems = found < 0 ? 0 : case_elements(set, 1);

    target->sets[shard][field] = found;
    if (found < 0) {
        target_judge(target, CASE_BAD, "no dataset of that name");
        return NULL;
    }
    target_judge(target, case_set_verdict(model, found), "its parts");
    if (!set->numbers)
        target_judge(target, CASE_BAD, "no numbers");
    else if (set->ndim == 0)
        target_judge(target, CASE_BAD, "a single value");
    else if (elems == 0 || elems > INT32_MAX)
        target_judge(target, CASE_BAD, "size of a sample");
    else if (set->dims[0] > INT64_MAX)
        target_judge(target, CASE_BAD, "number of samples");
    return set;
}

static bool target_same_shape(const case_set_t *a, const case_set_t *b)
{
    bool same = a->ndim == b->ndim;

    for (int d = 1; same && d < a->ndim; d++)
        same = a->dims[d] == b->dims[d];
    return same;
}

/* Number of samples: rows, or parts of a stream. */
static uint64_t target_samples(const target_t *target, const case_set_t *set)
{
    const uint64_t length = (uint64_t)target->config.sequence;

    if (length == 0)
        return set->dims[0];
    return set->dims[0] == 0 ? 0 : (set->dims[0] - 1) / length;
}

/* Judge all shards together, once each column is good. */
static void target_judge_shapes(target_t *target)
{
    const case_set_t *first[TARGET_FIELDS], *set;

    for (int s = 0; s < target->model.shard_count; s++) {
        uint64_t rows = 0;

        for (int k = 0; k < TARGET_FIELDS; k++) {
            set = &target->model.sets[target->sets[s][k]];
            if (s == 0)
                first[k] = set;
            if (!target_same_shape(first[k], set))
                target_judge(target, CASE_BAD, "shapes differ");
            if (target->config.sequence > 0 && set->ndim != 1)
                target_judge(target, CASE_BAD, "a stream of rows");
            if (k > 0 && rows != target_samples(target, set))
                target_judge(target, CASE_BAD, "numbers of samples differ");
            rows = target_samples(target, set);
        }
        if (__builtin_add_overflow(target->rows, rows, &target->rows) ||
            target->rows > INT64_MAX)
            target_judge(target, CASE_BAD, "more samples than can be counted");
    }
    if (target->rows == 0)
        target_judge(target, CASE_BAD, "no samples");
}

/* Judge the first sample: class numbers stored as floats must be whole
 * there. */
static void target_judge_first(target_t *target)
{
    const case_set_t *set;
    uint64_t end;
    double value;
    int s = 0;

    if (target->config.targets[0].as != HDF5IO_AS_CLASSES)
        return;
    while (target_samples(target, &target->model.sets[target->sets[s][1]]) == 0)
        s++;
    set = &target->model.sets[target->sets[s][1]];
    if (!set->reals)
        return;
    /* The first target of a stream is its numbers from 1 on. */
    end = target->config.sequence > 0 ? (uint64_t)target->config.sequence + 1
                                      : case_elements(set, 1);
    if (!case_readable(&target->model, target->sets[s][1]))
        target_judge(target, CASE_VAGUE, "the first sample");
    else if (set->nan_at < end || set->mapped)
        target_judge(target, CASE_VAGUE, "the first sample");
    else if (!case_value(&target->model, target->sets[s][1], 0, 0, &value))
        target_judge(target, CASE_VAGUE, "the first sample");
}

void fuzz_dataset_judge(target_t *target)
{
    bool found = true;

    for (int s = 0; s < target->model.shard_count; s++)
        for (int k = 0; k < TARGET_FIELDS; k++)
            found = target_judge_column(target, s, k) != NULL && found;
    if (!found)
        return;
    target_judge_shapes(target);
    if (target->verdict != CASE_BAD)
        target_judge_first(target);
}
