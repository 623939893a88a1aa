/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* srun_cause: why a task died, from what srun said of it
 * (cmd/srun_words.h). Pure. */
#ifndef CDDP_CMD_SRUN_CAUSE_H
#define CDDP_CMD_SRUN_CAUSE_H

#include <stdbool.h>
#include <stddef.h>

/* Did Slurm see that the task was killed for lack of memory? */
bool srun_cause_memory(const char *words);

/* Write the cause to [out]: "task 3 on n2: SIGSEGV (Segmentation fault)", or
 * "task 3 on n2: out of memory". False, and "": no signal ended the task. */
bool srun_cause_words(const char *words, char *out, size_t room);

#endif
