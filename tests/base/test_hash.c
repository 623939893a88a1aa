/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/hash.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/facts.h"

/* The published XXH3 hash of empty input is 2d06800538d394c2. */
Test(hash, is_xxh3_of_64_bits)
{
    char text[HASH_TEXT_MAX];

    cr_assert_str_eq(hash_format(hash_bytes("", 0), text), "2d06800538d394c2");
    cr_assert_neq(hash_bytes("a", 1), hash_bytes("b", 1));
}

Test(hash, pieces_give_the_hash_of_the_whole)
{
    unsigned char bytes[10000];
    hash_state_t *state;
    size_t i, piece;

    for (i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 256);
    state = hash_state_open();
    for (i = 0, piece = 1; i < sizeof bytes;
         i += piece, piece = piece * 2 + 1) {
        if (piece > sizeof bytes - i)
            piece = sizeof bytes - i;
        hash_state_add(state, bytes + i, piece);
    }
    cr_assert_eq(hash_state_value(state), hash_bytes(bytes, sizeof bytes));
    hash_state_free(state);
    hash_state_free(NULL);
}

Test(hash, a_file_has_hash_and_size)
{
    char path[] = "/tmp/cddp-hash-XXXXXX";
    size_t size = 3000001; /* needs more than two reads */
    char *bytes = malloc(size);
    uint64_t hash = 0, count = 0;
    err_t err = ERR_INIT;
    int fd = mkstemp(path);

    memset(bytes, 'h', size);
    cr_assert_eq(write(fd, bytes, size), (ssize_t)size);
    close(fd);
    cr_assert_eq(hash_file(path, &hash, &count, &err), ERR_OK);
    unlink(path);
    cr_assert_eq(count, size);
    cr_assert_eq(hash, hash_bytes(bytes, size));
    free(bytes);
}

Test(hash, a_file_that_cannot_be_read_is_named)
{
    uint64_t hash = 1, count = 2;
    err_t err = ERR_INIT;

    cr_assert_eq(hash_file("/nowhere/a", &hash, &count, &err), ERR_IO);
    FACTS(err.text, "/nowhere/a", "No such file or directory");
    cr_assert_eq(hash_file("/tmp", &hash, &count, &err), ERR_DATA);
    FACTS(err.text, "/tmp", "directory", "regular file");
    cr_assert_eq(hash, 1);
    cr_assert_eq(count, 2);
}

Test(hash, text_goes_there_and_back)
{
    static const char *const bad[] = {"",
                                      "2d06800538d394c",
                                      "2d06800538d394c20",
                                      "2d06800538d394cg",
                                      " d06800538d394c2",
                                      "0x06800538d394c2"};
    char text[HASH_TEXT_MAX];
    uint64_t hash = 1;
    size_t i;

    cr_assert_str_eq(hash_format(0xABC, text), "0000000000000abc");
    cr_assert(hash_parse("0000000000000abc", &hash));
    cr_assert_eq(hash, 0xabc);
    cr_assert(hash_parse("FFFFFFFFFFFFFFFF", &hash));
    cr_assert_eq(hash, UINT64_MAX);
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cr_expect_not(hash_parse(bad[i], &hash), "'%s'", bad[i]);
    cr_assert_eq(hash, UINT64_MAX);
}
