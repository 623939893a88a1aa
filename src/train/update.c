/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/update.h"

#include "base/mem.h"

err_code_t train_update_open(dev_device_t *dev, optim_t *optim,
                             train_update_t *update, err_t *err)
{
    const size_t verdict = sizeof(optim_verdict_t);
    const size_t about = sizeof(optim_case_t);
    const size_t in = optim_in_bytes(optim);
    const char *what = "the numbers of a step";
    void *host = NULL;
    err_code_t rc;

    update->dev = dev;
    update->optim = optim;
    update->in_bytes = in;
    rc = mem_alloc(in, what, &host, err);
    update->in = host;
    if (rc == ERR_OK)
        rc = dev_alloc(dev, verdict + about + in, what, &update->there, err);
    if (rc != ERR_OK)
        return rc;
    update->there_verdict = update->there;
    update->there_about = (optim_case_t *)(update->there_verdict + 1);
    update->there_in = (optim_in_t *)(update->there_about + 1);
    return ERR_OK;
}

void train_update_close(train_update_t *update)
{
    if (update->dev != NULL)
        dev_free(update->dev, update->there);
    mem_free(update->in);
    *update = (train_update_t){0};
}

/* Copy the verdict to the host. */
static err_code_t verdict_read(train_update_t *update, dev_stream_t *stream,
                               err_t *err)
{
    err_code_t rc = dev_copy(stream, &update->result, update->there_verdict,
                             sizeof update->result, DEV_DEV_TO_HOST, err);

    return rc == ERR_OK ? dev_stream_wait(stream, err) : rc;
}

err_code_t train_update_norm(train_update_t *update,
                             const train_update_step_t *step, double *norm,
                             err_t *err)
{
    err_code_t rc = optim_mask(update->optim, step->grads, step->stream, err);

    if (rc == ERR_OK)
        rc = optim_norm(optim_place(update->optim), step->grads, step->elems,
                        &update->there_verdict->norm, step->stream, err);
    if (rc == ERR_OK)
        rc = verdict_read(update, step->stream, err);
    *norm = update->result.norm;
    return rc;
}

/* Copy what the kernels read of the step to the device. */
static err_code_t step_write(train_update_t *update,
                             const train_update_step_t *step, err_t *err)
{
    err_code_t rc;

    optim_in_fill(update->optim, step->lr, step->number, update->in);
    rc = dev_copy(step->stream, update->there_about, &update->about,
                  sizeof update->about, DEV_HOST_TO_DEV, err);
    return rc == ERR_OK ? dev_copy(step->stream, update->there_in, update->in,
                                   update->in_bytes, DEV_HOST_TO_DEV, err)
                        : rc;
}

static err_code_t norm_take(train_update_t *update,
                            const train_update_step_t *step, err_t *err)
{
    double *norm = &update->there_verdict->norm;

    if (step->shard != NULL)
        return train_shard_norm(step->shard, optim_place(update->optim),
                                step->grads, norm, step->stream, err);
    return optim_norm(optim_place(update->optim), step->grads, step->elems,
                      norm, step->stream, err);
}

err_code_t train_update_judge(train_update_t *update,
                              const train_update_step_t *step, err_t *err)
{
    optim_question_t question = step->question;
    err_code_t rc = step_write(update, step, err);

    question.about = update->there_about;
    if (rc == ERR_OK)
        rc = optim_mask(update->optim, step->grads, step->stream, err);
    if (rc == ERR_OK)
        rc = norm_take(update, step, err);
    if (rc == ERR_OK)
        rc = optim_judge(optim_place(update->optim), &question,
                         update->there_verdict, step->stream, err);
    return rc == ERR_OK ? verdict_read(update, step->stream, err) : rc;
}

err_code_t train_update_run(train_update_t *update,
                            const train_update_step_t *step, err_t *err)
{
    const optim_args_t args = {.params = step->params,
                               .grads = step->grads,
                               .in = update->there_in,
                               .verdict = update->there_verdict};
    const train_shard_step_t shards = {step->ddp, update->optim, &args,
                                       step->stream};

    if (!update->result.updates)
        return ERR_OK;
    return step->shard != NULL
               ? train_shard_update(step->shard, &shards, err)
               : optim_step(update->optim, &args, step->stream, err);
}
