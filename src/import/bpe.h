/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * bpe: the byte-level byte-pair encoding of GPT-2. A text is cut into words by
 * the pattern in bpe_words.c. At first each byte of a word is one token. Then
 * pairs of neighbours are merged, until none of them is in the list of merges:
 * of all pairs in the word, the one that comes first in the list is chosen, and
 * becomes one token wherever it stands in the word.
 */
#ifndef CDDP_IMPORT_BPE_H
#define CDDP_IMPORT_BPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct import_bpe import_bpe_t;

/* A list to which import_bpe_encode appends tokens. */
typedef struct import_tokens {
    uint32_t *items; /* free by mem_free */
    int64_t count, room;
} import_tokens_t;

/* Read the files [vocab] (JSON, from tokens to their numbers; each byte of a
 * token is a character of GPT-2's table) and [merges] (two tokens in a line,
 * the first merge first). ERR_DATA names file and line or token. ERR_IO.
 * ERR_MEMORY. import_bpe_close takes NULL, too. */
err_code_t import_bpe_open(const char *vocab, const char *merges,
                           import_bpe_t **out, err_t *err);
void import_bpe_close(import_bpe_t *bpe);

/* The largest number of a token. */
uint32_t import_bpe_most(const import_bpe_t *bpe);

/* The number of <|endoftext|>, or -1. */
int64_t import_bpe_end(const import_bpe_t *bpe);

/* Append the tokens of [text]. Bytes that are not UTF-8 make words of their
 * own. [name] is for messages. ERR_DATA: the vocabulary has no token for a byte
 * of [text]. ERR_MEMORY. */
err_code_t import_bpe_encode(import_bpe_t *bpe, const char *name,
                             const char *text, size_t bytes,
                             import_tokens_t *out, err_t *err);

/* Append one token. ERR_MEMORY. */
err_code_t import_tokens_add(import_tokens_t *tokens, uint32_t token,
                             err_t *err);

/* As import_bpe_encode, for one word, which is not cut. */
err_code_t import_bpe_word(import_bpe_t *bpe, const char *name,
                           const unsigned char *word, size_t bytes,
                           import_tokens_t *out, err_t *err);

#endif
