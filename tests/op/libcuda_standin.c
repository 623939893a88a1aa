/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * In place of the driver's library libcuda.so.1: there is no device. cuDNN
 * looks up these functions when it considers engines that it compiles at run
 * time. With STANDIN_LOADS, kernels that cuDNN has compiled can be loaded, but
 * not run. That is enough to make plans with such engines.
 */
#define ERROR_NO_DEVICE 100 /* CUresult of cuda.h, whose prototypes differ */

#define NO_DEVICE(name)         \
    int name(void);             \
    int name(void)              \
    {                           \
        return ERROR_NO_DEVICE; \
    }
NO_DEVICE(cuInit)
NO_DEVICE(cuCtxGetCurrent)
NO_DEVICE(cuCtxGetLimit)
NO_DEVICE(cuCtxPopCurrent)
NO_DEVICE(cuCtxPushCurrent)
NO_DEVICE(cuDeviceGet)
NO_DEVICE(cuDeviceGetCount)
NO_DEVICE(cuDriverGetVersion)
NO_DEVICE(cuGetErrorName)
NO_DEVICE(cuGetErrorString)
NO_DEVICE(cuLaunchCooperativeKernel)
NO_DEVICE(cuLaunchKernel)
NO_DEVICE(cuLaunchKernelEx)
NO_DEVICE(cuLibraryLoadFromFile)
NO_DEVICE(cuLinkAddData)
NO_DEVICE(cuLinkComplete)
NO_DEVICE(cuLinkCreate)
NO_DEVICE(cuLinkDestroy)
NO_DEVICE(cuOccupancyMaxPotentialClusterSize)
NO_DEVICE(cuStreamGetCtx)

#ifdef STANDIN_LOADS

static char thing; /* serves as library and kernel */

int cuLibraryLoadData(void **out);
int cuLibraryLoadData(void **out)
{
    *out = &thing;
    return 0;
}

int cuLibraryGetKernel(void **out);
int cuLibraryGetKernel(void **out)
{
    *out = &thing;
    return 0;
}

#define DONE(name)  \
    int name(void); \
    int name(void)  \
    {               \
        return 0;   \
    }
DONE(cuKernelGetAttribute)
DONE(cuKernelSetAttribute)
DONE(cuLibraryUnload)

#else

NO_DEVICE(cuKernelGetAttribute)
NO_DEVICE(cuKernelSetAttribute)
NO_DEVICE(cuLibraryGetKernel)
NO_DEVICE(cuLibraryLoadData)
NO_DEVICE(cuLibraryUnload)

#endif
