/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/op_hash.h"

#include "op/op_ops.h"

uint64_t op_hash_host(const void *from, size_t words)
{
    const uint32_t *bits = from;
    uint64_t hash = 0;

    for (size_t i = 0; i < words; i++)
        hash += op_hash_word(i, bits[i]);
    return hash;
}

err_code_t op_hash(const op_backend_ops_t *backend, uint64_t *to,
                   const void *from, size_t words, dev_stream_t *stream,
                   err_t *err)
{
    if (backend->hash != NULL)
        return backend->hash(to, from, words, stream, err);
    *to = op_hash_host(from, words);
    return ERR_OK;
}
