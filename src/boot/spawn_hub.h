/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * spawn_hub: the parent's side of the exchanges between ranks that it has
 * started. It never waits: the caller polls. Thread rule: one thread.
 */
#ifndef CDDP_BOOT_SPAWN_HUB_H
#define CDDP_BOOT_SPAWN_HUB_H

#include <poll.h>

#include "base/err.h"

typedef struct spawn_hub spawn_hub_t;

/* Make a hub of [size] ranks. An exchange fails [timeout] seconds after its
 * first rank has come. ERR_MEMORY. */
err_code_t spawn_hub_new(int size, double timeout, spawn_hub_t **out,
                         err_t *err);
/* Closes the sockets, too. NULL allowed. */
void spawn_hub_free(spawn_hub_t *hub);

/* Take over the socket [fd] to [rank]. */
void spawn_hub_add(spawn_hub_t *hub, int rank, int fd);

/* spawn_hub_polls fills out[0 .. size-1] with what poll must wait for. After
 * poll, spawn_hub_serve does what has become possible. */
void spawn_hub_polls(const spawn_hub_t *hub, struct pollfd *out);
void spawn_hub_serve(spawn_hub_t *hub, const struct pollfd *polls);

/* The process of [rank] has ended; [how] ("was killed by signal 9") completes a
 * sentence about it. What the rank has sent is read first. Unless the rank has
 * left (boot_close), no later exchange succeeds. */
void spawn_hub_ended(spawn_hub_t *hub, int rank, const char *how);

#endif
