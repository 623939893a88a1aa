/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* plot: a plot of the losses of a run in characters, by the program gnuplot;
 * without it a table. */
#ifndef CDDP_REPORT_PLOT_H
#define CDDP_REPORT_PLOT_H

#include <stdbool.h>

#include "base/err.h"
#include "report/curves.h"

typedef struct report_plot_size {
    int columns, lines;
    bool color;
} report_plot_size_t;

/* Print the curves "loss" and "valid/loss" to standard output, with gnuplot as
 * a child process, whose settings of the user are left aside; if it is not in
 * $PATH or fails, as a table. Prints nothing if there is no loss. ERR_IO: no
 * room for the points. Blocks until gnuplot ends. */
err_code_t report_plot_print(const report_curves_t *curves,
                             report_plot_size_t size, err_t *err);

#endif
