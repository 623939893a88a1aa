/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/srun_cause.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define MEMORY "Out Of Memory"

/* Where the words of "task 3 on n2: WORDS" begin; NULL: [words] are of another
 * form. */
static const char *end_of(const char *words)
{
    const char *colon =
        strncmp(words, "task", 4) == 0 ? strstr(words, ": ") : NULL;

    return colon == NULL ? NULL : colon + 2;
}

bool srun_cause_memory(const char *words)
{
    const char *end = end_of(words);

    return end != NULL && strncmp(end, MEMORY, strlen(MEMORY)) == 0;
}

/* The number of the signal that [end] describes ("Segmentation fault (core
 * dumped)"); 0: none. srun prints the descriptions of the C library. */
static int signal_of(const char *end)
{
    for (int number = 1; number < SIGSYS + 1; number++) {
        const char *text = sigdescr_np(number);
        const size_t length = text == NULL ? 0 : strlen(text);

        if (length > 0 && strncmp(end, text, length) == 0 &&
            (end[length] == '\0' || end[length] == ' '))
            return number;
    }
    return 0;
}

bool srun_cause_words(const char *words, char *out, size_t room)
{
    const char *end = end_of(words);
    const int number = end == NULL ? 0 : signal_of(end);

    out[0] = '\0';
    if (srun_cause_memory(words))
        snprintf(out, room, "%.*sout of memory", (int)(end - words), words);
    else if (number > 0)
        snprintf(out, room, "%.*sSIG%s (%s)", (int)(end - words), words,
                 sigabbrev_np(number), end);
    return out[0] != '\0';
}
