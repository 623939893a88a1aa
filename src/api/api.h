/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Helpers for the files of libcddp. Public functions (include/cddp) wrap
 * internal ones. Public types are opaque or separate, so internal types can
 * change without changing the interface. The library exports only names that
 * begin with cddp_.
 */
#ifndef CDDP_API_API_H
#define CDDP_API_API_H

#include "base/err.h"
#include "cddp/error.h"
#include "cddp/group.h"
#include "comm/comm.h"
#include "dev/dev.h"

/* Translate the result [code] of an internal call; fills [error] (may be NULL)
 * from [err] unless [code] is ERR_OK. */
cddp_code_t api_answer(err_code_t code, const err_t *err, cddp_error_t *error);

/* Translate the result [code] of a function of the program, which internal code
 * called, to an internal one; fills [err] from [error] unless [code] is
 * CDDP_OK. */
err_code_t api_question(cddp_code_t code, const cddp_error_t *error,
                        err_t *err);

/* Drop log lines until the program sets a log function. */
void api_log_drop(void);

/* Set *out to the comm type for [type]; CDDP_CONFIG if there is none. */
cddp_code_t api_type(cddp_type_t type, comm_type_t *out, cddp_error_t *error);

struct cddp_group {
    comm_group_t *inner;  /* of the host's memory */
    comm_group_t *data;   /* of the device's memory; on the CPU: [inner] */
    dev_device_t *dev;    /* NULL: the CPU */
    int index;            /* of [dev] */
    dev_stream_t *stream; /* for cddp_device_copy */
    /* The group of cddp_run that this one is or was split from. */
    cddp_group_t *root;
    /* In the root: the group whose reducer works now, or worked last. */
    cddp_group_t *reduces;
};

/* The group of the host's memory. */
static inline comm_group_t *api_group(const cddp_group_t *group)
{
    return group->inner;
}

/* Open the device that [config] names for [group], the group of cddp_run, and
 * the group of its memory. All ranks get the error of the lowest rank that has
 * one; the two closes below work then, too. Collective; blocks. */
err_code_t api_device_open(cddp_group_t *group, const cddp_run_config_t *config,
                           err_t *err);
void api_device_close(cddp_group_t *group);

/* Open the data group of [group], which was split from [parent] and has the
 * parent's device. All ranks get the error of the lowest rank that has one.
 * Collective; blocks. */
err_code_t api_data_split(cddp_group_t *group, const cddp_group_t *parent,
                          err_t *err);
void api_data_close(cddp_group_t *group);

#endif
