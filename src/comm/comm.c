/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The public interface of comm: opens a group (hello, backend), checks
 * arguments, passes each collective to the backend's table, and offers the
 * blocking forms.
 */
#include "comm/comm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "comm/comm_ops.h"
#include "comm/comm_plan.h"

/* ---- open and close ------------------------------------------------------ */

static void hello_fill(comm_hello_t *hello, const comm_oob_t *oob,
                       const comm_ops_t *ops, const comm_table_t *table)
{
    memset(hello, 0, sizeof *hello);
    strncpy(hello->backend, ops->name, sizeof hello->backend - 1);
    if (oob->host != NULL)
        strncpy(hello->host, oob->host, sizeof hello->host - 1);
    else if (gethostname(hello->host, sizeof hello->host - 1) != 0)
        strcpy(hello->host, "unknown");
    hello->pid = getpid();
    hello->table = comm_table_hash(table);
    hello->own_net = ops->own_net != NULL && ops->own_net();
    hello->name = oob->name != NULL ? *oob->name : oob->rank;
}

/* Fail if one of the ranks cannot join. */
static err_code_t hello_refused(const comm_hello_t *hellos, int size,
                                err_t *err)
{
    for (int rank = 0; rank < size; rank++)
        if (hellos[rank].refusal != ERR_OK)
            return err_set(err, (err_code_t)hellos[rank].refusal,
                           "rank %d on %s cannot join: %.*s",
                           (int)hellos[rank].name, hellos[rank].host,
                           (int)sizeof hellos[rank].why, hellos[rank].why);
    return ERR_OK;
}

static err_code_t hello_compare(const comm_hello_t *hellos, int size,
                                err_t *err)
{
    err_code_t refusal = hello_refused(hellos, size, err);

    if (refusal != ERR_OK)
        return refusal;
    for (int rank = 1; rank < size; rank++) {
        if (memcmp(hellos[rank].backend, hellos[0].backend,
                   sizeof hellos[0].backend) != 0)
            return err_set(err, ERR_CONFIG,
                           "rank 0 opens a group with comm backend \"%.15s\", "
                           "rank %d with \"%.15s\": give all ranks the same",
                           hellos[0].backend, rank, hellos[rank].backend);
        if (hellos[rank].table != hellos[0].table)
            return err_set(err, ERR_CONFIG,
                           "rank 0 on %s and rank %d on %s have different "
                           "tables of algorithms: give all ranks the same file",
                           hellos[0].host, rank, hellos[rank].host);
    }
    return ERR_OK;
}

/* Allocate and exchange *hellos; the caller frees them. */
static err_code_t hello_exchange(const comm_oob_t *oob, const comm_ops_t *ops,
                                 const comm_table_t *table,
                                 const err_t *refusal, comm_hello_t **hellos,
                                 err_t *err)
{
    comm_hello_t mine;
    void *all = NULL;
    err_code_t code =
        mem_alloc((size_t)oob->size * sizeof mine, "comm hellos", &all, err);

    if (code != ERR_OK)
        return code;
    hello_fill(&mine, oob, ops, table);
    mine.refusal = refusal->code;
    snprintf(mine.why, sizeof mine.why, "%.*s", (int)sizeof mine.why - 1,
             refusal->text);
    code = oob->exchange(oob->context, &mine, sizeof mine, all, err);
    if (code == ERR_OK)
        code = hello_compare(all, oob->size, err);
    if (code == ERR_OK)
        *hellos = all;
    else
        mem_free(all);
    return code;
}

/* Make the table of algorithms. If the file cannot be read, the reason goes to
 * *refusal and is exchanged with the hellos, as the other ranks already wait
 * for this exchange. */
static const comm_table_t *table_prepare(const comm_config_t *config,
                                         comm_table_t *table, err_t *refusal)
{
    if (config->table != NULL)
        memcpy(table, config->table, sizeof *table);
    else
        comm_table_default(table);
    if (config->table_path != NULL)
        (void)comm_table_load(config->table_path, table, refusal);
    return table;
}

err_code_t comm_group_open(const comm_config_t *config, const comm_oob_t *oob,
                           comm_group_t **out, err_t *err)
{
    comm_config_t own = *config;
    comm_hello_t *hellos = NULL;
    const comm_ops_t *ops;
    void *table = NULL;
    err_t refusal = ERR_INIT;
    err_code_t code;

    if (!(config->timeout > 0))
        return err_set(err, ERR_CONFIG,
                       "the timeout of a comm group is %g s: it must be above "
                       "zero",
                       config->timeout);
    ops = comm_registry_find(config->backend, oob->size, err);
    if (ops == NULL)
        return ERR_CONFIG;
    code = mem_alloc(sizeof *own.table, "comm table", &table, err);
    if (code != ERR_OK)
        return code;
    own.table = table_prepare(config, table, &refusal);
    code = hello_exchange(oob, ops, own.table, &refusal, &hellos, err);
    if (code == ERR_OK)
        code = ops->open(&own, oob, hellos, out, err);
    if (code != ERR_OK) {
        mem_free(hellos);
        mem_free(table);
    }
    return code;
}

void comm_group_close(comm_group_t *group)
{
    const comm_table_t *table;
    comm_hello_t *hellos;

    if (group == NULL)
        return;
    hellos = group->hellos;
    table = group->table;
    group->ops->close(group);
    mem_free(hellos);
    mem_free((void *)(uintptr_t)table);
}

/* ---- questions ----------------------------------------------------------- */

int comm_group_rank(const comm_group_t *group)
{
    return group->rank;
}

int comm_group_size(const comm_group_t *group)
{
    return group->size;
}

int comm_rank_name(const comm_group_t *group, int rank)
{
    return (int)group->hellos[rank].name;
}

int comm_rank_find(const comm_group_t *group, int name)
{
    for (int rank = 0; rank < group->size; rank++)
        if (group->hellos[rank].name == name)
            return rank;
    return -1;
}

double comm_group_timeout(const comm_group_t *group)
{
    return group->timeout;
}

const char *comm_group_backend(const comm_group_t *group)
{
    return group->ops->name;
}

const char *comm_group_host(const comm_group_t *group, int rank)
{
    return rank >= 0 && rank < group->size ? group->hellos[rank].host
                                           : "unknown";
}

void comm_group_report(comm_group_t *group, int64_t step, const char *phase)
{
    group->ops->report(group, step, phase);
}

err_code_t comm_group_check(comm_group_t *group, err_t *err)
{
    return group->ops->check(group, err);
}

const char *comm_kind_name(comm_kind_t kind)
{
    static const char *const names[] = {
        [COMM_ALLREDUCE] = "all-reduce",
        [COMM_TREE] = "all-reduce along a tree",
        [COMM_BROADCAST] = "broadcast",
        [COMM_ALLGATHER] = "all-gather",
        [COMM_REDUCE_SCATTER] = "reduce-scatter",
        [COMM_GATHER_RANGES] = "all-gather of ranges",
        [COMM_BARRIER] = "barrier",
    };

    return names[kind];
}

void comm_request_print(const comm_request_t *request, char *text, size_t room)
{
    static const char *const ops[] = {[COMM_SUM] = ", sum",
                                      [COMM_MAX] = ", maximum",
                                      [COMM_MIN] = ", minimum"};
    const char *kind = comm_kind_name(request->kind);
    const char *a = kind[0] == 'a' ? "an" : "a";
    const size_t count = request->count;

    switch (request->kind) {
    case COMM_BARRIER:
        snprintf(text, room, "%s %s", a, kind);
        break;
    case COMM_BROADCAST:
        snprintf(text, room, "%s %s of %zu bytes from rank %d", a, kind, count,
                 request->root);
        break;
    case COMM_ALLGATHER:
        snprintf(text, room, "%s %s of %zu bytes a rank", a, kind, count);
        break;
    default:
        snprintf(text, room, "%s %s of %zu %s%s", a, kind, count,
                 comm_type_name(request->type),
                 request->kind == COMM_GATHER_RANGES ? "" : ops[request->op]);
        break;
    }
}

/* ---- collectives --------------------------------------------------------- */

static comm_state_t start_nothing(comm_work_t **work)
{
    *work = NULL;
    return COMM_DONE;
}

comm_state_t comm_allreduce_start(comm_group_t *group, void *data, size_t count,
                                  comm_type_t type, comm_op_t op,
                                  comm_work_t **work, err_t *err)
{
    comm_request_t request = {.kind = COMM_ALLREDUCE,
                              .data = data,
                              .count = count,
                              .type = type,
                              .op = op};

    if (count == 0)
        return start_nothing(work);
    return group->ops->start(group, &request, work, err);
}

const char *comm_allreduce_name(const comm_group_t *group, const void *data,
                                size_t count, comm_type_t type)
{
    comm_plan_t plan;

    if (comm_allreduce_plan(group, data, count, type, &plan))
        return comm_plan_name(&plan);
    return group->size == 1 ? "none" : group->ops->name;
}

bool comm_allreduce_plan(const comm_group_t *group, const void *data,
                         size_t count, comm_type_t type, comm_plan_t *out)
{
    bool planned = group->size > 1 && group->ops->allreduce_plan != NULL;

    memset(out, 0, sizeof *out);
    if (planned)
        group->ops->allreduce_plan(group, data, count, type, out);
    return planned;
}

comm_state_t comm_allreduce_tree_start(comm_group_t *group, void *const *views,
                                       int64_t first, int64_t held,
                                       int64_t leaves, void *data, size_t count,
                                       comm_type_t type, comm_work_t **work,
                                       err_t *err)
{
    comm_request_t request = {.kind = COMM_TREE,
                              .data = data,
                              .count = count,
                              .type = type,
                              .op = COMM_SUM,
                              .views = views,
                              .first = first,
                              .held = held,
                              .leaves = leaves};

    if (held < 0 || (held > 0 && (first < 0 || held > leaves - first))) {
        err_set(err, ERR_CONFIG,
                "rank %d holds leaves %lld to %lld of a tree over %lld",
                group->rank, (long long)first, (long long)(first + held - 1),
                (long long)leaves);
        return COMM_FAILED;
    }
    if (count == 0 || leaves == 0)
        return start_nothing(work);
    return group->ops->start(group, &request, work, err);
}

comm_state_t comm_broadcast_start(comm_group_t *group, void *data, size_t bytes,
                                  int root, comm_work_t **work, err_t *err)
{
    comm_request_t request = {
        .kind = COMM_BROADCAST, .data = data, .count = bytes, .root = root};

    if (root < 0 || root >= group->size) {
        err_set(err, ERR_CONFIG, "broadcast from rank %d of %d ranks", root,
                group->size);
        return COMM_FAILED;
    }
    if (bytes == 0)
        return start_nothing(work);
    return group->ops->start(group, &request, work, err);
}

comm_state_t comm_allgather_start(comm_group_t *group, const void *mine,
                                  size_t bytes, void *all, comm_work_t **work,
                                  err_t *err)
{
    comm_request_t request = {
        .kind = COMM_ALLGATHER, .data = all, .count = bytes, .mine = mine};

    if (bytes == 0)
        return start_nothing(work);
    return group->ops->start(group, &request, work, err);
}

static err_code_t cuts_check(const comm_group_t *group, const size_t *cuts,
                             err_t *err)
{
    if (cuts[0] != 0)
        return err_set(err, ERR_CONFIG,
                       "rank %d cuts a buffer from element %zu on: the first "
                       "cut must be 0",
                       group->rank, cuts[0]);
    for (int rank = 0; rank < group->size; rank++)
        if (cuts[rank + 1] < cuts[rank])
            return err_set(err, ERR_CONFIG,
                           "rank %d cuts a buffer so that the range of rank %d "
                           "goes from element %zu back to %zu",
                           group->rank, rank, cuts[rank], cuts[rank + 1]);
    return ERR_OK;
}

static comm_state_t ranges_start(comm_group_t *group,
                                 const comm_request_t *request,
                                 comm_work_t **work, err_t *err)
{
    if (cuts_check(group, request->cuts, err) != ERR_OK)
        return COMM_FAILED;
    if (request->count == 0)
        return start_nothing(work);
    return group->ops->start(group, request, work, err);
}

comm_state_t comm_reduce_scatter_start(comm_group_t *group, void *data,
                                       const size_t *cuts, comm_type_t type,
                                       comm_op_t op, comm_work_t **work,
                                       err_t *err)
{
    comm_request_t request = {.kind = COMM_REDUCE_SCATTER,
                              .data = data,
                              .count = cuts[group->size],
                              .type = type,
                              .op = op,
                              .cuts = cuts};

    return ranges_start(group, &request, work, err);
}

comm_state_t comm_allgather_ranges_start(comm_group_t *group, void *data,
                                         const size_t *cuts, comm_type_t type,
                                         comm_work_t **work, err_t *err)
{
    comm_request_t request = {.kind = COMM_GATHER_RANGES,
                              .data = data,
                              .count = cuts[group->size],
                              .type = type,
                              .cuts = cuts};

    return ranges_start(group, &request, work, err);
}

comm_state_t comm_barrier_start(comm_group_t *group, comm_work_t **work,
                                err_t *err)
{
    comm_request_t request = {.kind = COMM_BARRIER};

    return group->ops->start(group, &request, work, err);
}

comm_state_t comm_work_poll(comm_work_t *work)
{
    return work == NULL ? COMM_DONE : work->group->ops->poll(work);
}

err_code_t comm_work_wait(comm_work_t *work, err_t *err)
{
    return work == NULL ? ERR_OK : work->group->ops->wait(work, err);
}

/* ---- blocking forms ------------------------------------------------------ */

/* Return the code of a collective that was started with result [state]; wait
 * for it if it is pending. A start that failed has filled *err, if err is not
 * NULL; callers who pass NULL still get the code. */
static err_code_t finish(comm_group_t *group, comm_state_t state,
                         comm_work_t **work, err_t *local, err_t *err)
{
    group->waits = false;
    if (state != COMM_FAILED)
        return comm_work_wait(*work, err);
    if (err != NULL)
        *err = *local;
    return local->code;
}

err_code_t comm_allreduce(comm_group_t *group, void *data, size_t count,
                          comm_type_t type, comm_op_t op, err_t *err)
{
    comm_work_t *work = NULL;
    err_t local;

    group->waits = true;
    return finish(
        group,
        comm_allreduce_start(group, data, count, type, op, &work, &local),
        &work, &local, err);
}

err_code_t comm_allreduce_tree(comm_group_t *group, void *const *views,
                               int64_t first, int64_t held, int64_t leaves,
                               void *data, size_t count, comm_type_t type,
                               err_t *err)
{
    comm_work_t *work = NULL;
    err_t local;

    group->waits = true;
    return finish(group,
                  comm_allreduce_tree_start(group, views, first, held, leaves,
                                            data, count, type, &work, &local),
                  &work, &local, err);
}

err_code_t comm_broadcast(comm_group_t *group, void *data, size_t bytes,
                          int root, err_t *err)
{
    comm_work_t *work = NULL;
    err_t local;

    group->waits = true;
    return finish(group,
                  comm_broadcast_start(group, data, bytes, root, &work, &local),
                  &work, &local, err);
}

err_code_t comm_allgather(comm_group_t *group, const void *mine, size_t bytes,
                          void *all, err_t *err)
{
    comm_work_t *work = NULL;
    err_t local;

    group->waits = true;
    return finish(group,
                  comm_allgather_start(group, mine, bytes, all, &work, &local),
                  &work, &local, err);
}

err_code_t comm_reduce_scatter(comm_group_t *group, void *data,
                               const size_t *cuts, comm_type_t type,
                               comm_op_t op, err_t *err)
{
    comm_work_t *work = NULL;
    err_t local;

    group->waits = true;
    return finish(
        group,
        comm_reduce_scatter_start(group, data, cuts, type, op, &work, &local),
        &work, &local, err);
}

err_code_t comm_allgather_ranges(comm_group_t *group, void *data,
                                 const size_t *cuts, comm_type_t type,
                                 err_t *err)
{
    comm_work_t *work = NULL;
    err_t local;

    group->waits = true;
    return finish(
        group,
        comm_allgather_ranges_start(group, data, cuts, type, &work, &local),
        &work, &local, err);
}

err_code_t comm_barrier(comm_group_t *group, err_t *err)
{
    comm_work_t *work = NULL;
    err_t local;

    group->waits = true;
    return finish(group, comm_barrier_start(group, &work, &local), &work,
                  &local, err);
}

/* ---- arena --------------------------------------------------------------- */

err_code_t comm_arena_open(comm_group_t *group, size_t bytes,
                           comm_arena_t **out, err_t *err)
{
    void *memory = NULL, *data = NULL;
    comm_arena_t *arena;
    err_code_t code;

    if (group->ops->arena_open != NULL)
        return group->ops->arena_open(group, bytes, out, err);
    code = mem_alloc(sizeof *arena, "comm arena", &memory, err);
    if (code != ERR_OK)
        return code;
    code = mem_alloc(bytes, "comm arena", &data, err);
    if (code != ERR_OK) {
        mem_free(memory);
        return code;
    }
    arena = memory;
    arena->group = group;
    arena->data = data;
    *out = arena;
    return ERR_OK;
}

void *comm_arena_data(comm_arena_t *arena)
{
    return arena->data;
}

void comm_arena_close(comm_arena_t *arena)
{
    if (arena == NULL)
        return;
    if (arena->group->ops->arena_close != NULL) {
        arena->group->ops->arena_close(arena);
        return;
    }
    mem_free(arena->data);
    mem_free(arena);
}
