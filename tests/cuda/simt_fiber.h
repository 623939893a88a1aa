/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Fibers: functions with a stack of their own that run until they give the
 * host's thread back. Not for several threads at once.
 */
#ifndef CDDP_TESTS_CUDA_SIMT_FIBER_H
#define CDDP_TESTS_CUDA_SIMT_FIBER_H

#include <stddef.h>

/* Other processors than x86-64 and aarch64 switch by ucontext. */
#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#define SIMT_UCONTEXT 1
#endif

struct simt_fiber {
    void *stack; /* its lowest address, above a page that nobody may touch */
    void *sp;    /* where it stopped */
    void *fake;  /* of the address sanitizer */
#ifdef SIMT_UCONTEXT
    ucontext_t context;
#endif
};

/* Give the fiber a stack, unless it has one, and let it begin at [entry], which
 * must not return, when it is resumed. */
void simt_fiber_reset(simt_fiber *fiber, void (*entry)());
/* Run it until it pauses or ends. */
void simt_fiber_resume(simt_fiber *fiber);
/* Called by the fiber that runs: first, when it waits, and last. */
void simt_fiber_begin();
void simt_fiber_pause(simt_fiber *self);
[[noreturn]] void simt_fiber_end(simt_fiber *self);

#endif
