/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Finds the time at which Slurm ends the job. Since Slurm 23.02 the environment
 * has it; for older versions, squeue prints the time left. squeue hangs if the
 * controller does, so it is killed after a deadline.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "slurm/job.h"

bool slurm_time_parse(const char *text, double *seconds)
{
    long days = 0, part[3] = {0};
    int parts = 0;
    char *end;

    if (strcmp(text, "UNLIMITED") == 0) {
        *seconds = INFINITY;
        return true;
    }
    const char *dash = strchr(text, '-');
    if (dash != NULL) {
        days = strtol(text, &end, 10);
        if (end != dash || end == text || days < 0)
            return false;
        text = dash + 1;
    }
    for (;;) {
        if (parts == 3 || *text < '0' || *text > '9')
            return false;
        part[parts++] = strtol(text, &end, 10);
        if (*end == '\0')
            break;
        if (*end != ':')
            return false;
        text = end + 1;
    }
    /* The format is [[D-]HH:]MM:SS. */
    if (parts < 2 || (dash != NULL && parts < 3))
        return false;
    if (parts == 2)
        *seconds = (double)part[0] * 60 + (double)part[1];
    else
        *seconds = (double)days * 86400 + (double)part[0] * 3600 +
                   (double)part[1] * 60 + (double)part[2];
    return true;
}

/* Start squeue. *fd becomes the end of a pipe from which its output is read.
 * Returns 0 or an errno value. */
static int squeue_start(const char *job_id, pid_t *pid, int *fd)
{
    const char *const args[] = {"squeue", "-h", "-j", job_id, "-o", "%L", NULL};
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
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
                                     O_WRONLY, 0);
    /* The cast removes const: posix_spawn changes no argument, its prototype is
     * historical. */
    rc = posix_spawnp(pid, args[0], &actions, &attr,
                      (char *const *)(uintptr_t)args, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    close(pipe_fd[1]);
    if (rc != 0)
        close(pipe_fd[0]);
    else
        *fd = pipe_fd[0];
    return rc;
}

/* Read all that the writer prints, at most [room] - 1 bytes; false after the
 * deadline or an error. */
static bool read_all(int fd, double deadline, char *out, size_t room)
{
    size_t length = 0;

    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        double left = deadline - clock_now();
        int ready = left <= 0 ? 0 : poll(&wait, 1, (int)(left * 1000) + 1);

        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return false;
        ssize_t got = read(fd, out + length, room - 1 - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        length += (size_t)got;
        out[length] = '\0';
        if (got == 0 || length == room - 1)
            return true;
    }
}

/* Ask squeue how much time [job_id] has left; [line] becomes the first line of
 * its output. */
static err_code_t squeue_ask(const char *job_id, char *line, size_t room,
                             err_t *err)
{
    int fd = -1, status = 0, rc;
    bool complete;
    pid_t pid = -1;

    rc = squeue_start(job_id, &pid, &fd);
    if (rc != 0)
        return err_set(err, ERR_UNAVAILABLE, "cannot run squeue: %s",
                       strerror(rc));
    complete = read_all(fd, clock_now() + SLURM_ASK_TIMEOUT, line, room);
    close(fd);
    /* Either squeue has closed its output and will end, or the deadline has
     * passed. */
    if (!complete)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!complete)
        return err_set(err, ERR_UNAVAILABLE,
                       "squeue did not answer within %g s", SLURM_ASK_TIMEOUT);
    if (status != 0)
        return err_set(err, ERR_UNAVAILABLE,
                       "`squeue -h -j %s -o %%L` failed: is the controller "
                       "reachable?",
                       job_id);
    line[strcspn(line, "\n")] = '\0';
    return ERR_OK;
}

err_code_t slurm_job_find_end(slurm_job_t *job, err_t *err)
{
    char line[64] = "";
    double now, left;
    err_code_t rc;

    if (job->end_time > 0 || job->id[0] == '\0')
        return ERR_OK;
    now = clock_wall();
    rc = squeue_ask(job->id, line, sizeof line, err);
    if (rc != ERR_OK)
        return rc;
    if (!slurm_time_parse(line, &left))
        return err_set(err, ERR_UNAVAILABLE,
                       "squeue says that job %s has '%s' left, expected "
                       "[[D-]HH:]MM:SS or UNLIMITED",
                       job->id, line);
    if (isfinite(left))
        job->end_time = now + left;
    return ERR_OK;
}
