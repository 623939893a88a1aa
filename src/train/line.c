/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/line.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "hdf5io/nodeset.h"

static char *line_path(const char *dir)
{
    return str_printf("%s/local", dir);
}

static uint64_t inode_of(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

static void line_parse(const char *text, train_line_t *line)
{
    size_t length;
    int end = 0;

    *line = (train_line_t){0};
    if (sscanf(text, "%" SCNx64 " %" SCNx64 " %" SCNx64 " %n", &line->run,
               &line->line, &line->inode, &end) < 2) {
        *line = (train_line_t){0};
        return;
    }
    length = end > 0 ? strcspn(text + end, "\n") : 0;
    if (length < sizeof line->where)
        memcpy(line->where, text + end, length);
}

/* Was [dir] copied, with its file, from the directory to which the sets belong?
 * Two runs must not use the same sets. The numbers of devices are not compared,
 * as a network file system may have another number on each node. */
static bool is_copy(const char *dir, const train_line_t *line)
{
    return line->inode != 0 && line->inode != inode_of(dir);
}

/* Is anything at [path], or is this unknown? */
static bool is_there(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 || errno != ENOENT;
}

train_line_t train_line_read(const char *dir, bool says)
{
    char *path = line_path(dir), *text = NULL;
    train_line_t line = {0};
    err_t err = ERR_INIT;

    if (file_read_own(path, &text, NULL, &err) == ERR_OK)
        line_parse(text, &line);
    else if (says && is_there(path))
        log_warn("train",
                 "%s: local checkpoints of earlier starts are not found",
                 err.text);
    if (is_copy(dir, &line)) {
        if (says)
            log_warn("train",
                     "%s was copied or restored: its local checkpoints are "
                     "those of the directory that was there before, and are "
                     "not used",
                     dir);
        line = (train_line_t){0};
    }
    free(text);
    free(path);
    return line;
}

char *train_line_places(const char *dir)
{
    char *path = line_path(dir), *text = NULL, *places;
    const char *rest = NULL;
    train_line_t line = {0};

    if (file_read_own(path, &text, NULL, NULL) == ERR_OK) {
        line_parse(text, &line);
        rest = strchr(text, '\n');
    }
    places = str_dup(rest == NULL || is_copy(dir, &line) ? "" : rest + 1);
    free(text);
    free(path);
    return places;
}

err_code_t train_line_write(const char *dir, const train_line_t *line,
                            const char *where, const char *places, err_t *err)
{
    char *path = line_path(dir);
    char *text =
        str_printf("%016" PRIx64 " %016" PRIx64 " %016" PRIx64 " %s\n%s",
                   line->run, line->line, inode_of(dir), where, places);
    err_code_t rc = file_publish(path, text, strlen(text), err);

    free(text);
    free(path);
    return rc;
}

err_code_t train_line_remove(const char *dir, err_t *err)
{
    char *path = line_path(dir);
    err_code_t rc = file_remove(path, err);

    free(path);
    return rc;
}

/* Is [name] the home of another line of this run on this node? */
static bool is_old(const train_line_t *line, const char *host, const char *name)
{
    uint64_t run = 0, other = 0;
    int end = 0;

    return sscanf(name, "cddp-%" SCNx64 "-%" SCNx64 "-%n", &run, &other,
                  &end) == 2 &&
           end > 0 && strcmp(name + end, host) == 0 && run == line->run &&
           other != line->line;
}

/* Delete the set [path]. False: this has failed, which is logged. */
static bool set_remove(const char *path)
{
    err_t err = ERR_INIT;

    if (file_remove_tree(path, &err) == ERR_OK)
        return true;
    log_warn("train", "cannot remove old local checkpoints: %s", err.text);
    return false;
}

/* Delete the sets of other lines in the directory [where]. False: some may be
 * left. */
static bool dir_clean(const train_line_t *line, const char *where,
                      const char *host)
{
    DIR *dir = opendir(where);
    const struct dirent *entry;
    bool clean = dir != NULL || errno == ENOENT;

    if (!clean)
        log_warn("train", "cannot look for old local checkpoints in %s: %s",
                 where, strerror(errno));
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char *path = str_printf("%s/%s", where, entry->d_name);

        if (is_old(line, host, entry->d_name) && hdf5io_nodeset_own(path))
            clean &= set_remove(path);
        free(path);
    }
    if (dir != NULL)
        closedir(dir);
    return clean;
}

bool train_line_clean(const train_line_t *line, const char *dirs,
                      const char *host)
{
    bool clean = true;

    while (*dirs != '\0') {
        const size_t bytes = strcspn(dirs, "\n");
        char *where = str_printf("%.*s", (int)bytes, dirs);

        clean &= dir_clean(line, where, host);
        free(where);
        dirs += bytes + (dirs[bytes] == '\n');
    }
    return clean;
}
