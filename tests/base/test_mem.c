/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/mem.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "lib/facts.h"

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
        memset(block, 1, sizes[i]); /* so that the next block reuses memory that
                                       is not zero */
        mem_free(block);
    }
    mem_free(NULL);
}

/* Large blocks start at a huge page, so that the kernel can use huge pages. */
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

/* Also if memory is reused: glibc keeps freed blocks below a threshold, which
 * grows up to 32 MiB after such a block was freed. */
Test(mem, large_blocks_are_zero_again)
{
    const size_t bytes = ((size_t)12 << 20) + 4099;
    err_t err = ERR_INIT;

    for (int round = 0; round < 4; round++) {
        char *block = NULL;
        size_t sum = 0;

        cr_assert_eq(mem_alloc(bytes, "a test", (void **)&block, &err), ERR_OK);
        for (size_t i = 0; i < bytes; i++)
            sum += block[i] != 0;
        cr_expect_eq(sum, 0, "round %d: %zu bytes are not zero", round, sum);
        memset(block, 1, bytes);
        mem_free(block);
    }
}

/* Pages are allocated on first use, so `--check`, which only prints a plan,
 * needs no memory. */
Test(mem, large_blocks_take_no_memory_before_they_are_used)
{
    const size_t bytes = (size_t)256 << 20;
    const double before = mem_peak();
    err_t err = ERR_INIT;
    void *block = NULL;

    cr_assert_eq(mem_alloc(bytes, "a test", &block, &err), ERR_OK);
    cr_expect_lt(mem_peak() - before, (double)bytes / 4);
    mem_free(block);
}

Test(mem, rounding_goes_up_to_whole_lines)
{
    cr_assert_eq(mem_round(0), 0);
    cr_assert_eq(mem_round(1), 64);
    cr_assert_eq(mem_round(64), 64);
    cr_assert_eq(mem_round(65), 128);
}

/* Option of AddressSanitizer: by default it ends the program at an allocation
 * that cannot succeed. */
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
    FACTS(err.text, "8.0 EiB", "activations");
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
    memset(block, 1, bytes);
    cr_assert_geq(mem_peak(), (double)bytes);
    mem_free(block);
    cr_assert_geq(mem_peak(), (double)bytes);
}

Test(mem, objects_are_zero_and_counted)
{
    struct list {
        size_t count;
        double values[];
    } *list = NULL;
    double *numbers = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(mem_new(double, 1000, "a test", &numbers, &err), ERR_OK);
    cr_assert_eq(mem_new_tail(struct list, values, 1000, "a test", &list, &err),
                 ERR_OK);
    cr_expect_eq((uintptr_t)numbers % MEM_ALIGN, 0);
    cr_expect_eq(list->count, 0);
    for (size_t i = 0; i < 1000; i++)
        cr_expect(numbers[i] == 0 && list->values[i] == 0);
    mem_free(numbers);
    mem_free(list);
}

/* A size that overflowed would give a small block. */
Test(mem, more_than_a_size_counts_is_refused)
{
    double *numbers = NULL;
    err_t err = ERR_INIT;

    cr_expect_eq(mem_new(double, SIZE_MAX / 4, "a test", &numbers, &err),
                 ERR_MEMORY);
    cr_expect_null(numbers);
    cr_expect(strstr(err.text, "a test") != NULL, "%s", err.text);
}
