/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "slurm/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

/* Start the program. *fd becomes the end of a pipe from which its output is
 * read. Returns 0 or an errno value. */
static int command_start(const slurm_command_t *command, pid_t *pid, int *fd)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none;
    int pipe_fd[2], rc;

    if (pipe2(pipe_fd, O_CLOEXEC) != 0)
        return errno;
    sigemptyset(&none);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe_fd[1], STDOUT_FILENO);
    if (!command->errors)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
                                         O_WRONLY, 0);
    /* The cast removes const: posix_spawn changes no argument, its prototype is
     * historical. */
    rc = posix_spawnp(pid, command->args[0], &actions, &attr,
                      (char *const *)(uintptr_t)command->args,
                      command->env != NULL ? command->env : environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    close(pipe_fd[1]);
    if (rc != 0)
        close(pipe_fd[0]);
    else
        *fd = pipe_fd[0];
    return rc;
}

/* Read all that the writer prints; false after the deadline, after an error, if
 * it is [room] bytes or more, or once [cancel] is readable. */
static bool read_all(int fd, int cancel, double deadline, char *out,
                     size_t room)
{
    size_t length = 0;

    for (;;) {
        struct pollfd wait[2] = {{.fd = fd, .events = POLLIN},
                                 {.fd = cancel, .events = POLLIN}};
        double left = deadline - clock_now();
        int ready =
            left <= 0 ? 0
                      : poll(wait, cancel > 0 ? 2 : 1, (int)(left * 1000) + 1);

        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0 || wait[1].revents != 0)
            return false;
        if (length == room - 1)
            return false;
        ssize_t got = read(fd, out + length, room - 1 - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        length += (size_t)got;
        out[length] = '\0';
        if (got == 0)
            return true;
    }
}

err_code_t slurm_command_read(const slurm_command_t *command, char *out,
                              size_t room, int *status, err_t *err)
{
    int fd = -1, how = 0, rc;
    bool complete;
    pid_t pid = -1;

    out[0] = '\0';
    rc = command_start(command, &pid, &fd);
    *status = rc != 0 ? 127 : -1;
    if (rc != 0)
        return err_set(err, ERR_UNAVAILABLE, "cannot run %s: %s",
                       command->args[0], strerror(rc));
    complete = read_all(fd, command->cancel, clock_now() + command->timeout,
                        out, room);
    close(fd);
    /* Either the program has closed its output and will end, or the deadline
     * has passed. */
    if (!complete)
        kill(pid, SIGKILL);
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR)
        ;
    if (!complete)
        return err_set(err, ERR_UNAVAILABLE,
                       "%s did not answer within %g s, or said too much",
                       command->args[0], command->timeout);
    *status = WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
    return ERR_OK;
}

err_code_t slurm_ask(const char *const *args, char *out, size_t room,
                     err_t *err)
{
    const slurm_command_t command = {.args = args,
                                     .timeout = SLURM_ASK_TIMEOUT};
    int status = 0;
    err_code_t rc = slurm_command_read(&command, out, room, &status, err);

    if (rc == ERR_OK && status != 0)
        rc = err_set(err, ERR_UNAVAILABLE,
                     "%s failed: is the controller reachable?", args[0]);
    return rc;
}
