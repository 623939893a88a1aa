/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What the files of libcddp share. The public headers (include/cddp) are
 * facades over the internal ones: their types are opaque or their own, so that
 * what is inside can change without a new interface, and the library exports
 * nothing but the names that begin with cddp_.
 */
#ifndef CDDP_API_API_H
#define CDDP_API_API_H

#include "base/err.h"
#include "cddp/error.h"
#include "cddp/group.h"
#include "comm/comm.h"

/* Hand the answer of an inner call on: fills [error] (may be NULL) from [err]
 * unless [code] is ERR_OK. */
cddp_code_t api_answer(err_code_t code, const err_t *err, cddp_error_t *error);

/* The other way, for a caller's own function that inner code has called. */
err_code_t api_question(cddp_code_t code, const cddp_error_t *error,
                        err_t *err);

/* Log lines go nowhere, until the program asks for them. */
void api_log_drop(void);

/* comm's name of [type]; CDDP_CONFIG, with a sentence, if there is no such. */
cddp_code_t api_type(cddp_type_t type, comm_type_t *out, cddp_error_t *error);

/* A group is comm's, under another name. */
static inline comm_group_t *api_group(cddp_group_t *group)
{
    return (comm_group_t *)group;
}

static inline const comm_group_t *api_group_const(const cddp_group_t *group)
{
    return (const comm_group_t *)group;
}

#endif
