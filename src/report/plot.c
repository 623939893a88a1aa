/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* gnuplot reads its commands from a file without a name, so no pipe can block
 * or break. Nothing that comes from files but numbers gets into them. */
#include "report/plot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"

#define TABLE_LINES 16

static int64_t middle(const report_bins_t *bins, int at)
{
    return ((int64_t)at << bins->shift) +
           ((((int64_t)1 << bins->shift) - 1) >> 1);
}

static void points_add(const report_bins_t *bins, str_buf_t *out)
{
    for (int i = 0; i < bins->used; i++)
        if (bins->bins[i].count > 0)
            str_buf_add(out, "%" PRId64 " %.9g\n", middle(bins, i),
                        report_bin_mean(&bins->bins[i]));
    str_buf_add(out, "e\n");
}

static bool is_positive(const report_curve_t *curve)
{
    for (int i = 0; curve != NULL && i < curve->bins.used; i++)
        if (curve->bins.bins[i].count > 0 && !(curve->bins.bins[i].least > 0))
            return false;
    return true;
}

/* The commands for gnuplot. */
static void script_add(const report_curve_t *loss, const report_curve_t *valid,
                       report_plot_size_t size, str_buf_t *out)
{
    str_buf_add(out, "set term dumb %s size %d,%d\n",
                size.color ? "ansi" : "mono", size.columns, size.lines);
    str_buf_add(out, "set xlabel 'step'\nset format y '%%.3g'\n");
    if (is_positive(loss) && is_positive(valid))
        str_buf_add(out, "set logscale y\n");
    str_buf_add(out, "plot '-' using 1:2 with lines title 'loss'");
    if (valid != NULL)
        str_buf_add(out, ", '-' using 1:2 with points title 'valid loss'");
    str_buf_add(out, "\n");
    points_add(&loss->bins, out);
    if (valid != NULL)
        points_add(&valid->bins, out);
}

/* Run gnuplot with [fd] as its input. False: it did not work. */
static bool gnuplot_run(int fd)
{
    char name[] = "gnuplot", no_settings[] = "-d";
    char *const args[] = {name, no_settings, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = -1, rc;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
                                     O_WRONLY, 0);
    rc = posix_spawnp(&child, args[0], &actions, NULL, args, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (rc != 0)
        return false;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return status == 0;
}

/* Print the loss as a table of at most TABLE_LINES lines. */
static void table_print(const report_bins_t *bins)
{
    const int each = (bins->used + TABLE_LINES - 1) / TABLE_LINES;

    printf("%12s  %12s  %12s  %12s\n", "steps to", "least loss", "mean",
           "most");
    for (int first = 0; first < bins->used; first += each) {
        report_bin_t all = {.count = 0};
        int last = first + each < bins->used ? first + each : bins->used;

        for (int i = first; i < last; i++)
            report_bin_merge(&all, &bins->bins[i]);
        if (all.count > 0)
            printf("%12" PRId64 "  %12.6g  %12.6g  %12.6g\n",
                   ((int64_t)last << bins->shift) - 1, all.least,
                   report_bin_mean(&all), all.most);
    }
}

err_code_t report_plot_print(const report_curves_t *curves,
                             report_plot_size_t size, err_t *err)
{
    const report_curve_t *loss = report_curves_find(curves, "loss");
    const report_curve_t *valid = report_curves_find(curves, "valid/loss");
    str_buf_t script = {0};
    err_code_t rc = ERR_OK;
    bool drawn = false;
    int fd;

    if (loss == NULL || loss->bins.used == 0)
        return ERR_OK;
    script_add(loss, valid, size, &script);
    fd = memfd_create("plot", MFD_CLOEXEC);
    if (fd < 0 ||
        write(fd, script.text, script.length) != (ssize_t)script.length ||
        lseek(fd, 0, SEEK_SET) != 0)
        rc = err_set(err, ERR_IO, "cannot write the points of a plot: %s",
                     strerror(errno));
    fflush(stdout); /* gnuplot writes to the same file, behind this */
    if (rc == ERR_OK)
        drawn = gnuplot_run(fd);
    if (rc == ERR_OK && !drawn)
        table_print(&loss->bins);
    if (fd >= 0)
        close(fd);
    str_buf_free(&script);
    return rc;
}
