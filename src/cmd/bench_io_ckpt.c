/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The state has tensors of TENSOR_ELEMS elements, whole on each of N ranks,
 * which are threads. All ranks write from the same memory. Each rank reads into
 * memory of its own, and so do the threads that measure the limit. The time
 * begins and ends with an exchange between all ranks. A checkpoint is removed
 * after its measurement, so no write deletes older ones.
 */
#include "cmd/bench_io_ckpt.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "boot/boot.h"
#include "cmd/bench_io_disk.h"
#include "cmd/bench_io_row.h"
#include "comm/comm.h"
#include "hdf5io/checkpoint.h"
#include "train/relay.h"

#define TENSOR_ELEMS ((int64_t)4 << 20)
#define NAME_ROOM 32
#define TIMEOUT 600.0

typedef struct ckpt ckpt_t;

/* One rank. */
typedef struct member {
    float *data;              /* what it loads, [elems] */
    hdf5io_tensor_t *tensors; /* into [data] */
    err_code_t rc;
    err_t err;
} member_t;

struct ckpt {
    const bench_io_args_t *args;
    crew_t *crew;
    char *home; /* directory of the checkpoints */
    int64_t elems;
    float *data; /* what is written */
    int count;   /* of tensors */
    char (*names)[NAME_ROOM];
    hdf5io_tensor_t *tensors; /* into [data] */
    member_t *members;        /* [threads] */
    int64_t step;             /* of the newest checkpoint */
    char path[4096];          /* of the newest checkpoint */
    bool load, cold;          /* what the ranks do; drop the page cache */
    double seconds;           /* that it took */
    glob_t shards;            /* files of the checkpoint that is loaded */
};

/* ---- state --------------------------------------------------------------- */

/* Bits that look random, so that no file system can compress them. */
static void data_fill(float *data, int64_t elems)
{
    uint64_t state = 1;

    for (int64_t i = 0; i < elems; i++) {
        uint32_t bits;

        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        bits = (uint32_t)(state >> 32);
        memcpy(&data[i], &bits, sizeof bits);
    }
}

static err_code_t tensors_make(ckpt_t *ckpt, float *data, hdf5io_tensor_t **out,
                               err_t *err)
{
    hdf5io_tensor_t *tensors = NULL;
    err_code_t rc =
        mem_new(hdf5io_tensor_t, (size_t)ckpt->count, "tensors", &tensors, err);

    if (rc != ERR_OK)
        return rc;
    for (int i = 0; i < ckpt->count; i++) {
        const int64_t first = i * TENSOR_ELEMS, rest = ckpt->elems - first;

        snprintf(ckpt->names[i], NAME_ROOM, "model/t%d", i);
        tensors[i] = (hdf5io_tensor_t){
            .name = ckpt->names[i],
            .ndim = 1,
            .dims = {rest < TENSOR_ELEMS ? rest : TENSOR_ELEMS},
            .data = data + first};
    }
    *out = tensors;
    return ERR_OK;
}

static err_code_t members_open(ckpt_t *ckpt, err_t *err)
{
    const size_t threads = (size_t)ckpt->args->threads;
    err_code_t rc = mem_new(member_t, threads, "ranks", &ckpt->members, err);

    for (size_t t = 0; rc == ERR_OK && t < threads; t++) {
        member_t *member = &ckpt->members[t];

        rc = mem_new(float, (size_t)ckpt->elems, "a loaded state",
                     &member->data, err);
        if (rc == ERR_OK)
            rc = tensors_make(ckpt, member->data, &member->tensors, err);
    }
    return rc;
}

static err_code_t ckpt_open(ckpt_t *ckpt, err_t *err)
{
    err_code_t rc;

    ckpt->count = (int)((ckpt->elems + TENSOR_ELEMS - 1) / TENSOR_ELEMS);
    rc = mem_new(float, (size_t)ckpt->elems, "a state", &ckpt->data, err);
    if (rc == ERR_OK)
        rc = mem_new_array(NAME_ROOM, (size_t)ckpt->count, "names",
                           &ckpt->names, err);
    if (rc == ERR_OK)
        rc = tensors_make(ckpt, ckpt->data, &ckpt->tensors, err);
    if (rc == ERR_OK)
        rc = members_open(ckpt, err);
    if (rc == ERR_OK)
        data_fill(ckpt->data, ckpt->elems);
    return rc;
}

static void ckpt_close(ckpt_t *ckpt)
{
    const int threads = ckpt->members == NULL ? 0 : ckpt->args->threads;

    for (int t = 0; t < threads; t++) {
        mem_free(ckpt->members[t].tensors);
        mem_free(ckpt->members[t].data);
    }
    mem_free(ckpt->members);
    mem_free(ckpt->tensors);
    mem_free(ckpt->names);
    mem_free(ckpt->data);
    free(ckpt->home);
}

/* ---- ranks --------------------------------------------------------------- */

static err_code_t member_work(ckpt_t *ckpt, member_t *member,
                              const hdf5io_votes_t *votes, err_t *err)
{
    const hdf5io_checkpoint_config_t config = {.directory = ckpt->home,
                                               .votes = votes,
                                               .keep = 1,
                                               .model_hash = 1,
                                               .config_text = "run: {}\n"};
    const hdf5io_progress_t progress = {.step = ckpt->step};
    hdf5io_checkpoint_info_t info;
    bool found = true;
    err_code_t rc;

    if (ckpt->load)
        rc = hdf5io_checkpoint_read(&config, ckpt->path, member->tensors,
                                    ckpt->count, &found, &info, err);
    else
        rc = hdf5io_checkpoint_write(&config, &progress, ckpt->tensors,
                                     ckpt->count, &info, err);
    if (rc == ERR_OK && !found)
        rc = err_set(err, ERR_DATA, "%s: the checkpoint is gone", ckpt->path);
    if (rc == ERR_OK && !ckpt->load && votes->rank == 0)
        snprintf(ckpt->path, sizeof ckpt->path, "%s", info.path);
    return rc;
}

static err_code_t group_exchange(void *context, const void *mine, size_t bytes,
                                 void *all, err_t *err)
{
    return comm_allgather(context, mine, bytes, all, err);
}

static err_code_t group_spread(void *context, void *data, const size_t *cuts,
                               err_t *err)
{
    return train_relay(context, data, cuts, err);
}

static err_code_t group_broadcast(void *context, void *data, size_t bytes,
                                  err_t *err)
{
    return comm_broadcast(context, data, bytes, 0, err);
}

/* Measure the work of all ranks, from a barrier to the next one. */
static err_code_t rank_work(ckpt_t *ckpt, member_t *member, comm_group_t *group,
                            err_t *err)
{
    const hdf5io_votes_t votes = {.context = group,
                                  .rank = comm_group_rank(group),
                                  .size = comm_group_size(group),
                                  .exchange = group_exchange,
                                  .spread = group_spread,
                                  .together = train_relay_together(group),
                                  .broadcast = group_broadcast};
    err_code_t rc = comm_barrier(group, err);
    const double begin = clock_now();

    if (rc == ERR_OK)
        rc = member_work(ckpt, member, &votes, err);
    if (rc == ERR_OK)
        rc = comm_barrier(group, err);
    if (votes.rank == 0)
        ckpt->seconds = clock_now() - begin;
    return rc;
}

static void rank_main(boot_t *boot, int rank, void *context)
{
    ckpt_t *ckpt = context;
    member_t *member = &ckpt->members[rank];
    const int size = ckpt->args->threads;
    const comm_oob_t oob = {.context = boot,
                            .rank = rank,
                            .size = size,
                            .exchange = boot_exchange_call};
    const comm_config_t config = {.backend = size == 1 ? "self" : "threads",
                                  .timeout = TIMEOUT};
    comm_group_t *group = NULL;

    member->rc = comm_group_open(&config, &oob, &group, &member->err);
    if (member->rc == ERR_OK)
        member->rc = rank_work(ckpt, member, group, &member->err);
    comm_group_close(group);
    boot_close(boot);
}

static err_code_t ranks_run(ckpt_t *ckpt, bool load, err_t *err)
{
    const boot_config_t config = {.timeout = TIMEOUT};
    const int threads = ckpt->args->threads;
    err_code_t rc;

    ckpt->load = load;
    rc = boot_threads_run(threads, &config, rank_main, ckpt, err);
    for (int t = 0; rc == ERR_OK && t < threads; t++)
        if (ckpt->members[t].rc != ERR_OK)
            rc = err_copy(err, &ckpt->members[t].err);
    return rc;
}

/* Write a checkpoint, and load it on all ranks. */
static err_code_t ckpt_check(ckpt_t *ckpt, err_t *err)
{
    const size_t bytes = (size_t)ckpt->elems * sizeof(float);
    err_code_t rc = ranks_run(ckpt, false, err);

    if (rc == ERR_OK)
        rc = ranks_run(ckpt, true, err);
    for (int t = 0; rc == ERR_OK && t < ckpt->args->threads; t++)
        if (memcmp(ckpt->data, ckpt->members[t].data, bytes) != 0)
            rc = err_set(err, ERR_DATA,
                         "rank %d has read other numbers than were written", t);
    return rc;
}

/* ---- write --------------------------------------------------------------- */

static err_code_t write_ours(void *context, double *seconds, err_t *err)
{
    ckpt_t *ckpt = context;
    err_code_t rc;

    ckpt->step++;
    rc = ranks_run(ckpt, false, err);
    if (rc != ERR_OK)
        return rc;
    *seconds = ckpt->seconds;
    return file_remove_tree(ckpt->path, err);
}

static err_code_t write_limit(void *context, double *seconds, err_t *err)
{
    const ckpt_t *ckpt = context;
    const int threads = ckpt->args->threads;
    bench_io_span_t *spans = NULL;
    char **paths = NULL;
    err_code_t rc =
        mem_new(bench_io_span_t, (size_t)threads, "files", &spans, err);

    if (rc == ERR_OK)
        rc = mem_new(char *, (size_t)threads, "files", &paths, err);
    if (rc == ERR_OK) {
        bench_io_spans_cut(NULL, ckpt->elems * (int64_t)sizeof(float), spans,
                           threads);
        for (int t = 0; t < threads; t++) {
            paths[t] = str_printf("%s/limit-%d", ckpt->home, t);
            spans[t].path = paths[t];
            spans[t].data = (const char *)ckpt->data + spans[t].first;
        }
        rc = bench_io_spans_write(ckpt->crew, spans, threads, seconds, err);
        for (int t = 0; t < threads; t++)
            free(paths[t]);
    }
    mem_free(paths);
    mem_free(spans);
    return rc;
}

static err_code_t write_row(ckpt_t *ckpt, bench_io_row_t *row, err_t *err)
{
    err_code_t rc = file_remove_tree(ckpt->path, err);

    row->limit = "pwrite+fsync";
    row->ours = write_ours;
    row->limit_of = write_limit;
    return rc == ERR_OK ? bench_io_row_run(ckpt->args, row, err) : rc;
}

/* ---- load ---------------------------------------------------------------- */

/* With [cold], drop all shards; *stays is the largest share that stayed. */
static err_code_t shards_drop(const ckpt_t *ckpt, bool cold, double *stays,
                              err_t *err)
{
    err_code_t rc = ERR_OK;

    *stays = 0;
    for (size_t i = 0; cold && rc == ERR_OK && i < ckpt->shards.gl_pathc; i++) {
        double share;

        rc = bench_io_drop(ckpt->shards.gl_pathv[i], &share, err);
        if (rc == ERR_OK && share > *stays)
            *stays = share;
    }
    return rc;
}

static err_code_t load_ours(void *context, double *seconds, err_t *err)
{
    ckpt_t *ckpt = context;
    double stays;
    err_code_t rc = shards_drop(ckpt, ckpt->cold, &stays, err);

    if (rc == ERR_OK)
        rc = ranks_run(ckpt, true, err);
    if (rc == ERR_OK)
        *seconds = ckpt->seconds;
    return rc;
}

/* List what each thread reads, for bench_io_spans_read: like a rank, a thread
 * reads the whole state into its memory. */
static void limit_list(const ckpt_t *ckpt, const bench_io_span_t *files,
                       bench_io_span_t *spans)
{
    const size_t threads = (size_t)ckpt->args->threads;

    for (size_t i = 0; i < ckpt->shards.gl_pathc; i++)
        for (size_t t = 0; t < threads; t++) {
            bench_io_span_t *span = &spans[i * threads + t];

            *span = files[i];
            span->path = ckpt->shards.gl_pathv[i];
            span->to = (char *)ckpt->members[t].data + files[i].first;
            span->first = 0;
        }
}

static err_code_t load_limit(void *context, double *seconds, err_t *err)
{
    const ckpt_t *ckpt = context;
    const size_t count = ckpt->shards.gl_pathc;
    const size_t all = count * (size_t)ckpt->args->threads;
    const int64_t bytes = ckpt->elems * (int64_t)sizeof(float);
    bench_io_span_t *files = NULL, *spans = NULL;
    double stays;
    err_code_t rc = mem_new(bench_io_span_t, count, "files", &files, err);

    if (rc == ERR_OK)
        rc = mem_new(bench_io_span_t, all, "files", &spans, err);
    if (rc == ERR_OK) {
        bench_io_spans_cut(NULL, bytes, files, (int)count);
        limit_list(ckpt, files, spans);
        rc = shards_drop(ckpt, ckpt->cold, &stays, err);
    }
    if (rc == ERR_OK)
        rc = bench_io_spans_read(ckpt->crew, spans, (int)all, seconds, err);
    mem_free(spans);
    mem_free(files);
    return rc;
}

/* Measure warm loads and, if the page cache can be dropped, cold ones. */
static err_code_t load_both(ckpt_t *ckpt, bench_io_row_t *row, err_t *err)
{
    double stays = 0;
    err_code_t rc = bench_io_row_run(ckpt->args, row, err);

    if (rc == ERR_OK)
        rc = shards_drop(ckpt, true, &stays, err);
    if (rc != ERR_OK || !bench_io_dropped(ckpt->path, stays))
        return rc;
    ckpt->cold = true;
    row->cache = "cold";
    return bench_io_row_run(ckpt->args, row, err);
}

static err_code_t load_rows(ckpt_t *ckpt, bench_io_row_t *row, err_t *err)
{
    char *pattern = str_printf("%s/shard-*.h5", ckpt->path);
    err_code_t rc;

    row->limit = "pread";
    row->ours = load_ours;
    row->limit_of = load_limit;
    if (glob(pattern, 0, NULL, &ckpt->shards) != 0)
        rc = err_set(err, ERR_IO, "%s: there are no such files", pattern);
    else
        rc = load_both(ckpt, row, err);
    globfree(&ckpt->shards);
    free(pattern);
    return rc;
}

/* ---- all ----------------------------------------------------------------- */

err_code_t bench_io_ckpt(const bench_io_args_t *args, const char *directory,
                         crew_t *crew, err_t *err)
{
    ckpt_t ckpt = {.args = args,
                   .crew = crew,
                   .home = str_printf("%s/checkpoints", directory),
                   .elems = (int64_t)(args->bytes / sizeof(float))};
    bench_io_row_t row = {.layout = "checkpoint",
                          .cache = "warm",
                          .bytes = args->bytes,
                          .context = &ckpt};
    err_code_t rc = ckpt_open(&ckpt, err);

    if (rc == ERR_OK)
        rc = ckpt_check(&ckpt, err);
    if (rc == ERR_OK)
        rc = args->what == BENCH_IO_WRITE ? write_row(&ckpt, &row, err)
                                          : load_rows(&ckpt, &row, err);
    ckpt_close(&ckpt);
    return rc;
}
