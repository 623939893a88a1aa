/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "simt.h"

#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "simt_fiber.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

enum { WARP = 32, THREADS_MAX = 1024 };

enum simt_state { READY, AT_WARP, AT_BLOCK, DONE, STATES };

struct simt_runner : simt_thread {
    simt_state state;
    simt_place at; /* where it waits */
    bool counted;  /* what it gave to __syncthreads_count */
    simt_fiber fiber;
};

/* The launch that runs. One at a time: [lock]. */
static struct simt_now_t {
    pthread_mutex_t lock;
    const simt_launch_t *launch;
    simt_schedule_t schedule;
    simt_call_fn *call;
    const void *args;
    unsigned threads;
    uint64_t random;
    unsigned order[THREADS_MAX];
    simt_runner runner[THREADS_MAX];
} now = {};

/* As much as any GPU has. The sanitizer is told what of it a launch may use. */
static unsigned char dynamic[228 << 10] __attribute__((aligned(128)));

simt_thread *simt_self;
simt_block_now simt_block;

static simt_runner *self()
{
    return static_cast<simt_runner *>(simt_self);
}

/* ---- complaints ---------------------------------------------------------- */

static const char *state_text(const simt_runner *t)
{
    switch (t->state) {
    case AT_WARP:
    case AT_BLOCK:
        return t->at.what;
    case DONE:
        return "the kernel's end";
    default:
        return "nothing";
    }
}

static bool same_place(const simt_runner *a, const simt_runner *b)
{
    if (a->state != b->state)
        return false;
    return a->state == DONE ||
           (a->at.line == b->at.line && strcmp(a->at.file, b->at.file) == 0);
}

/* Print where the threads [first, first + count) are, and end the process. */
[[noreturn]] static void complain(const char *what, unsigned first,
                                  unsigned count)
{
    fprintf(stderr, "simt: kernel %s, block (%u, %u, %u): %s\n",
            now.launch->name, simt_block.index.x, simt_block.index.y,
            simt_block.index.z, what);
    for (unsigned i = first, end; i < first + count; i = end) {
        const simt_runner *t = &now.runner[i];

        for (end = i + 1; end < first + count; end++)
            if (!same_place(t, &now.runner[end]))
                break;
        fprintf(stderr, "simt:   threads %u to %u are at %s", i, end - 1,
                state_text(t));
        if (t->state != DONE)
            fprintf(stderr, " (%s:%d)", t->at.file, t->at.line);
        fputc('\n', stderr);
    }
    abort();
}

void simt_full(unsigned mask, simt_place at)
{
    if (mask == 0xffffffffu)
        return;
    fprintf(stderr,
            "simt: kernel %s: %s (%s:%d) has the mask %08x, and only "
            "ffffffff is allowed\n",
            now.launch->name, at.what, at.file, at.line, mask);
    abort();
}

/* ---- waiting ------------------------------------------------------------- */

static void wait(simt_state state, simt_place at)
{
    simt_runner *t = self();

    t->state = state;
    t->at = at;
    simt_fiber_pause(&t->fiber);
}

void simt_wait_block(simt_place at)
{
    wait(AT_BLOCK, at);
}

void simt_wait_warp(simt_place at)
{
    self()->turn++;
    wait(AT_WARP, at);
}

/* Give a value and wait; return the turn in which the values lie. */
static unsigned give(uint64_t value, simt_place at)
{
    const unsigned turn = simt_self->turn & 1;

    simt_self->given[turn] = value;
    simt_wait_warp(at);
    return turn;
}

/* The threads of the warp that the thread that runs belongs to. */
static unsigned warp_first()
{
    return (unsigned)(self() - now.runner) / WARP * WARP;
}

static unsigned warp_size(unsigned first)
{
    return now.threads - first < WARP ? now.threads - first : (unsigned)WARP;
}

uint64_t simt_take(uint64_t value, unsigned lane, simt_place at)
{
    const unsigned turn = give(value, at);
    const unsigned first = warp_first();

    if (lane >= warp_size(first)) {
        fprintf(stderr,
                "simt: kernel %s: %s (%s:%d) reads lane %u of a warp "
                "of %u threads\n",
                now.launch->name, at.what, at.file, at.line, lane,
                warp_size(first));
        abort();
    }
    return now.runner[first + lane].given[turn];
}

unsigned simt_ballot(bool value, simt_place at)
{
    const unsigned turn = give(value, at);
    const unsigned first = warp_first(), size = warp_size(first);
    unsigned mask = 0;

    for (unsigned i = 0; i < size; i++)
        mask |= (unsigned)(now.runner[first + i].given[turn] != 0) << i;
    return mask;
}

unsigned simt_count(bool value, simt_place at)
{
    unsigned count = 0;

    self()->counted = value;
    wait(AT_BLOCK, at);
    for (unsigned i = 0; i < now.threads; i++)
        count += now.runner[i].counted;
    /* Nobody gives a new value before all have counted. */
    wait(AT_BLOCK, at);
    return count;
}

/* ---- schedules ----------------------------------------------------------- */

static bool greedy()
{
    return now.schedule >= SIMT_WARPS_FORWARDS;
}

static bool backwards()
{
    return now.schedule == SIMT_BACKWARDS ||
           now.schedule == SIMT_WARPS_BACKWARDS;
}

/* Below [count]; the same numbers in each launch. */
static unsigned random_below(unsigned count)
{
    now.random = now.random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((now.random >> 33) % count);
}

/* Fill now.order with the order in which [count] threads run. */
static void order_fill(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        now.order[i] = backwards() ? count - 1 - i : i;
    if (now.schedule != SIMT_RANDOM)
        return;
    for (unsigned i = count; i > 1; i--) {
        const unsigned j = random_below(i), kept = now.order[i - 1];

        now.order[i - 1] = now.order[j];
        now.order[j] = kept;
    }
}

/* Let each thread that is ready run to where it waits next. */
static void run_ready(unsigned first, unsigned count)
{
    order_fill(count);
    for (unsigned i = 0; i < count; i++) {
        simt_runner *t = &now.runner[first + now.order[i]];

        if (t->state != READY)
            continue;
        simt_self = t;
        simt_fiber_resume(&t->fiber);
    }
}

static unsigned count_in(simt_state state, unsigned first, unsigned count)
{
    unsigned n = 0;

    for (unsigned i = first; i < first + count; i++)
        n += now.runner[i].state == state;
    return n;
}

static bool all_at_one_place(unsigned first, unsigned count)
{
    for (unsigned i = first + 1; i < first + count; i++)
        if (!same_place(&now.runner[first], &now.runner[i]))
            return false;
    return true;
}

static void release(unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++)
        now.runner[i].state = READY;
}

/* Let the warp go on behind a shuffle or vote. False: it waits at none. */
static bool release_warp(unsigned first)
{
    const unsigned size = warp_size(first);

    if (count_in(AT_WARP, first, size) == 0)
        return false;
    if (!all_at_one_place(first, size))
        complain("the threads of a warp are not all at the same shuffle, vote "
                 "or __syncwarp",
                 first, size);
    release(first, size);
    return true;
}

/* Let the block go on behind a barrier. False: all its threads have ended. */
static bool release_block()
{
    if (count_in(DONE, 0, now.threads) == now.threads)
        return false;
    if (!all_at_one_place(0, now.threads))
        complain("the threads of the block wait at different barriers", 0,
                 now.threads);
    release(0, now.threads);
    return true;
}

static void run_threads()
{
    bool any;

    do {
        run_ready(0, now.threads);
        any = false;
        for (unsigned w = 0; w < now.threads; w += WARP)
            any |= release_warp(w);
    } while (any || release_block());
}

static void run_warps()
{
    const unsigned warps = (now.threads + WARP - 1) / WARP;

    do {
        for (unsigned k = 0; k < warps; k++) {
            const unsigned w = WARP * (backwards() ? warps - 1 - k : k);

            do {
                run_ready(w, warp_size(w));
            } while (release_warp(w));
        }
    } while (release_block());
}

/* ---- blocks -------------------------------------------------------------- */

static void fiber_main()
{
    simt_fiber_begin();
    now.call(now.args);
    self()->state = DONE;
    simt_fiber_end(&self()->fiber);
}

static void threads_reset()
{
    const dim3 size = simt_block.size;

    for (unsigned i = 0; i < now.threads; i++) {
        simt_runner *t = &now.runner[i];

        t->index.x = i % size.x;
        t->index.y = i / size.x % size.y;
        t->index.z = i / (size.x * size.y);
        t->lane = i % WARP;
        t->turn = 0;
        t->state = READY;
        simt_fiber_reset(&t->fiber, fiber_main);
    }
}

/* The memory of `static __shared__` variables: what begins as zero of the
 * thread-local memory of this module. */
struct simt_static {
    const void *inside; /* an address of this module */
    unsigned char *at;
    size_t bytes;
};

static thread_local char probe; /* the first use maps the memory */

static int static_find(struct dl_phdr_info *info, size_t, void *arg)
{
    simt_static *found = static_cast<simt_static *>(arg);
    const uintptr_t inside = (uintptr_t)found->inside;
    const ElfW(Phdr) *tls = nullptr;
    bool here = false;

    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        const uintptr_t low = info->dlpi_addr + p->p_vaddr;

        if (p->p_type == PT_TLS)
            tls = p;
        if (p->p_type == PT_LOAD && inside >= low && inside < low + p->p_memsz)
            here = true;
    }
    if (!here || tls == nullptr || info->dlpi_tls_data == nullptr)
        return here;
    found->at = (unsigned char *)info->dlpi_tls_data + tls->p_filesz;
    found->bytes = tls->p_memsz - tls->p_filesz;
    return 1;
}

static void static_range(simt_static *range)
{
    *(volatile char *)&probe = 0;
    range->inside = (const void *)&now;
    range->at = nullptr;
    range->bytes = 0;
    dl_iterate_phdr(static_find, range);
    if (range->at == nullptr) {
        fprintf(stderr, "simt: the static shared memory was not found\n");
        abort();
    }
}

/* Narrow [range] to what is not all bits set. */
static void range_written(simt_static *range)
{
    while (range->bytes > 0 && range->at[range->bytes - 1] == 0xff)
        range->bytes--;
    while (range->bytes > 0 && range->at[0] == 0xff) {
        range->at++;
        range->bytes--;
    }
}

static void run_block(unsigned number)
{
    const dim3 grid = simt_block.grid;

    simt_block.index.x = number % grid.x;
    simt_block.index.y = number / grid.x % grid.y;
    simt_block.index.z = number / (grid.x * grid.y);
    threads_reset();
    if (greedy())
        run_warps();
    else
        run_threads();
}

/* All blocks, in an order of the schedule: forwards, backwards, or by steps of
 * a size that has no factor in common with their number. */
static void run_blocks(const simt_launch_t *launch)
{
    const unsigned count = launch->grid.x * launch->grid.y * launch->grid.z;
    const unsigned step =
        now.schedule == SIMT_RANDOM && count % 7919 ? 7919 : 1;
    simt_static all, used;

    static_range(&all);
    memset(all.at, 0xff, all.bytes);
    used = all;
    for (unsigned i = 0; i < count; i++) {
        const uint64_t k = backwards() ? count - 1 - i : i;

        memset(simt_block.shared, 0xff, launch->shared);
        run_block((unsigned)(k * step % count));
        /* The first block tells which part the kernel writes. */
        if (i == 0)
            range_written(&used);
        memset(used.at, 0xff, used.bytes);
    }
}

void simt_run(const simt_launch_t *launch, simt_schedule_t schedule,
              simt_call_fn *call, const void *args)
{
    const dim3 block = launch->block;

    pthread_mutex_lock(&now.lock);
    now.launch = launch;
    now.schedule = schedule;
    now.call = call;
    now.args = args;
    now.threads = block.x * block.y * block.z;
    now.random = 1;
    simt_block.grid = launch->grid;
    simt_block.size = block;
    if (now.threads == 0 || now.threads > THREADS_MAX ||
        launch->shared > sizeof dynamic) {
        fprintf(stderr,
                "simt: kernel %s cannot run in blocks of %u threads "
                "with %zu bytes\n",
                launch->name, now.threads, launch->shared);
        abort();
    }
    simt_block.shared = dynamic;
    ASAN_POISON_MEMORY_REGION(dynamic + launch->shared,
                              sizeof dynamic - launch->shared);
    run_blocks(launch);
    ASAN_UNPOISON_MEMORY_REGION(dynamic, sizeof dynamic);
    pthread_mutex_unlock(&now.lock);
}
