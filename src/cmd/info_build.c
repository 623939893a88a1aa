/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/info_build.h"

#include <stdio.h>
#include <string.h>

#include "build_line.h"
#include "slurm/ask.h"

#define SRUN_TIMEOUT 3.0 /* seconds */

/* Append the words in the first [bytes] bytes of [text]. */
static void words_add(const char *text, size_t bytes, str_buf_t *out)
{
    size_t at = 0;

    while (at < bytes) {
        size_t length;

        at += strspn(text + at, " \t,");
        length = strcspn(text + at, " \t,\n");
        if (at < bytes && length > 0)
            str_buf_add(out, "%s%.*s", out->length > 0 ? " " : "", (int)length,
                        text + at);
        at += length > 0 ? length : 1;
    }
}

/* Older versions print "srun: pmix" and "srun: MPI types are..." on standard
 * error; newer ones print a name in an indented line, and the versions of PMIx
 * after a colon. */
void info_build_plugins(const char *said, str_buf_t *out)
{
    for (const char *line = said; *line != '\0';) {
        const size_t bytes = strcspn(line, "\n");
        const char *begin = line, *colon;

        if (strncmp(begin, "srun: ", 6) == 0)
            begin += 6;
        colon = memchr(begin, ':', bytes - (size_t)(begin - line));
        if (strncmp(begin, "specific pmix", 13) == 0 && colon != NULL)
            begin = colon + 1;
        if (strncmp(begin, "MPI ", 4) != 0)
            words_add(begin, bytes - (size_t)(begin - line), out);
        line += bytes + (line[bytes] == '\n');
    }
}

static void plugins_print(void)
{
    /* Versions differ in whether they print the list as output or as errors. */
    static const char *const args[] = {"sh", "-c", "exec srun --mpi=list 2>&1",
                                       NULL};
    const slurm_command_t command = {.args = args, .timeout = SRUN_TIMEOUT};
    str_buf_t names = {0};
    char said[4096];
    int status = 0;
    err_t err = ERR_INIT;

    if (slurm_command_read(&command, said, sizeof said, &status, &err) !=
        ERR_OK)
        printf("slurm   srun --mpi=list did not answer in %g s\n",
               SRUN_TIMEOUT);
    else if (status == 127)
        printf("slurm   no srun here\n");
    else if (status != 0)
        printf("slurm   srun --mpi=list ended with status %d\n", status);
    else {
        info_build_plugins(said, &names);
        str_print("slurm   srun --mpi: %s\n",
                  names.length > 0 ? names.text : "none");
    }
    str_buf_free(&names);
}

void info_build_print(void)
{
    printf("configure %s\n",
           BUILD_CONFIGURE[0] != '\0' ? BUILD_CONFIGURE : "(no arguments)");
    printf("compiler %s\n", BUILD_COMPILER);
    printf("prefix  %s\n", BUILD_PREFIX);
    plugins_print();
}
