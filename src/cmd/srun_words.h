/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Finds in the output of srun what it says of the task that ended first,
 * whether it could start the tasks at all, and the sentence with which
 * cddp-train ended. */
#ifndef CDDP_CMD_SRUN_WORDS_H
#define CDDP_CMD_SRUN_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* All bytes 0: nothing was read. */
typedef struct srun_words {
    char line[1024]; /* the line that is being read, cut if longer */
    size_t length;
    char task[256];  /* "task 2 on n1: Killed" */
    char error[256]; /* the first error line of srun, without "srun: error: " */
    char said[1024]; /* the first line of cddp-train, without "cddp-train: " */
    bool unlaunched; /* srun could not start the tasks */
    bool busy;       /* because the nodes were busy */
    bool job_gone;   /* Slurm knows no such job any more */
    bool cancelled;  /* Slurm ended the step and named no reason: scancel */
    char host[64];   /* the node that would not start its tasks; "": none */
} srun_words_t;

/* Read the next [bytes] bytes of the output. */
void srun_words_take(srun_words_t *words, const char *piece, size_t bytes);

/* The output has ended: write the words about the first task, or else srun's
 * first error, to [out]; "": srun reported no error. */
void srun_words_end(srun_words_t *words, char *out, size_t room);

#endif
