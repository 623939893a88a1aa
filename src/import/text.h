/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* text: makes one stream of tokens, the dataset "tokens", of texts. Without a
 * vocabulary each byte is a token, and the token 0 ends each text. With one,
 * tokens are those of a byte-pair encoding (bpe.h), and <|endoftext|> ends each
 * text if the vocabulary has it. */
#ifndef CDDP_IMPORT_TEXT_H
#define CDDP_IMPORT_TEXT_H

#include "import/source.h"

extern const import_kind_t import_text;

#endif
