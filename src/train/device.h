/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * device: the device on which a rank computes (train.device), and the type of
 * its products there (train.precision). All ranks of a run compute on devices
 * of one kind. A device has the name of its op backend.
 */
#ifndef CDDP_TRAIN_DEVICE_H
#define CDDP_TRAIN_DEVICE_H

#include "comm/comm.h"
#include "nn/nn.h"
#include "train/config.h"

typedef struct train_device {
    dev_device_t *dev;
    char name[128];  /* "cpu"; "cuda, NVIDIA H200 (sm_90)" */
    dev_info_t info; /* of a GPU */
    int visible;     /* number of GPUs that this rank sees */
} train_device_t;

/*
 * Open the device of a rank that is number [local] on its host. Of the devices
 * that the rank sees, it is the one with index [local] modulo their number.
 * With train.device auto it is a GPU if every rank of [group] has a usable one,
 * and the CPU if no rank has. If only some ranks have one, ERR_CONFIG names the
 * hosts of the others, on all ranks. ERR_UNAVAILABLE says why a named device
 * cannot be opened. [group] NULL: there is one rank. Collective over [group].
 * dev_close closes it.
 */
err_code_t train_device_open(const train_config_t *config, comm_group_t *group,
                             int local, train_device_t *out, err_t *err);

/* Check that [device] can do what [config] asks for besides the model, and that
 * the GPUs of all ranks go together (gpus.h). ERR_CONFIG names the key.
 * Collective over [group], if not NULL; equal on all ranks. */
err_code_t train_device_check(const train_config_t *config, comm_group_t *group,
                              const train_device_t *device, err_t *err);

/*
 * Set *out to the compute type (op_config_t) that train.precision means on
 * [dev]. With auto, bf16 if every rank can. ERR_UNAVAILABLE: [dev] cannot
 * compute in the type that is asked for; ERR_CONFIG: no device of its kind can.
 * Collective over [group], if not NULL; the errors are this rank's own.
 */
err_code_t train_precision_choose(const train_config_t *config,
                                  const dev_device_t *dev, comm_group_t *group,
                                  op_type_t *out, err_t *err);

/* Does NCCL sum the gradients of several ranks on [dev]? [others] is the
 * backend of all other collectives. Pure. */
bool train_device_nccl(const train_config_t *config, const dev_device_t *dev,
                       const char *others);

/* The value of train.precision that means [type]. */
const char *train_precision_name(op_type_t type);

#endif
