/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* terminal: what is known of a terminal on which a line is drawn. */
#ifndef CDDP_OBS_TERMINAL_H
#define CDDP_OBS_TERMINAL_H

#include <stdbool.h>

/* Goes to the begin of the line and erases it. */
#define OBS_TERMINAL_ERASE "\r\033[K"

/* Can a line be drawn again on [fd]? Only on a terminal that moves its cursor:
 * one that is called "dumb" does not. The output of a task of srun is no
 * terminal without --pty. */
bool obs_terminal_is(int fd);

/* The number of columns now (a window may change), at least 20; 80 if the
 * terminal does not tell. */
int obs_terminal_width(int fd);

/* Cut [line] to fewer than [width] columns, as a longer one would take two
 * lines, of which only the second could be erased. Characters of several bytes
 * stay whole. */
void obs_terminal_cut(char *line, int width);

#endif
