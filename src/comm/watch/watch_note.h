/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The notes that ranks send each other. The ranks of a group run one program,
 * so structs are sent as they are in memory. */
#ifndef CDDP_COMM_WATCH_NOTE_H
#define CDDP_COMM_WATCH_NOTE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum watch_kind {
    WATCH_BEAT,
    WATCH_FAULT, /* the group has failed; has culprit, code and text */
    WATCH_BYE,   /* the sender leaves */
    WATCH_ACK,   /* answer to a good-bye: the sender sends nothing more */
    WATCH_CALL   /* the sender's call, which takes long; has call */
} watch_kind_t;

#define WATCH_KINDS (WATCH_CALL + 1)

#define WATCH_PHASE_MAX 24
#define WATCH_TEXT_MAX 320
#define WATCH_DIGEST_BITS 20

/* The state of the sender. */
typedef struct watch_beat {
    uint64_t entered;  /* number of collectives started */
    uint64_t finished; /* all collectives before this number are finished */
    uint64_t progress; /* counter of signs of progress */
    int64_t step;      /* training step that was last reported */
    bool waiting;      /* the sender waits for other ranks */
    /* Collectives that have begun and ended on the sender's device. */
    uint64_t begun, ended;
    char phase[WATCH_PHASE_MAX];
} watch_beat_t;

/* The request of a rank in a collective. Two ranks with different calls would
 * wait for each other for ever. */
typedef struct watch_call {
    uint64_t number; /* number of the collective + 1; 0: none */
    int64_t count;
    int32_t root;
    uint8_t kind, type, op;
    /* The data is in an arena and goes through memory of the node. */
    uint8_t arena;
} watch_call_t;

typedef struct watch_note {
    int32_t kind;    /* watch_kind_t */
    int32_t from;    /* rank of the sender */
    int32_t culprit; /* name of the culprit in faults; -1: none */
    int32_t code;    /* err_code_t of the fault */
    watch_beat_t beat;
    watch_call_t call;
    char text[WATCH_TEXT_MAX];
} watch_note_t;

#endif
