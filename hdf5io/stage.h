/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * stage: copies files to a directory of this node, for all ranks of a job on
 * the node (data.io: stage). The files are shards, but the stage does not look
 * at what they hold: a copy has the same bytes as its file.
 *
 * The ranks of a node agree through the directory alone. The first rank makes
 * the directory, and copies in a thread of its own. The other ranks use its
 * copies. All ranks map a table, which has a flag for each file. The flag is
 * set after the copy was compared with its file and got its name. So nobody
 * waits for a copy: a reader looks at the flag whenever it needs the file.
 *
 * Each rank has a shared lock of the directory; the lock ends with the process.
 * The rank that closes the directory last removes it. A directory that a killed
 * job left is recognized by its name and the missing lock. It is removed before
 * the first file is copied.
 *
 * Thread rule: one thread opens and closes; any thread may call the other
 * functions.
 */
#ifndef CDDP_HDF5IO_STAGE_H
#define CDDP_HDF5IO_STAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

typedef struct hdf5io_stage hdf5io_stage_t;

/* A file, as it was when somebody looked at it. */
typedef struct stage_file {
    const char *path;
    uint64_t bytes;
    int64_t changed; /* its last change (mtime), in nanoseconds */
    uint64_t inode;
    bool wanted; /* false: it is not copied */
} stage_file_t;

typedef struct stage_config {
    const char *dir; /* existing directory, in which the stage makes its own */
    /* The same number for all ranks of a job, and for no other job. Ranks of a
     * node whose [files] differ do not share copies. */
    uint64_t key;
    const stage_file_t *files; /* [count]; needed only during the call */
    int count;
    int first;     /* the file that is copied first; the later files follow */
    uint64_t most; /* bytes of all copies together, at most */
} stage_config_t;

/* Make, or join, the directory. Copies nothing yet. ERR_IO: it cannot be made,
 * or belongs to somebody else; ERR_MEMORY. Local; reads and writes [dir] only.
 */
err_code_t hdf5io_stage_open(const stage_config_t *config, hdf5io_stage_t **out,
                             err_t *err);

/* Begin to copy, if this rank is the one that copies. When copying has ended, a
 * line in the log says how much was copied where, and why not all. */
void hdf5io_stage_start(hdf5io_stage_t *stage);

/* Stop copying; remove the directory if no other rank uses it. NULL allowed.
 * Blocks until a read or write in progress ends. */
void hdf5io_stage_close(hdf5io_stage_t *stage);

/* For tests: wait until this rank has ended copying. */
void hdf5io_stage_wait(hdf5io_stage_t *stage);

/* Is there a copy of file [index]? Once this is true, it stays true. */
bool hdf5io_stage_there(const hdf5io_stage_t *stage, int index);
/* Number of copies that are there, from [first] on among [count] files. */
int hdf5io_stage_copies(const hdf5io_stage_t *stage, int first, int count);

/* Open the copy of file [index] for reading. -1: it cannot be opened, or does
 * not have the size of its file (errno: the reason). The caller closes it. */
int hdf5io_stage_descriptor(const hdf5io_stage_t *stage, int index);
/* A name of the copy, by which this process can open it while the stage is
 * open. The caller frees it. */
char *hdf5io_stage_name(const hdf5io_stage_t *stage, int index);
/* Name of the directory, for messages; valid as long as the stage. */
const char *hdf5io_stage_dir(const hdf5io_stage_t *stage);

/* Bytes that copies in [dir] may take now: some of the file system stays free.
 * 0 if [dir] does not exist. */
uint64_t hdf5io_stage_room(const char *dir);

#endif
