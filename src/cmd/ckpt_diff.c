/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/ckpt_diff.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "hdf5io/checkpoint_manifest.h"
#include "hdf5io/checkpoint_read.h"

/* What was found so far. */
typedef struct found {
    str_buf_t *out;
    int differences;
    int64_t elems;    /* compared */
    double largest;   /* largest difference of two elements */
    const char *name; /* of its tensor; NULL: there is none */
} found_t;

typedef struct side {
    const char *path;
    hdf5io_manifest_t manifest;
} side_t;

/* How two arrays differ. */
typedef struct distance {
    int64_t other;  /* elements whose bits differ */
    double largest; /* largest absolute difference of two elements; INFINITY if
                       one is not finite */
} distance_t;

static distance_t distance_of(const float *a, const float *b, int64_t elems)
{
    distance_t d = {0};

    for (int64_t i = 0; i < elems; i++) {
        double gap = fabs((double)a[i] - (double)b[i]);

        if (memcmp(&a[i], &b[i], sizeof a[i]) == 0)
            continue;
        d.other++;
        d.largest = isfinite(gap) ? fmax(d.largest, gap) : INFINITY;
    }
    return d;
}

/* A tensor that both checkpoints have: its indices i in [a] and j in [b]. */
typedef struct pair {
    const side_t *a, *b;
    int i, j;
} pair_t;

/* Read both tensors of [pair], which have the same shape, and compare them. */
static err_code_t values_diff(const pair_t *pair, distance_t *out, err_t *err)
{
    const side_t *a = pair->a, *b = pair->b;
    int64_t elems = a->manifest.tensors[pair->i].elems;
    float *x = NULL, *y = NULL;
    err_code_t rc = mem_new(float, (size_t)elems, "a tensor", &x, err);

    if (rc == ERR_OK)
        rc = mem_new(float, (size_t)elems, "a tensor", &y, err);
    if (rc == ERR_OK)
        rc = hdf5io_checkpoint_fetch(
            &(hdf5io_saved_t){&hdf5io_io_system, a->path, &a->manifest},
            pair->i, x, err);
    if (rc == ERR_OK)
        rc = hdf5io_checkpoint_fetch(
            &(hdf5io_saved_t){&hdf5io_io_system, b->path, &b->manifest},
            pair->j, y, err);
    if (rc == ERR_OK)
        *out = distance_of(x, y, elems);
    mem_free(y);
    mem_free(x);
    return rc;
}

static bool same_shape(const hdf5io_manifest_tensor_t *x,
                       const hdf5io_manifest_tensor_t *y)
{
    return x->ndim == y->ndim &&
           memcmp(x->dims, y->dims, (size_t)x->ndim * sizeof *x->dims) == 0;
}

static err_code_t tensor_diff(const pair_t *pair, found_t *found, err_t *err)
{
    const hdf5io_manifest_tensor_t *x = &pair->a->manifest.tensors[pair->i];
    const hdf5io_manifest_tensor_t *y = &pair->b->manifest.tensors[pair->j];
    char one[160], two[160];
    distance_t d = {0};
    err_code_t rc;

    if (!same_shape(x, y)) {
        hdf5io_shape_format(x->ndim, x->dims, one, sizeof one);
        hdf5io_shape_format(y->ndim, y->dims, two, sizeof two);
        str_buf_add(found->out, "%s: shape %s, %s\n", x->name, one, two);
        found->differences++;
        return ERR_OK;
    }
    rc = values_diff(pair, &d, err);
    if (rc == ERR_OK)
        found->elems += x->elems;
    if (rc != ERR_OK || d.other == 0)
        return rc;
    if (found->name == NULL || d.largest > found->largest) {
        found->largest = d.largest;
        found->name = x->name;
    }
    str_buf_add(found->out,
                "%s: %" PRId64 " of %" PRId64
                " elements, largest difference %.9g\n",
                x->name, d.other, x->elems, d.largest);
    found->differences++;
    return ERR_OK;
}

static int tensor_find(const hdf5io_manifest_t *m, const char *name)
{
    for (int i = 0; i < m->tensor_count; i++)
        if (strcmp(m->tensors[i].name, name) == 0)
            return i;
    return -1;
}

static err_code_t tensors_diff(const side_t *a, const side_t *b, found_t *found,
                               err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int i = 0; i < a->manifest.tensor_count && rc == ERR_OK; i++) {
        const char *name = a->manifest.tensors[i].name;
        int j = tensor_find(&b->manifest, name);

        if (j >= 0) {
            rc = tensor_diff(&(pair_t){a, b, i, j}, found, err);
            continue;
        }
        str_buf_add(found->out, "%s: only in %s\n", name, a->path);
        found->differences++;
    }
    for (int j = 0; j < b->manifest.tensor_count; j++) {
        const char *name = b->manifest.tensors[j].name;

        if (tensor_find(&a->manifest, name) >= 0)
            continue;
        str_buf_add(found->out, "%s: only in %s\n", name, b->path);
        found->differences++;
    }
    return rc;
}

static void progress_diff(const hdf5io_progress_t *a,
                          const hdf5io_progress_t *b, found_t *found)
{
    const struct {
        const char *name;
        int64_t a, b;
    } counts[] = {
        {"step", a->step, b->step},
        {"updates", a->updates, b->updates},
        {"epoch", a->epoch, b->epoch},
        {"epoch_step", a->epoch_step, b->epoch_step},
        {"samples", a->samples, b->samples},
        {"seed", (int64_t)a->seed, (int64_t)b->seed},
        {"loss_count", a->loss_count, b->loss_count},
        {"correct", a->correct, b->correct},
        {"rollbacks", a->skip_count, b->skip_count},
    };
    const struct {
        const char *name;
        double a, b;
    } reals[] = {{"loss_sum", a->loss_sum, b->loss_sum},
                 {"best", a->best, b->best}};

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].a != counts[i].b) {
            str_buf_add(found->out, "%s: %" PRId64 ", %" PRId64 "\n",
                        counts[i].name, counts[i].a, counts[i].b);
            found->differences++;
        }
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        if (memcmp(&reals[i].a, &reals[i].b, sizeof reals[i].a) != 0) {
            str_buf_add(found->out, "%s: %.17g, %.17g\n", reals[i].name,
                        reals[i].a, reals[i].b);
            found->differences++;
        }
}

/* The last line, about all tensors. */
static void sum_add(const found_t *found, const side_t *a)
{
    if (found->differences == 0)
        str_buf_add(found->out, "identical: %d tensors, %" PRId64 " numbers\n",
                    a->manifest.tensor_count, found->elems);
    if (found->name != NULL)
        str_buf_add(found->out, "largest difference: %.9g, in %s\n",
                    found->largest, found->name);
}

err_code_t cmd_ckpt_diff(const char *a, const char *b, str_buf_t *out,
                         int *differences, err_t *err)
{
    side_t x = {.path = a}, y = {.path = b};
    uint64_t hash;
    found_t found = {.out = out};
    err_code_t rc = hdf5io_manifest_load(a, &x.manifest, &hash, err);

    if (rc == ERR_OK)
        rc = hdf5io_manifest_load(b, &y.manifest, &hash, err);
    if (rc == ERR_OK) {
        progress_diff(&x.manifest.progress, &y.manifest.progress, &found);
        rc = tensors_diff(&x, &y, &found, err);
    }
    if (rc == ERR_OK) {
        sum_add(&found, &x);
        *differences = found.differences;
    }
    hdf5io_manifest_free(&y.manifest);
    hdf5io_manifest_free(&x.manifest);
    return rc;
}
