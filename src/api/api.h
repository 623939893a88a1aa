/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Helpers of the files of libcddp. The public headers (include/cddp) wrap the
 * internal ones. Their types are opaque or separate, so internal types can
 * change without a new interface. The library exports only names that begin
 * with cddp_.
 */
#ifndef CDDP_API_API_H
#define CDDP_API_API_H

#include "base/err.h"
#include "cddp/error.h"
#include "cddp/group.h"
#include "comm/comm.h"

/* Translate the result of an internal call: fills [error] (may be NULL) from
 * [err] unless [code] is ERR_OK. */
cddp_code_t api_answer(err_code_t code, const err_t *err, cddp_error_t *error);

/* Translate back the result of a program's function that internal code called.
 */
err_code_t api_question(cddp_code_t code, const cddp_error_t *error,
                        err_t *err);

/* Drop log lines until the program sets a log function. */
void api_log_drop(void);

/* The comm type for [type]; CDDP_CONFIG if there is none. */
cddp_code_t api_type(cddp_type_t type, comm_type_t *out, cddp_error_t *error);

/* A cddp_group_t is a comm_group_t. */
static inline comm_group_t *api_group(cddp_group_t *group)
{
    return (comm_group_t *)group;
}

static inline const comm_group_t *api_group_const(const cddp_group_t *group)
{
    return (const comm_group_t *)group;
}

#endif
