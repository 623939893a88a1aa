/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * page: one HTML file with the plots of one or several runs, which loads
 * nothing else: scripts, style and data are inside. All text that comes from
 * files is in one JSON object in which no '<' is left, and page.js puts it into
 * the page as text only.
 */
#ifndef CDDP_REPORT_PAGE_H
#define CDDP_REPORT_PAGE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "report/run.h"

/* Append the page about [count] runs to [out]. ERR_MEMORY. */
err_code_t report_page(const report_run_t *runs, int count, str_buf_t *out,
                       err_t *err);

/* Does this build contain dygraphs? Without it a page has tables, no plots. */
bool report_plots_built(void);

#endif
