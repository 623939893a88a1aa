/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What a rank that boot_spawn_run has started and its parent tell each other.
 * Each rank has a socket pair with the parent, who collects the data of an
 * exchange and sends them to all. Both run the same program on one machine, so
 * messages are structs.
 */
#ifndef CDDP_BOOT_SPAWN_WIRE_H
#define CDDP_BOOT_SPAWN_WIRE_H

#include <signal.h>
#include <stdint.h>

/* Environment of a rank: "RANK SIZE SOCKET PARENT", the last two being a file
 * descriptor and a process id. */
#define SPAWN_VARIABLE "CDDP_SPAWN"

typedef enum spawn_kind {
    SPAWN_GIVE,   /* rank: its bytes of this exchange */
    SPAWN_LEAVE,  /* rank: boot_close */
    SPAWN_ANSWER, /* parent: the bytes of all ranks */
    SPAWN_FAULT   /* parent: no exchange succeeds any more; an err_t follows */
} spawn_kind_t;

/* The head of each message; [bytes] bytes follow. */
typedef struct spawn_head {
    uint64_t kind; /* spawn_kind_t */
    uint64_t bytes;
} spawn_head_t;

/* The signals that the parent passes on: those that fault.signals can name.
 * They are blocked in a rank until boot_spawn_open. */
void spawn_signals_fill(sigset_t *out);

#endif
