/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/touch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/thread.h"

/* The headers of older systems lack this constant. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Bytes that a thread touches with one call. The process can map no other
 * memory during the call, so this is small. */
#define PIECE ((size_t)4 << 20)

#define THREADS_MAX 4

struct train_touch {
    train_touch_arena_t arenas[TRAIN_TOUCH_MAX];
    int count;
    atomic_size_t next; /* index of the next piece, counted over all arenas */
    atomic_bool stop;
    pthread_t threads[THREADS_MAX];
    int started;
};

static size_t pieces_of(const train_touch_arena_t *arena)
{
    return (arena->bytes + PIECE - 1) / PIECE;
}

/* Set *out to piece number [piece], counted over all arenas; false: there is no
 * such piece. */
static bool piece_find(const train_touch_t *touch, size_t piece,
                       train_touch_arena_t *out)
{
    for (int i = 0; i < touch->count; i++) {
        const train_touch_arena_t *arena = &touch->arenas[i];
        const size_t pieces = pieces_of(arena), at = piece * PIECE;

        if (piece < pieces) {
            const size_t left = arena->bytes - at;

            *out = (train_touch_arena_t){.block = (char *)arena->block + at,
                                         .bytes = left < PIECE ? left : PIECE};
            return true;
        }
        piece -= pieces;
    }
    return false;
}

/* Touch the pages that are wholly within a piece. Pages that the piece shares
 * with other data are left out. */
static bool piece_touch(train_touch_arena_t piece)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = (uintptr_t)piece.block;
    const uintptr_t from = (first + page - 1) / page * page;
    const uintptr_t to = (first + piece.bytes) / page * page;

    return from >= to || madvise((char *)piece.block + (from - first),
                                 to - from, MADV_POPULATE_WRITE) == 0;
}

static void *touch_main(void *argument)
{
    train_touch_t *touch = argument;
    train_touch_arena_t piece;

    while (!atomic_load(&touch->stop) &&
           piece_find(touch, atomic_fetch_add(&touch->next, 1), &piece) &&
           piece_touch(piece))
        continue;
    return NULL;
}

err_code_t train_touch_open(const train_touch_arena_t *arenas, int count,
                            int threads, train_touch_t **out, err_t *err)
{
    train_touch_t *touch = NULL;
    err_code_t rc;

    check(count <= TRAIN_TOUCH_MAX, "%d arenas", count);
    rc = mem_new(train_touch_t, 1, "early pages", &touch, err);
    if (rc != ERR_OK)
        return rc;
    memcpy(touch->arenas, arenas, (size_t)count * sizeof *arenas);
    touch->count = count;
    if (threads > THREADS_MAX)
        threads = THREADS_MAX;
    while (rc == ERR_OK && touch->started < threads) {
        rc = thread_start("pages", touch_main, touch,
                          &touch->threads[touch->started], err);
        if (rc == ERR_OK)
            touch->started++;
    }
    if (rc != ERR_OK) {
        train_touch_close(touch);
        return rc;
    }
    *out = touch;
    return ERR_OK;
}

void train_touch_wait(train_touch_t *touch)
{
    while (touch->started > 0)
        pthread_join(touch->threads[--touch->started], NULL);
}

void train_touch_close(train_touch_t *touch)
{
    if (touch == NULL)
        return;
    atomic_store(&touch->stop, true);
    train_touch_wait(touch);
    mem_free(touch);
}
