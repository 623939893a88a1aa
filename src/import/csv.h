/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* csv: the columns of CSV files as datasets "input" (float32) and "target"
 * (float64). */
#ifndef CDDP_IMPORT_CSV_H
#define CDDP_IMPORT_CSV_H

#include "import/source.h"

extern const import_kind_t import_csv;

#endif
