/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/train_local.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot/boot.h"
#include "dev/dev.h"
#include "slurm/job.h"

#define GPU "cuda"
#define GPUS 64 /* how many GPUs of a machine are looked at */

/* Seconds, beyond the deadlines of a run, for which ranks may outlive the
 * failure of another one. */
#define PATIENCE 30.0

/* Is there a GPU that can be used? */
static bool gpu_usable(void)
{
    dev_info_t list[GPUS];
    bool usable = false;
    int count = 0;

    if (dev_list(GPU, list, GPUS, &count, NULL) != ERR_OK)
        return false;
    for (int i = 0; i < count && i < GPUS; i++)
        usable = usable || list[i].lacks[0] == '\0';
    return usable;
}

/* Call gpu_usable in a process of its own (see train_local_spawns). */
static bool gpu_found(void)
{
    const pid_t child = fork();
    int status = 0;

    if (child == 0)
        _exit(gpu_usable() ? 0 : 1);
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool train_local_processes(int device, const char *backend)
{
    if (backend != NULL && strcmp(backend, "threads") == 0)
        return false;
    return device == DEV_AUTO ? gpu_found()
                              : strcmp(dev_choices[device], GPU) == 0;
}

bool train_local_spawns(const train_config_t *config)
{
    return train_local_processes(config->train.device,
                                 ddp_backend_name(&config->ddp));
}

static int signal_early(void)
{
    const slurm_signal_t signal = slurm_signal_pending();

    return signal == SLURM_SIGNAL_TERM         ? SIGTERM
           : signal == SLURM_SIGNAL_CHECKPOINT ? SIGUSR1
                                               : 0;
}

err_code_t train_local_spawn(const train_config_t *config, int count,
                             char *const *argv, double timeout, int *status,
                             err_t *err)
{
    const boot_spawn_t spawn = {.count = count,
                                .argv = argv,
                                .timeout = timeout,
                                .early = signal_early,
                                .patience = config->fault.timeout +
                                            config->fault.io_timeout +
                                            PATIENCE};

    /* From here on, a signal must not end this process: boot_spawn_run passes
     * it on to the ranks. */
    slurm_signal_started();
    return boot_spawn_run(&spawn, status, err);
}
