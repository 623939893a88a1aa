/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The choice of device and precision. This program has registries of its own:
 * "cuda" is a stand-in, which is there on those ranks that a test says, and
 * whose products lack what a test says.
 */
#include "train/device.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "conf/conf.h"
#include "dev/dev_ops.h"
#include "lib/facts.h"
#include "lib/ranks.h"
#include "op/op_ops.h"

/* ---- the stand-in -------------------------------------------------------- */

static _Thread_local int gpus; /* that this rank sees */
static _Thread_local const char *lack;
static _Thread_local const char *kind = "GPU"; /* name of its GPUs */
static _Thread_local const char *uuid = "";
static _Thread_local const char *libraries = "cuDNN 9";
static _Thread_local int opened; /* index of the last one */

static err_code_t gpu_open(int index, dev_device_t **out, err_t *err)
{
    if (index >= gpus)
        return err_set(err, ERR_UNAVAILABLE, "there is no GPU %d", index);
    opened = index;
    return dev_cpu_ops.open(0, out, err);
}

static err_code_t gpu_list(dev_info_t *out, int room, int *count, err_t *err)
{
    if (gpus == 0)
        return err_set(err, ERR_UNAVAILABLE, "there is no GPU");
    for (int i = 0; i < room && i < gpus; i++) {
        out[i] = (dev_info_t){.index = i, .arch = "sm_90"};
        snprintf(out[i].name, sizeof out[i].name, "%s", kind);
        snprintf(out[i].uuid, sizeof out[i].uuid, "%s", uuid);
        snprintf(out[i].driver, sizeof out[i].driver, "580.1");
        snprintf(out[i].libraries, sizeof out[i].libraries, "%s", libraries);
    }
    *count = gpus;
    return ERR_OK;
}

static dev_ops_t gpu_ops;

__attribute__((constructor)) static void gpu_make(void)
{
    gpu_ops = dev_cpu_ops;
    gpu_ops.name = "cuda";
    gpu_ops.host_visible = false;
    gpu_ops.open = gpu_open;
    gpu_ops.list = gpu_list;
}

const char *const dev_choices[] = {"auto", DEV_HOST, "cuda", NULL};
const dev_ops_t *const dev_registry[] = {&dev_cpu_ops, &gpu_ops, NULL};

static const char *gpu_lacks(const dev_device_t *dev, op_type_t type)
{
    (void)dev;
    (void)type;
    return lack;
}

static const op_backend_ops_t gpu_backend = {
    .name = "cuda", .tf32 = true, .lacks = gpu_lacks};

const op_backend_ops_t *const op_registry[] = {&op_ref_backend, &op_cpu_backend,
                                               &gpu_backend, NULL};

/* ---- devices ------------------------------------------------------------- */

static train_config_t config_of(const char *device, int precision)
{
    train_config_t config = {.train = {.precision = precision}};

    while (strcmp(dev_choices[config.train.device], device) != 0)
        config.train.device++;
    return config;
}

/* Ranks that choose together. */
typedef struct choice {
    const char *device;
    unsigned with;      /* bit r: rank r sees a GPU */
    const char *expect; /* the device; NULL: ERR_CONFIG */
    const char *facts[FACTS_MAX];
} choice_t;

enum { RANKS = 4 };

static int choose(const comm_oob_t *oob, void *argument)
{
    const choice_t *choice = argument;
    const comm_config_t group_config = {.backend = "threads", .timeout = 20};
    const train_config_t config = config_of(choice->device, TRAIN_FP32);
    comm_group_t *group = NULL;
    train_device_t device = {0};
    err_t err = ERR_INIT;
    err_code_t rc;

    RANKS_OK(comm_group_open(&group_config, oob, &group, &err), err);
    gpus = (choice->with >> oob->rank) & 1;
    rc = train_device_open(&config, group, oob->rank, &device, &err);
    if (choice->expect != NULL) {
        RANKS_OK(rc, err);
        RANKS_CHECK(strcmp(dev_name(device.dev), choice->expect) == 0);
    } else {
        RANKS_CHECK(rc == ERR_CONFIG);
        for (int i = 0; i < FACTS_MAX && choice->facts[i] != NULL; i++)
            RANKS_CHECK(strstr(err.text, choice->facts[i]) != NULL);
    }
    dev_close(device.dev);
    comm_group_close(group);
    return 0;
}

Test(device, all_ranks_compute_on_one_kind)
{
    choice_t choices[] = {
        {"auto", 0xf, "cuda", {NULL}},
        {"auto", 0x0, "cpu", {NULL}},
        {"auto",
         0xb,
         NULL,
         {"train.device is auto", "1 of 4", "there is no GPU", "to cpu"}},
        {"auto", 0x1, NULL, {"3 of 4"}},
        {"cpu", 0xf, "cpu", {NULL}},
        {"cuda", 0xf, "cuda", {NULL}},
        {"cuda",
         0x3,
         NULL,
         {"train.device is cuda, and 2 of 4 ranks have no usable GPU, ",
          ", those on ",
          " (there is no GPU; CUDA_VISIBLE_DEVICES is \"5,7\"): leave these "
          "nodes out, or set it to cpu"}},
    };

    setenv("CUDA_VISIBLE_DEVICES", "5,7", 1);

    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        cr_expect_eq(ranks_threads(RANKS, choose, &choices[i]), 0, "case %zu",
                     i);
}

Test(device, a_rank_takes_the_gpu_of_its_number_on_the_host)
{
    const train_config_t config = config_of("cuda", TRAIN_FP32);
    const int seen[][3] = {/* GPUs, number of the rank, GPU */
                           {4, 0, 0},
                           {4, 3, 3},
                           {1, 3, 0},
                           {2, 3, 1}};
    train_device_t device = {0};
    err_t err = ERR_INIT;

    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        gpus = seen[i][0];
        cr_assert_eq(
            train_device_open(&config, NULL, seen[i][1], &device, &err),
            ERR_OK);
        cr_expect_eq(opened, seen[i][2]);
        cr_expect_str_eq(device.name, "cuda, GPU (sm_90)");
        dev_close(device.dev);
    }
    gpus = 0;
    cr_expect_eq(train_device_open(&config, NULL, 3, &device, &err),
                 ERR_UNAVAILABLE);
    FACTS(err.text, "train.device is cuda", "there is no GPU");
}

/* ---- GPUs of all ranks --------------------------------------------------- */

/* The warnings of all ranks. */
static struct said {
    pthread_mutex_t lock;
    int count;
    char last[400];
} said = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void warning_take(void *context, log_level_t level, int rank,
                         const char *module, const char *text)
{
    (void)context;
    (void)rank;
    (void)module;
    pthread_mutex_lock(&said.lock);
    if (level == LOG_WARN) {
        said.count++;
        snprintf(said.last, sizeof said.last, "%s", text);
    }
    pthread_mutex_unlock(&said.lock);
}

/* GPUs of four ranks. */
typedef struct gpus_case {
    const char *uuids[RANKS];
    int seen;            /* GPUs that each rank sees */
    bool hosts;          /* ranks 2 and 3 are on another host */
    const char *other;   /* rank 2 has this model; NULL: the same */
    const char *version; /* rank 1 has this version of cuDNN; NULL: the same */
    bool share, reproducible;
    bool refused;
    const char *facts[FACTS_MAX]; /* in the error or the only warning */
} gpus_case_t;

static int compare(const comm_oob_t *oob, void *argument)
{
    const gpus_case_t *test = argument;
    const comm_config_t group_config = {
        .backend = test->hosts ? "ucx" : "threads", .timeout = 60};
    train_config_t config = config_of("cuda", TRAIN_FP32);
    comm_oob_t own = *oob;
    comm_group_t *group = NULL;
    train_device_t device = {0};
    err_t err = ERR_INIT;
    err_code_t rc;

    own.host = test->hosts && oob->rank >= 2 ? "n2" : "n1";
    RANKS_OK(comm_group_open(&group_config, &own, &group, &err), err);
    gpus = test->seen;
    uuid = test->uuids[oob->rank];
    kind = test->other != NULL && oob->rank == 2 ? test->other : "a GPU";
    libraries =
        test->version != NULL && oob->rank == 1 ? test->version : "cuDNN 9";
    config.train.share_gpu = test->share;
    config.train.reproducible = test->reproducible;
    RANKS_OK(train_device_open(&config, group, oob->rank, &device, &err), err);
    rc = train_device_check(&config, group, &device, &err);
    RANKS_CHECK(rc == (test->refused ? ERR_CONFIG : ERR_OK));
    for (int i = 0; test->refused && i < FACTS_MAX && test->facts[i] != NULL;
         i++)
        RANKS_CHECK(strstr(err.text, test->facts[i]) != NULL);
    dev_close(device.dev);
    comm_group_close(group);
    return 0;
}

Test(device, gpus_of_all_ranks)
{
    gpus_case_t cases[] = {
        {{"A", "B", "C", "D"}, .seen = 4},
        {{"A", "B", "C", "D"}, .seen = 4, .reproducible = true},
        /* two ranks on one GPU */
        {{"A", "B", "C", "B"},
         .seen = 2,
         .refused = true,
         .facts = {"ranks 1 and 3 on n1 compute on one GPU, B; rank 3 sees 2, "
                   "as CUDA_VISIBLE_DEVICES is \"5,7\": start one rank for "
                   "each GPU (srun --gpus-per-node=N --gpu-bind=none with N "
                   "tasks on a node), or set train.share_gpu to true"}},
        {{"MIG-a", "MIG-b", "MIG-c", "MIG-c"},
         .seen = 1,
         .refused = true,
         .facts = {"ranks 2 and 3", "MIG-c", "--gpu-bind=none"}},
        {{"A", "B", "C", "B"},
         .seen = 2,
         .share = true,
         .facts = {"ranks 1 and 3 on n1", "train.share_gpu"}},
        /* GPUs of two hosts are different GPUs */
        {{"A", "B", "A", "B"}, .seen = 2, .hosts = true},
        /* each rank sees only its own GPU */
        {{"A", "B", "C", "D"},
         .seen = 1,
         .facts = {"on n1 sees its own GPU only", "--gpus-per-task",
                   "--gpus-per-node=N", "--gpu-bind=none"}},
        {{"A", "B", "", ""}, .seen = 1, .hosts = true, .facts = {"on n1"}},
        /* another model */
        {{"A", "B", "C", "D"},
         .seen = 4,
         .other = "an old GPU",
         .facts = {"a GPU", "rank 2, on n1", "an old GPU", "the slowest"}},
        {{"A", "B", "C", "D"},
         .seen = 4,
         .other = "an old GPU",
         .reproducible = true,
         .refused = true,
         .facts = {"train.reproducible", "a GPU", "rank 2", "an old GPU"}},
        /* another version of a library */
        {{"A", "B", "C", "D"}, .seen = 4, .version = "cuDNN 0"},
        {{"A", "B", "C", "D"},
         .seen = 4,
         .version = "cuDNN 0",
         .reproducible = true,
         .refused = true,
         .facts = {"train.reproducible", "driver 580.1, cuDNN 9", "rank 1",
                   "cuDNN 0"}},
    };

    setenv("CUDA_VISIBLE_DEVICES", "5,7", 1);
    ranks_transports();
    log_sink_set(warning_take, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const gpus_case_t *test = &cases[i];
        const int expect = !test->refused && test->facts[0] != NULL ? 1 : 0;

        said.count = 0;
        cr_expect_eq(ranks_threads(RANKS, compare, &cases[i]), 0, "case %zu",
                     i);
        cr_expect_eq(said.count, expect, "case %zu: %d warnings, the last: %s",
                     i, said.count, said.last);
        if (expect == 1 && said.count == 1)
            facts_expect(said.last, test->facts);
    }
    log_sink_set(NULL, NULL);
}

Test(device, without_other_ranks)
{
    const train_config_t config = config_of("auto", TRAIN_FP32);

    for (gpus = 0; gpus < 2; gpus++) {
        train_device_t device = {0};
        err_t err = ERR_INIT;

        cr_assert_eq(train_device_open(&config, NULL, 0, &device, &err),
                     ERR_OK);
        cr_expect_str_eq(dev_name(device.dev), gpus == 0 ? "cpu" : "cuda");
        dev_close(device.dev);
    }
}

Test(device, mpi_writes_checkpoints_of_cpus)
{
    train_config_t config = config_of("cuda", TRAIN_FP32);
    train_device_t device = {0};
    err_t err = ERR_INIT;

    gpus = 1;
    cr_assert_eq(train_device_open(&config, NULL, 0, &device, &err), ERR_OK);
    cr_expect_eq(train_device_check(&config, NULL, &device, &err), ERR_OK);
    config.checkpoint.io = TRAIN_IO_MPI;
    cr_expect_eq(train_device_check(&config, NULL, &device, &err), ERR_CONFIG);
    FACTS(err.text, "checkpoint.io", "cuda", "independent");
    dev_close(device.dev);
    cr_assert_eq(dev_open(DEV_HOST, 0, &device.dev, &err), ERR_OK);
    cr_expect_eq(train_device_check(&config, NULL, &device, &err), ERR_OK);
    dev_close(device.dev);
}

/* ---- precision ----------------------------------------------------------- */

/* What [precision] means on a device called [name], which lacks [lacks] (NULL:
 * nothing). */
static err_code_t precision_of(const char *name, int precision,
                               const char *lacks, op_type_t *type, err_t *err)
{
    const train_config_t config = config_of(name, precision);
    train_device_t device = {0};
    err_code_t rc;

    gpus = 1;
    lack = lacks;
    cr_assert_eq(train_device_open(&config, NULL, 0, &device, err), ERR_OK);
    rc = train_precision_choose(&config, device.dev, NULL, type, err);
    dev_close(device.dev);
    return rc;
}

Test(precision, of_a_gpu)
{
    const struct {
        int precision;
        op_type_t type;
        const char *name;
    } cases[] = {{TRAIN_FP32, OP_FLOAT32, "fp32"},
                 {TRAIN_BF16, OP_BFLOAT16, "bf16"},
                 {TRAIN_PRECISION_AUTO, OP_BFLOAT16, "bf16"},
                 {TRAIN_TF32, OP_TF32, "tf32"}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        op_type_t type = OP_INT64;
        err_t err = ERR_INIT;

        cr_expect_eq(
            precision_of("cuda", cases[i].precision, NULL, &type, &err), ERR_OK,
            "%s", err.text);
        cr_expect_eq(type, cases[i].type);
        cr_expect_str_eq(train_precision_name(type), cases[i].name);
    }
}

Test(precision, of_an_old_gpu)
{
    const char *lacks = "GPU 0 (sm_75) cannot multiply it";
    op_type_t type = OP_INT64;
    err_t err = ERR_INIT;

    cr_expect_eq(precision_of("cuda", TRAIN_FP32, lacks, &type, &err), ERR_OK);
    cr_expect_eq(type, OP_FLOAT32);
    cr_expect_eq(precision_of("cuda", TRAIN_PRECISION_AUTO, lacks, &type, &err),
                 ERR_OK);
    cr_expect_eq(type, OP_FLOAT32);
    cr_expect_eq(precision_of("cuda", TRAIN_BF16, lacks, &type, &err),
                 ERR_UNAVAILABLE);
    FACTS(err.text, "bf16", "sm_75", "auto or fp32");
    cr_expect_eq(precision_of("cuda", TRAIN_TF32, lacks, &type, &err),
                 ERR_UNAVAILABLE);
    FACTS(err.text, "tf32", "sm_75");
}

Test(precision, tf32_is_for_gpus)
{
    op_type_t type;
    err_t err = ERR_INIT;

    cr_expect_eq(precision_of("cpu", TRAIN_TF32, NULL, &type, &err),
                 ERR_CONFIG);
    FACTS(err.text, "train.precision is tf32", "cpu");
}

/* One rank lacks bf16, so no rank uses it. */
static int choose_type(const comm_oob_t *oob, void *argument)
{
    const comm_config_t group_config = {.backend = "threads", .timeout = 20};
    const train_config_t config = config_of("cuda", TRAIN_PRECISION_AUTO);
    const int *without = argument;
    comm_group_t *group = NULL;
    train_device_t device = {0};
    op_type_t type = OP_INT64;
    err_t err = ERR_INIT;

    RANKS_OK(comm_group_open(&group_config, oob, &group, &err), err);
    gpus = RANKS;
    lack = oob->rank == *without ? "it is old" : NULL;
    RANKS_OK(train_device_open(&config, group, oob->rank, &device, &err), err);
    RANKS_OK(train_precision_choose(&config, device.dev, group, &type, &err),
             err);
    RANKS_CHECK(type == (*without < RANKS ? OP_FLOAT32 : OP_BFLOAT16));
    dev_close(device.dev);
    comm_group_close(group);
    return 0;
}

Test(precision, auto_is_the_same_on_all_ranks)
{
    for (int without = 0; without <= RANKS; without++)
        cr_expect_eq(ranks_threads(RANKS, choose_type, &without), 0);
}
