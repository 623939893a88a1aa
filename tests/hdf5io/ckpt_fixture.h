/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What the checkpoint tests share: ranks that are threads and exchange through
 * memory, a small state with all kinds of shapes, a directory of its own, and
 * an io table that can fail or end the process at the n-th call.
 */
#ifndef CDDP_TESTS_CKPT_FIXTURE_H
#define CDDP_TESTS_CKPT_FIXTURE_H

#include <pthread.h>
#include <stdbool.h>

#include "hdf5io/checkpoint.h"
#include "hdf5io/checkpoint_io.h"

#define CKPT_RANKS_MAX 9
#define CKPT_TENSORS 8

/* The system's calls, counted; call number [fail_at] (from 1, 0: none) fails
 * with [error], or ends the process if error is 0. [half]: writes are short. */
typedef struct ckpt_io {
    hdf5io_io_t table;
    int calls, fail_at, error;
    bool half;
    /* Of the calls that read (open, read): from number [read_fail_at] on (from
     * 1, 0: none) [read_fails] calls fail with [read_error]. */
    int read_calls, read_fail_at, read_fails, read_error;
    bool no_exchange; /* RENAME_EXCHANGE is not supported, as on NFS */
} ckpt_io_t;

void ckpt_io_init(ckpt_io_t *io);

typedef struct ckpt_state {
    hdf5io_tensor_t tensors[CKPT_TENSORS];
    int count;
    hdf5io_progress_t progress;
} ckpt_state_t;

/* A state whose bits depend on [seed]; step is [seed], too. */
void ckpt_state_make(ckpt_state_t *state, int64_t seed);
void ckpt_state_clear(ckpt_state_t *state); /* zeroes all values */
bool ckpt_state_same(const ckpt_state_t *a, const ckpt_state_t *b);
void ckpt_state_free(ckpt_state_t *state);

/* One rank's side of a collective call and its outcome. */
typedef struct ckpt_rank {
    hdf5io_votes_t votes;
    hdf5io_checkpoint_config_t config;
    ckpt_state_t state;
    ckpt_io_t io;
    bool found;
    err_code_t code;
    err_t err;
    hdf5io_checkpoint_info_t info;
} ckpt_rank_t;

/* Make a directory; ckpt_home_remove deletes it and frees the name. */
char *ckpt_home_make(void);
void ckpt_home_remove(char *home);

typedef void (*ckpt_body_t)(ckpt_rank_t *rank, void *context);

/* Run [body] on [size] threads. ranks[] is filled: state of [seed], config for
 * [home] with keep 3, and left for inspection; ckpt_ranks_free. */
ckpt_rank_t *ckpt_ranks_run(const char *home, int size, int64_t seed,
                            ckpt_body_t body, void *context);
void ckpt_ranks_free(ckpt_rank_t *ranks, int size);

/* Bodies. Read clears the state first; [context] is a path or NULL. */
void ckpt_body_write(ckpt_rank_t *rank, void *context);
void ckpt_body_read(ckpt_rank_t *rank, void *context);

/* Write state [seed] with [size] ranks; asserts success. */
void ckpt_write(const char *home, int size, int64_t seed);

/* Read with [size] ranks; asserts that all ranks got state [seed]. */
void ckpt_expect(const char *home, int size, int64_t seed);

/* The same for a state of [seed] that was written as one of step [step]. True:
 * it was; false: it was another state of that step. */
bool ckpt_is(const char *home, int size, int64_t seed, int64_t step);

/* Number of entries of [home] whose names begin with [prefix]. */
int ckpt_count(const char *home, const char *prefix);

#endif
