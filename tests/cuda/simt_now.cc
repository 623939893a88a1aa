/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "simt_run.h"

simt_schedule_t simt_now;

void simt_launch(const simt_launch_t *launch, simt_call_fn *call,
                 const void *args, size_t bytes)
{
    (void)bytes;
    simt_run(launch, simt_now, call, args);
}

/* LAUNCH_SHARED: any launch may have what the emulator has. */
extern "C" cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute,
                                            int)
{
    return cudaSuccess;
}
