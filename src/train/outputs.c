/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/outputs.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "hdf5io/outputs.h"

/* The datasets of a loss. */
enum { OUTPUT, CLASS, KINDS };

/* What rank 0 tells the others. */
typedef struct draft {
    char path[PATH_MAX];
    hdf5io_output_t sets[NN_FIELDS_MAX][KINDS]; /* no name: there is none */
} draft_t;

struct train_outputs {
    train_outputs_plan_t plan;
    draft_t *draft;
    bool made;            /* rank 0: the draft exists */
    int fd;               /* -1: not open */
    _Atomic int64_t rows; /* written by this rank, of all datasets */
};

/* ---- opening ------------------------------------------------------------- */

static void set_name(hdf5io_output_t *set, const char *loss, const char *kind)
{
    snprintf(set->name, sizeof set->name, "%.60s%s%s", loss,
             loss[0] == '\0' ? "" : "_", kind);
}

/* Describe the datasets of loss [k]. */
static void sets_fill(const nn_graph_t *graph, int k,
                      hdf5io_output_t sets[KINDS])
{
    const nn_loss_info_t info = nn_graph_loss_info(graph, k);
    const char *name = nn_graph_losses(graph) > 1 ? info.name : "";
    hdf5io_output_t *output = &sets[OUTPUT], *class = &sets[CLASS];

    check(info.ndim <= HDF5IO_OUTPUT_DIMS, "%d dimensions", info.ndim);
    set_name(output, name, "output");
    output->ndim = info.ndim;
    memcpy(output->dims, info.dims, (size_t)info.ndim * sizeof *info.dims);
    if (info.classes == 0)
        return;
    set_name(class, name, "class");
    class->whole = true;
    for (int d = 0; d < info.ndim; d++)
        if (d != info.class_axis - 1)
            class->dims[class->ndim++] = info.dims[d];
}

/* Rank 0: create the draft. */
static err_code_t draft_create(train_outputs_t *outputs, err_t *err)
{
    const train_outputs_plan_t *plan = &outputs->plan;
    hdf5io_output_t list[NN_FIELDS_MAX * KINDS];
    draft_t *draft = outputs->draft;
    int count = 0;
    err_code_t rc;

    if (access(plan->path, F_OK) == 0)
        return err_set(err, ERR_USAGE,
                       "%s exists: name another file for --predict, or remove "
                       "it first",
                       plan->path);
    if (snprintf(draft->path, sizeof draft->path, "%s.%ld.tmp", plan->path,
                 (long)getpid()) >= (int)sizeof draft->path)
        return err_set(err, ERR_USAGE, "the path of --predict is too long");
    for (int k = 0; k < nn_graph_losses(plan->graph); k++) {
        sets_fill(plan->graph, k, draft->sets[k]);
        for (int s = 0; s < KINDS; s++)
            if (draft->sets[k][s].name[0] != '\0')
                list[count++] = draft->sets[k][s];
    }
    rc = hdf5io_outputs_create(draft->path, plan->samples, list, count, err);
    if (rc != ERR_OK)
        return rc;
    outputs->made = true;
    count = 0;
    for (int k = 0; k < nn_graph_losses(plan->graph); k++)
        for (int s = 0; s < KINDS; s++)
            if (draft->sets[k][s].name[0] != '\0')
                draft->sets[k][s] = list[count++];
    return ERR_OK;
}

/* Create the draft on rank 0, and open it on all ranks. Collective. */
static err_code_t draft_open(train_outputs_t *outputs, err_t *err)
{
    train_world_t *world = outputs->plan.world;
    err_code_t rc = ERR_OK;

    if (world->rank == 0)
        rc = draft_create(outputs, err);
    rc = train_world_vote(world, rc, err);
    if (rc == ERR_OK)
        rc = comm_broadcast(world->group, outputs->draft,
                            sizeof *outputs->draft, 0, err);
    if (rc != ERR_OK)
        return rc;
    rc = hdf5io_outputs_open(outputs->draft->path, &outputs->fd, err);
    return train_world_vote(world, rc, err);
}

err_code_t train_outputs_open(const train_outputs_plan_t *plan,
                              train_outputs_t **out, err_t *err)
{
    train_outputs_t *outputs = NULL;
    err_code_t rc = mem_new(train_outputs_t, 1, "the outputs", &outputs, err);

    if (rc == ERR_OK) {
        outputs->plan = *plan;
        outputs->fd = -1;
        rc = mem_new(draft_t, 1, "the outputs", &outputs->draft, err);
    }
    rc = train_world_vote(plan->world, rc, err);
    if (rc == ERR_OK)
        rc = draft_open(outputs, err);
    if (rc == ERR_OK)
        *out = outputs;
    else
        train_outputs_close(outputs);
    return rc;
}

void train_outputs_close(train_outputs_t *outputs)
{
    if (outputs == NULL)
        return;
    if (outputs->made)
        unlink(outputs->draft->path);
    if (outputs->fd >= 0)
        close(outputs->fd);
    mem_free(outputs->draft);
    mem_free(outputs);
}

/* ---- rows ---------------------------------------------------------------- */

/* Write the rows [ids]. Numbers that follow each other are written at once. */
static err_code_t rows_write(train_outputs_t *outputs,
                             const hdf5io_output_t *set, const void *data,
                             const uint64_t *ids, int64_t count, err_t *err)
{
    const hdf5io_outputs_file_t file = {outputs->draft->path, outputs->fd};
    const char *bytes = data;
    err_code_t rc = ERR_OK;

    for (int64_t from = 0, to = 0; from < count && rc == ERR_OK; from = to) {
        for (to = from + 1; to < count && ids[to] == ids[to - 1] + 1;)
            to++;
        rc = hdf5io_outputs_write(&file, set, (int64_t)ids[from], to - from,
                                  bytes + from * hdf5io_output_bytes(set), err);
    }
    if (rc == ERR_OK)
        atomic_fetch_add(&outputs->rows, count);
    return rc;
}

err_code_t train_outputs_put(train_outputs_t *outputs, int loss,
                             const float *output, const uint64_t *ids,
                             int64_t count, err_t *err)
{
    const hdf5io_output_t *sets = outputs->draft->sets[loss];
    int64_t *classes = NULL;
    err_code_t rc = rows_write(outputs, &sets[OUTPUT], output, ids, count, err);

    if (rc != ERR_OK || sets[CLASS].name[0] == '\0')
        return rc;
    rc = mem_new(int64_t,
                 (size_t)(count * hdf5io_output_bytes(&sets[CLASS])) /
                     sizeof *classes,
                 "classes", &classes, err);
    if (rc != ERR_OK)
        return rc;
    train_scores_classes(outputs->plan.scores[loss], output, count, classes);
    rc = rows_write(outputs, &sets[CLASS], classes, ids, count, err);
    mem_free(classes);
    return rc;
}

/* ---- the end ------------------------------------------------------------- */

/* Have all ranks together written each row? Collective. */
static err_code_t rows_check(const train_outputs_t *outputs, err_t *err)
{
    const train_outputs_plan_t *plan = &outputs->plan;
    double rows = (double)outputs->rows, expected = 0;
    err_code_t rc;

    for (int k = 0; k < nn_graph_losses(plan->graph); k++)
        for (int s = 0; s < KINDS; s++)
            if (outputs->draft->sets[k][s].name[0] != '\0')
                expected += (double)plan->samples;
    rc = comm_allreduce(plan->world->group, &rows, 1, COMM_FLOAT64, COMM_SUM,
                        err);
    if (rc == ERR_OK)
        check(rows == expected, "%.0f rows of %.0f", rows, expected);
    return rc;
}

err_code_t train_outputs_publish(train_outputs_t *outputs, err_t *err)
{
    train_world_t *world = outputs->plan.world;
    const hdf5io_outputs_file_t file = {outputs->draft->path, outputs->fd};
    err_code_t rc = rows_check(outputs, err);

    if (rc != ERR_OK)
        return rc;
    train_storage_begin(world, "writing outputs");
    rc = train_world_vote(world, hdf5io_outputs_sync(&file, err), err);
    if (rc == ERR_OK && world->rank == 0)
        rc = hdf5io_outputs_publish(outputs->draft->path, outputs->plan.path,
                                    err);
    if (rc == ERR_OK)
        outputs->made = false;
    rc = train_world_vote(world, rc, err);
    train_storage_end(world);
    return rc;
}
