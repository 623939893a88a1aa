/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/view.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/hash.h"

uint64_t train_view(const comm_group_t *group)
{
    const char *host = comm_group_host(group, comm_group_rank(group));
    static const char *const prefixes[] = {"HDF5_EXT_PREFIX", "HDF5_VDS_PREFIX",
                                           "HDF5_EXTFILE_PREFIX"};
    hash_state_t *state = hash_state_open();
    struct stat mounts = {0};
    char *boot = NULL;
    size_t bytes = 0;
    uint64_t view;

    hash_state_add(state, host, strlen(host) + 1);
    /* Without /proc the host name and the inodes must suffice. */
    if (stat("/proc/self/ns/mnt", &mounts) == 0)
        hash_state_add(state, &mounts.st_ino, sizeof mounts.st_ino);
    if (file_read("/proc/sys/kernel/random/boot_id", &boot, &bytes, NULL) ==
        ERR_OK)
        hash_state_add(state, boot, bytes);
    free(boot);
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        const char *prefix = getenv(prefixes[i]);

        prefix = prefix == NULL ? "" : prefix;
        hash_state_add(state, prefix, strlen(prefix) + 1);
    }
    view = hash_state_value(state);
    hash_state_free(state);
    return view;
}
