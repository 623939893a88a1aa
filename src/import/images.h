/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* images: PNG and JPEG files in a folder for each class, as datasets "image"
 * (uint8, [channels, height, width]) and "label" (int32: the place of the class
 * among the sorted names, which are in the attribute "classes" of "label"). */
#ifndef CDDP_IMPORT_IMAGES_H
#define CDDP_IMPORT_IMAGES_H

#include "import/source.h"

extern const import_kind_t import_images;

#endif
