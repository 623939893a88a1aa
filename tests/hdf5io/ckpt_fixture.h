/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Fixture of the checkpoint tests: ranks that are threads and exchange through
 * memory, a small state with tensors of all kinds of shapes, a directory, and
 * an io table that can fail or end the process at its n-th call.
 */
#ifndef CDDP_TESTS_CKPT_FIXTURE_H
#define CDDP_TESTS_CKPT_FIXTURE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/str.h"
#include "hdf5io/checkpoint.h"
#include "hdf5io/checkpoint_io.h"

#define CKPT_RANKS_MAX 64
#define CKPT_TENSORS 8
/* Bytes of a block. A shard has several blocks, and a block may end within an
 * element. */
#define CKPT_BLOCK 601
/* Bytes of the window, which holds three blocks. */
#define CKPT_WINDOW 2000

/* Counts the system calls. Call number [fail_at] (from 1, 0: none) fails with
 * [error], or ends the process if [error] is 0. With [half] writes are
 * short. */
typedef struct ckpt_io {
    hdf5io_io_t table;
    int calls, fail_at, error;
    bool half;
    /* Of the calls that read (open, read), [read_fails] calls fail with
     * [read_error], starting at number [read_fail_at] (from 1, 0: none). */
    int read_calls, read_fail_at, read_fails, read_error;
    /* Files that were read back past the page cache; the [lies_at]-th of them
     * (from 1, 0: none) has one other byte there, until it is opened again. */
    int forgotten, lies_at;
    bool lies;
    bool no_exchange; /* RENAME_EXCHANGE is not supported, as on NFS */
} ckpt_io_t;

void ckpt_io_init(ckpt_io_t *io);

typedef struct ckpt_state {
    hdf5io_tensor_t tensors[CKPT_TENSORS];
    int count;
    hdf5io_progress_t progress;
} ckpt_state_t;

/* Make a state whose bits depend on [seed]; its step is [seed]. */
void ckpt_state_make(ckpt_state_t *state, int64_t seed);
void ckpt_state_clear(ckpt_state_t *state); /* sets all values to zero */
bool ckpt_state_same(const ckpt_state_t *a, const ckpt_state_t *b);
void ckpt_state_free(ckpt_state_t *state);

/* The heads of ranks that all write one shard. */
extern const int ckpt_heads_together[CKPT_RANKS_MAX];

/* global: if it is true, the ranks that ckpt_ranks_run starts can read memory
 * of each other (hdf5io_votes_t.together). Such ranks fail if they are to send
 * tensors. */
extern bool ckpt_together;

/* Input and result of one rank in a collective call. */
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

/* Make a directory. ckpt_home_remove deletes it and frees its name. */
char *ckpt_home_make(void);
void ckpt_home_remove(char *home);

typedef void (*ckpt_body_t)(ckpt_rank_t *rank, void *context);

/* Run [body] on [size] threads. Each rank has a state of [seed] and a
 * configuration for [home] with keep 3. The ranks are returned for inspection;
 * ckpt_ranks_free frees them. */
ckpt_rank_t *ckpt_ranks_run(const char *home, int size, int64_t seed,
                            ckpt_body_t body, void *context);
void ckpt_ranks_free(ckpt_rank_t *ranks, int size);

/* Bodies for ckpt_ranks_run. ckpt_body_read clears the state first; its
 * [context] is a path or NULL. */
void ckpt_body_write(ckpt_rank_t *rank, void *context);
void ckpt_body_write_old(ckpt_rank_t *rank, void *context); /* format 1 */
/* All ranks write one shard together. */
void ckpt_body_write_together(ckpt_rank_t *rank, void *context);
void ckpt_body_read(ckpt_rank_t *rank, void *context);

/* Write the state [seed] with [size] ranks; asserts success. */
void ckpt_write(const char *home, int size, int64_t seed);

/* Read with [size] ranks; asserts that all ranks get the state [seed]. */
void ckpt_expect(const char *home, int size, int64_t seed);

/* Read with [size] ranks; asserts that the checkpoint has step [step]. True:
 * all ranks got the state [seed]; false: another state. */
bool ckpt_is(const char *home, int size, int64_t seed, int64_t step);

/* The text of a manifest with the first [old] replaced by [new], and with the
 * right hash. */
str_buf_t ckpt_manifest_edited(const char *text, const char *old,
                               const char *new);

/* Edit MANIFEST.json in the directory [checkpoint] in this way. */
void ckpt_manifest_edit(const char *checkpoint, const char *old,
                        const char *new);

/* Number of entries of [home] whose names begin with [prefix]. */
int ckpt_count(const char *home, const char *prefix);

#endif
