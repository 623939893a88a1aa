/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Inside nn: a layer's `init`, see init.c. */
#ifndef CDDP_NN_INIT_H
#define CDDP_NN_INIT_H

#include "base/str.h"

typedef struct nn_init {
    int kind; /* 0: none was written */
    int mode, law, nonlinearity, bias;
    double slope, gain, std, mean;
} nn_init_t;

/* Markdown: how parameters begin. */
void nn_init_document(str_buf_t *out);

#endif
