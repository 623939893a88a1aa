/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The notes of a group's watch (watch.h), over UCX. All functions are for the
 * driver. None blocks. */
#ifndef CDDP_COMM_UCX_NOTES_H
#define CDDP_COMM_UCX_NOTES_H

#include "comm/ucx/ucx_net.h"

/* Post the receives of notes. Those that come go to watch_hear. */
void ucx_notes_open(ucx_net_t *net);
/* Cancel these receives. */
void ucx_notes_close(ucx_net_t *net);
/* Send [note] to [rank]; see watch_config_t.send. */
bool ucx_notes_send(ucx_net_t *net, int rank, const watch_note_t *note);

#endif
