/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * power_loss: records all calls that change a directory (by lib/io_tape.h).
 * From the record it makes the states that POSIX allows after the power failed
 * at any moment. fsync of a file makes its bytes and its size durable, and
 * fsync of a directory makes the names in it durable. Any part of all other
 * changes may be missing: each block of 512 bytes, each name, each change of a
 * name. What one call does to one directory (a rename) happens as a whole or
 * not at all.
 */
#ifndef CDDP_TESTS_LIB_POWER_LOSS_H
#define CDDP_TESTS_LIB_POWER_LOSS_H

#include <stdint.h>

#include "lib/io_tape.h"

typedef struct power_loss power_loss_t;

/* Begin a record. What is in the directory [root] now is durable. */
power_loss_t *power_loss_open(const char *root);
void power_loss_close(power_loss_t *power);

/* For io_tape_plan_t, with the power_loss_t as its context. */
void power_loss_note(void *power, const io_tape_call_t *call);

/* Number of changes and syncs in the record. */
int power_loss_count(const power_loss_t *power);

/* Fill the empty directory [to] with a state that is allowed if the power
 * failed after [count] changes and syncs; [seed] chooses which one. */
void power_loss_store(const power_loss_t *power, int count, uint64_t seed,
                      const char *to);

/* The process was killed after [count] changes and syncs, and the power did not
 * fail: make the state that the process left, in the empty directory [to].
 * Later calls are recorded there. */
void power_loss_continue(power_loss_t *power, int count, const char *to);

#endif
