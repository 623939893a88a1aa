/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cifar: the binary files of CIFAR-10 and CIFAR-100, as datasets "image"
 * (uint8, [3, 32, 32]), "label" (uint8) and, of CIFAR-100, "coarse_label". */
#ifndef CDDP_IMPORT_CIFAR_H
#define CDDP_IMPORT_CIFAR_H

#include "import/source.h"

extern const import_kind_t import_cifar10, import_cifar100;

#endif
