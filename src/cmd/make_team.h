/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The samples of a data set, drawn by a team of threads. */
#ifndef CDDP_CMD_MAKE_TEAM_H
#define CDDP_CMD_MAKE_TEAM_H

#include <stdint.h>

#include "base/err.h"

/* Draw sample [row]; called on any thread, once for each row. To be a function
 * of the row alone, so that the number of threads changes nothing. */
typedef err_code_t (*cmd_draw_t)(void *context, int64_t row, err_t *err);

/* Call [draw] for the rows 0 to [rows] - 1 on [threads] threads called [name],
 * of which the caller is one. The first failure ends the work, and is returned
 * once all threads have ended. */
err_code_t cmd_team_draw(const char *name, int threads, int64_t rows,
                         cmd_draw_t draw, void *context, err_t *err);

#endif
