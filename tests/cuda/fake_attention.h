/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The attention of the stand-in for cuDNN, forward and backward. The operations
 * of the graph must follow the pattern that cuDNN knows. They are executed one
 * after the other, and each inner tensor has its own memory. Inner numbers are
 * rounded to their type, float32 or bfloat16.
 */
#ifndef CDDP_TESTS_CUDA_FAKE_ATTENTION_H
#define CDDP_TESTS_CUDA_FAKE_ATTENTION_H

#include "fake_cudnn.h"

#define FAKE_STEPS 28
#define FAKE_STEP_TENSORS 40

typedef struct fake_program fake_program_t;

/* Can the attention in [graph] be executed? Its operations must follow the
 * pattern, and its heads may have at most 128 features. */
bool fake_attention_fits(const descriptor_t *graph);

/* Make a program of a graph that fits. Returns NULL if there is no memory. */
fake_program_t *fake_attention_make(const descriptor_t *graph);
/* The memory of the program is kept until fake_attention_reset, because runs of
 * it may be pending. NULL allowed. */
void fake_attention_free(fake_program_t *program);
void fake_attention_reset(void);

/* 2 bytes for each score, as cuDNN's deterministic gradients on Hopper need. */
int64_t fake_attention_workspace(const fake_program_t *program);

/* Enqueue the program with the addresses of [pack]. */
cudnnStatus_t fake_attention_run(const fake_program_t *program,
                                 const descriptor_t *pack, cudaStream_t stream);

#endif
