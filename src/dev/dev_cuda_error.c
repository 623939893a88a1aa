/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <string.h>

#include "dev/dev_cuda.h"

/* After such an error each call of CUDA fails until the process ends: "This
 * leaves the process in an inconsistent state" (CUDA Runtime API, cudaError).
 */
static bool is_final(cudaError_t status)
{
    switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsClientTerminated:
        return true;
    default:
        return false;
    }
}

err_code_t dev_cuda_check(cudaError_t status, const char *call,
                          const char *what, err_t *err)
{
    const char *format = "%s: %.*s failed: %s (%s)";
    const int name = (int)strcspn(call, "(");

    if (status == cudaSuccess)
        return ERR_OK;
    cudaGetLastError(); /* or a later check would find this error again */
    if (is_final(status))
        return err_set_peer(err, -1, NULL, format, what, name, call,
                            cudaGetErrorString(status),
                            cudaGetErrorName(status));
    return err_set(
        err, status == cudaErrorMemoryAllocation ? ERR_MEMORY : ERR_UNAVAILABLE,
        format, what, name, call, cudaGetErrorString(status),
        cudaGetErrorName(status));
}
