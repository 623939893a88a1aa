/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * own: the error of this rank within a step. A rank with an error still takes
 * part in the collectives of the step, and may meet further errors there. The
 * first error counts: a further one changes neither its code nor its message.
 */
#ifndef CDDP_TRAIN_OWN_H
#define CDDP_TRAIN_OWN_H

#include "base/err.h"

typedef struct train_own {
    err_code_t rc; /* ERR_OK: no error so far */
    err_t *err;    /* the message of [rc] */
} train_own_t;

/* Where a call may write the message of its error: NULL (nowhere) after the
 * first error. */
static inline err_t *train_own_err(const train_own_t *own)
{
    return own->rc == ERR_OK ? own->err : NULL;
}

/* The first error of [own] and [rc], the result of a further call. */
static inline err_code_t train_own_first(const train_own_t *own, err_code_t rc)
{
    return own->rc == ERR_OK ? rc : own->rc;
}

/* Make [rc], the result of a further call, part of [own]. */
static inline void train_own_add(train_own_t *own, err_code_t rc)
{
    own->rc = train_own_first(own, rc);
}

#endif
