/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The choice of an engine for a graph, and the run of its plan. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "op/cuda/cudnn_graph_priv.h"
#include "op/cuda/room.h"

#define CONFIGS_MAX 64
/* A plan with a larger workspace is used only if there is no other: 1 GiB. */
#define WORKSPACE_MAX ((int64_t)1 << 30)

/* The arguments of a run, in cuDNN's form. */
typedef struct pack {
    cudnnBackendDescriptor_t variant;
    void *data[CUDA_GRAPH_TENSORS], *workspace;
} pack_t;

struct cuda_plan {
    cudnnHandle_t handle;
    char what[CUDA_GRAPH_WHAT], notes[CUDA_GRAPH_WHAT];
    cudnnBackendDescriptor_t plan;
    int64_t workspace, engine;
    int refused;
    int count; /* of tensors that are in memory */
    int64_t uids[CUDA_GRAPH_TENSORS];
    pack_t packs[2];
    int next; /* the pack to replace next */
};

/* ---- choice of an engine ------------------------------------------------- */

#define NOTE(name) [CUDNN_NUMERICAL_NOTE_##name] = #name
static const char *const note_names[] = {
    NOTE(TENSOR_CORE),
    NOTE(DOWN_CONVERT_INPUTS),
    NOTE(REDUCED_PRECISION_REDUCTION),
    NOTE(FFT),
    NOTE(NONDETERMINISTIC),
    NOTE(WINOGRAD),
    NOTE(WINOGRAD_TILE_4x4),
    NOTE(WINOGRAD_TILE_6x6),
    NOTE(WINOGRAD_TILE_13x13),
    NOTE(STRICT_NAN_PROP),
};
#undef NOTE

/* Numerical notes of an engine, as bits. */
static unsigned note_bit(int note)
{
    return 1U << (unsigned)note;
}

/* The notes that exclude an engine. Transforms (Winograd, FFT) lose more digits
 * than a sum in float32. */
static unsigned notes_refused(cuda_precision_t precision)
{
    unsigned refused =
        note_bit(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) |
        note_bit(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);

    if (precision != CUDA_BF16)
        refused |= note_bit(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
    if (precision == CUDA_EXACT)
        refused |= note_bit(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) |
                   note_bit(CUDNN_NUMERICAL_NOTE_FFT) |
                   note_bit(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6) |
                   note_bit(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);
    return refused;
}

static void notes_write(unsigned notes, char text[CUDA_GRAPH_WHAT])
{
    size_t at = 0;

    text[0] = '\0';
    for (size_t i = 0; i < sizeof note_names / sizeof *note_names; i++)
        if ((notes & note_bit((int)i)) != 0 && at < CUDA_GRAPH_WHAT)
            at += (size_t)snprintf(text + at, CUDA_GRAPH_WHAT - at, "%s%s",
                                   at > 0 ? " " : "", note_names[i]);
}

/* Read number and notes of the engine of [config] into [plan]. */
static err_code_t plan_look(cuda_plan_t *plan, cudnnBackendDescriptor_t config,
                            unsigned *notes, err_t *err)
{
    cudnnBackendNumericalNote_t list[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    cudnnBackendDescriptor_t engine;
    int64_t count = 0;
    err_code_t rc = cuda_dnn_check(
        cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine),
        "cudnnBackendCreateDescriptor", plan->what, err);

    if (rc != ERR_OK)
        return rc;
    rc = cuda_dnn_check(cudnnBackendGetAttribute(
                            config, CUDNN_ATTR_ENGINECFG_ENGINE,
                            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine),
                        "cudnnBackendGetAttribute", plan->what, err);
    if (rc == ERR_OK)
        rc = cuda_dnn_check(cudnnBackendGetAttribute(
                                engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
                                CUDNN_TYPE_INT64, 1, &count, &plan->engine),
                            "cudnnBackendGetAttribute", plan->what, err);
    if (rc == ERR_OK)
        rc = cuda_dnn_check(cudnnBackendGetAttribute(
                                engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                CUDNN_TYPE_NUMERICAL_NOTE,
                                CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, list),
                            "cudnnBackendGetAttribute", plan->what, err);
    *notes = 0;
    for (int64_t i = 0; rc == ERR_OK && i < count; i++)
        *notes |= note_bit((int)list[i]);
    cudnnBackendDestroyDescriptor(engine);
    return rc;
}

/* Make plan->plan of [config]. False: this engine cannot. */
static bool plan_finish(cuda_plan_t *plan, const cuda_planner_t *planner,
                        cudnnBackendDescriptor_t config)
{
    const bool device = planner->handle != NULL;
    cudnnBackendDescriptor_t made;
    int64_t count = 0;
    bool done;

    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
                                     &made) != CUDNN_STATUS_SUCCESS)
        return false;
    done =
        cudnnBackendSetAttribute(made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                 &config) == CUDNN_STATUS_SUCCESS &&
        (device
             ? cudnnBackendSetAttribute(made, CUDNN_ATTR_EXECUTION_PLAN_HANDLE,
                                        CUDNN_TYPE_HANDLE, 1, &planner->handle)
             : cudnnBackendSetAttribute(
                   made, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &planner->properties)) ==
            CUDNN_STATUS_SUCCESS &&
        cudnnBackendFinalize(made) == CUDNN_STATUS_SUCCESS &&
        cudnnBackendGetAttribute(made, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                 CUDNN_TYPE_INT64, 1, &count,
                                 &plan->workspace) == CUDNN_STATUS_SUCCESS;
    if (done)
        plan->plan = made;
    else
        cudnnBackendDestroyDescriptor(made);
    return done;
}

/* The configurations that cuDNN proposes, best first. */
typedef struct proposal {
    int count;
    cudnnBackendDescriptor_t configs[CONFIGS_MAX];
} proposal_t;

static void proposal_close(proposal_t *proposal)
{
    while (proposal->count > 0)
        cudnnBackendDestroyDescriptor(proposal->configs[--proposal->count]);
}

/* [proposal] is filled even if this fails; close it. */
static void proposal_open(cuda_graph_t *graph, cudnnBackendDescriptor_t ops,
                          cudnnBackendHeurMode_t mode, proposal_t *proposal)
{
    cudnnBackendDescriptor_t made =
        cuda_graph_make(graph, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    int64_t count = 0;

    proposal->count = 0;
    cuda_graph_set_one(graph, made, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, ops);
    cuda_graph_set(graph, made, CUDNN_ATTR_ENGINEHEUR_MODE,
                   CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (graph->planner.handle == NULL)
        cuda_graph_set_one(graph, made, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                           graph->planner.properties);
    cuda_graph_finish(graph, made);
    while (graph->failed.code == ERR_OK && proposal->count < CONFIGS_MAX) {
        cuda_graph_check(
            graph,
            cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                                         &proposal->configs[proposal->count]),
            "cudnnBackendCreateDescriptor");
        proposal->count += graph->failed.code == ERR_OK;
    }
    if (graph->failed.code != ERR_OK)
        return;
    cuda_graph_check(
        graph,
        cudnnBackendGetAttribute(made, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS_MAX,
                                 &count, proposal->configs),
        "cudnnBackendGetAttribute");
    while (proposal->count > count)
        cudnnBackendDestroyDescriptor(proposal->configs[--proposal->count]);
}

/* Give [plan] the first configuration of [proposal] that qualifies, with a
 * workspace of [most] bytes at most. No such configuration: plan->plan stays
 * NULL. */
static err_code_t plan_choose(cuda_plan_t *plan, const cuda_graph_t *graph,
                              const proposal_t *proposal, unsigned refused,
                              int64_t most, err_t *err)
{
    for (int i = 0; i < proposal->count; i++) {
        unsigned notes;
        err_code_t rc = plan_look(plan, proposal->configs[i], &notes, err);

        if (rc != ERR_OK)
            return rc;
        if ((notes & refused) == 0 &&
            plan_finish(plan, &graph->planner, proposal->configs[i])) {
            if (plan->workspace <= most) {
                notes_write(notes, plan->notes);
                return ERR_OK;
            }
            cudnnBackendDestroyDescriptor(plan->plan);
            plan->plan = NULL;
        }
        plan->refused++;
    }
    return ERR_OK;
}

/* ---- plan ---------------------------------------------------------------- */

static cudnnBackendDescriptor_t graph_close_ops(cuda_graph_t *graph)
{
    cudnnBackendDescriptor_t made =
        cuda_graph_make(graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);

    cuda_graph_set(graph, made, CUDNN_ATTR_OPERATIONGRAPH_OPS,
                   CUDNN_TYPE_BACKEND_DESCRIPTOR, graph->op_count, graph->ops);
    if (graph->planner.handle != NULL)
        cuda_graph_set(graph, made, CUDNN_ATTR_OPERATIONGRAPH_HANDLE,
                       CUDNN_TYPE_HANDLE, 1, &graph->planner.handle);
    cuda_graph_finish(graph, made);
    return made;
}

static err_code_t graph_search(cuda_graph_t *graph, cuda_precision_t precision,
                               cuda_plan_t *plan, err_t *err)
{
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A,
                                                   CUDNN_HEUR_MODE_FALLBACK};
    const unsigned refused = notes_refused(precision);
    const int64_t first = graph->limit > 0 ? graph->limit : WORKSPACE_MAX;
    const int turns = graph->limit > 0 ? 2 : 4;
    cudnnBackendDescriptor_t ops = graph_close_ops(graph);
    proposal_t proposal = {0};
    err_code_t rc = ERR_OK;

    for (int i = 0; i < turns && rc == ERR_OK && plan->plan == NULL; i++) {
        proposal_open(graph, ops, modes[i % 2], &proposal);
        if (graph->failed.code == ERR_OK)
            rc = plan_choose(plan, graph, &proposal, refused,
                             i < 2 ? first : INT64_MAX, err);
        else
            rc = err_copy(err, &graph->failed);
        proposal_close(&proposal);
    }
    if (rc == ERR_OK && plan->plan == NULL) {
        graph->unsupported = true;
        rc = err_set(err, ERR_UNAVAILABLE,
                     "%s: cuDNN has no deterministic engine of this precision "
                     "(%d were tried)",
                     graph->what, plan->refused);
    }
    return rc;
}

void cuda_graph_limit(cuda_graph_t *graph, int64_t workspace)
{
    graph->limit = workspace;
}

bool cuda_graph_unsupported(const cuda_graph_t *graph)
{
    return graph->unsupported;
}

err_code_t cuda_graph_plan(cuda_graph_t *graph, cuda_precision_t precision,
                           cuda_plan_t **out, err_t *err)
{
    cuda_plan_t *plan;
    err_code_t rc = mem_new(cuda_plan_t, 1, "a plan of cuDNN", &plan, err);

    if (rc != ERR_OK)
        return rc;
    plan->handle = graph->planner.handle;
    memcpy(plan->what, graph->what, sizeof plan->what);
    for (int i = 0; i < graph->tensor_count; i++)
        if (!graph->inner[i])
            plan->uids[plan->count++] = i + 1;
    rc = graph_search(graph, precision, plan, err);
    if (rc == ERR_OK)
        *out = plan;
    else
        cuda_plan_close(plan);
    return rc;
}

void cuda_plan_close(cuda_plan_t *plan)
{
    if (plan == NULL)
        return;
    for (int i = 0; i < 2; i++)
        if (plan->packs[i].variant != NULL)
            cudnnBackendDestroyDescriptor(plan->packs[i].variant);
    if (plan->plan != NULL)
        cudnnBackendDestroyDescriptor(plan->plan);
    mem_free(plan);
}

size_t cuda_plan_workspace(const cuda_plan_t *plan)
{
    return plan->workspace == 0 ? 0 : (size_t)plan->workspace + CUDA_ROOM_EXTRA;
}

int64_t cuda_plan_engine(const cuda_plan_t *plan)
{
    return plan->engine;
}

int cuda_plan_refused(const cuda_plan_t *plan)
{
    return plan->refused;
}

const char *cuda_plan_notes(const cuda_plan_t *plan)
{
    return plan->notes;
}

/* Replace [pack] by one with these addresses. */
static err_code_t pack_make(const cuda_plan_t *plan, pack_t *pack, err_t *err)
{
    err_code_t rc;

    if (pack->variant != NULL)
        cudnnBackendDestroyDescriptor(pack->variant);
    pack->variant = NULL;
    rc = cuda_dnn_check(
        cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
                                     &pack->variant),
        "cudnnBackendCreateDescriptor", plan->what, err);
    if (rc == ERR_OK)
        rc = cuda_dnn_check(cudnnBackendSetAttribute(
                                pack->variant,
                                CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                CUDNN_TYPE_VOID_PTR, plan->count, pack->data),
                            "cudnnBackendSetAttribute", plan->what, err);
    if (rc == ERR_OK)
        rc = cuda_dnn_check(
            cudnnBackendSetAttribute(pack->variant,
                                     CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
                                     CUDNN_TYPE_INT64, plan->count, plan->uids),
            "cudnnBackendSetAttribute", plan->what, err);
    if (rc == ERR_OK)
        rc =
            cuda_dnn_check(cudnnBackendSetAttribute(
                               pack->variant, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                               CUDNN_TYPE_VOID_PTR, 1, &pack->workspace),
                           "cudnnBackendSetAttribute", plan->what, err);
    if (rc == ERR_OK)
        rc = cuda_dnn_check(cudnnBackendFinalize(pack->variant),
                            "cudnnBackendFinalize", plan->what, err);
    return rc;
}

err_code_t cuda_plan_run(cuda_plan_t *plan, void *const *data, void *workspace,
                         err_t *err)
{
    pack_t wanted = {.workspace = cuda_room_align(workspace)};
    pack_t *pack = NULL;
    err_code_t rc = ERR_OK;

    for (int i = 0; i < plan->count; i++)
        wanted.data[i] = data[plan->uids[i] - 1];
    for (int i = 0; i < 2; i++)
        if (plan->packs[i].variant != NULL &&
            plan->packs[i].workspace == wanted.workspace &&
            memcmp(plan->packs[i].data, wanted.data, sizeof wanted.data) == 0)
            pack = &plan->packs[i];
    if (pack == NULL) {
        pack = &plan->packs[plan->next];
        plan->next = 1 - plan->next;
        wanted.variant = pack->variant;
        *pack = wanted;
        rc = pack_make(plan, pack, err);
        if (rc != ERR_OK)
            pack->workspace = NULL, pack->data[0] = NULL; /* matches no run */
    }
    if (rc == ERR_OK)
        rc = cuda_dnn_check(
            cudnnBackendExecute(plan->handle, plan->plan, pack->variant),
            "cudnnBackendExecute", plan->what, err);
    return rc;
}
