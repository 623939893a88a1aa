/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The device "cuda", with stand-ins for CUDA's libraries (tests/cuda). */
#include "config.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "cuda/emu.h"
#include "dev/dev.h"
#include "dev/dev_cuda_arch.h"
#include "dev/dev_links.h"
#include "lib/facts.h"

#define COUNT 100
#define BYTES (COUNT * sizeof(float))

/* ---- which GPUs ---------------------------------------------------------- */

Test(cuda, archs)
{
    cr_expect(dev_cuda_arch_fits(" 80 90", 80));
    cr_expect(dev_cuda_arch_fits(" 80 90", 86), "code for 8.0 runs on 8.6");
    cr_expect_not(dev_cuda_arch_fits(" 86 90", 80));
    cr_expect_not(dev_cuda_arch_fits(" 80 90", 75));
    cr_expect(dev_cuda_arch_fits(" 80 90", 120), "PTX of the last one");
    cr_expect(dev_cuda_arch_fits(" 90a", 90));
    cr_expect_not(dev_cuda_arch_fits(" 90a", 100), "no PTX");
    cr_expect(dev_cuda_arch_fits(" 80 90a", 100));
    cr_expect_not(dev_cuda_arch_fits("", 90));
}

/* Neither a list nor a device; the sentence has these [words]. */
static void expect_none(const char *one, const char *two)
{
    dev_device_t *dev = NULL;
    dev_info_t info;
    int count = 0;
    err_t err = ERR_INIT;

    cr_expect_eq(dev_list("cuda", &info, 1, &count, &err), ERR_UNAVAILABLE);
    FACTS(err.text, one, two);
    err = (err_t)ERR_INIT;
    cr_expect_eq(dev_open("cuda", 0, &dev, &err), ERR_UNAVAILABLE);
    FACTS(err.text, one, two);
    cr_expect_null(dev);
}

Test(cuda, no_driver)
{
    const fake_cuda_t *fake = emu_open();

    emu_set(fake, driver, 0);
    expect_none("driver", "libcuda.so.1");
}

Test(cuda, old_driver)
{
    const fake_cuda_t *fake = emu_open();

    emu_set(fake, driver, 11080);
    expect_none("11.8", CUDA_TOOLKIT);
}

Test(cuda, none_visible)
{
    const fake_cuda_t *fake = emu_open();

    emu_set(fake, devices, 0);
    unsetenv("CUDA_VISIBLE_DEVICES");
    expect_none("no GPU", "driver");
    setenv("CUDA_VISIBLE_DEVICES", "7", 1);
    expect_none("CUDA_VISIBLE_DEVICES", "\"7\"");
}

Test(cuda, list)
{
    const fake_cuda_t *fake = emu_open();
    dev_info_t info[3];
    int count = 0;
    err_t err = ERR_INIT;

    emu_set(fake, devices, 3);
    emu_set(fake, arch, 90);
    cr_assert_eq(dev_list("cuda", info, 2, &count, &err), ERR_OK, "%s",
                 err.text);
    cr_expect_eq(count, 3);
    cr_expect_eq(info[1].index, 1);
    cr_expect_str_eq(info[1].arch, "sm_90");
    cr_expect_eq(strlen(info[1].uuid), strlen("GPU-") + 36);
    cr_expect_eq(info[1].bytes, (size_t)fake->get().memory);
    cr_expect(strstr(info[1].driver, "CUDA "), "%s", info[1].driver);
    cr_expect_str_empty(info[1].lacks);
}

/* CUDA_VISIBLE_DEVICES chooses GPUs of the machine, whose UUIDs differ. */
Test(cuda, list_tells_gpus_apart)
{
    const fake_cuda_t *fake = emu_open();
    dev_info_t all[3], some[2];
    int count = 0;
    err_t err = ERR_INIT;

    emu_set(fake, devices, 3);
    emu_set(fake, other, 2);
    emu_set(fake, cudnn, 91234);
    unsetenv("CUDA_VISIBLE_DEVICES");
    cr_assert_eq(dev_list("cuda", all, 3, &count, &err), ERR_OK);
    cr_expect_str_eq(all[1].bus, "0000:02:00.0");
    cr_expect_str_eq(all[0].name, all[1].name);
    cr_expect_str_neq(all[1].name, all[2].name);
    cr_expect_str_neq(all[0].uuid, all[1].uuid);
    FACTS(all[0].libraries, "cublasLt ", "cuDNN 9.12.34");
    setenv("CUDA_VISIBLE_DEVICES", "2,0", 1);
    cr_assert_eq(dev_list("cuda", some, 2, &count, &err), ERR_OK);
    cr_expect_eq(count, 2);
    cr_expect_str_eq(some[0].uuid, all[2].uuid);
    cr_expect_str_eq(some[1].uuid, all[0].uuid);
    emu_set(fake, parts, 1);
    cr_assert_eq(dev_list("cuda", some, 2, &count, &err), ERR_OK);
    FACTS(some[0].uuid, "MIG-");
}

Test(cuda, links)
{
    const fake_cuda_t *fake = emu_open();
    dev_links_t links;
    err_t err = ERR_INIT;

    emu_set(fake, devices, 2);
    for (int kind = DEV_LINK_HOST; kind <= DEV_LINK_NVLINK; kind++) {
        emu_set(fake, links, kind);
        cr_assert_eq(dev_links_find("cuda", 0, &links, &err), ERR_OK, "%s",
                     err.text);
        cr_expect_eq(links.count, 2);
        cr_expect_eq((int)links.to[1], kind);
        cr_expect_eq(links.rdma, kind != DEV_LINK_HOST);
    }
    cr_expect_eq(dev_links_find("cuda", 2, &links, &err), ERR_UNAVAILABLE);
    cr_expect_eq(dev_links_find("cpu", 0, &links, &err), ERR_UNAVAILABLE);
}

/* configure never has code for 3.5. */
Test(cuda, arch_not_built)
{
    const fake_cuda_t *fake = emu_open();
    dev_device_t *dev = NULL;
    dev_info_t info;
    int count;
    err_t err = ERR_INIT;

    if (CUDA_ARCHS[0] == '\0')
        cr_skip_test("this build has code for no GPU at all");
    emu_set(fake, arch, 35);
    cr_assert_eq(dev_list("cuda", &info, 1, &count, &err), ERR_OK);
    FACTS(info.lacks, "sm_35", CUDA_ARCHS);
    cr_expect_eq(dev_open("cuda", 0, &dev, &err), ERR_UNAVAILABLE);
    FACTS(err.text, "GPU 0", "sm_35");
    cr_expect_null(dev);
}

Test(cuda, index)
{
    dev_device_t *dev = NULL;
    err_t err = ERR_INIT;

    emu_open();
    cr_expect_eq(dev_open("cuda", 1, &dev, &err), ERR_UNAVAILABLE);
    FACTS(err.text, "GPU 1", "1 GPU is visible");
    cr_expect_eq(dev_open("cuda", -1, &dev, &err), ERR_UNAVAILABLE);
    cr_expect_null(dev);
}

/* ---- a device ------------------------------------------------------------ */

/* A GPU with two streams, an event, and COUNT floats of its memory and of
 * pinned memory. */
typedef struct rig {
    const fake_cuda_t *fake;
    dev_device_t *dev;
    dev_stream_t *compute, *copies;
    dev_event_t *event;
    float *block, *host;
} rig_t;

static void *block_of(dev_device_t *dev, bool pinned)
{
    void *block;
    err_t err = ERR_INIT;
    err_code_t rc = pinned
                        ? dev_pinned_alloc(dev, BYTES, "a test", &block, &err)
                        : dev_alloc(dev, BYTES, "a test", &block, &err);

    cr_assert_eq(rc, ERR_OK, "%s", err.text);
    return block;
}

static rig_t rig_open(void)
{
    rig_t rig = {.fake = emu_open()};
    err_t err = ERR_INIT;

    cr_assert_eq(dev_open("cuda", 0, &rig.dev, &err), ERR_OK, "%s", err.text);
    dev_stream_open(rig.dev, DEV_STREAM_COMPUTE, &rig.compute, &err);
    dev_stream_open(rig.dev, DEV_STREAM_COMM, &rig.copies, &err);
    dev_event_open(rig.dev, &rig.event, &err);
    cr_assert_eq(err.code, ERR_OK, "%s", err.text);
    rig.block = block_of(rig.dev, false);
    rig.host = block_of(rig.dev, true);
    return rig;
}

/* Everything is closed, also after a failure. */
static void rig_close(rig_t *rig)
{
    dev_event_close(rig->event);
    dev_stream_close(rig->compute);
    dev_stream_close(rig->copies);
    dev_free(rig->dev, rig->block);
    dev_pinned_free(rig->dev, rig->host);
    dev_close(rig->dev);
    cr_expect_eq(rig->fake->counts().bytes, 0);
    cr_expect_eq(rig->fake->counts().objects, 0);
}

static err_code_t to_host(rig_t *rig, dev_stream_t *stream, err_t *err)
{
    return dev_copy(stream, rig->host, rig->block, BYTES, DEV_DEV_TO_HOST, err);
}

Test(cuda, memory)
{
    rig_t rig = rig_open();
    size_t free_bytes = 0, total_bytes = 0;
    err_t err = ERR_INIT;
    void *block = NULL;

    cr_expect_str_eq(dev_name(rig.dev), "cuda");
    cr_expect_not(dev_host_visible(rig.dev));
    cr_expect_eq((uintptr_t)rig.block % MEM_ALIGN, 0);
    cr_expect_eq(rig.host[COUNT - 1], 0, "pinned memory is zeroed");
    rig.host[COUNT - 1] = 1;
    cr_assert_eq(to_host(&rig, rig.compute, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(dev_stream_wait(rig.compute, &err), ERR_OK, "%s", err.text);
    cr_expect_eq(rig.host[COUNT - 1], 0, "memory is zeroed");
    cr_assert_eq(dev_room(rig.dev, &free_bytes, &total_bytes, &err), ERR_OK);
    cr_expect_eq(total_bytes, (size_t)rig.fake->get().memory);
    cr_expect_lt(free_bytes, total_bytes);
    cr_expect_eq(dev_alloc(rig.dev, 2 * total_bytes, "the moon", &block, &err),
                 ERR_MEMORY);
    FACTS(err.text, "the moon", "GPU 0", "GiB");
    cr_expect_null(block);
    /* This failure is no reason for later calls to fail. */
    cr_expect_eq(dev_alloc(rig.dev, 0, "nothing", &block, &err), ERR_OK);
    dev_free(rig.dev, block);
    rig_close(&rig);
}

Test(cuda, pin)
{
    rig_t rig = rig_open();
    float own[COUNT] = {3};
    err_t err = ERR_INIT;
    const int64_t before = rig.fake->counts().unpinned;

    cr_assert_eq(dev_pin(rig.dev, own, BYTES, &err), ERR_OK, "%s", err.text);
    cr_expect_eq(
        dev_copy(rig.copies, rig.block, own, BYTES, DEV_HOST_TO_DEV, &err),
        ERR_OK, "%s", err.text);
    cr_expect_eq(dev_stream_wait(rig.copies, &err), ERR_OK);
    dev_unpin(rig.dev, own);
    cr_expect_eq(rig.fake->counts().unpinned, before);
    rig_close(&rig);
}

/* A fill on one stream, a copy on another one behind an event. */
static void fill_and_copy(rig_t *rig, int byte)
{
    err_t err = ERR_INIT;

    dev_fill(rig->compute, rig->block, byte, BYTES, &err);
    dev_event_record(rig->event, rig->compute, &err);
    dev_event_wait_on(rig->event, rig->copies, &err);
    to_host(rig, rig->copies, &err);
    cr_assert_eq(err.code, ERR_OK, "%s", err.text);
}

Test(cuda, streams)
{
    rig_t rig = rig_open();

    fill_and_copy(&rig, 1);
    cr_expect_eq(dev_event_wait(rig.event, NULL), ERR_OK);
    cr_expect_eq(dev_stream_wait(rig.copies, NULL), ERR_OK);
    cr_expect_eq(((char *)rig.host)[BYTES - 1], 1);
    cr_expect_eq(dev_fill(rig.compute, NULL, 1, 0, NULL), ERR_OK);
    cr_expect_eq(dev_stream_wait(rig.compute, NULL), ERR_OK);
    rig_close(&rig);
}

Test(cuda, graph)
{
    rig_t rig = rig_open();
    dev_graph_t *graph = NULL;
    dev_event_t *joined = NULL;
    err_t err = ERR_INIT;

    cr_assert(dev_can_capture(rig.dev));
    cr_assert_eq(dev_event_open(rig.dev, &joined, &err), ERR_OK);
    cr_assert_eq(dev_capture_begin(rig.compute, &err), ERR_OK);
    fill_and_copy(&rig, 2);
    dev_event_record(joined, rig.copies, &err);
    dev_event_wait_on(joined, rig.compute, &err);
    cr_assert_eq(dev_capture_end(rig.compute, &graph, &err), ERR_OK, "%s",
                 err.text);
    cr_expect_eq(((char *)rig.host)[0], 0, "a capture executes nothing");
    for (int i = 0; i < 2; i++) {
        rig.host[0] = 0;
        cr_expect_eq(dev_graph_launch(graph, rig.compute, &err), ERR_OK);
        cr_expect_eq(dev_stream_wait(rig.compute, &err), ERR_OK);
        cr_expect_eq(((char *)rig.host)[0], 2);
    }
    dev_graph_close(graph);
    dev_event_close(joined);
    rig_close(&rig);
}

/* A call that waits or allocates ends the capture in an error, after which the
 * device can be used as before. */
Test(cuda, capture_fails)
{
    rig_t rig = rig_open();
    dev_graph_t *graph = NULL;
    void *block = NULL;

    for (int i = 0; i < 2; i++) {
        err_t err = ERR_INIT;

        cr_assert_eq(dev_capture_begin(rig.compute, &err), ERR_OK, "%s",
                     err.text);
        cr_expect_eq(i == 0 ? dev_stream_wait(rig.compute, &err)
                            : dev_alloc(rig.dev, 4, "a test", &block, &err),
                     ERR_UNAVAILABLE);
        FACTS(err.text, "GPU 0", i == 0 ? "cudaStreamSynchronize" : "cuda");
        cr_expect_eq(dev_capture_end(rig.compute, &graph, &err),
                     ERR_UNAVAILABLE);
        cr_expect_null(graph);
        cr_expect_null(block);
        fill_and_copy(&rig, 3);
        cr_expect_eq(dev_stream_wait(rig.copies, NULL), ERR_OK);
    }
    cr_expect_eq(dev_stream_wait(rig.compute, NULL), ERR_OK);
    rig_close(&rig);
}

/* ---- failures ------------------------------------------------------------ */

/* What a step does, from open to close. */
static err_code_t life(err_t *err)
{
    dev_device_t *dev = NULL;
    dev_stream_t *stream = NULL;
    dev_event_t *event = NULL;
    dev_graph_t *graph = NULL;
    void *block = NULL, *host = NULL;
    err_code_t rc = dev_open("cuda", 0, &dev, err), end;

    if (rc == ERR_OK)
        rc = dev_alloc(dev, BYTES, "a test", &block, err);
    if (rc == ERR_OK)
        rc = dev_pinned_alloc(dev, BYTES, "a test", &host, err);
    if (rc == ERR_OK)
        rc = dev_stream_open(dev, DEV_STREAM_COMPUTE, &stream, err);
    if (rc == ERR_OK)
        rc = dev_event_open(dev, &event, err);
    if (rc == ERR_OK)
        rc = dev_capture_begin(stream, err);
    if (rc == ERR_OK) {
        rc = dev_fill(stream, block, 1, BYTES, err);
        end = dev_capture_end(stream, &graph, rc == ERR_OK ? err : NULL);
        rc = rc == ERR_OK ? end : rc;
    }
    if (rc == ERR_OK)
        rc = dev_graph_launch(graph, stream, err);
    if (rc == ERR_OK)
        rc = dev_event_record(event, stream, err);
    if (rc == ERR_OK)
        rc = dev_event_wait(event, err);
    dev_graph_close(graph);
    dev_event_close(event);
    dev_stream_close(stream);
    if (dev != NULL) {
        dev_free(dev, block);
        dev_pinned_free(dev, host);
    }
    dev_close(dev);
    return rc;
}

/* Each call of CUDA fails in turn: nothing stays open, and the sentence names
 * the GPU. The driver's version, which is only shown, may stay unknown. */
Test(cuda, every_call_fails_in_turn)
{
    const fake_cuda_t *fake = emu_open();
    const int64_t before = fake->counts().calls;
    int64_t calls, failures = 0;
    err_t err = ERR_INIT;

    cr_assert_eq(life(&err), ERR_OK, "%s", err.text);
    calls = fake->counts().calls - before;
    for (int64_t call = 1; call <= calls; call++) {
        emu_set(fake, fail, call);
        if (life(&err) != ERR_OK) {
            failures++;
            FACTS(err.text, "GPU");
        }
        emu_set(fake, fail, 0);
        cr_assert_eq(fake->counts().bytes, 0, "call %lld", (long long)call);
        cr_assert_eq(fake->counts().objects, 0, "call %lld", (long long)call);
    }
    cr_expect_gt(failures, 15, "%lld of %lld", (long long)failures,
                 (long long)calls);
}

/* An operation that fails, as of a kernel with a wrong address, is the end of
 * this process' use of the GPU. */
Test(cuda, operation_fails)
{
    rig_t rig = rig_open();
    err_t err = ERR_INIT;

    emu_set(rig.fake, fail_op, 1);
    cr_expect_eq(dev_fill(rig.compute, rig.block, 1, BYTES, &err), ERR_OK);
    cr_expect_eq(dev_stream_wait(rig.compute, &err), ERR_PEER);
    FACTS(err.text, "GPU 0", "cudaStreamSynchronize");
    cr_expect_eq(err.culprit, -1);
    cr_expect_eq(dev_fill(rig.copies, rig.block, 1, BYTES, &err), ERR_PEER);
    rig_close(&rig);
}

/* ---- a GPU that hangs ---------------------------------------------------- */

/* Ends waits that have lasted [most] seconds. */
typedef struct patience {
    double most;
    int looks;
} patience_t;

static err_code_t patience_look(void *context, double waited, err_t *err)
{
    patience_t *patience = context;

    patience->looks++;
    return waited < patience->most ? ERR_OK
                                   : err_set_peer(err, 7, NULL, "too long");
}

/* A look that never ends a wait changes nothing. */
Test(cuda, watched)
{
    rig_t rig = rig_open();
    patience_t patience = {.most = 1e9};

    dev_watch(rig.dev, patience_look, &patience);
    fill_and_copy(&rig, 5);
    cr_expect_eq(dev_event_wait(rig.event, NULL), ERR_OK);
    cr_expect_eq(dev_stream_wait(rig.copies, NULL), ERR_OK);
    cr_expect_eq(((char *)rig.host)[BYTES - 1], 5);
    dev_free(rig.dev, rig.block);
    rig.block = block_of(rig.dev, false);
    rig_close(&rig);
}

typedef err_code_t wait_fn(rig_t *rig, err_t *err);

static err_code_t wait_stream(rig_t *rig, err_t *err)
{
    return dev_stream_wait(rig->copies, err);
}

static err_code_t wait_event(rig_t *rig, err_t *err)
{
    return dev_event_wait(rig->event, err);
}

static err_code_t wait_alloc(rig_t *rig, err_t *err)
{
    void *block;

    return dev_alloc(rig->dev, BYTES, "a test", &block, err);
}

/* To be called in a process of its own, since the thread of the emulated GPU
 * never ends. Returns the number of the first check that fails; 0: none. */
static int hang_main(wait_fn *wait)
{
    rig_t rig = rig_open();
    patience_t patience = {.most = 0.1};
    err_t err = ERR_INIT;

    dev_watch(rig.dev, patience_look, &patience);
    emu_set(rig.fake, hang_copy, 1);
    if (to_host(&rig, rig.copies, &err) != ERR_OK ||
        dev_event_record(rig.event, rig.copies, &err) != ERR_OK)
        return 1;
    if (wait(&rig, &err) != ERR_PEER || err.culprit != 7)
        return 2;
    if (patience.looks < 1 || !dev_abandoned(rig.dev))
        return 3;
    /* From here on nothing calls the GPU. */
    if (dev_event_wait(rig.event, NULL) != ERR_PEER)
        return 4;
    dev_free(rig.dev, rig.block);
    return 0;
}

/* Only a wait that cannot be ended takes a minute. */
static void hang_run(const char *what, wait_fn *wait)
{
    const pid_t child = fork();
    int status = -1;

    cr_assert_geq(child, 0);
    if (child == 0) {
        alarm(60);
        _exit(hang_main(wait));
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect_eq(status, 0, "%s: status %d", what, status);
}

Test(cuda, no_wait_lasts_longer_than_a_look_allows)
{
    emu_open();
    hang_run("stream", wait_stream);
    hang_run("event", wait_event);
    hang_run("memory", wait_alloc);
}
