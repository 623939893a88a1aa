/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* op: the kinds of ops, OP_LINEAR and so on, from the table op_table.inc. */
#ifndef CDDP_OP_OP_KIND_H
#define CDDP_OP_OP_KIND_H

#define OP(kind, ...) OP_##kind,
typedef enum op_kind {
    OP_NONE, /* no op */
#include "op/op_table.inc"
    OP_KINDS
} op_kind_t;
#undef OP

#endif
