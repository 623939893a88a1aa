/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The comm thread of a ucx group: it drives (ucx_drive.h) whenever the owner
 * does not, and says good-bye in the end. All functions are for the owner. */
#ifndef CDDP_COMM_UCX_THREAD_H
#define CDDP_COMM_UCX_THREAD_H

#include "comm/ucx/ucx_group.h"

/* Post the receives of notes and start the thread. ERR_UNAVAILABLE. */
err_code_t ucx_thread_start(ucx_group_t *group, err_t *err);
/* Let the thread wake also when [fd], of the node stage, becomes readable. */
err_code_t ucx_thread_watch(ucx_group_t *group, int fd, err_t *err);
/* Tell the thread to end, and wait for it, for a few timeouts at most. False:
 * it hangs, and the group must not be freed. */
bool ucx_thread_stop(ucx_group_t *group);
/* Close the descriptors on which the thread slept. */
void ucx_thread_close(ucx_group_t *group);

#endif
