/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/mem.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

Test(mem, blocks_are_aligned_and_zero)
{
    const size_t sizes[] = {0, 1, 63, 64, 65, 100000};
    err_t err = ERR_INIT;
    size_t i, j;
    void *block;

    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        cr_assert_eq(mem_alloc(sizes[i], "a test", &block, &err), ERR_OK);
        cr_assert_eq((uintptr_t)block % MEM_ALIGN, 0);
        for (j = 0; j < sizes[i]; j++)
            cr_assert_eq(((char *)block)[j], 0);
        memset(block, 1, sizes[i]); /* dirt for the next one */
        mem_free(block);
    }
    mem_free(NULL);
}

/* So that huge pages can lie under it. */
Test(mem, large_blocks_begin_at_a_huge_page)
{
    const size_t bytes = ((size_t)8 << 20) + 3;
    err_t err = ERR_INIT;
    void *block = NULL;

    cr_assert_eq(mem_alloc(bytes, "a test", &block, &err), ERR_OK);
    cr_expect_eq((uintptr_t)block % (2 << 20), 0);
    cr_expect_eq(((char *)block)[bytes - 1], 0);
    mem_free(block);
}

Test(mem, rounding_goes_up_to_whole_lines)
{
    cr_assert_eq(mem_round(0), 0);
    cr_assert_eq(mem_round(1), 64);
    cr_assert_eq(mem_round(64), 64);
    cr_assert_eq(mem_round(65), 128);
}

/* AddressSanitizer, where it is built in, ends the program at an allocation
 * that cannot succeed, unless told otherwise; it asks here. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

Test(mem, refusal_says_how_much_for_what)
{
    void *block = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(mem_alloc(SIZE_MAX / 2, "activations", &block, &err),
                 ERR_MEMORY);
    cr_assert_str_eq(err.text,
                     "no memory left: 8.0 EiB for activations refused");
    cr_assert_null(block);
}

Test(mem, the_peak_counts_what_was_touched)
{
    const size_t bytes = (size_t)64 << 20;
    double before = mem_peak();
    err_t err = ERR_INIT;
    void *block = NULL;

    cr_assert_gt(before, 0);
    cr_assert_eq(mem_alloc(bytes, "a test", &block, &err), ERR_OK);
    cr_assert_geq(mem_peak(), (double)bytes);
    mem_free(block);
    cr_assert_geq(mem_peak(), (double)bytes);
}
