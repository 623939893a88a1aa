/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* checkpoint_order: the member "order" of a manifest, with which a run that is
 * resumed within an epoch finishes it in the same order. */
#ifndef CDDP_HDF5IO_CHECKPOINT_ORDER_H
#define CDDP_HDF5IO_CHECKPOINT_ORDER_H

#include <jansson.h>

#include "base/err.h"
#include "base/str.h"
#include "hdf5io/order.h"

/* Append the member; nothing if the order is not known (version 0). */
void hdf5io_order_print(const hdf5io_order_t *order, str_buf_t *out);

/* Read the member of [root]; *out is zeroed if there is none. ERR_DATA. */
err_code_t hdf5io_order_parse(const json_t *root, hdf5io_order_t *out,
                              err_t *err);

#endif
