/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/harness_forks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ranks_boot.h"

/* ---- runs ---------------------------------------------------------------- */

static void text_path(const harness_t *harness, int rank, char *out,
                      size_t room)
{
    snprintf(out, room, "%s/end-%d", harness->dir, rank);
}

static void text_write(const harness_t *harness, int rank, const err_t *err)
{
    char path[300];
    FILE *file;

    text_path(harness, rank, path, sizeof path);
    file = fopen(path, "w");
    if (file == NULL)
        return;
    fprintf(file, "%d: %s", err->culprit, err->text);
    fclose(file);
}

static void text_read(const harness_t *harness, int rank, char text[512])
{
    char path[300];
    FILE *file;
    size_t bytes = 0;

    text_path(harness, rank, path, sizeof path);
    file = fopen(path, "r");
    if (file != NULL) {
        bytes = fread(text, 1, 511, file);
        fclose(file);
        unlink(path);
    }
    text[bytes] = '\0';
}

static int fork_main(const comm_oob_t *oob, void *argument)
{
    const harness_forks_t *forks = argument;
    train_outcome_t out = {.speaker = false};
    boot_t *boot = NULL;
    err_t err = ERR_INIT;
    err_code_t rc;

    ranks_transports();
    if (forks->prepare != NULL)
        forks->prepare(oob->rank, oob->size, forks->context);
    rc = ranks_boot(oob, &boot, &err);
    if (rc == ERR_OK)
        rc = harness_rank_run(forks->harness, boot,
                              oob->size == 1 ? "self" : "ucx", &out, &err);
    text_write(forks->harness, oob->rank, &err);
    if (out.device_lost || out.stuck)
        _exit((int)rc);
    return (int)rc;
}

void harness_forks_run(const harness_forks_t *forks, int ranks, int *results,
                       char (*texts)[512])
{
    harness_forks_t own = *forks;

    ranks_forks(ranks, forks->seconds, fork_main, &own, results);
    for (int r = 0; r < ranks; r++)
        text_read(forks->harness, r, texts[r]);
}
