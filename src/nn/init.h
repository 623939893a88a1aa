/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The option `init` of a layer, see init.c. For files of nn only. */
#ifndef CDDP_NN_INIT_H
#define CDDP_NN_INIT_H

#include "base/str.h"

typedef struct nn_init {
    int kind; /* 1 + index in init.c's table of kinds; 0: the layer has no
                 `init` */
    int mode, law, nonlinearity, bias;
    double slope, gain, std, mean;
} nn_init_t;

/* Append Markdown that describes the initial values of parameters. */
void nn_init_document(str_buf_t *out);

#endif
