/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* An update of the host. Threads share the pieces of runs. */
#include "optim/cpu/cpu.h"
#include "simd/team.h"

/* Arenas with fewer elements are updated by one thread. */
#define TEAM_ELEMS ((size_t)262144)

/* One pass over a part of the arena, shared by the threads. */
typedef struct part_pass {
    const optim_pass_t *pass;
    const optim_part_t *part;
} part_pass_t;

/* Set [*from, *to) to the arena elements of piece number [piece] of [run]. */
static void piece_find(const optim_run_t *run, int64_t piece, size_t *from,
                       size_t *to)
{
    const size_t end = run->offset + run->elems;
    const size_t at =
        (run->offset / OPTIM_PIECE + (size_t)(piece - run->first)) *
        OPTIM_PIECE;

    *from = at > run->offset ? at : run->offset;
    *to = at + OPTIM_PIECE < end ? at + OPTIM_PIECE : end;
}

/* The update of elements [from, to) of [run], but for the rate. */
static optim_cpu_piece_t piece_of(const optim_pass_t *pass,
                                  const optim_run_t *run, size_t from,
                                  size_t to)
{
    const optim_table_t *table = pass->table;
    const size_t state = run->state + (from - run->offset);
    optim_cpu_piece_t piece = {
        .loop = table->rules[run->set].loop,
        .scalars = optim_in_sets(pass->args.in)[run->set].scalars,
        .elems = to - from,
        .params = pass->args.params + from,
        .grads = pass->args.grads + from};

    for (int i = 0; i < OPTIM_SLOTS_MAX; i++)
        if (table->slots[i] != NULL)
            piece.slots[i] = table->slots[i] + state;
    return piece;
}

/* ---- pieces -------------------------------------------------------------- */

static void piece_update(const optim_pass_t *pass, const optim_run_t *run,
                         size_t from, size_t to)
{
    const optim_table_t *table = pass->table;
    const optim_in_t *in = pass->args.in;
    const double rate = optim_in_sets(in)[run->set].rate;
    optim_cpu_piece_t piece = piece_of(pass, run, from, to);

    if (table->measures)
        piece.rate = (float)(rate * table->ratios[run - table->runs]);
    optim_cpu_loop(&piece);
    if (table->average != NULL)
        optim_cpu_average(table->average + run->state + (from - run->offset),
                          piece.params, piece.elems, table->fresh,
                          in->number == 1);
}

/* Write the sums of squares of at most one block to [squares]. */
static void block_measure(const optim_run_t *run,
                          const optim_cpu_piece_t *piece, double squares[2])
{
    float direction[OPTIM_BLOCK];
    const float *other = piece->grads;

    if (piece->loop == OPTIM_LAMB)
        optim_cpu_lamb_moments(piece);
    if (!run->adapts)
        return;
    if (piece->loop == OPTIM_LAMB) {
        optim_cpu_lamb_direction(piece, direction);
        other = direction;
    }
    squares[0] = optim_cpu_block_squares(piece->params, piece->elems);
    squares[1] = optim_cpu_block_squares(other, piece->elems);
}

static void piece_measure(const optim_pass_t *pass, const optim_run_t *run,
                          size_t from, size_t to)
{
    while (from < to) {
        const size_t block = from / OPTIM_BLOCK;
        const size_t end = (block + 1) * OPTIM_BLOCK;
        const size_t stop = end < to ? end : to;
        const optim_cpu_piece_t piece = piece_of(pass, run, from, stop);
        const size_t place = run->sums + block - run->tensor / OPTIM_BLOCK;

        block_measure(run, &piece, pass->table->sums + 2 * place);
        from = stop;
    }
}

typedef void piece_t(const optim_pass_t *pass, const optim_run_t *run,
                     size_t from, size_t to);

/* Compute pieces [first, last) in the calling thread. */
static void pieces_run(const part_pass_t *pass, int64_t first, int64_t last,
                       piece_t *body)
{
    const optim_run_t *run = pass->pass->table->runs + pass->part->run;

    for (int64_t piece = first; piece < last; piece++) {
        size_t from, to;

        while (piece >= run->first + run->pieces)
            run++;
        piece_find(run, piece, &from, &to);
        body(pass->pass, run, from, to);
    }
}

static void update_body(void *context, int64_t first, int64_t last)
{
    pieces_run(context, first, last, piece_update);
}

static void measure_body(void *context, int64_t first, int64_t last)
{
    pieces_run(context, first, last, piece_measure);
}

/* ---- the rates of tensors ------------------------------------------------ */

static double run_ratio(const optim_table_t *table, const optim_run_t *run)
{
    const double *pairs = table->sums + 2 * run->sums;
    optim_cpu_sum_t sums[2] = {{.blocks = 0}, {.blocks = 0}};
    double squares[2];

    for (size_t i = 0; i < run->sum_count; i++) {
        optim_cpu_sum_add(&sums[0], pairs[2 * i]);
        optim_cpu_sum_add(&sums[1], pairs[2 * i + 1]);
    }
    squares[0] = optim_cpu_sum_total(&sums[0]);
    squares[1] = optim_cpu_sum_total(&sums[1]);
    return optim_ratio(&table->rules[run->set], squares);
}

static void ratios_take(const optim_table_t *table, const optim_part_t *part)
{
    for (int i = part->run; i < part->run + part->runs; i++)
        table->ratios[i] =
            table->runs[i].adapts ? run_ratio(table, &table->runs[i]) : 1;
}

/* ---- the calls ----------------------------------------------------------- */

static int threads_of(const optim_place_t *place, const optim_pass_t *pass)
{
    return pass->table->elems < TEAM_ELEMS
               ? 1
               : ((const optim_cpu_t *)place)->threads;
}

err_code_t optim_cpu_measure(optim_place_t *place, const optim_pass_t *pass,
                             dev_stream_t *stream, err_t *err)
{
    const optim_table_t *table = pass->table;
    const optim_verdict_t *verdict = pass->args.verdict;

    (void)stream;
    (void)err;
    if (verdict != NULL && !verdict->updates)
        return ERR_OK;
    for (int i = 0; i < table->part_count; i++) {
        const optim_part_t *part = &table->parts[i];
        part_pass_t parts = {pass, part};

        optim_cpu_clip(pass->args.grads + part->range.first, part->range.count,
                       verdict != NULL ? verdict->factor : 1, pass->most,
                       ((optim_cpu_t *)place)->threads);
        if (table->measures)
            simd_team_run(threads_of(place, pass), part->pieces, 1,
                          measure_body, &parts);
    }
    return ERR_OK;
}

err_code_t optim_cpu_update(optim_place_t *place, const optim_pass_t *pass,
                            int index, dev_stream_t *stream, err_t *err)
{
    const optim_part_t *part = &pass->table->parts[index];
    const optim_verdict_t *verdict = pass->args.verdict;
    part_pass_t parts = {pass, part};

    (void)stream;
    (void)err;
    if (verdict != NULL && !verdict->updates)
        return ERR_OK;
    if (pass->table->measures)
        ratios_take(pass->table, part);
    simd_team_run(threads_of(place, pass), part->pieces, 1, update_body,
                  &parts);
    return ERR_OK;
}
