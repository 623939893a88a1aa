/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Runs the target `dataset` on 2000 pseudo-random inputs, which are the same in
 * every run. dataset_case.h describes the checks. A failing case ends the test,
 * which prints the case's number.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "fuzz/fuzz.h"

#define CASES 2000
#define CASE_BYTES 200

/* Make the bytes of case [number]. Many bytes are 0, which chooses plain
 * properties. */
static size_t draw(unsigned number, uint8_t bytes[CASE_BYTES])
{
    uint64_t state = number * UINT64_C(0x9e3779b97f4a7c15) + 1;

    for (size_t i = 0; i < CASE_BYTES; i++) {
        state = state * UINT64_C(6364136223846793005) +
                UINT64_C(1442695040888963407);
        bytes[i] = (uint8_t)(state >> 56);
        if ((state >> 40) % 4 < number % 4)
            bytes[i] = 0;
    }
    return CASE_BYTES - number % 7 * 20;
}

Test(cases, no_bytes_are_a_plain_dataset)
{
    cr_assert_eq(fuzz_dataset(NULL, 0), ERR_OK);
}

Test(cases, of_datasets_of_all_kinds, .timeout = 300)
{
    uint8_t bytes[CASE_BYTES];
    int accepted = 0;

    for (unsigned i = 0; i < CASES; i++) {
        const size_t length = draw(i, bytes);

        fprintf(stderr, "\rcase %u ", i);
        accepted += fuzz_dataset(bytes, length) == ERR_OK;
    }
    fprintf(stderr, "\n%d of %d cases accepted\n", accepted, CASES);
    cr_assert_gt(accepted, CASES / 5);
    cr_assert_lt(accepted, CASES * 4 / 5);
}
