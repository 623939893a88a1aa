/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * For each place of data (comm_where_t) and each algorithm, open a group whose
 * table allows only this algorithm there, and time every collective that the
 * algorithm can carry out, at every size. A time is measured from the end of a
 * barrier on; the slowest rank counts, and of several rounds the median. Arenas
 * are measured last, since there `flat` uses the rows for other memory, and
 * `node` on several nodes uses the rows for slices: these rows must be final.
 */
#include "cmd/bench_tune.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "cmd/bench_times.h"
#include "comm/comm.h"
#include "comm/comm_split.h"

#define TIMEOUT 60.0
#define ROUNDS_MAX 200
#define ROUNDS_MIN 7
#define ROUNDS_BYTES ((size_t)64 << 20) /* approximate bytes per size */
#define WARM_UP 2
#define GAIN 0.95

/* Bruck's algorithm has scratch for BRUCK_BYTES of all ranks together, or for
 * BRUCK_BYTES_RANK of each rank, whichever is more. */
#define BRUCK_BYTES ((size_t)256 << 10)
#define BRUCK_BYTES_RANK ((size_t)4 << 10)

/* Too large for a one-shot collective: the node stage carries it out if the
 * rows for arenas say so. */
#define ARENA_BYTES ((size_t)8 << 10)

typedef struct tune {
    const bench_args_t *args;
    comm_oob_t oob;
    comm_table_t table; /* measured rows replace the rows of this table */
    comm_group_t *group;
    comm_arena_t *arena;
    char *plain;
    size_t *cuts;
    double times[ROUNDS_MAX];
    int slices, nodes;
    /* times in the place that is measured at the moment */
    tune_times_t found[COMM_CHOICES];
} tune_t;

/* ---- rows ---------------------------------------------------------------- */

/* Index of the algorithm with the shortest time in [seconds]; -1: none was
 * measured. */
static int fastest(const double *seconds)
{
    int best = -1;

    for (int i = 0; i < COMM_ALGORITHMS; i++)
        if (seconds[i] > 0 && (best < 0 || seconds[i] < seconds[best]))
            best = i;
    return best;
}

/* The types (bits as in comm_row_t) for which [times] give rows. Sums of 16-bit
 * floats were not measured, so rows for sums exclude them. Between nodes there
 * are no such sums, and gathering is independent of the type. */
static int types_of(const tune_times_t *times)
{
    return times->where != COMM_WHERE_SLICE &&
                   (times->choice == COMM_CHOICE_ALLREDUCE ||
                    times->choice == COMM_CHOICE_REDUCE_SCATTER)
               ? 1
               : 3;
}

/* Remove the rows that [times] replace: those for its collective and place.
 * Such a row is kept for types for which [times] give no rows. */
static void rows_keep(comm_table_t *table, const tune_times_t *times)
{
    int kept = 0;

    for (int i = 0; i < table->count; i++) {
        comm_row_t row = table->rows[i];

        if (row.choice == times->choice && row.where == times->where)
            row.types &= ~types_of(times);
        if (row.types != 0)
            table->rows[kept++] = row;
    }
    table->count = kept;
}

static err_code_t row_add(comm_table_t *table, const tune_times_t *times,
                          int algorithm, size_t bytes, err_t *err)
{
    if (table->count == COMM_TABLE_ROWS)
        return err_set(err, ERR_CONFIG,
                       "the measured table would have more than %d rows",
                       COMM_TABLE_ROWS);
    table->rows[table->count++] =
        (comm_row_t){.choice = times->choice,
                     .where = times->where,
                     .types = types_of(times),
                     .bytes = bytes,
                     .algorithm = (comm_algorithm_t)algorithm};
    return ERR_OK;
}

err_code_t tune_rows(comm_table_t *table, const tune_times_t *times, err_t *err)
{
    int now = -1;
    err_code_t rc = ERR_OK;

    for (int i = 0; rc == ERR_OK && i < times->count; i++) {
        const double *seconds = times->seconds[i];
        int best = fastest(seconds);

        if (best < 0 || best == now ||
            (now >= 0 && seconds[now] > 0 &&
             seconds[best] > GAIN * seconds[now]))
            continue;
        if (now < 0)
            rows_keep(table, times);
        else
            rc = row_add(table, times, now, times->bytes[i - 1] * 2, err);
        now = best;
    }
    return rc == ERR_OK && now >= 0 ? row_add(table, times, now, SIZE_MAX, err)
                                    : rc;
}

/* ---- one size ------------------------------------------------------------ */

static size_t rounds_of(const tune_t *tune, size_t bytes)
{
    size_t rounds = ROUNDS_BYTES / bytes;

    if (tune->args->rounds > 0)
        rounds = (size_t)tune->args->rounds;
    return rounds > ROUNDS_MAX   ? ROUNDS_MAX
           : rounds < ROUNDS_MIN ? ROUNDS_MIN
                                 : rounds;
}

static err_code_t call(tune_t *tune, const tune_times_t *what, size_t bytes,
                       err_t *err)
{
    size_t count = bytes / sizeof(float), size = (size_t)tune->oob.size;
    void *data = what->where < COMM_WHERE_LOCAL ? comm_arena_data(tune->arena)
                                                : tune->plain;

    for (size_t r = 0; r <= size; r++)
        tune->cuts[r] = count / size * r + count % size * r / size;
    switch (what->choice) {
    case COMM_CHOICE_ALLREDUCE:
        return comm_allreduce(tune->group, data, count, COMM_FLOAT32, COMM_SUM,
                              err);
    case COMM_CHOICE_REDUCE_SCATTER:
        return comm_reduce_scatter(tune->group, data, tune->cuts, COMM_FLOAT32,
                                   COMM_SUM, err);
    case COMM_CHOICE_GATHER_RANGES:
        return comm_allgather_ranges(tune->group, data, tune->cuts,
                                     COMM_FLOAT32, err);
    case COMM_CHOICE_ALLGATHER:
        break;
    }
    return comm_allgather(tune->group,
                          tune->plain + (size_t)tune->oob.rank * bytes, bytes,
                          tune->plain, err);
}

static err_code_t size_time(tune_t *tune, const tune_times_t *what,
                            size_t bytes, double *seconds, err_t *err)
{
    size_t rounds = rounds_of(tune, bytes);
    bench_times_t times = {0};
    err_code_t rc = ERR_OK;

    for (size_t i = 0; rc == ERR_OK && i < WARM_UP + rounds; i++) {
        double begin;

        rc = comm_barrier(tune->group, err);
        begin = clock_now();
        if (rc == ERR_OK)
            rc = call(tune, what, bytes, err);
        if (i >= WARM_UP)
            tune->times[i - WARM_UP] = clock_now() - begin;
    }
    if (rc == ERR_OK)
        rc = bench_times_slowest(tune->group, tune->times, rounds, &times, err);
    if (rc == ERR_OK)
        *seconds = times.median;
    return rc;
}

/* Name of the algorithm by which the group carries out an all-reduce of [bytes]
 * bytes of an arena. */
static const char *arena_name(const tune_t *tune, size_t bytes)
{
    return comm_allreduce_name(tune->group, comm_arena_data(tune->arena),
                               bytes / sizeof(float), COMM_FLOAT32);
}

/* Does the node stage carry out [what] if the rows for arenas say so? It does
 * not if ranks share no memory, and it carries out collectives of ranges only
 * on one node. */
static bool node_takes(const tune_t *tune, const tune_times_t *what,
                       size_t bytes)
{
    if (what->choice != COMM_CHOICE_ALLREDUCE) {
        bytes = ARENA_BYTES;
        if (tune->nodes > 1)
            return false;
    }
    return strncmp(arena_name(tune, bytes), "node", strlen("node")) == 0;
}

/* Would the group carry out [what] of size [i] by [algorithm]? It uses another
 * algorithm if scratch or slots are too small. */
static bool applies(const tune_t *tune, const tune_times_t *what, int i,
                    comm_algorithm_t algorithm)
{
    size_t bytes = what->bytes[i], ranks = (size_t)tune->oob.size;
    const char *name = comm_algorithm_name(algorithm), *found;

    if (algorithm == COMM_BY_NODE)
        return node_takes(tune, what, bytes);
    if (algorithm == COMM_BY_FLAT) /* `flat` is measured only where `node` was:
                                      otherwise there is no choice */
        return what->seconds[i][COMM_BY_NODE] > 0;
    if (algorithm == COMM_BY_BRUCK)
        return bytes * ranks <= BRUCK_BYTES || bytes <= BRUCK_BYTES_RANK;
    if (what->choice != COMM_CHOICE_ALLREDUCE)
        return true;
    if (what->where == COMM_WHERE_SLICE) { /* the name is like "node+ring" */
        found = strchr(arena_name(tune, bytes * (size_t)tune->slices), '+');
        return found != NULL && strcmp(found + 1, name) == 0;
    }
    found = comm_allreduce_name(tune->group, tune->plain, bytes / sizeof(float),
                                COMM_FLOAT32);
    return strcmp(found, name) == 0;
}

/* ---- one algorithm ------------------------------------------------------- */

static err_code_t collective_time(tune_t *tune, tune_times_t *what,
                                  comm_algorithm_t algorithm, err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int i = 0; rc == ERR_OK && i < what->count; i++) {
        size_t bytes = what->bytes[i];
        double *seconds = &what->seconds[i][algorithm];

        if (!applies(tune, what, i, algorithm))
            continue;
        if (what->where == COMM_WHERE_SLICE)
            bytes *= (size_t)tune->slices;
        rc = size_time(tune, what, bytes, seconds, err);
        if (rc == ERR_OK && tune->oob.rank == 0)
            printf("%s,%s,%zu,%s,%.3f\n", comm_choice_name(what->choice),
                   comm_where_name(what->where), what->bytes[i],
                   comm_algorithm_name(algorithm), *seconds * 1e6);
    }
    if (tune->oob.rank == 0)
        fflush(stdout);
    return rc;
}

/* Set the rows for arenas while the place [where] is measured. For slices they
 * must say `node`, since slices exist only inside the node stage. For other
 * memory they must say `flat`, since on several nodes the data would otherwise
 * be staged. */
static void arenas_force(comm_table_t *table, comm_where_t where)
{
    if (where != COMM_WHERE_ARENA)
        comm_table_force(table, where == COMM_WHERE_SLICE ? COMM_BY_NODE
                                                          : COMM_BY_FLAT);
}

static err_code_t algorithm_time(tune_t *tune, comm_where_t where,
                                 comm_algorithm_t algorithm, err_t *err)
{
    comm_table_t table = tune->table;
    comm_config_t config = {
        .backend = tune->args->backend, .timeout = TIMEOUT, .table = &table};
    size_t most = tune->args->largest * (size_t)tune->slices;
    err_code_t rc;

    arenas_force(&table, where);
    comm_table_force(&table, algorithm);
    rc = comm_group_open(&config, &tune->oob, &tune->group, err);
    if (rc == ERR_OK)
        rc = comm_arena_open(tune->group,
                             most > ARENA_BYTES ? most : ARENA_BYTES,
                             &tune->arena, err);
    for (int i = 0; rc == ERR_OK && i < COMM_CHOICES; i++)
        if (comm_algorithm_fits(algorithm, tune->found[i].choice, where))
            rc = collective_time(tune, &tune->found[i], algorithm, err);
    comm_arena_close(tune->arena);
    comm_group_close(tune->group);
    tune->arena = NULL;
    tune->group = NULL;
    return rc;
}

/* ---- one place ----------------------------------------------------------- */

static void found_prepare(tune_t *tune, comm_where_t where)
{
    memset(tune->found, 0, sizeof tune->found);
    for (int i = 0; i < COMM_CHOICES; i++) {
        tune_times_t *what = &tune->found[i];
        size_t bytes = tune->args->smallest;

        what->choice = (comm_choice_t)i;
        what->where = where;
        for (; bytes > 0 && what->count < TUNE_SIZES;
             bytes = bench_args_next(tune->args, bytes))
            what->bytes[what->count++] = bytes;
    }
}

static bool fits_any(comm_algorithm_t algorithm, comm_where_t where)
{
    bool fits = false;

    for (int i = 0; i < COMM_CHOICES; i++)
        fits |= comm_algorithm_fits(algorithm, (comm_choice_t)i, where);
    return fits;
}

/* Measure one place and replace its rows. The times are the same on all ranks,
 * so all ranks make the same rows. */
static err_code_t place_tune(tune_t *tune, comm_where_t where, err_t *err)
{
    err_code_t rc = ERR_OK;

    found_prepare(tune, where);
    for (int i = 0; rc == ERR_OK && i < COMM_ALGORITHMS; i++)
        if (fits_any((comm_algorithm_t)i, where))
            rc = algorithm_time(tune, where, (comm_algorithm_t)i, err);
    for (int i = 0; rc == ERR_OK && i < COMM_CHOICES; i++)
        rc = tune_rows(&tune->table, &tune->found[i], err);
    return rc;
}

/* ---- all ----------------------------------------------------------------- */

/* Set tune->nodes, and tune->slices: the number of ranks on the node with the
 * fewest. ERR_USAGE if the backend uses no table. */
static err_code_t places_find(tune_t *tune, err_t *err)
{
    comm_config_t config = {.backend = tune->args->backend,
                            .timeout = TIMEOUT,
                            .table_path = tune->args->table};
    int32_t least, nodes;
    int *ranks = NULL;
    err_code_t rc = mem_new(int, (size_t)tune->oob.size, "ranks", &ranks, err);

    if (rc == ERR_OK)
        rc = comm_group_open(&config, &tune->oob, &tune->group, err);
    if (rc == ERR_OK && strcmp(comm_group_backend(tune->group), "ucx") != 0)
        rc = err_set(err, ERR_USAGE,
                     "--tune: the backend %s uses no table: only ucx does",
                     comm_group_backend(tune->group));
    if (rc == ERR_OK) {
        least = comm_split_ranks(tune->group, COMM_SPLIT_NODE, ranks);
        nodes = ranks[0] == tune->oob.rank;
        rc = comm_allreduce(tune->group, &least, 1, COMM_INT32, COMM_MIN, err);
    }
    if (rc == ERR_OK)
        rc = comm_allreduce(tune->group, &nodes, 1, COMM_INT32, COMM_SUM, err);
    if (rc == ERR_OK) {
        tune->slices = (int)least;
        tune->nodes = (int)nodes;
    }
    comm_group_close(tune->group);
    tune->group = NULL;
    mem_free(ranks);
    return rc;
}

static err_code_t table_write(tune_t *tune, err_t *err)
{
    str_buf_t text = {0};
    err_code_t rc;

    comm_table_print(&tune->table, &text);
    str_buf_add(&text,
                "# measured by cddp-bench allreduce --tune: %d ranks on %d "
                "node%s\n",
                tune->oob.size, tune->nodes, tune->nodes == 1 ? "" : "s");
    rc = file_publish(tune->args->tune, text.text, text.length, err);
    str_buf_free(&text);
    return rc;
}

static err_code_t tune_run(tune_t *tune, err_t *err)
{
    size_t size = (size_t)tune->oob.size;
    err_code_t rc = places_find(tune, err);

    if (rc == ERR_OK) /* this succeeds, since the group has loaded the table */
        rc = comm_table_load(tune->args->table, &tune->table, err);
    if (rc == ERR_OK)
        rc = mem_new(char, tune->args->largest *size, "buffer", &tune->plain,
                     err);
    if (rc == ERR_OK)
        rc = mem_new(size_t, size + 1, "cuts", &tune->cuts, err);
    if (rc == ERR_OK && tune->oob.rank == 0)
        printf("collective,where,bytes,algorithm,median_us\n");
    if (rc == ERR_OK)
        rc = place_tune(
            tune, tune->nodes == 1 ? COMM_WHERE_LOCAL : COMM_WHERE_NET, err);
    if (rc == ERR_OK && tune->nodes > 1)
        rc = place_tune(tune, COMM_WHERE_SLICE, err);
    if (rc == ERR_OK)
        rc = place_tune(tune, COMM_WHERE_ARENA, err);
    if (rc == ERR_OK && tune->oob.rank == 0)
        rc = table_write(tune, err);
    mem_free(tune->plain);
    mem_free(tune->cuts);
    return rc;
}

err_code_t bench_tune(const bench_args_t *args, boot_t *boot, err_t *err)
{
    tune_t *tune = NULL;
    err_code_t rc;

    if (boot_size(boot) == 1)
        rc = err_set(err, ERR_USAGE,
                     "--tune: one rank has nothing to choose: start several");
    else
        rc = mem_new(tune_t, 1, "times", &tune, err);
    if (rc == ERR_OK) {
        tune->args = args;
        tune->oob = (comm_oob_t){.context = boot,
                                 .rank = boot_rank(boot),
                                 .size = boot_size(boot),
                                 .exchange = boot_exchange_call};
    }
    if (rc == ERR_OK)
        rc = tune_run(tune, err);
    mem_free(tune);
    boot_close(boot);
    return rc;
}
