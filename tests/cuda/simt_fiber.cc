/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "simt_fiber.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define SIMT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ASAN 1
#endif
#endif

#ifdef SIMT_ASAN
#include <sanitizer/common_interface_defs.h>
#define STACK_BYTES ((size_t)256 << 10)
#else
#define STACK_BYTES ((size_t)64 << 10)
#endif

/* The host's thread, while a fiber runs. */
static simt_fiber host;
#ifdef SIMT_ASAN
static const void *host_stack;
static size_t host_bytes;
#endif

/* ---- the switch ---------------------------------------------------------- */

/* simt_switch(&from, to): put the registers that a function must keep on the
 * stack, write the stack pointer to `from`, and go on with the stack `to`. */
#if defined(__x86_64__)

enum { SAVED = 6 };
extern "C" void simt_switch(void **from, void *to);
asm(".text\n"
    ".type simt_switch, @function\n"
    "simt_switch:\n"
    "    push %rbp\n"
    "    push %rbx\n"
    "    push %r12\n"
    "    push %r13\n"
    "    push %r14\n"
    "    push %r15\n"
    "    mov %rsp, (%rdi)\n"
    "    mov %rsi, %rsp\n"
    "    pop %r15\n"
    "    pop %r14\n"
    "    pop %r13\n"
    "    pop %r12\n"
    "    pop %rbx\n"
    "    pop %rbp\n"
    "    ret\n"
    ".size simt_switch, .-simt_switch\n");

/* The address to return to lies above the registers, and above it that of the
 * caller of entry, which has none. */
static void *first_sp(void *top, void (*entry)())
{
    void **sp = (void **)top;

    *--sp = nullptr;
    *--sp = (void *)entry;
    for (int i = 0; i < SAVED; i++)
        *--sp = nullptr;
    return sp;
}

#elif defined(__aarch64__)

/* x19 to x30 and d8 to d15. */
enum { SAVED = 20, LINK = 11 };
extern "C" void simt_switch(void **from, void *to);
asm(".text\n"
    ".type simt_switch, %function\n"
    "simt_switch:\n"
    "    sub sp, sp, #160\n"
    "    stp x19, x20, [sp, #0]\n"
    "    stp x21, x22, [sp, #16]\n"
    "    stp x23, x24, [sp, #32]\n"
    "    stp x25, x26, [sp, #48]\n"
    "    stp x27, x28, [sp, #64]\n"
    "    stp x29, x30, [sp, #80]\n"
    "    stp d8, d9, [sp, #96]\n"
    "    stp d10, d11, [sp, #112]\n"
    "    stp d12, d13, [sp, #128]\n"
    "    stp d14, d15, [sp, #144]\n"
    "    mov x9, sp\n"
    "    str x9, [x0]\n"
    "    mov sp, x1\n"
    "    ldp x19, x20, [sp, #0]\n"
    "    ldp x21, x22, [sp, #16]\n"
    "    ldp x23, x24, [sp, #32]\n"
    "    ldp x25, x26, [sp, #48]\n"
    "    ldp x27, x28, [sp, #64]\n"
    "    ldp x29, x30, [sp, #80]\n"
    "    ldp d8, d9, [sp, #96]\n"
    "    ldp d10, d11, [sp, #112]\n"
    "    ldp d12, d13, [sp, #128]\n"
    "    ldp d14, d15, [sp, #144]\n"
    "    add sp, sp, #160\n"
    "    ret\n"
    ".size simt_switch, .-simt_switch\n");

static void *first_sp(void *top, void (*entry)())
{
    void **sp = (void **)top - SAVED;

    for (int i = 0; i < SAVED; i++)
        sp[i] = nullptr;
    sp[LINK] = (void *)entry;
    return sp;
}

#endif

#ifdef SIMT_UCONTEXT
static void change(simt_fiber *from, simt_fiber *to)
{
    swapcontext(&from->context, &to->context);
}
#else
static void change(simt_fiber *from, simt_fiber *to)
{
    simt_switch(&from->sp, to->sp);
}
#endif

/* ---- fibers -------------------------------------------------------------- */

static void stack_open(simt_fiber *fiber)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *low = mmap(nullptr, STACK_BYTES + page, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (low == MAP_FAILED || mprotect(low, page, PROT_NONE) != 0) {
        perror("simt: cannot map the stack of a fiber");
        abort();
    }
    fiber->stack = (char *)low + page;
}

void simt_fiber_reset(simt_fiber *fiber, void (*entry)())
{
    if (fiber->stack == nullptr)
        stack_open(fiber);
    fiber->fake = nullptr;
#ifdef SIMT_UCONTEXT
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = STACK_BYTES;
    fiber->context.uc_link = nullptr;
    makecontext(&fiber->context, entry, 0);
#else
    fiber->sp = first_sp((char *)fiber->stack + STACK_BYTES, entry);
#endif
}

#ifdef SIMT_ASAN

/* The sanitizer is told of each switch, before and after it. What follows a
 * switch in `simt_fiber_resume` runs on the host's stack, and what follows one
 * in `simt_fiber_pause` on the fiber's. */
void simt_fiber_resume(simt_fiber *fiber)
{
    __sanitizer_start_switch_fiber(&host.fake, fiber->stack, STACK_BYTES);
    change(&host, fiber);
    __sanitizer_finish_switch_fiber(host.fake, nullptr, nullptr);
}

void simt_fiber_begin()
{
    __sanitizer_finish_switch_fiber(nullptr, &host_stack, &host_bytes);
}

void simt_fiber_pause(simt_fiber *self)
{
    __sanitizer_start_switch_fiber(&self->fake, host_stack, host_bytes);
    change(self, &host);
    __sanitizer_finish_switch_fiber(self->fake, &host_stack, &host_bytes);
}

void simt_fiber_end(simt_fiber *self)
{
    __sanitizer_start_switch_fiber(nullptr, host_stack, host_bytes);
    change(self, &host);
    abort();
}

#else

void simt_fiber_resume(simt_fiber *fiber)
{
    change(&host, fiber);
}

void simt_fiber_begin()
{
}

void simt_fiber_pause(simt_fiber *self)
{
    change(self, &host);
}

void simt_fiber_end(simt_fiber *self)
{
    change(self, &host);
    abort();
}

#endif
