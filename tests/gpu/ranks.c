/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Usage: ranks N PROGRAM [ARGUMENT...]. Runs PROGRAM, which uses libcddp, as N
 * ranks that are processes of this machine, as srun would. Ends with the
 * highest exit status of a rank.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "boot/boot.h"

#define SECONDS 60 /* for an exchange; and for ranks that outlive a failure */

int main(int argc, char **argv)
{
    const boot_spawn_t spawn = {.count = argc > 2 ? atoi(argv[1]) : 0,
                                .argv = argv,
                                .timeout = SECONDS,
                                .patience = SECONDS};
    int status = 1;
    err_t err = ERR_INIT;

    if (spawn.count < 1) {
        fprintf(stderr, "usage: ranks N PROGRAM [ARGUMENT...]\n");
        return 64;
    }
    if (boot_spawn_is_rank()) {
        execv(argv[2], argv + 2);
        perror(argv[2]);
        return 1;
    }
    if (boot_spawn_run(&spawn, &status, &err) != ERR_OK)
        fprintf(stderr, "ranks: %s\n", err.text);
    return status;
}
