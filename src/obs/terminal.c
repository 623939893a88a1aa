/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "obs/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_USUAL 80
#define WIDTH_LEAST 20

bool obs_terminal_is(int fd)
{
    const char *kind = getenv("TERM");

    return isatty(fd) && (kind == NULL || strcmp(kind, "dumb") != 0);
}

int obs_terminal_width(int fd)
{
    struct winsize size;

    if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return WIDTH_USUAL;
    return size.ws_col < WIDTH_LEAST ? WIDTH_LEAST : size.ws_col;
}

/* Is [byte] a further byte of a character in UTF-8? */
static bool continues(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

void obs_terminal_cut(char *line, int width)
{
    int columns = 0;

    for (; *line != '\0'; line++) {
        if (continues(*line))
            continue;
        if (++columns >= width) {
            *line = '\0';
            return;
        }
    }
}
