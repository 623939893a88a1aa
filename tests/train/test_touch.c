/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Touching memory in advance: afterwards all whole pages are resident, their
 * contents are unchanged, and pages outside the parts are not touched. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "train/touch.h"

#define PAGES 4097 /* more than one piece, and a remainder */

typedef struct arena {
    size_t page;
    char *data; /* [PAGES + 1] pages, none of them resident at first */
} arena_t;

static arena_t arena_open(void)
{
    arena_t arena = {.page = (size_t)sysconf(_SC_PAGESIZE)};

    arena.data = mmap(NULL, (PAGES + 1) * arena.page, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(arena.data, MAP_FAILED);
    madvise(arena.data, (PAGES + 1) * arena.page, MADV_NOHUGEPAGE);
    return arena;
}

static void arena_close(arena_t *arena)
{
    munmap(arena->data, (PAGES + 1) * arena->page);
}

static size_t resident(const arena_t *arena)
{
    unsigned char there[PAGES + 1];
    size_t count = 0;

    cr_assert_eq(mincore(arena->data, (PAGES + 1) * arena->page, there), 0);
    for (size_t i = 0; i <= PAGES; i++)
        count += there[i] & 1;
    return count;
}

/* Skip the test without MADV_POPULATE_WRITE, which Linux has since 5.14. */
static void need_kernel(const arena_t *arena)
{
    if (madvise(arena->data + PAGES * arena->page, arena->page, 23) != 0 &&
        errno == EINVAL)
        cr_skip_test("this kernel cannot bring pages in advance");
    madvise(arena->data + PAGES * arena->page, arena->page, MADV_DONTNEED);
}

static void touch(const train_touch_arena_t *parts, int count, int threads)
{
    train_touch_t *touch = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(train_touch_open(parts, count, threads, &touch, &err), ERR_OK,
                 "%s", err.text);
    train_touch_wait(touch);
    train_touch_close(touch);
}

Test(touch, pages_are_there_and_keep_what_they_hold)
{
    arena_t arena = arena_open();
    const size_t half = PAGES / 2 * arena.page;
    train_touch_arena_t parts[] = {
        {arena.data, half}, {arena.data + half, PAGES * arena.page - half}};

    need_kernel(&arena);
    arena.data[half + 5] = 7;
    touch(parts, 2, 3);
    cr_assert_eq(resident(&arena), PAGES);
    cr_assert_eq(arena.data[half + 5], 7);
    cr_assert_eq(arena.data[half], 0);
    arena_close(&arena);
}

Test(touch, pages_that_are_shared_with_others_are_left)
{
    arena_t arena = arena_open();
    train_touch_arena_t part = {arena.data + 64, 2 * arena.page};

    need_kernel(&arena);
    touch(&part, 1, 1);
    cr_assert_eq(resident(&arena), 1);
    arena_close(&arena);
}

Test(touch, closing_stops)
{
    arena_t arena = arena_open();
    train_touch_arena_t part = {arena.data, PAGES * arena.page};
    train_touch_t *touch = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(train_touch_open(&part, 1, 2, &touch, &err), ERR_OK);
    train_touch_close(touch);
    train_touch_close(NULL);
    arena_close(&arena);
}
