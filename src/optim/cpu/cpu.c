/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "optim/cpu/cpu.h"

#include "base/mem.h"
#include "simd/team.h"

static err_code_t cpu_open(dev_device_t *dev, size_t elems, optim_place_t **out,
                           err_t *err)
{
    optim_cpu_t *cpu = NULL;
    err_code_t rc = mem_new(optim_cpu_t, 1, "the optimizer", &cpu, err);

    (void)dev;
    (void)elems;
    if (rc != ERR_OK)
        return rc;
    cpu->threads = 1;
    *out = &cpu->base;
    return ERR_OK;
}

static void cpu_close(optim_place_t *place)
{
    mem_free(place);
}

static void cpu_team(optim_place_t *place, int threads)
{
    ((optim_cpu_t *)place)->threads = threads;
}

void optim_crew(crew_t *crew)
{
    simd_team_lend(crew);
}

static err_code_t cpu_norm_flag(optim_place_t *place, const double *norm,
                                double *flag, dev_stream_t *stream, err_t *err)
{
    (void)place;
    (void)stream;
    (void)err;
    if (!optim_finite(*norm))
        *flag = 1;
    return ERR_OK;
}

static err_code_t cpu_judge(optim_place_t *place,
                            const optim_question_t *question,
                            optim_verdict_t *verdict, dev_stream_t *stream,
                            err_t *err)
{
    (void)place;
    (void)stream;
    (void)err;
    optim_verdict_fill(question, verdict);
    return ERR_OK;
}

const optim_place_ops_t optim_cpu_place = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .team = cpu_team,
    .norm = optim_cpu_norm,
    .norm_part = optim_cpu_norm_part,
    .norm_whole = optim_cpu_norm_whole,
    .norm_flag = cpu_norm_flag,
    .scale = optim_cpu_scale,
    .judge = cpu_judge,
    .measure = optim_cpu_measure,
    .update = optim_cpu_update,
};
