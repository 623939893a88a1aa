/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/checkpoint_sums.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"

struct hdf5io_summing {
    hdf5io_sums_t sums; /* [hash] is set at the end */
    uint64_t at;        /* bytes that were added */
    hash_state_t *whole, *block;
};

size_t hdf5io_sums_count(uint64_t bytes, uint64_t block_bytes)
{
    if (block_bytes == 0 || bytes == 0)
        return 0;
    return (size_t)((bytes - 1) / block_bytes + 1);
}

err_code_t hdf5io_summing_open(uint64_t bytes, uint64_t block_bytes,
                               hdf5io_summing_t **out, err_t *err)
{
    const size_t blocks = hdf5io_sums_count(bytes, block_bytes);
    hdf5io_summing_t *summing = NULL;
    err_code_t rc = mem_new(hdf5io_summing_t, 1, "hashing", &summing, err);

    if (rc == ERR_OK && blocks > 0)
        rc = mem_new(uint64_t, blocks, "hashing", &summing->sums.blocks, err);
    if (rc != ERR_OK) {
        hdf5io_summing_close(summing);
        return rc;
    }
    summing->sums.bytes = bytes;
    summing->sums.block_bytes = block_bytes;
    summing->whole = hash_state_open();
    summing->block = hash_state_open();
    *out = summing;
    return ERR_OK;
}

void hdf5io_summing_close(hdf5io_summing_t *summing)
{
    if (summing == NULL)
        return;
    hash_state_free(summing->whole);
    hash_state_free(summing->block);
    mem_free(summing->sums.blocks);
    mem_free(summing);
}

void hdf5io_summing_add(hdf5io_summing_t *summing, const void *bytes,
                        size_t count)
{
    const uint64_t each = summing->sums.block_bytes;
    const char *next = bytes;

    check(count <= summing->sums.bytes - summing->at,
          "%zu bytes after byte %llu of %llu", count,
          (unsigned long long)summing->at,
          (unsigned long long)summing->sums.bytes);
    hash_state_add(summing->whole, bytes, count);
    if (each == 0)
        summing->at += count;
    while (each != 0 && count > 0) {
        const uint64_t room = each - summing->at % each;
        const size_t bite = count < room ? count : (size_t)room;

        hash_state_add(summing->block, next, bite);
        next += bite;
        count -= bite;
        summing->at += bite;
        if (summing->at % each != 0 && summing->at != summing->sums.bytes)
            continue;
        summing->sums.blocks[(summing->at - 1) / each] =
            hash_state_value(summing->block);
        hash_state_reset(summing->block);
    }
}

void hdf5io_summing_end(hdf5io_summing_t *summing, hdf5io_sums_t *sums)
{
    check(summing->at == summing->sums.bytes, "%llu of %llu bytes were hashed",
          (unsigned long long)summing->at,
          (unsigned long long)summing->sums.bytes);
    summing->sums.hash = hash_state_value(summing->whole);
    *sums = summing->sums;
    summing->sums.blocks = NULL;
}
