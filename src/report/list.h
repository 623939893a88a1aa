/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* list: a table of runs. */
#ifndef CDDP_REPORT_LIST_H
#define CDDP_REPORT_LIST_H

#include "base/err.h"
#include "base/str.h"

/*
 * Append a line for each run directory among [dirs] and directly below them, in
 * the order of their names: path, state, step, best evaluation, last sign of
 * life. Links are not followed. A run that cannot be read gets a line that says
 * why. ERR_DATA: there is no run at all, or a directory does not exist; ERR_IO.
 */
err_code_t report_list(char *const *dirs, int count, str_buf_t *out,
                       err_t *err);

#endif
