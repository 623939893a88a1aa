/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What ranks send each other about themselves. Ranks of a group run the same
 * program, so that structs go over the wire as they are in memory. */
#ifndef CDDP_COMM_WATCH_NOTE_H
#define CDDP_COMM_WATCH_NOTE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum watch_kind {
    WATCH_BEAT,
    WATCH_FAULT, /* with culprit, code and text: the group has failed */
    WATCH_BYE,   /* the sender leaves */
    WATCH_ACK,   /* answer to a good-bye: nothing more comes from the sender */
    WATCH_CALL   /* with call: what the sender called, as it takes long */
} watch_kind_t;

#define WATCH_KINDS (WATCH_CALL + 1)

#define WATCH_PHASE_MAX 24
#define WATCH_TEXT_MAX 320
#define WATCH_DIGEST_BITS 20

/* What a rank says about itself. */
typedef struct watch_beat {
    uint64_t entered;  /* collectives started */
    uint64_t finished; /* all collectives before this number are finished */
    uint64_t progress; /* counter of signs of progress */
    int64_t step;      /* training step that was last reported */
    bool waiting;      /* for others */
    char phase[WATCH_PHASE_MAX];
} watch_beat_t;

/* What a rank asked for in a collective. Two ranks whose calls differ would
 * wait for each other for ever. */
typedef struct watch_call {
    uint64_t number; /* of the collective, + 1; 0: none */
    int64_t count;
    int32_t root;
    uint8_t kind, type, op;
    uint8_t arena; /* the data lies in an arena and goes through the node */
} watch_call_t;

typedef struct watch_note {
    int32_t kind;    /* watch_kind_t */
    int32_t from;    /* rank */
    int32_t culprit; /* what faults call it; -1: none */
    int32_t code;    /* err_code_t of the fault */
    watch_beat_t beat;
    watch_call_t call;
    char text[WATCH_TEXT_MAX];
} watch_note_t;

#endif
