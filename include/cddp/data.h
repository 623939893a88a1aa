/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Samples from HDF5 files: ordinary datasets with the samples along dimension
 * 0, in one or many files. The samples of each step are divided among the ranks
 * of a group, and a thread reads ahead.
 *
 * Thread rule: one thread per rank.
 */
#ifndef CDDP_DATA_H
#define CDDP_DATA_H

#include <stdint.h>

#include <cddp/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * HDF5 is one library for the whole process, and most builds of it are not
 * thread-safe. This one calls it from threads of its own (reading ahead) and
 * within cddp_data_* and cddp_checkpoint_*, always under one lock. A program
 * that uses HDF5 itself holds this lock around its own calls while a
 * cddp_data_t is open or a rank is in a checkpoint. Not recursive: within it,
 * no function of this library may be called but the unlock, by the same thread.
 *
 * While the lock is free or held by the program, HDF5's automatic error
 * printing is as the program has set it. If this library was the first to call
 * HDF5, HDF5 closes nothing at process exit (H5dont_atexit): the program must
 * close its own files.
 */
void cddp_hdf5_lock(void);
void cddp_hdf5_unlock(void);

typedef struct cddp_data cddp_data_t;

/* One input or target of several. Zeroed, optional fields mean their defaults.
 */
typedef struct cddp_field {
    const char *path; /* dataset in the files, "/spins" */
    int64_t elems;    /* of one sample; 0: 1 */
    int64_t classes;  /* a target: see cddp_data_config_t */
    int64_t tokens;   /* an input: the same */
    double scale;     /* value = stored * scale + shift; 0 means 1 */
    double shift;
} cddp_field_t;

/* Zeroed, optional fields mean their defaults. */
typedef struct cddp_data_config {
    const char *const *files; /* names or globs, ended by NULL */
    const char *input;        /* dataset of the inputs, "/spins" */
    const char *target;       /* dataset of the targets; not for sequences */
    int64_t input_elems;      /* of one sample */
    int64_t target_elems;     /* of one sample; 0: 1 */
    int64_t classes; /* > 0: targets are class numbers below this, read as
                        int64; 0: numbers, read as float */
    int64_t tokens;  /* > 0: inputs are numbers below this, read as int32; 0:
                        numbers, read as float */
    int64_t
        sequence; /* T > 0: the files hold streams of tokens that are cut into
                     samples of T; the target is the token behind each */
    double scale; /* input = stored * scale + shift; 0 means 1 */
    double shift;
    int64_t batch;       /* samples of a step, over all ranks */
    const char *shuffle; /* "none" (also NULL), "chunk", "full" */
    uint64_t seed;
    int64_t epochs;
    int64_t epoch, step; /* the first batch to deliver, to go on from there */
    int prefetch;        /* batches read ahead; 0: none */
    /* (optional) Several inputs and targets, up to CDDP_FIELDS_MAX (8) of each,
     * in the order of the model's, instead of all from input to shift but
     * sequence, which takes one of each. */
    const cddp_field_t *inputs, *targets;
    int input_count, target_count;
    /* How ranks check that they see the same data. "quick" (also NULL): shapes,
     * and a sample of the bytes; "full": all bytes, too; "none": no check, for
     * ranks that read different files on purpose. */
    const char *validate;
} cddp_data_config_t;

typedef struct cddp_batch {
    int64_t epoch, step; /* step of the epoch, from 0 */
    int64_t count;       /* this rank's samples, may be 0 */
    int64_t global;      /* samples of the step over all ranks */
    void *input;         /* float or int32_t [count, input_elems] */
    void *target;        /* int64_t or float [count, target_elems] */
    uint64_t *ids;       /* [count] numbers of the samples in the data set */
    void *inputs[8];     /* each; input is the first */
    void *targets[8];    /* each; target is the first */
} cddp_batch_t;

/* Open and check all files, and compare them with those of the other ranks of
 * [group]: ranks know their samples by number only. CDDP_DATA if a host sees
 * other data than rank 0; the message names host and file. Collective: all
 * ranks get the same result; blocks. Local with validate "none". Close it
 * before the group. */
cddp_code_t cddp_data_open(cddp_group_t *group,
                           const cddp_data_config_t *config, cddp_data_t **out,
                           cddp_error_t *error);
void cddp_data_close(cddp_data_t *data); /* NULL allowed */

int64_t cddp_data_samples(const cddp_data_t *data);
int64_t cddp_data_steps(const cddp_data_t *data); /* of an epoch */

/* The next batch, valid until the next call; NULL in *out after the last.
 * Blocks until it is read. */
cddp_code_t cddp_data_next(cddp_data_t *data, const cddp_batch_t **out,
                           cddp_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
