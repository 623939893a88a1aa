/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* checkpoint_rollback: the members "skipped" and "losses" of a manifest, with
 * which a resumed run makes the same rollbacks as one that was never
 * interrupted. */
#ifndef CDDP_HDF5IO_CHECKPOINT_ROLLBACK_H
#define CDDP_HDF5IO_CHECKPOINT_ROLLBACK_H

#include <jansson.h>

#include "base/str.h"
#include "hdf5io/checkpoint.h"

/* Append both members; nothing for a run without skips and losses. */
void hdf5io_rollback_print(const hdf5io_progress_t *progress, str_buf_t *out);

/* Read both members, which may be absent, into [progress]. ERR_DATA. */
err_code_t hdf5io_rollback_parse(json_t *root, hdf5io_progress_t *progress,
                                 err_t *err);

#endif
