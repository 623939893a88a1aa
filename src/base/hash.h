/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* XXH3 (64 bits) hashes, printed as 16 hexadecimal digits. */
#ifndef CDDP_BASE_HASH_H
#define CDDP_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define HASH_TEXT_MAX 17

typedef struct hash_state hash_state_t;

/* Hash of [count] bytes. */
uint64_t hash_bytes(const void *bytes, size_t count);

/* The hash of all bytes that were added, in any pieces. hash_state_open aborts
 * if there is no memory; hash_state_free frees the state (NULL allowed). */
hash_state_t *hash_state_open(void);
void hash_state_add(hash_state_t *state, const void *bytes, size_t count);
uint64_t hash_state_value(const hash_state_t *state);
/* As if nothing had been added. */
void hash_state_reset(hash_state_t *state);
void hash_state_free(hash_state_t *state);

/* Hash and size in bytes of a whole file. ERR_IO and ERR_DATA as for
 * file_open_regular; ERR_MEMORY. */
err_code_t hash_file(const char *path, uint64_t *hash, uint64_t *bytes,
                     err_t *err);

/* Write 16 hexadecimal digits to [out], which is returned. */
char *hash_format(uint64_t hash, char out[HASH_TEXT_MAX]);

/* Parse 16 hexadecimal digits. False, and *hash is unchanged, for any other
 * text. */
bool hash_parse(const char *text, uint64_t *hash);

#endif
