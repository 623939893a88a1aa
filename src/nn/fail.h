/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Errors that begin with a place in the run file. */
#ifndef CDDP_NN_FAIL_H
#define CDDP_NN_FAIL_H

#include "base/err.h"
#include "base/tree.h"

#define NN_PLACE_TEXT 320 /* bytes of "file:line:column" */

/* Set and return ERR_CONFIG with "file:line:column: " before the sentence. */
err_code_t nn_fail_at(tree_place_t place, err_t *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
