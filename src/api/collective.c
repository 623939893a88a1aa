/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Collective operations. Each is started by its ..._start function and waited
 * for by cddp_work_wait, at once or later. */
#include "api/api.h"
#include "cddp/group.h"

/* ---- types and operations ------------------------------------------------ */

static const comm_type_t types[] = {
    [CDDP_FLOAT32] = COMM_FLOAT32,   [CDDP_FLOAT64] = COMM_FLOAT64,
    [CDDP_INT64] = COMM_INT64,       [CDDP_INT32] = COMM_INT32,
    [CDDP_BFLOAT16] = COMM_BFLOAT16, [CDDP_FLOAT16] = COMM_FLOAT16};
static const comm_op_t ops[] = {
    [CDDP_SUM] = COMM_SUM, [CDDP_MAX] = COMM_MAX, [CDDP_MIN] = COMM_MIN};

enum {
    TYPES = sizeof types / sizeof types[0],
    OPS = sizeof ops / sizeof ops[0]
};

/* Do [type] and [op] exist? If not, [error] says so. */
static bool known(cddp_type_t type, cddp_op_t op, cddp_error_t *error)
{
    if ((unsigned)type < TYPES && (unsigned)op < OPS)
        return true;
    cddp_error_set(error, CDDP_CONFIG,
                   "a collective of type %d and operation %d: types go from 0 "
                   "to %d, operations to %d",
                   (int)type, (int)op, TYPES - 1, OPS - 1);
    return false;
}

cddp_code_t api_type(cddp_type_t type, comm_type_t *out, cddp_error_t *error)
{
    if (!known(type, CDDP_SUM, error))
        return CDDP_CONFIG;
    *out = types[type];
    return CDDP_OK;
}

/* ---- starting ------------------------------------------------------------ */

/* Translate the result of a comm start function: state, work and error. */
static cddp_state_t started(comm_state_t state, comm_work_t *inner,
                            cddp_work_t **work, const err_t *err,
                            cddp_error_t *error)
{
    if (state == COMM_FAILED) {
        api_answer(err->code, err, error);
        return CDDP_FAILED;
    }
    *work = (cddp_work_t *)inner;
    return state == COMM_DONE ? CDDP_DONE : CDDP_PENDING;
}

cddp_state_t cddp_allreduce_start(cddp_group_t *group, void *data, size_t count,
                                  cddp_type_t type, cddp_op_t op,
                                  cddp_work_t **work, cddp_error_t *error)
{
    comm_work_t *inner = NULL;
    err_t err = ERR_INIT;
    comm_state_t state;

    if (!known(type, op, error))
        return CDDP_FAILED;
    state = comm_allreduce_start(api_group(group), data, count, types[type],
                                 ops[op], &inner, &err);
    return started(state, inner, work, &err, error);
}

cddp_state_t cddp_broadcast_start(cddp_group_t *group, void *data, size_t bytes,
                                  int root, cddp_work_t **work,
                                  cddp_error_t *error)
{
    comm_work_t *inner = NULL;
    err_t err = ERR_INIT;
    comm_state_t state =
        comm_broadcast_start(api_group(group), data, bytes, root, &inner, &err);

    return started(state, inner, work, &err, error);
}

cddp_state_t cddp_allgather_start(cddp_group_t *group, const void *mine,
                                  size_t bytes, void *all, cddp_work_t **work,
                                  cddp_error_t *error)
{
    comm_work_t *inner = NULL;
    err_t err = ERR_INIT;
    comm_state_t state =
        comm_allgather_start(api_group(group), mine, bytes, all, &inner, &err);

    return started(state, inner, work, &err, error);
}

cddp_state_t cddp_reduce_scatter_start(cddp_group_t *group, void *data,
                                       const size_t *cuts, cddp_type_t type,
                                       cddp_op_t op, cddp_work_t **work,
                                       cddp_error_t *error)
{
    comm_work_t *inner = NULL;
    err_t err = ERR_INIT;
    comm_state_t state;

    if (!known(type, op, error))
        return CDDP_FAILED;
    state = comm_reduce_scatter_start(api_group(group), data, cuts, types[type],
                                      ops[op], &inner, &err);
    return started(state, inner, work, &err, error);
}

cddp_state_t cddp_allgather_ranges_start(cddp_group_t *group, void *data,
                                         const size_t *cuts, cddp_type_t type,
                                         cddp_work_t **work,
                                         cddp_error_t *error)
{
    comm_work_t *inner = NULL;
    err_t err = ERR_INIT;
    comm_state_t state;

    if (!known(type, CDDP_SUM, error))
        return CDDP_FAILED;
    state = comm_allgather_ranges_start(api_group(group), data, cuts,
                                        types[type], &inner, &err);
    return started(state, inner, work, &err, error);
}

cddp_state_t cddp_barrier_start(cddp_group_t *group, cddp_work_t **work,
                                cddp_error_t *error)
{
    comm_work_t *inner = NULL;
    err_t err = ERR_INIT;
    comm_state_t state = comm_barrier_start(api_group(group), &inner, &err);

    return started(state, inner, work, &err, error);
}

/* ---- waiting ------------------------------------------------------------- */

cddp_state_t cddp_work_poll(cddp_work_t *work)
{
    comm_state_t state =
        work == NULL ? COMM_DONE : comm_work_poll((comm_work_t *)work);

    return state == COMM_DONE      ? CDDP_DONE
           : state == COMM_PENDING ? CDDP_PENDING
                                   : CDDP_FAILED;
}

cddp_code_t cddp_work_wait(cddp_work_t *work, cddp_error_t *error)
{
    err_t err = ERR_INIT;

    return api_answer(comm_work_wait((comm_work_t *)work, &err), &err, error);
}

/* ---- start and wait in one ----------------------------------------------- */

cddp_code_t cddp_allreduce(cddp_group_t *group, void *data, size_t count,
                           cddp_type_t type, cddp_op_t op, cddp_error_t *error)
{
    err_t err = ERR_INIT;

    if (!known(type, op, error))
        return CDDP_CONFIG;
    return api_answer(comm_allreduce(api_group(group), data, count, types[type],
                                     ops[op], &err),
                      &err, error);
}

cddp_code_t cddp_broadcast(cddp_group_t *group, void *data, size_t bytes,
                           int root, cddp_error_t *error)
{
    err_t err = ERR_INIT;

    return api_answer(comm_broadcast(api_group(group), data, bytes, root, &err),
                      &err, error);
}

cddp_code_t cddp_allgather(cddp_group_t *group, const void *mine, size_t bytes,
                           void *all, cddp_error_t *error)
{
    err_t err = ERR_INIT;

    return api_answer(comm_allgather(api_group(group), mine, bytes, all, &err),
                      &err, error);
}

cddp_code_t cddp_reduce_scatter(cddp_group_t *group, void *data,
                                const size_t *cuts, cddp_type_t type,
                                cddp_op_t op, cddp_error_t *error)
{
    err_t err = ERR_INIT;

    if (!known(type, op, error))
        return CDDP_CONFIG;
    return api_answer(comm_reduce_scatter(api_group(group), data, cuts,
                                          types[type], ops[op], &err),
                      &err, error);
}

cddp_code_t cddp_allgather_ranges(cddp_group_t *group, void *data,
                                  const size_t *cuts, cddp_type_t type,
                                  cddp_error_t *error)
{
    err_t err = ERR_INIT;

    if (!known(type, CDDP_SUM, error))
        return CDDP_CONFIG;
    return api_answer(
        comm_allgather_ranges(api_group(group), data, cuts, types[type], &err),
        &err, error);
}

cddp_code_t cddp_barrier(cddp_group_t *group, cddp_error_t *error)
{
    err_t err = ERR_INIT;

    return api_answer(comm_barrier(api_group(group), &err), &err, error);
}
