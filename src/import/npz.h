/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* npz: .npz files of NumPy, zip files in which each array is a file NAME.npy.
 * A word is NAME=FILE:ARRAY, or FILE: all its arrays by their names. */
#ifndef CDDP_IMPORT_NPZ_H
#define CDDP_IMPORT_NPZ_H

#include "import/source.h"

/* In builds with libzip. */
err_code_t import_npz_open(const import_kind_t *kind,
                           const import_config_t *config, import_source_t **out,
                           err_t *err);

#endif
