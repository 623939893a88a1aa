/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Translates requests of comm_ops_t into calls of NCCL. */
#include "comm/nccl/nccl_group.h"
#include "comm/reduce.h"
#include "dev/dev_cuda.h"

static const ncclDataType_t types[COMM_TYPES] = {
    [COMM_FLOAT32] = ncclFloat32,   [COMM_FLOAT64] = ncclFloat64,
    [COMM_INT64] = ncclInt64,       [COMM_INT32] = ncclInt32,
    [COMM_BFLOAT16] = ncclBfloat16, [COMM_FLOAT16] = ncclFloat16,
};

static const ncclRedOp_t ops[COMM_OPS] = {
    [COMM_SUM] = ncclSum, [COMM_MAX] = ncclMax, [COMM_MIN] = ncclMin};

static const char *const names[] = {
    [COMM_ALLREDUCE] = "ncclAllReduce",
    [COMM_TREE] = "",
    [COMM_BROADCAST] = "ncclBroadcast",
    [COMM_ALLGATHER] = "ncclAllGather",
    [COMM_REDUCE_SCATTER] = "ncclReduceScatter",
    [COMM_GATHER_RANGES] = "an all-gather of ranges",
    [COMM_BARRIER] = "ncclAllReduce (a barrier)",
};

/* Return how many elements belong to [rank]; [at]: the address of the first. */
static size_t range_of(const comm_request_t *request, int rank, char **at)
{
    const size_t first = request->cuts[rank];

    *at = (char *)request->data + first * comm_type_bytes(request->type);
    return request->cuts[rank + 1] - first;
}

/* Do all ranks have the same number of elements, and not 0? */
static bool ranges_even(const comm_request_t *request, int size)
{
    for (int r = 1; r < size; r++)
        if (request->cuts[r + 1] - request->cuts[r] != request->cuts[1])
            return false;
    return request->cuts[1] > 0;
}

/* If all ranges have one size, this is one call of NCCL; otherwise one call for
 * each rank, within a group of calls. */
static ncclResult_t scatter_call(nccl_group_t *group,
                                 const comm_request_t *request,
                                 cudaStream_t stream)
{
    const nccl_library_t *nccl = group->nccl;
    const ncclDataType_t type = types[request->type];
    const ncclRedOp_t op = ops[request->op];
    ncclResult_t result;
    char *at;

    range_of(request, group->base.rank, &at);
    if (ranges_even(request, group->base.size))
        return nccl->ReduceScatter(request->data, at, request->cuts[1], type,
                                   op, group->comm, stream);
    result = nccl->GroupStart();
    for (int r = 0; result == ncclSuccess && r < group->base.size; r++) {
        const size_t count = range_of(request, r, &at);

        if (count > 0)
            result =
                nccl->Reduce(at, at, count, type, op, r, group->comm, stream);
    }
    return result == ncclSuccess ? nccl->GroupEnd() : result;
}

static ncclResult_t gather_call(nccl_group_t *group,
                                const comm_request_t *request,
                                cudaStream_t stream)
{
    const nccl_library_t *nccl = group->nccl;
    const ncclDataType_t type = types[request->type];
    ncclResult_t result;
    char *at;

    range_of(request, group->base.rank, &at);
    if (ranges_even(request, group->base.size))
        return nccl->AllGather(at, request->data, request->cuts[1], type,
                               group->comm, stream);
    result = nccl->GroupStart();
    for (int r = 0; result == ncclSuccess && r < group->base.size; r++) {
        const size_t count = range_of(request, r, &at);

        if (count > 0)
            result =
                nccl->Broadcast(at, at, count, type, r, group->comm, stream);
    }
    return result == ncclSuccess ? nccl->GroupEnd() : result;
}

ncclDataType_t nccl_type(comm_type_t type)
{
    return types[type];
}

err_code_t nccl_call_end(nccl_group_t *group, ncclResult_t result,
                         const char *name, err_t *err)
{
    err_code_t rc = nccl_result(group, result, name, err);

    return rc == ERR_OK ? nccl_settle(group, err) : rc;
}

err_code_t nccl_call(nccl_group_t *group, const comm_request_t *request,
                     err_t *err)
{
    const nccl_library_t *nccl = group->nccl;
    cudaStream_t stream = dev_cuda_stream(group->stream);
    const ncclDataType_t type = types[request->type];
    ncclResult_t result = ncclSuccess;

    switch (request->kind) {
    case COMM_ALLREDUCE:
        result = nccl->AllReduce(request->data, request->data, request->count,
                                 type, ops[request->op], group->comm, stream);
        break;
    case COMM_BROADCAST:
        result = nccl->Broadcast(request->data, request->data, request->count,
                                 ncclUint8, request->root, group->comm, stream);
        break;
    case COMM_ALLGATHER:
        result = nccl->AllGather(request->mine, request->data, request->count,
                                 ncclUint8, group->comm, stream);
        break;
    case COMM_REDUCE_SCATTER:
        result = scatter_call(group, request, stream);
        break;
    case COMM_GATHER_RANGES:
        result = gather_call(group, request, stream);
        break;
    case COMM_BARRIER:
        result = nccl->AllReduce(group->nothing, group->nothing, 1, ncclInt32,
                                 ncclSum, group->comm, stream);
        break;
    case COMM_TREE: /* nccl_tree.c */
        break;
    }
    return nccl_call_end(group, result, names[request->kind], err);
}
