/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The attention of the stand-in for cuDNN, forward and backward: a graph whose
 * operations follow the pattern that cuDNN knows is executed one operation
 * after the other, each inner tensor in memory of its own. Inner float32 is
 * rounded to float32 and bfloat16 to bfloat16.
 */
#ifndef CDDP_TESTS_CUDA_FAKE_ATTENTION_H
#define CDDP_TESTS_CUDA_FAKE_ATTENTION_H

#include "fake_cudnn.h"

#define FAKE_STEPS 28
#define FAKE_STEP_TENSORS 40

typedef struct fake_program fake_program_t;

/* Can the attention in [graph] be executed? It must have the pattern, and heads
 * of at most 128 features. */
bool fake_attention_fits(const descriptor_t *graph);

/* Make a program of a graph that fits. NULL: no memory. */
fake_program_t *fake_attention_make(const descriptor_t *graph);
/* The program is kept until fake_attention_reset, as runs may be pending. NULL
 * allowed. */
void fake_attention_free(fake_program_t *program);
void fake_attention_reset(void);

/* As Hopper's deterministic gradients need it: 2 bytes for each score. */
int64_t fake_attention_workspace(const fake_program_t *program);

/* Enqueue the program with the addresses of [pack]. */
cudnnStatus_t fake_attention_run(const fake_program_t *program,
                                 const descriptor_t *pack, cudaStream_t stream);

#endif
