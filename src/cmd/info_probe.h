/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * cddp-info --check: what one host can measure without the others. Rank 0 makes
 * a folder with a file in the directory that is checked, and locks the file;
 * the first rank on every host looks at it and writes beside it.
 */
#ifndef CDDP_CMD_INFO_PROBE_H
#define CDDP_CMD_INFO_PROBE_H

#include <stdint.h>

#include "cmd/info_judge.h"

#define INFO_PATH_MAX 4096

/* The folder, known to all ranks. All bytes 0: rank 0 could not make it. */
typedef struct info_folder {
    char name[32];    /* in the directory that is checked */
    char content[16]; /* random bytes of the file in it */
    int32_t error;    /* errno of rank 0; 0: it was made */
    int32_t lock;     /* info_lock_t: what rank 0 got */
} info_folder_t;

/* Make the folder in [dir]. *fd keeps the lock until it is closed; it is -1 if
 * there is no file. Returns at once with folder->error if that fails. */
void info_folder_make(const char *dir, info_folder_t *folder, int *fd);

/* Remove it. */
void info_folder_remove(const char *dir, const info_folder_t *folder);

/* Look for the file of rank 0, for at most a second, since a network file
 * system may show a new file late; then try to lock it. [first]: this is the
 * host of rank 0. Fills in record->seen and record->lock. */
void info_probe_file(const char *dir, const info_folder_t *folder, bool first,
                     info_record_t *record);

/* Write 4 KiB to a file of [rank] in the folder and fsync it. Fills in
 * record->write, and lowers record->fsync to the time of this fsync. */
void info_probe_write(const char *dir, const info_folder_t *folder, int rank,
                      info_record_t *record);

/* Free bytes in /dev/shm; 0 if there is none. */
uint64_t info_probe_shm(void);

#endif
