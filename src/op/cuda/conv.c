/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/cuda/conv.h"

#include "op/cuda/cuda.h"
#include "op/cuda/libs.h"
#include "op/cuda/room.h"

err_code_t cuda_conv_run_open(const op_t *op, cuda_conv_run_t *run, err_t *err)
{
    cuda_planner_t planner = {0};
    err_code_t rc = cuda_libs_dnn(op->dev, &run->dnn, err);

    if (rc != ERR_OK)
        return rc;
    planner.handle = run->dnn;
    return cuda_conv_plans_open(&op->config, &op->out, &planner, &run->plans,
                                err);
}

err_code_t cuda_conv_run(const op_t *op, const op_args_t *args,
                         const cuda_conv_run_t *run, cuda_plan_t *plan,
                         const void *const xwy[3], size_t pad_at, err_t *err)
{
    void *data[CUDA_CONV_TENSORS];
    err_code_t rc =
        cuda_dnn_check(cudnnSetStream(run->dnn, cuda_stream(args)),
                       "cudnnSetStream", op_kind_name(op->config.kind), err);

    for (int i = 0; i < CUDA_CONV_TENSORS; i++)
        data[i] = (void *)(uintptr_t)xwy[i];
    if (rc == ERR_OK)
        rc =
            cuda_plan_run(plan, data, cuda_room_at(args->scratch, pad_at), err);
    return rc;
}
