/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* assets: files that are a part of every report, made texts by the build
 * (local.mk). Those of dygraphs are "" if configure did not find it. */
#ifndef CDDP_REPORT_ASSETS_H
#define CDDP_REPORT_ASSETS_H

extern const char report_page_js[];
extern const char report_page_css[];
extern const char report_dygraphs_js[];
extern const char report_dygraphs_css[];

#endif
