/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "comm/comm_data.h"
#include "train/gpus.h"

#define GPU "cuda"    /* what auto prefers to DEV_HOST */
#define HOSTS_NAMED 8 /* hosts that an error names */
#define DEVICES 16    /* of a host; of more, the names are not known */

/* ---- opening ------------------------------------------------------------- */

/* Describe device [index] of [count] in [out]. */
static void device_note(const char *backend, int index, int count,
                        train_device_t *out)
{
    dev_info_t list[DEVICES];

    out->info = (dev_info_t){.index = index};
    out->visible = count;
    if (strcmp(backend, DEV_HOST) == 0 || index >= DEVICES ||
        dev_list(backend, list, DEVICES, &count, NULL) != ERR_OK) {
        snprintf(out->name, sizeof out->name, "%s", backend);
        return;
    }
    out->info = list[index];
    snprintf(out->name, sizeof out->name, "%s, %s%s%s%s", backend,
             list[index].name, list[index].arch[0] == '\0' ? "" : " (",
             list[index].arch, list[index].arch[0] == '\0' ? "" : ")");
}

/* Open a device of [backend] for rank [local] of its host. */
static err_code_t device_open(const char *backend, int local,
                              train_device_t *out, err_t *err)
{
    int count = 0, index;
    err_code_t rc = dev_list(backend, NULL, 0, &count, err);

    if (rc != ERR_OK)
        return rc;
    index = count > 0 ? local % count : 0;
    rc = dev_open(backend, index, &out->dev, err);
    if (rc == ERR_OK)
        device_note(backend, index, count, out);
    return rc;
}

/* What a rank tells the others of its GPU. */
typedef struct answer {
    bool usable;
    char why[256]; /* if not: why */
} answer_t;

/* Fill [answer]: [rc] is the result of opening a GPU, [why] its error. */
static void answer_fill(answer_t *answer, err_code_t rc, const err_t *why)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");

    /* Answers are sent as bytes, with their padding. */
    memset(answer, 0, sizeof *answer);
    answer->usable = rc == ERR_OK;
    if (rc == ERR_OK)
        return;
    if (visible == NULL || strstr(why->text, "CUDA_VISIBLE_DEVICES") != NULL)
        snprintf(answer->why, sizeof answer->why, "%.255s", why->text);
    else
        snprintf(answer->why, sizeof answer->why,
                 "%.170s; CUDA_VISIBLE_DEVICES is \"%.40s\"", why->text,
                 visible);
}

/* Name the hosts of ranks without a GPU, and what the first of them says. */
static err_code_t mixed_refuse(const char *asked, const comm_group_t *group,
                               const answer_t *answers, err_t *err)
{
    const int size = comm_group_size(group);
    const char *why = NULL, *last = "";
    int lacking = 0, named = 0;
    str_buf_t hosts = {0};

    for (int r = 0; r < size; r++) {
        const char *host = comm_group_host(group, r);

        if (answers[r].usable)
            continue;
        lacking++;
        if (why == NULL)
            why = answers[r].why;
        if (strcmp(host, last) != 0 && named++ < HOSTS_NAMED)
            str_buf_add(&hosts, "%s%s", named > 1 ? ", " : "", host);
        last = host;
    }
    err_set(err, ERR_CONFIG,
            "train.device is %s, and %d of %d ranks have no usable GPU, those "
            "on %s%s (%s): leave these nodes out, or set it to cpu",
            asked, lacking, size, hosts.text,
            named > HOSTS_NAMED ? " and more" : "", why);
    str_buf_free(&hosts);
    return ERR_CONFIG;
}

/* Set *all if every rank has a GPU. ERR_CONFIG if only some have one.
 * Collective. */
static err_code_t answers_gather(const char *asked, comm_group_t *group,
                                 const answer_t *mine, bool *all, err_t *err)
{
    const int size = comm_group_size(group);
    answer_t *answers = NULL;
    int usable = 0;
    err_code_t rc =
        mem_new(answer_t, (size_t)size, "GPUs of the ranks", &answers, err);

    if (rc == ERR_OK)
        rc = comm_allgather(group, mine, sizeof *mine, answers, err);
    for (int r = 0; rc == ERR_OK && r < size; r++)
        usable += answers[r].usable;
    if (rc == ERR_OK && usable > 0 && usable < size)
        rc = mixed_refuse(asked, group, answers, err);
    if (rc == ERR_OK)
        *all = usable == size;
    mem_free(answers);
    return rc;
}

/* Open a GPU of [backend] if every rank has one, and set *all to whether that
 * is so. If no rank has one, [why] has this rank's error. [asked]:
 * train.device. Collective. */
static err_code_t gpu_open(const char *asked, const char *backend,
                           comm_group_t *group, int local, train_device_t *out,
                           bool *all, err_t *why, err_t *err)
{
    answer_t mine;
    err_code_t rc = device_open(backend, local, out, why);

    *all = rc == ERR_OK;
    answer_fill(&mine, rc, why);
    rc = group == NULL ? ERR_OK : answers_gather(asked, group, &mine, all, err);
    if (rc == ERR_OK && *all)
        return ERR_OK;
    dev_close(out->dev);
    *out = (train_device_t){0};
    return rc;
}

err_code_t train_device_open(const train_config_t *config, comm_group_t *group,
                             int local, train_device_t *out, err_t *err)
{
    const char *asked = dev_choices[config->train.device];
    const bool any = config->train.device == DEV_AUTO;
    bool all = false;
    err_t why = ERR_INIT;
    err_code_t rc;

    *out = (train_device_t){0};
    if (strcmp(asked, DEV_HOST) == 0)
        return device_open(DEV_HOST, 0, out, err);
    rc = gpu_open(asked, any ? GPU : asked, group, local, out, &all, &why, err);
    if (rc != ERR_OK || all)
        return rc;
    if (!any) {
        err_copy(err, &why);
        return err_prefix(err, "train.device is %s", asked);
    }
    log_debug("train", "train.device auto: cpu, as %s", why.text);
    return device_open(DEV_HOST, 0, out, err);
}

/* ---- what goes with a device --------------------------------------------- */

err_code_t train_device_check(const train_config_t *config, comm_group_t *group,
                              const train_device_t *device, err_t *err)
{
    if (dev_host_visible(device->dev))
        return ERR_OK;
    if (config->checkpoint.io == TRAIN_IO_MPI)
        return err_set(err, ERR_CONFIG,
                       "checkpoint.io is mpi, which goes with train.device: "
                       "cpu only, and this run computes on %s: set "
                       "checkpoint.io to independent",
                       device->name);
    return group != NULL ? train_gpus_compare(config, group, device, err)
                         : ERR_OK;
}

/* ---- precision ----------------------------------------------------------- */

const char *train_precision_name(op_type_t type)
{
    return type == OP_BFLOAT16 ? "bf16" : type == OP_TF32 ? "tf32" : "fp32";
}

/* Refuse train.precision, which means [type], if the device lacks it. */
static err_code_t lack_check(const dev_device_t *dev, op_type_t type,
                             const char *lack, err_t *err)
{
    if (lack == NULL)
        return ERR_OK;
    if (type == OP_TF32 && dev_host_visible(dev))
        return err_set(err, ERR_CONFIG,
                       "train.precision is tf32, which only GPUs have, and "
                       "this run computes on %s: use fp32, bf16 or auto",
                       dev_name(dev));
    return err_set(err, ERR_UNAVAILABLE,
                   "train.precision is %s, but %s: use auto or fp32, or nodes "
                   "that can",
                   train_precision_name(type), lack);
}

/* All ranks use bf16, or none: replicas must compute alike. */
static err_code_t auto_choose(const dev_device_t *dev, comm_group_t *group,
                              const char *lack, op_type_t *out, err_t *err)
{
    double lacking = lack != NULL ? 1 : 0;
    err_code_t rc = ERR_OK;

    if (group != NULL)
        rc = comm_allreduce(group, &lacking, 1, COMM_FLOAT64, COMM_MAX, err);
    if (rc != ERR_OK)
        return rc;
    *out = lacking == 0 ? OP_BFLOAT16 : OP_FLOAT32;
    if (group != NULL && comm_group_rank(group) == 0)
        log_info("train", "train.precision auto: %s",
                 lacking == 0            ? "bf16"
                 : dev_host_visible(dev) ? "fp32, as a CPU cannot multiply "
                                           "bfloat16"
                                         : "fp32, as a GPU cannot multiply "
                                           "bfloat16");
    return ERR_OK;
}

err_code_t train_precision_choose(const train_config_t *config,
                                  const dev_device_t *dev, comm_group_t *group,
                                  op_type_t *out, err_t *err)
{
    const train_precision_t asked = (train_precision_t)config->train.precision;
    const op_type_t type = asked == TRAIN_TF32   ? OP_TF32
                           : asked == TRAIN_FP32 ? OP_FLOAT32
                                                 : OP_BFLOAT16;
    const op_backend_ops_t *backend;
    const char *lack = NULL;
    err_code_t rc = op_backend_get(dev_name(dev), &backend, err);

    if (rc == ERR_OK && type != OP_FLOAT32)
        lack = op_backend_lacks(backend, dev, type);
    if (rc == ERR_OK && asked == TRAIN_PRECISION_AUTO)
        return auto_choose(dev, group, lack, out, err);
    if (rc == ERR_OK)
        rc = lack_check(dev, type, lack, err);
    if (rc == ERR_OK)
        *out = type;
    return rc;
}

bool train_device_nccl(const train_config_t *config, const dev_device_t *dev,
                       const char *others)
{
    const char *asked = ddp_backend_name(&config->ddp);

    return strcmp(comm_data_backend(asked, others, dev), COMM_NCCL) == 0;
}
