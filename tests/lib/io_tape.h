/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * io_tape: a program that links this sees every call that opens or changes a
 * file below one directory, by all its threads and libraries (HDF5, too). It
 * counts these calls, reports each of them to a function, and can make one of
 * them fail or end the process at one of them.
 */
#ifndef CDDP_TESTS_LIB_IO_TAPE_H
#define CDDP_TESTS_LIB_IO_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Exit status of a process that ends at a call. */
#define IO_TAPE_STOPPED 9

typedef enum io_tape_kind {
    IO_TAPE_OPEN, /* also for reading */
    IO_TAPE_WRITE,
    IO_TAPE_SIZE, /* ftruncate, truncate, fallocate */
    IO_TAPE_SYNC, /* fsync, fdatasync */
    IO_TAPE_RENAME,
    IO_TAPE_LINK,
    IO_TAPE_UNLINK, /* unlink, rmdir */
    IO_TAPE_MKDIR
} io_tape_kind_t;

#define IO_TAPE_ALL 0xffu /* bits of all kinds */

/* A call that succeeded. Paths are absolute. */
typedef struct io_tape_call {
    io_tape_kind_t kind;
    const char *path;  /* of the file, also if it was named by a descriptor */
    const char *to;    /* of RENAME and LINK */
    unsigned flags;    /* of OPEN (those of open) and RENAME (of renameat2) */
    ino_t inode;       /* of OPEN, WRITE, SIZE, SYNC, LINK and MKDIR */
    bool made;         /* OPEN made the file */
    const void *bytes; /* of WRITE */
    size_t count;      /* of WRITE: those that were written */
    off_t offset;      /* of WRITE; of SIZE: the file's new size */
} io_tape_call_t;

/* What happens at a call. */
typedef enum io_tape_act {
    IO_TAPE_STOP, /* the process ends before it */
    IO_TAPE_TEAR, /* the process ends after it, or after half of a write */
    IO_TAPE_FAIL, /* it fails, once */
    IO_TAPE_STAY, /* it fails, and so do all later calls that need space */
    IO_TAPE_SHORT /* a write writes half */
} io_tape_act_t;

typedef struct io_tape_plan {
    const char *root; /* the directory, without links in its path */
    unsigned kinds;   /* bits (1 << kind) of the calls that are counted */
    long at;          /* number of the call, from 1; 0: none */
    io_tape_act_t act;
    int error;        /* errno of a call that fails */
    bool no_exchange; /* names cannot be exchanged, as on NFS */
    /* (optional) Called after each call that succeeded, one at a time. */
    void (*note)(void *context, const io_tape_call_t *call);
    void *context;
} io_tape_plan_t;

/* Set the count to 0 and begin to count. [plan] must stay until io_tape_end,
 * which returns the number of calls. */
void io_tape_begin(const io_tape_plan_t *plan);
long io_tape_end(void);

#endif
