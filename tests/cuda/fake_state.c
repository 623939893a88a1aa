/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The frame of all calls, the settings, and what each thread has. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "fake_attention.h"
#include "fake_cudart.h"

/* An H200 by its data sheet and by what nvidia-smi says of its memory. */
#define H200_BYTES (INT64_C(143771) << 20)

static const fake_cuda_settings_t defaults = {.devices = 1,
                                              .driver = 13000,
                                              .memory = H200_BYTES,
                                              .arch = 90,
                                              .sms = 132,
                                              .other = -1,
                                              .nccl = 1,
                                              .nccl_windows = 1};

static pthread_mutex_t lock;
fake_state_t fake;

/* Not zero at first: simt.h says why. */
static _Thread_local struct {
    int device; /* plus 1 */
    int last;   /* the error plus 1 */
} here = {1, 1};

/* ---- settings ------------------------------------------------------------ */

static const struct {
    const char *name;
    size_t offset;
} names[] = {
    {"devices", offsetof(fake_cuda_settings_t, devices)},
    {"driver", offsetof(fake_cuda_settings_t, driver)},
    {"memory", offsetof(fake_cuda_settings_t, memory)},
    {"arch", offsetof(fake_cuda_settings_t, arch)},
    {"sms", offsetof(fake_cuda_settings_t, sms)},
    {"order", offsetof(fake_cuda_settings_t, order)},
    {"schedule", offsetof(fake_cuda_settings_t, schedule)},
    {"fail", offsetof(fake_cuda_settings_t, fail)},
    {"fail_op", offsetof(fake_cuda_settings_t, fail_op)},
    {"other", offsetof(fake_cuda_settings_t, other)},
    {"parts", offsetof(fake_cuda_settings_t, parts)},
    {"links", offsetof(fake_cuda_settings_t, links)},
    {"cublaslt", offsetof(fake_cuda_settings_t, cublaslt)},
    {"cudnn", offsetof(fake_cuda_settings_t, cudnn)},
    {"hang_copy", offsetof(fake_cuda_settings_t, hang_copy)},
    {"no_capture", offsetof(fake_cuda_settings_t, no_capture)},
    {"nccl", offsetof(fake_cuda_settings_t, nccl)},
    {"nccl_late", offsetof(fake_cuda_settings_t, nccl_late)},
    {"nccl_async", offsetof(fake_cuda_settings_t, nccl_async)},
    {"nccl_stuck", offsetof(fake_cuda_settings_t, nccl_stuck)},
    {"nccl_hangs", offsetof(fake_cuda_settings_t, nccl_hangs)},
    {"nccl_windows", offsetof(fake_cuda_settings_t, nccl_windows)},
    {"nccl_silent", offsetof(fake_cuda_settings_t, nccl_silent)},
    {"nccl_meets", offsetof(fake_cuda_settings_t, nccl_meets)},
};

static void setting_read(const char *word)
{
    const char *value = strchr(word, '=');

    for (size_t i = 0; i < sizeof names / sizeof *names && value != NULL; i++)
        if (strncmp(word, names[i].name, (size_t)(value - word)) == 0 &&
            names[i].name[value - word] == '\0') {
            *(int64_t *)((char *)&fake.settings + names[i].offset) =
                strtoll(value + 1, NULL, 0);
            return;
        }
    fprintf(stderr, "fake_cuda: CDDP_FAKE_CUDA: unknown setting: %s\n", word);
    abort();
}

__attribute__((constructor)) static void settings_load(void)
{
    const char *text = getenv("CDDP_FAKE_CUDA");
    pthread_mutexattr_t kind;
    char copy[512], *at = copy, *word;

    /* A function of the host that a stream calls must call no CUDA: it would
     * wait for itself. This kind says so. */
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&lock, &kind);
    pthread_mutexattr_destroy(&kind);
    fake.settings = defaults;
    if (text == NULL)
        return;
    snprintf(copy, sizeof copy, "%s", text);
    while ((word = strsep(&at, " ,")) != NULL)
        if (*word != '\0')
            setting_read(word);
}

static void take(void)
{
    if (pthread_mutex_lock(&lock) == 0)
        return;
    fprintf(stderr, "fake_cuda: a function that a stream calls calls CUDA\n");
    abort();
}

static fake_cuda_settings_t control_get(void)
{
    fake_cuda_settings_t settings;

    take();
    settings = fake.settings;
    pthread_mutex_unlock(&lock);
    return settings;
}

static void control_set(const fake_cuda_settings_t *settings)
{
    take();
    fake.settings = *settings;
    for (int i = 0; i < FAKE_DEVICES; i++)
        fake.device[i].queue.order = (dev_far_order_t)settings->order;
    pthread_mutex_unlock(&lock);
}

static fake_cuda_counts_t control_counts(void)
{
    fake_cuda_counts_t counts;

    take();
    counts = fake.counts;
    pthread_mutex_unlock(&lock);
    return counts;
}

static const char *control_failed_call(void)
{
    return fake.failed_call != NULL ? fake.failed_call : "none";
}

static void control_reset(void)
{
    take();
    if (fake.counts.bytes != 0 || fake.counts.objects != 0) {
        fprintf(stderr,
                "fake_cuda: %lld bytes of devices and %lld objects are still "
                "open\n",
                (long long)fake.counts.bytes, (long long)fake.counts.objects);
        abort();
    }
    fake_attention_reset();
    for (int i = 0; i < FAKE_DEVICES; i++) {
        far_queue_free(&fake.device[i].queue);
        fake.device[i] = (fake_device_t){0};
    }
    fake.settings = defaults;
    fake.counts = (fake_cuda_counts_t){0};
    fake.sticky = cudaSuccess;
    here.last = 1;
    pthread_mutex_unlock(&lock);
}

static void *program_alloc(size_t bytes)
{
    void *block = NULL;

    return cudaMalloc(&block, bytes) == cudaSuccess ? block : NULL;
}

static void program_free(void *block)
{
    (void)cudaFree(block);
}

static int program_copy(void *stream, void *to, const void *from, size_t bytes)
{
    return (int)cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                                stream);
}

__attribute__((visibility("default"))) const fake_cuda_t fake_cuda = {
    control_get,   control_set,   control_counts, control_failed_call,
    control_reset, program_alloc, program_free,   program_copy};

/* ---- calls --------------------------------------------------------------- */

/* An allocation that fails says so; anything else is a device in trouble. */
static cudaError_t injected(const char *name)
{
    return strstr(name, "Malloc") != NULL || strstr(name, "HostAlloc") != NULL
               ? cudaErrorMemoryAllocation
               : cudaErrorUnknown;
}

/* Nobody can do anything if a call that gives something back fails. */
static bool gives_back(const char *name)
{
    return strstr(name, "Destroy") != NULL || strstr(name, "Free") != NULL ||
           strstr(name, "Unregister") != NULL ||
           strstr(name, "Deregister") != NULL || strstr(name, "Abort") != NULL;
}

cudaError_t fake_begin(const char *name)
{
    take();
    fake.last_call = name;
    if (gives_back(name))
        return fake.sticky;
    fake.counts.calls++;
    if (fake.settings.fail > 0 && --fake.settings.fail == 0) {
        fake.failed_call = name;
        return injected(name);
    }
    return fake.sticky;
}

cudaError_t fake_begin_plain(const char *name)
{
    const cudaError_t error = fake_begin(name);

    if (error != cudaSuccess || !fake_capturing())
        return error;
    fake_capture_fail_mine();
    return cudaErrorStreamCaptureUnsupported;
}

cudaError_t fake_end(cudaError_t error)
{
    if (error != cudaSuccess && error != cudaErrorNotReady)
        here.last = (int)error + 1;
    pthread_mutex_unlock(&lock);
    return error;
}

void fake_end_library(void)
{
    pthread_mutex_unlock(&lock);
}

void fake_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void fake_lock(void)
{
    take();
}

void fake_sleep(pthread_cond_t *cond)
{
    pthread_cond_wait(cond, &lock);
}

void fake_set_last(cudaError_t error)
{
    here.last = (int)error + 1;
}

cudaError_t fake_last(bool forget)
{
    const cudaError_t error = (cudaError_t)(here.last - 1);

    if (forget && fake.sticky == cudaSuccess)
        here.last = 1;
    return fake.sticky != cudaSuccess ? fake.sticky : error;
}

/* ---- devices ------------------------------------------------------------- */

/* How many devices CUDA_VISIBLE_DEVICES names; [all] if it is not set. */
static int visible_named(int all)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    int count = 1;

    if (visible == NULL)
        return all;
    if (*visible == '\0' || *visible == '-')
        return 0;
    for (; *visible != '\0'; visible++)
        count += *visible == ',';
    return count;
}

int fake_number(int index)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");

    for (; visible != NULL && index > 0; index--) {
        visible = strchr(visible, ',');
        visible = visible != NULL ? visible + 1 : NULL;
    }
    return visible != NULL && *visible >= '0' && *visible <= '9' ? atoi(visible)
                                                                 : index;
}

cudaError_t fake_visible(int *count)
{
    int most = (int)fake.settings.devices;
    const int named = visible_named(most);

    *count = 0;
    if (fake.settings.driver < CUDART_VERSION / 1000 * 1000)
        return cudaErrorInsufficientDriver;
    if (most > named)
        most = named;
    if (most > FAKE_DEVICES)
        most = FAKE_DEVICES;
    if (most == 0)
        return cudaErrorNoDevice;
    *count = most;
    return cudaSuccess;
}

int fake_current_index(void)
{
    return here.device - 1;
}

fake_device_t *fake_current(void)
{
    fake_device_t *dev = &fake.device[here.device - 1];

    if (!dev->open) {
        dev->queue.order = (dev_far_order_t)fake.settings.order;
        dev->legacy.dev = dev;
        far_queue_add(&dev->queue, &dev->legacy.line);
    }
    dev->open = true;
    return dev;
}

cudaError_t fake_set_current(int index)
{
    int count;
    const cudaError_t error = fake_visible(&count);

    if (error != cudaSuccess)
        return error;
    if (index < 0 || index >= count)
        return cudaErrorInvalidDevice;
    here.device = index + 1;
    return cudaSuccess;
}
