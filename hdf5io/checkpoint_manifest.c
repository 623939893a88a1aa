/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Planning and freeing a manifest. Its text form is in
 * checkpoint_manifest_print.c and checkpoint_manifest_parse.c. */
#include "config.h"

#include "hdf5io/checkpoint_manifest.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "hdf5io/checkpoint_data.h"
#include "hdf5io/h5.h"

void hdf5io_manifest_share(int64_t count, int rank, int size, int64_t *first,
                           int64_t *last)
{
    /* floor(count * rank / size) without overflow of 63 bits. */
    int64_t whole = count / size, rest = count % size;

    *first = whole * rank + rest * rank / size;
    *last = whole * (rank + 1) + rest * (rank + 1) / size;
    check(*first >= 0 && *first <= *last && *last <= count,
          "rank %d of %d gets number %lld to %lld of %lld", rank, size,
          (long long)*first, (long long)*last, (long long)count);
}

char *hdf5io_shape_format(int ndim, const int64_t *dims, char *out, size_t room)
{
    size_t used = 0;

    for (int d = 0; d < ndim && used < room; d++)
        used += (size_t)snprintf(out + used, room - used, "%s%lld",
                                 d == 0 ? "[" : ", ", (long long)dims[d]);
    if (used < room)
        snprintf(out + used, room - used, ndim == 0 ? "[]" : "]");
    return out;
}

void hdf5io_manifest_free(hdf5io_manifest_t *manifest)
{
    for (int i = 0; i < manifest->file_count; i++) {
        free(manifest->files[i].name);
        mem_free(manifest->files[i].blocks);
    }
    for (int i = 0; i < manifest->tensor_count; i++)
        free(manifest->tensors[i].name);
    mem_free(manifest->files);
    mem_free(manifest->file_of);
    mem_free(manifest->tensors);
    mem_free(manifest->pieces);
    free(manifest->config_text);
    free(manifest->versions);
    hdf5io_marks_free(manifest->marks, manifest->mark_count);
    free(manifest->created);
    *manifest = (hdf5io_manifest_t){0};
}

char *hdf5io_manifest_versions(const char *more)
{
    unsigned major = 0, minor = 0, release = 0;

    h5_lock();
    H5get_libversion(&major, &minor, &release);
    h5_unlock();
    return str_printf("cddp %s, HDF5 %u.%u.%u, jansson %s, xxHash %u%s%s",
                      PACKAGE_VERSION, major, minor, release, JANSSON_VERSION,
                      XXH_versionNumber(), more == NULL ? "" : ", ",
                      more == NULL ? "" : more);
}

static err_code_t tensors_copy(const hdf5io_tensor_t *tensors, int count,
                               hdf5io_manifest_t *m, err_t *err)
{
    for (int i = 0; i < count; i++) {
        hdf5io_manifest_tensor_t *t = &m->tensors[i];

        if (tensors[i].ndim < 0 || tensors[i].ndim > MANIFEST_DIMS_MAX)
            return err_set(err, ERR_CONFIG,
                           "tensor %s has %d dimensions, a checkpoint holds 0 "
                           "to %d",
                           tensors[i].name, tensors[i].ndim, MANIFEST_DIMS_MAX);
        t->name = str_dup(tensors[i].name);
        m->tensor_count = i + 1;
        t->ndim = tensors[i].ndim;
        t->elems = 1;
        for (int d = 0; d < t->ndim; d++) {
            t->dims[d] = tensors[i].dims[d];
            t->elems *= t->dims[d];
        }
    }
    return ERR_OK;
}

char *hdf5io_manifest_piece_name(const hdf5io_manifest_t *manifest, int piece)
{
    const hdf5io_manifest_piece_t *p = &manifest->pieces[piece];
    const hdf5io_manifest_tensor_t *tensor = &manifest->tensors[p->tensor];

    for (int i = tensor->piece; i < piece; i++)
        if (manifest->pieces[i].file == p->file)
            return str_printf("%s@%lld", tensor->name, (long long)p->first);
    return str_dup(tensor->name);
}

int64_t hdf5io_manifest_common(const hdf5io_manifest_t *manifest,
                               const hdf5io_tensor_t *tensors)
{
    int64_t elems = 0;

    for (int i = 0; i < manifest->tensor_count; i++)
        if (tensors[i].parts == NULL)
            elems += manifest->tensors[i].elems;
    return elems;
}

/* ---- the plan ------------------------------------------------------------ */

/* State of the planning, which walks through the tensors in order. */
typedef struct plan {
    hdf5io_manifest_t *m;
    const hdf5io_tensor_t *tensors;
    const int *heads; /* [world_size]; NULL: each rank is its own head */
    int64_t elems; /* total elements of tensors that are whole on every rank */
    int64_t at;    /* elements planned so far */
    int rank;      /* rank whose share is being planned */
    int64_t first, last; /* its share: [first, last) of [elems] */
} plan_t;

static void plan_rank(plan_t *plan, int rank)
{
    plan->rank = rank;
    hdf5io_manifest_share(plan->elems, rank, plan->m->world_size, &plan->first,
                          &plan->last);
}

static int head_of(const plan_t *plan, int rank)
{
    const int head = plan->heads == NULL ? rank : plan->heads[rank];

    check(head >= 0 && head <= rank &&
              (plan->heads == NULL || plan->heads[head] == head),
          "the head of rank %d is rank %d", rank, head);
    return head;
}

/* Add a file, and take over [name]. Returns the number of the file. */
static int file_add(hdf5io_manifest_t *m, char *name)
{
    m->files[m->file_count] =
        (hdf5io_manifest_file_t){.name = name, .hashed = true};
    return m->file_count++;
}

/* Plan a file for each head whose ranks have something to write, in the order
 * of the heads. */
static void files_plan(plan_t *plan)
{
    hdf5io_manifest_t *m = plan->m;
    int *file_of = m->file_of;

    for (int r = 0; r < m->world_size; r++)
        file_of[r] = -1;
    for (int r = 0; r < m->world_size; r++) {
        plan_rank(plan, r);
        if (plan->last > plan->first)
            file_of[head_of(plan, r)] = 0;
    }
    for (int i = 0; i < m->tensor_count; i++)
        for (int p = 0; p < plan->tensors[i].part_count; p++)
            file_of[head_of(plan, plan->tensors[i].parts[p].rank)] = 0;
    for (int r = 0; r < m->world_size; r++) {
        const int head = head_of(plan, r);

        if (head == r && file_of[r] == 0)
            file_of[r] = file_add(m, str_printf("shard-%d.h5", r));
        else
            file_of[r] = file_of[head];
        if (head < r && file_of[r] >= 0)
            m->files[file_of[r]].hashed = false;
    }
    plan_rank(plan, 0);
}

/* Add a piece, or lengthen the newest one. */
static void piece_add(hdf5io_manifest_t *m, int tensor, int file, int64_t first,
                      int64_t count)
{
    hdf5io_manifest_piece_t *newest = m->piece_count > m->tensors[tensor].piece
                                          ? &m->pieces[m->piece_count - 1]
                                          : NULL;

    check(count > 0 && file >= 0 && file < m->file_count,
          "%s: %lld elements in file %d of %d", m->tensors[tensor].name,
          (long long)count, file, m->file_count);
    if (newest != NULL && newest->file == file &&
        newest->first + newest->count == first) {
        newest->count += count;
        return;
    }
    m->pieces[m->piece_count++] = (hdf5io_manifest_piece_t){
        .tensor = tensor, .file = file, .first = first, .count = count};
}

/* Plan a tensor that is whole on all ranks: each overlap with the share of a
 * rank becomes a piece. */
static void common_plan(plan_t *plan, int tensor)
{
    const int64_t elems = plan->m->tensors[tensor].elems;

    for (int64_t at = 0; at < elems;) {
        int64_t room = plan->last - plan->at;

        check(plan->rank < plan->m->world_size,
              "%lld of %lld elements are planned, and no rank is left",
              (long long)plan->at, (long long)plan->elems);
        if (room <= 0) {
            plan_rank(plan, plan->rank + 1);
            continue;
        }
        if (room > elems - at)
            room = elems - at;
        piece_add(plan->m, tensor, plan->m->file_of[plan->rank], at, room);
        at += room;
        plan->at += room;
    }
}

static void tensor_plan(plan_t *plan, bool shared, int number)
{
    const hdf5io_tensor_t *tensor = &plan->tensors[number];
    hdf5io_manifest_t *m = plan->m;
    hdf5io_manifest_tensor_t *t = &m->tensors[number];

    t->piece = m->piece_count;
    if (shared && t->elems > 0)
        piece_add(m, number, 0, 0, t->elems);
    else if (!shared && tensor->parts == NULL)
        common_plan(plan, number);
    for (int p = 0; !shared && tensor->parts != NULL && p < tensor->part_count;
         p++)
        piece_add(m, number, m->file_of[tensor->parts[p].rank],
                  tensor->parts[p].first, tensor->parts[p].count);
    t->pieces = m->piece_count - t->piece;
}

static void plan_make(plan_t *plan, bool shared)
{
    hdf5io_manifest_t *m = plan->m;
    int64_t all = 0;

    plan->elems = hdf5io_manifest_common(m, plan->tensors);
    for (int i = 0; i < m->tensor_count; i++)
        all += m->tensors[i].elems;
    if (shared && all > 0)
        file_add(m, str_dup(MANIFEST_SHARED));
    else if (!shared)
        files_plan(plan);
    file_add(m, str_dup(MANIFEST_VIEW));
    for (int i = 0; i < m->tensor_count; i++)
        tensor_plan(plan, shared, i);
}

/* Do the pieces of each tensor follow each other and cover it once? */
static bool plan_covers(const hdf5io_manifest_t *m)
{
    for (int i = 0; i < m->tensor_count; i++) {
        const hdf5io_manifest_tensor_t *t = &m->tensors[i];
        int64_t at = 0;

        for (int k = t->piece; k < t->piece + t->pieces; k++) {
            if (m->pieces[k].tensor != i || m->pieces[k].first != at)
                return false;
            at += m->pieces[k].count;
        }
        if (at != t->elems)
            return false;
    }
    return true;
}

int hdf5io_piece_compare(const void *a, const void *b)
{
    const hdf5io_manifest_piece_t *x = a, *y = b;

    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

bool hdf5io_manifest_disjoint(const hdf5io_manifest_t *manifest)
{
    const size_t count = (size_t)manifest->piece_count;
    hdf5io_manifest_piece_t *sorted = NULL;
    bool disjoint = true;

    if (count == 0 || mem_new(hdf5io_manifest_piece_t, count, "a check",
                              &sorted, NULL) != ERR_OK)
        return true;
    memcpy(sorted, manifest->pieces, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, hdf5io_piece_compare);
    for (size_t i = 1; i < count; i++)
        disjoint =
            disjoint && (sorted[i - 1].file != sorted[i].file ||
                         sorted[i - 1].offset +
                                 sorted[i - 1].count * (int64_t)sizeof(float) <=
                             sorted[i].offset);
    mem_free(sorted);
    return disjoint;
}

static size_t parts_count(const hdf5io_tensor_t *tensors, int count)
{
    size_t parts = 0;

    for (int i = 0; i < count; i++)
        parts += (size_t)tensors[i].part_count;
    return parts;
}

err_code_t hdf5io_manifest_build(const hdf5io_checkpoint_config_t *config,
                                 const hdf5io_progress_t *progress,
                                 const hdf5io_tensor_t *tensors, int count,
                                 hdf5io_manifest_t *out, err_t *err)
{
    static const char what[] = "the plan of a checkpoint";
    char now[64];
    size_t size = (size_t)config->votes->size, n = (size_t)count;
    err_code_t rc;
    hdf5io_manifest_t m = {
        .version = config->format == 0 ? MANIFEST_VERSION : config->format,
        .progress = *progress,
        .world_size = config->votes->size,
        .config_hash = config->config_hash,
        .model_hash = config->model_hash,
        .build_hash = config->build_hash,
    };

    if (m.version > 1)
        m.block_bytes =
            config->block_bytes == 0 ? MANIFEST_BLOCK : config->block_bytes;
    rc = config->mpi != NULL ? ERR_OK
                             : mem_new(int, size, what, &m.file_of, err);
    if (rc == ERR_OK)
        rc = mem_new(hdf5io_manifest_tensor_t, n, what, &m.tensors, err);
    if (rc == ERR_OK)
        rc = mem_new(hdf5io_manifest_file_t, size + 1, what, &m.files, err);
    if (rc == ERR_OK)
        rc = mem_new(hdf5io_manifest_piece_t,
                     n + size + parts_count(tensors, count), what, &m.pieces,
                     err);
    if (rc == ERR_OK)
        rc = tensors_copy(tensors, count, &m, err);
    if (rc == ERR_OK)
        rc =
            hdf5io_marks_copy(config->marks, config->mark_count, &m.marks, err);
    if (rc == ERR_OK) {
        m.mark_count = config->mark_count;
        m.config_text =
            str_dup(config->config_text == NULL ? "" : config->config_text);
        m.versions = hdf5io_manifest_versions(config->versions);
        m.created = str_dup(clock_format(clock_wall(), now, sizeof now));
        plan_make(&(plan_t){.m = &m,
                            .tensors = tensors,
                            .heads = m.version > 1 ? config->heads : NULL},
                  config->mpi != NULL);
        check(plan_covers(&m),
              "%d pieces do not cover the %d tensors of step %lld",
              m.piece_count, m.tensor_count, (long long)progress->step);
        *out = m;
    } else {
        hdf5io_manifest_free(&m);
    }
    return rc;
}
