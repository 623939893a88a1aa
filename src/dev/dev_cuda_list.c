/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Which GPUs there are, and why none or why one cannot be used. */
#include "config.h"

#include <ctype.h>
#include <cublasLt.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dev/dev_cuda_arch.h"
#include "dev/dev_cuda_priv.h"

/* Versions of CUDA are numbers such as 12040 for 12.4. */
#define MAJOR(version) ((version) / 1000)
#define MINOR(version) ((version) % 1000 / 10)

/* CUDA gives one error for a driver that is missing and for one that is too
 * old. */
static err_code_t driver_refuse(err_t *err)
{
    int has = 0;

    if (cudaDriverGetVersion(&has) != cudaSuccess)
        has = 0;
    cudaGetLastError();
    if (has == 0)
        return err_set(err, ERR_UNAVAILABLE,
                       "there is no NVIDIA driver on this machine (no library "
                       "libcuda.so.1)");
    return err_set(err, ERR_UNAVAILABLE,
                   "the NVIDIA driver is too old: it supports CUDA %d.%d, "
                   "while this build needs %d.%d",
                   MAJOR(has), MINOR(has), MAJOR(CUDART_VERSION),
                   MINOR(CUDART_VERSION));
}

static err_code_t none_visible(err_t *err)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");

    cudaGetLastError();
    if (visible == NULL)
        return err_set(err, ERR_UNAVAILABLE,
                       "the NVIDIA driver sees no GPU on this machine");
    return err_set(err, ERR_UNAVAILABLE,
                   "no GPU is visible, as CUDA_VISIBLE_DEVICES is \"%s\"",
                   visible);
}

err_code_t dev_cuda_count(int *out, err_t *err)
{
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);

    if (status == cudaErrorInsufficientDriver)
        return driver_refuse(err);
    if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0))
        return none_visible(err);
    if (status != cudaSuccess)
        return dev_cuda_check(status, "cudaGetDeviceCount",
                              "the GPUs of this machine", err);
    *out = count;
    return ERR_OK;
}

/* The version of the kernel's driver and that of CUDA which it supports. */
static void driver_text(char *out, size_t room)
{
    char line[256] = "", version[32] = "";
    FILE *file = fopen("/proc/driver/nvidia/version", "r");
    const char *at;
    int cuda = 0;

    if (file != NULL && fgets(line, sizeof line, file) == NULL)
        line[0] = '\0';
    if (file != NULL)
        fclose(file);
    at = strstr(line, "Kernel Module");
    at = at != NULL ? strpbrk(at, "0123456789") : NULL;
    if (at != NULL)
        snprintf(version, sizeof version, "%.*s, ", (int)strcspn(at, " \t\n"),
                 at);
    if (cudaDriverGetVersion(&cuda) != cudaSuccess)
        cudaGetLastError(); /* only for a report */
    snprintf(out, room, "%sCUDA %d.%d", version, MAJOR(cuda), MINOR(cuda));
}

/* A part of a GPU (MIG) has "MIG 1g.18gb" in its name. */
static bool is_part(const struct cudaDeviceProp *prop)
{
    return strstr(prop->name, " MIG ") != NULL;
}

/* Ask the driver for the UUID: for a part of a GPU the runtime may give the
 * UUID of the whole GPU. */
static void driver_uuid(int index, cudaUUID_t *out)
{
    int (*uuid_get)(cudaUUID_t * uuid, int device) = NULL;
    int (*device_get)(int *device, int ordinal) = NULL;
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    cudaUUID_t uuid;
    int device;

    if (driver == NULL)
        return;
    *(void **)&device_get = dlsym(driver, "cuDeviceGet");
    *(void **)&uuid_get = dlsym(driver, "cuDeviceGetUuid_v2");
    if (device_get != NULL && uuid_get != NULL &&
        device_get(&device, index) == 0 && uuid_get(&uuid, device) == 0)
        *out = uuid;
    dlclose(driver);
}

static void uuid_text(const cudaUUID_t *uuid, bool part, char *out, size_t room)
{
    size_t used = (size_t)snprintf(out, room, "%s", part ? "MIG" : "GPU");

    for (int i = 0; i < 16; i++)
        used += (size_t)snprintf(
            out + used, room - used, "%s%02x",
            i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
            (unsigned char)uuid->bytes[i]);
}

static void libraries_text(char *out, size_t room)
{
    const size_t blas = cublasLtGetVersion(), dnn = cudnnGetVersion();

    snprintf(out, room, "cublasLt %zu.%zu.%zu, cuDNN %zu.%zu.%zu", blas / 10000,
             blas / 100 % 100, blas % 100, dnn / 10000, dnn / 100 % 100,
             dnn % 100);
}

/* The PCI address in lower case, as sysfs writes it. */
static void bus_text(int index, char *out, size_t room)
{
    if (cudaDeviceGetPCIBusId(out, (int)room, index) != cudaSuccess) {
        cudaGetLastError(); /* no error: the address stays unknown */
        out[0] = '\0';
    }
    for (; *out != '\0'; out++)
        *out = (char)tolower((unsigned char)*out);
}

err_code_t dev_cuda_describe(int index, dev_info_t *out, err_t *err)
{
    struct cudaDeviceProp prop;
    dev_info_t info = {.index = index};
    char what[32];
    int arch;

    snprintf(what, sizeof what, "GPU %d", index);
    CUDA_CHECK(cudaGetDeviceProperties(&prop, index), what, err);
    arch = 10 * prop.major + prop.minor;
    snprintf(info.name, sizeof info.name, "%.95s", prop.name);
    snprintf(info.arch, sizeof info.arch, "sm_%d", arch);
    info.bytes = prop.totalGlobalMem;
    driver_uuid(index, &prop.uuid);
    uuid_text(&prop.uuid, is_part(&prop), info.uuid, sizeof info.uuid);
    bus_text(index, info.bus, sizeof info.bus);
    libraries_text(info.libraries, sizeof info.libraries);
    driver_text(info.driver, sizeof info.driver);
    /* An emulated GPU needs no code. */
    if (CUDA_ARCHS[0] != '\0' && !dev_cuda_arch_fits(CUDA_ARCHS, arch))
        snprintf(info.lacks, sizeof info.lacks,
                 "this build has no code for %s, but for compute "
                 "capabilities%.60s",
                 info.arch, CUDA_ARCHS);
    *out = info;
    return ERR_OK;
}

err_code_t dev_cuda_list(dev_info_t *out, int room, int *count, err_t *err)
{
    err_code_t rc = dev_cuda_count(count, err);

    for (int i = 0; rc == ERR_OK && i < room && i < *count; i++)
        rc = dev_cuda_describe(i, &out[i], err);
    return rc;
}
