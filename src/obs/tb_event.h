/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * tb_event: records of TensorBoard's event files in a buffer. A record is a
 * message Event (tb_event.proto) in TFRecord's frame: its length, and CRC32C of
 * the length and of the message. Nothing here allocates.
 *
 * This needs libprotobuf-c and ISA-L. In a build without one of them
 * obs_tb_built is false, and nothing is ever added.
 */
#ifndef CDDP_OBS_TB_EVENT_H
#define CDDP_OBS_TB_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A buffer of the caller with [room] bytes, of which [length] are used. */
typedef struct obs_tb_buffer {
    uint8_t *bytes;
    size_t length, room;
} obs_tb_buffer_t;

/* Most numbers of one record. */
#define OBS_TB_SCALARS_MAX 128
typedef struct obs_tb_scalar {
    const char *tag;
    float value;
} obs_tb_scalar_t;

/* A setting of the run; [text] NULL: it is a number. */
typedef struct obs_tb_hparam {
    const char *name, *text;
    double number;
} obs_tb_hparam_t;

/* Can this build write event files? */
bool obs_tb_built(void);

/* Append a record with the wall-clock time [wall] (seconds since 1970). False,
 * and the buffer is as before, if it does not fit. Texts are UTF-8.
 * version: the first record of a file. start: readers drop what other files
 * have from step [step] on. text: a text in Markdown. hparams: the settings. */
bool obs_tb_add_version(obs_tb_buffer_t *buffer, double wall);
bool obs_tb_add_start(obs_tb_buffer_t *buffer, double wall, int64_t step);
bool obs_tb_add_scalars(obs_tb_buffer_t *buffer, double wall, int64_t step,
                        const obs_tb_scalar_t *scalars, int count);
bool obs_tb_add_text(obs_tb_buffer_t *buffer, double wall, const char *tag,
                     const char *text);
/* At most OBS_TB_SCALARS_MAX settings, which take at most 16 KiB. */
bool obs_tb_add_hparams(obs_tb_buffer_t *buffer, double wall,
                        const obs_tb_hparam_t *hparams, int count);

#endif
