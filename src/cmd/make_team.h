/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Draws the samples of a data set with a team of threads. */
#ifndef CDDP_CMD_MAKE_TEAM_H
#define CDDP_CMD_MAKE_TEAM_H

#include <stdint.h>

#include "base/err.h"

/* Draw sample [row]; called once for each row, in any thread. The sample must
 * depend only on the row, so that the number of threads does not change the
 * data. */
typedef err_code_t (*cmd_draw_t)(void *context, int64_t row, err_t *err);

/* Call [draw] for the rows 0 to [rows] - 1 in [threads] threads called [name];
 * the calling thread is one of them. After the first failure no further rows
 * are started; it is returned once all threads have ended. */
err_code_t cmd_team_draw(const char *name, int threads, int64_t rows,
                         cmd_draw_t draw, void *context, err_t *err);

#endif
