/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* For tests that run on the emulated device "cuda". */
#ifndef CDDP_TESTS_CUDA_EMU_H
#define CDDP_TESTS_CUDA_EMU_H

#include "cuda/fake_cuda.h"

/* Choose the emulated plugin, libcddp_cuda_emu.so, for this process and those
 * that it starts, and return its controls. A test is skipped if there is none,
 * because configure found no CUDA. $CDDP_EMU_PLUGIN is another one to take. */
const fake_cuda_t *emu_open(void);

/* For a test that runs on a GPU, too: choose the plugin that the environment's
 * CDDP_CUDA_PLUGIN names (as tests/gpu/run does), else the emulated one. A test
 * that calls emu_open is skipped while another plugin is named. */
void emu_or_gpu(void);

/* Change one setting: the field at [offset] of fake_cuda_settings_t. */
#define emu_set(fake, field, value) \
    emu_set_at(fake, offsetof(fake_cuda_settings_t, field), value)
void emu_set_at(const fake_cuda_t *fake, size_t offset, int64_t value);

#endif
