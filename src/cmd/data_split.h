/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* `cddp-data split`: samples for training and for validation. */
#ifndef CDDP_CMD_DATA_SPLIT_H
#define CDDP_CMD_DATA_SPLIT_H

#include "base/err.h"

/* Run "split -o DIR [options] FILE..." (argv[0] is "split"), which writes
 * DIR/train-NN.h5 and DIR/valid-NN.h5, and print what was written. All files
 * are looked at before anything in DIR changes. */
err_code_t cmd_data_split(int argc, char **argv, err_t *err);

#endif
