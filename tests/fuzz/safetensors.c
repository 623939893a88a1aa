/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "hdf5io/safetensors.h"

static const err_code_t allowed[] = {ERR_DATA, ERR_MEMORY, ERR_OK};

/* In a file that was accepted, tensors lie one behind the other and have all
 * bytes. */
static void cover(const hdf5io_safe_t *file, uint64_t bytes)
{
    uint64_t at = 0;

    for (int i = 0; i < file->count; i++) {
        const hdf5io_safe_tensor_t *tensor = &file->tensors[i];
        const int size = hdf5io_safe_type_bytes(tensor->type);

        if (tensor->offset != at || hdf5io_safe_find(file, tensor->name) != i ||
            tensor->bytes != (uint64_t)tensor->elems * (uint64_t)size) {
            fprintf(stderr, "fuzz: tensor %s\n", tensor->name);
            abort();
        }
        at += tensor->bytes;
    }
    if (at != bytes)
        abort();
}

err_code_t fuzz_safetensors(const uint8_t *data, size_t bytes)
{
    hdf5io_safe_t file = {0};
    err_t err = ERR_INIT;
    unsigned char head[8] = {0};
    uint64_t length = 0;
    uint16_t tensors = 0;
    err_code_t rc;

    if (bytes < sizeof tensors)
        return ERR_DATA;
    memcpy(head, data, bytes < sizeof head ? bytes : sizeof head);
    rc = hdf5io_safe_length(head, bytes, &length, &err);
    fuzz_check(rc, &err, allowed);
    if (rc == ERR_OK && length > bytes - sizeof head)
        abort();
    err = (err_t)ERR_INIT;
    memcpy(&tensors, data, sizeof tensors);
    rc = hdf5io_safe_parse((const char *)data + sizeof tensors,
                           bytes - sizeof tensors, tensors, &file, &err);
    fuzz_check(rc, &err, allowed);
    if (rc == ERR_OK)
        cover(&file, tensors);
    hdf5io_safe_close(&file);
    return rc;
}
