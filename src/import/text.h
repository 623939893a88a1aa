/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* text: texts as one stream of tokens, the dataset "tokens": their bytes, or
 * byte-pair encoded. A token ends each text: 0, or <|endoftext|> if there is
 * one. */
#ifndef CDDP_IMPORT_TEXT_H
#define CDDP_IMPORT_TEXT_H

#include "import/source.h"

extern const import_kind_t import_text;

#endif
