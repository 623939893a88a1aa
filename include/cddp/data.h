/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Reads samples from one or many HDF5 files. They are ordinary datasets, with
 * the samples along dimension 0. The samples of each step are divided among the
 * ranks of a group, and a thread reads ahead.
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
 * thread-safe. libcddp calls HDF5 from its own threads (which read ahead) and
 * within cddp_data_* and cddp_checkpoint_*, always under one lock. A program
 * that uses HDF5 itself must hold this lock around its own calls while a
 * cddp_data_t is open or a rank is in a checkpoint. The lock is not recursive:
 * the thread that holds it may call no function of libcddp but
 * cddp_hdf5_unlock.
 *
 * While the lock is free or held by the program, HDF5 prints errors as the
 * program has set it. If libcddp was the first to call HDF5, HDF5 closes
 * nothing when the process exits (H5dont_atexit), so the program must close its
 * own files.
 *
 * libcddp does not lock files (H5Pset_file_locking). HDF5 opens a file twice in
 * one process only if this property is the same: so a program that opens a file
 * which libcddp has open must set it to (false, true), too.
 */
void cddp_hdf5_lock(void);
void cddp_hdf5_unlock(void);

typedef struct cddp_data cddp_data_t;

/* One of several inputs or targets. Optional fields that are 0 have their
 * defaults. */
typedef struct cddp_field {
    const char *path; /* dataset in the files, "/spins" */
    int64_t elems;    /* elements of one sample; 0: 1 */
    int64_t classes;  /* of a target: see cddp_data_config_t */
    int64_t tokens;   /* of an input: see cddp_data_config_t */
    double scale;     /* value = stored * scale + shift; 0 means 1 */
    double shift;
    /* (optional) What else is done to a sample, as YAML: the options mean, std,
     * layout, one_hot, flip, crop and pad of the run file (docs/CONFIG.md,
     * data.input), such as "{crop: [32, 32], flip: horizontal}". [elems] is the
     * number of elements that a sample has after these operations. */
    const char *options;
} cddp_field_t;

/* Optional fields that are 0 have their defaults. */
typedef struct cddp_data_config {
    const char *const *files; /* names or glob patterns, ended by NULL */
    const char *input;        /* dataset of the inputs, "/spins" */
    const char *target;       /* dataset of the targets; not for sequences */
    int64_t input_elems;      /* elements of one sample */
    int64_t target_elems;     /* elements of one sample; 0: 1 */
    /* > 0: the number of classes; targets are class numbers from 0 on, read as
     * int64. 0: targets are real numbers, read as float. */
    int64_t classes;
    /* > 0: the number of different tokens; inputs are token numbers from 0 on,
     * read as int32. 0: inputs are real numbers, read as float. */
    int64_t tokens;
    /* T > 0: the files hold streams of tokens, which are cut into samples of T
     * tokens. The target of each token is the token after it. */
    int64_t sequence;
    double scale; /* input = stored * scale + shift; 0 means 1 */
    double shift;
    int64_t batch;       /* samples per step of all ranks together */
    const char *shuffle; /* "none" (also NULL), "chunk", "full" */
    uint64_t seed;
    int64_t epochs;
    int64_t epoch, step; /* position of the first batch, to resume */
    int prefetch;        /* batches read ahead; 0: none */
    /* (optional) Several inputs and targets, up to CDDP_FIELDS_MAX (8) of each,
     * in the order of the model's inputs and targets. They replace the fields
     * from input to shift, and input_options and target_options. Not with
     * sequence, which takes one input and one target. */
    const cddp_field_t *inputs, *targets;
    int input_count, target_count;
    /* How ranks check that they see the same data. "quick" (also NULL): compare
     * the shapes and a sample of the bytes. "full": compare all bytes, too.
     * "none": no check, for ranks that read different files on purpose. */
    const char *validate;
    /* (optional) The options of [input] and [target]: see cddp_field_t. Not
     * with sequence. */
    const char *input_options, *target_options;
    /* "rows" (also NULL): the rows of the datasets are the samples. "files":
     * each file is one sample, with whole datasets; not with sequence. */
    const char *samples;
    /* 0: a crop is taken from the middle, and nothing is mirrored. Not 0, for
     * training: [seed], epoch and number of a sample decide where its crop is
     * taken, and whether it is mirrored. */
    int augment;
    /* Number of threads that read ahead. Each thread reads one batch at a time,
     * so at most [prefetch] threads are used. 0: one thread. The batches do not
     * depend on this number. */
    int threads;
} cddp_data_config_t;

typedef struct cddp_batch {
    int64_t epoch, step; /* step: within the epoch, from 0 */
    int64_t count;       /* number of this rank's samples, may be 0 */
    int64_t global;      /* samples of the step on all ranks together */
    void *input;         /* float or int32_t [count, input_elems] */
    void *target;        /* int64_t or float [count, target_elems] */
    uint64_t *ids;       /* [count]: number of each sample in the data set */
    void *inputs[8];     /* all inputs; inputs[0] is input */
    void *targets[8];    /* all targets; targets[0] is target */
} cddp_batch_t;

/* Open and check all files, and compare them with those of the other ranks of
 * [group]: a rank knows its samples by their numbers only, so the files must
 * agree. CDDP_DATA if a host sees other data than rank 0; the message names
 * host and file. Collective: all ranks get the same result; blocks. With
 * validate "none" the call is local. Close the data before the group. */
cddp_code_t cddp_data_open(cddp_group_t *group,
                           const cddp_data_config_t *config, cddp_data_t **out,
                           cddp_error_t *error);
void cddp_data_close(cddp_data_t *data); /* NULL allowed */

int64_t cddp_data_samples(const cddp_data_t *data); /* in an epoch */
int64_t cddp_data_steps(const cddp_data_t *data);   /* in an epoch */

/* The next batch, valid until the next call; NULL in *out after the last.
 * Blocks until it is read. */
cddp_code_t cddp_data_next(cddp_data_t *data, const cddp_batch_t **out,
                           cddp_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
