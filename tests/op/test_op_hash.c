/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Hashes of memory: a change of any bit shows, so does an exchange of two
 * words, and every backend gives the hash of the host. */
#include "op/op_hash.h"

#include <criterion/criterion.h>
#include <string.h>

#include "dev/dev_far.h"

enum { WORDS = 1000 };

static void words_fill(uint32_t *words)
{
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = i * 2654435761U;
}

Test(op_hash, changes_with_every_bit)
{
    uint32_t words[WORDS];
    uint64_t hash;

    words_fill(words);
    hash = op_hash_host(words, WORDS);
    for (int i = 0; i < WORDS; i++)
        for (int b = 0; b < 32; b++) {
            words[i] ^= 1U << b;
            cr_assert_neq(op_hash_host(words, WORDS), hash, "word %d, bit %d",
                          i, b);
            words[i] ^= 1U << b;
        }
    cr_expect_eq(op_hash_host(words, WORDS), hash);
    cr_expect_neq(op_hash_host(words, WORDS - 1), hash);
}

Test(op_hash, depends_on_the_place_of_words)
{
    const uint32_t one[4] = {1, 2, 0, 0}, two[4] = {2, 1, 0, 0},
                   three[4] = {0, 0, 1, 2}, none[4] = {0};
    const uint64_t hashes[] = {op_hash_host(one, 4), op_hash_host(two, 4),
                               op_hash_host(three, 4), op_hash_host(none, 4),
                               op_hash_host(none, 0)};

    for (size_t i = 0; i < sizeof hashes / sizeof *hashes; i++)
        for (size_t j = 0; j < i; j++)
            cr_expect_neq(hashes[i], hashes[j], "%zu and %zu", i, j);
}

static void check_far(int order)
{
    const size_t bytes = WORDS * sizeof(uint32_t);
    const op_backend_ops_t *backend;
    uint32_t words[WORDS];
    void *from = NULL, *to = NULL;
    dev_device_t *dev = NULL;
    dev_stream_t *stream = NULL;
    uint64_t hash = 0;
    err_t err = ERR_INIT;

    words_fill(words);
    cr_assert_eq(dev_open("far", order, &dev, &err), ERR_OK);
    cr_assert_eq(op_backend_get("far", &backend, &err), ERR_OK);
    cr_assert_eq(dev_stream_open(dev, DEV_STREAM_COMPUTE, &stream, &err),
                 ERR_OK);
    cr_assert_eq(dev_alloc(dev, bytes, "a test", &from, &err), ERR_OK);
    cr_assert_eq(dev_alloc(dev, sizeof hash, "a test", &to, &err), ERR_OK);
    cr_assert_eq(dev_copy(stream, from, words, bytes, DEV_HOST_TO_DEV, &err),
                 ERR_OK);
    cr_assert_eq(op_hash(backend, to, from, WORDS, stream, &err), ERR_OK);
    cr_assert_eq(
        dev_copy(stream, &hash, to, sizeof hash, DEV_DEV_TO_HOST, &err),
        ERR_OK);
    cr_assert_eq(dev_stream_wait(stream, &err), ERR_OK, "%s", err.text);
    cr_expect_eq(hash, op_hash_host(words, WORDS));
    dev_free(dev, from);
    dev_free(dev, to);
    dev_stream_close(stream);
    dev_close(dev);
}

Test(op_hash, is_the_same_on_a_device)
{
    for (int order = 0; order < DEV_FAR_ORDERS; order++)
        check_far(order);
}

Test(op_hash, is_the_same_in_backends_of_the_host)
{
    const char *const names[] = {"cpu", "ref"};
    uint32_t words[WORDS];

    words_fill(words);
    for (int i = 0; i < 2; i++) {
        const op_backend_ops_t *backend;
        uint64_t hash = 0;
        err_t err = ERR_INIT;

        cr_assert_eq(op_backend_get(names[i], &backend, &err), ERR_OK);
        cr_assert_eq(op_hash(backend, &hash, words, WORDS, NULL, &err), ERR_OK);
        cr_expect_eq(hash, op_hash_host(words, WORDS));
    }
}
