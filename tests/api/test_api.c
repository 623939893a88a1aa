/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* libcddp through its public headers: groups, collectives, errors, and a
 * training loop over data, model, reducer and checkpoints. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/check.h"
#include "base/file.h"
#include "base/str.h"
#include "cddp/cddp.h"
#include "cmd/data_shard.h"

/* ---- errors and versions ------------------------------------------------- */

Test(api, versions_fit_up_to_the_last_number)
{
    const int major = CDDP_VERSION_MAJOR, minor = CDDP_VERSION_MINOR,
              patch = CDDP_VERSION_PATCH;

    cr_expect_str_eq(cddp_version(), CDDP_VERSION);
    cr_expect(cddp_version_check());
    cr_expect(cddp_version_fits(major, minor, 0));
    cr_expect_not(cddp_version_fits(major, minor, patch + 1));
    cr_expect_not(cddp_version_fits(major, minor + 1, 0));
    cr_expect_not(cddp_version_fits(major + 1, minor, patch));
    cr_expect(major > 0 || minor == 0 ||
              !cddp_version_fits(major, minor - 1, 0));
}

Test(api, a_program_can_fill_an_error)
{
    cddp_error_t error;

    cr_expect_eq(cddp_error_set(&error, CDDP_DATA, "%d is odd", 3), CDDP_DATA);
    cr_expect_str_eq(error.text, "3 is odd");
    cr_expect_eq(error.culprit, -1);
    cr_expect_eq(cddp_error_set(NULL, CDDP_IO, "dropped"), CDDP_IO);
    cr_expect_str_neq(cddp_code_text(CDDP_DATA), "");
}

/* ---- collectives --------------------------------------------------------- */

static cddp_code_t collectives(cddp_group_t *group, void *context,
                               cddp_error_t *error)
{
    const int rank = cddp_group_rank(group), size = cddp_group_size(group);
    float sum[3] = {(float)rank, 1, -2};
    double most = -rank;
    int64_t count = rank + 1, all[8] = {0};
    char text[8] = "";
    cddp_work_t *work = NULL;

    CHECK(size == *(int *)context);
    CHECK(cddp_group_host(group, size - 1)[0] != '\0');
    CHECK(strcmp(cddp_group_backend(group), size == 1 ? "self" : "threads") ==
          0);
    cddp_group_report(group, 1, "collectives");
    OK(cddp_allreduce(group, sum, 3, CDDP_FLOAT32, CDDP_SUM, error));
    CHECK(sum[0] == (float)(size * (size - 1)) / 2 &&
          sum[2] == -2.0f * (float)size);
    OK(cddp_allreduce(group, &most, 1, CDDP_FLOAT64, CDDP_MAX, error));
    CHECK(most == 0);
    CHECK(cddp_allreduce_start(group, &count, 1, CDDP_INT64, CDDP_SUM, &work,
                               error) != CDDP_FAILED);
    CHECK(cddp_work_poll(work) != CDDP_FAILED);
    OK(cddp_work_wait(work, error));
    CHECK(count == size * (size + 1) / 2);
    count = 10 * rank;
    OK(cddp_allgather(group, &count, sizeof count, all, error));
    for (int r = 0; r < size; r++)
        CHECK(all[r] == 10 * r);
    if (rank == size - 1)
        strcpy(text, "hello");
    OK(cddp_broadcast(group, text, sizeof text, size - 1, error));
    CHECK(strcmp(text, "hello") == 0);
    OK(cddp_barrier(group, error));
    return cddp_group_check(group, error);
}

Test(api, collectives_by_any_number_of_ranks, .timeout = 60)
{
    for (int ranks = 1; ranks <= 3; ranks++) {
        const cddp_run_config_t config = {.local = ranks};
        cddp_error_t error;

        cr_expect_eq(cddp_run(&config, collectives, &ranks, &error), CDDP_OK,
                     "%s", error.text);
    }
}

/* Outside of Slurm a process is a single rank. */
Test(api, without_ranks_one_runs, .timeout = 60)
{
    int one = 1;
    cddp_error_t error;

    unsetenv("PMIX_NAMESPACE");
    unsetenv("SLURM_STEP_NUM_TASKS");
    cr_expect_eq(cddp_run(NULL, collectives, &one, &error), CDDP_OK, "%s",
                 error.text);
}

static cddp_code_t one_fails(cddp_group_t *group, void *context,
                             cddp_error_t *error)
{
    float x = 0;

    if (cddp_group_rank(group) == 2)
        return context == NULL
                   ? CDDP_IO
                   : cddp_error_set(error, CDDP_DATA, "rank 2 has no data");
    return cddp_allreduce(group, &x, 1, CDDP_FLOAT32, CDDP_SUM, error);
}

Test(api, the_error_of_the_rank_that_failed_is_told, .timeout = 60)
{
    const cddp_run_config_t config = {.local = 4, .timeout = 5};
    cddp_error_t error;
    int context = 0;

    cr_expect_eq(cddp_run(&config, one_fails, &context, &error), CDDP_DATA);
    cr_expect_str_eq(error.text, "rank 2 has no data");
    cr_expect_eq(cddp_run(&config, one_fails, NULL, &error), CDDP_IO);
    cr_expect_eq(strncmp(error.text, "rank 2: ", 8), 0, "%s", error.text);
}

Test(api, wrong_arguments_are_sentences, .timeout = 60)
{
    const cddp_run_config_t config = {.local = -2};
    cddp_model_t *model = NULL;
    cddp_error_t error;
    int one = 1;

    cr_expect_eq(cddp_run(&config, collectives, &one, &error), CDDP_CONFIG);
    cr_expect_not_null(strstr(error.text, "local is -2"));
    cr_expect_eq(cddp_model_open("my.yaml",
                                 "model: {input: [2], layers: [rely]}", &model,
                                 &error),
                 CDDP_CONFIG);
    cr_expect_not_null(strstr(error.text, "my.yaml:1:30: unknown layer 'rely'"),
                       "%s", error.text);
    cr_expect_null(model);
}

/* All types and operations, and collectives that are started first and waited
 * for later. */
static cddp_code_t kinds_main(cddp_group_t *group, void *context,
                              cddp_error_t *error)
{
    const int rank = cddp_group_rank(group), size = cddp_group_size(group);
    const size_t cuts[] = {0, 2, 3, 7};
    int32_t least = 5 - rank, ranges[7], gathered[3];
    /* 1.0 in float16, 1.0 in bfloat16 */
    uint16_t half = 0x3c00, brain = 0x3f80;
    char word[8] = "";
    cddp_work_t *works[4] = {NULL};

    (void)context;
    OK(cddp_allreduce(group, &least, 1, CDDP_INT32, CDDP_MIN, error));
    CHECK(least == 5 - (size - 1));
    OK(cddp_allreduce(group, &half, 1, CDDP_FLOAT16, CDDP_SUM, error));
    CHECK(half == 0x4200); /* 3.0 in float16 */
    OK(cddp_allreduce(group, &brain, 1, CDDP_BFLOAT16, CDDP_SUM, error));
    CHECK(brain == 0x4040);
    for (int i = 0; i < 7; i++)
        ranges[i] = 10 * i + rank;
    CHECK(cddp_reduce_scatter_start(group, ranges, cuts, CDDP_INT32, CDDP_SUM,
                                    &works[0], error) != CDDP_FAILED);
    OK(cddp_work_wait(works[0], error));
    for (size_t i = cuts[rank]; i < cuts[rank + 1]; i++)
        CHECK(ranges[i] == 3 * 10 * (int)i + 0 + 1 + 2);
    OK(cddp_allgather_ranges(group, ranges, cuts, CDDP_INT32, error));
    for (int i = 0; i < 7; i++)
        CHECK(ranges[i] == 30 * i + 3);
    if (rank == 1)
        strcpy(word, "hello");
    CHECK(cddp_broadcast_start(group, word, sizeof word, 1, &works[1], error) !=
          CDDP_FAILED);
    CHECK(cddp_allgather_start(group, &rank, sizeof rank, gathered, &works[2],
                               error) != CDDP_FAILED);
    CHECK(cddp_barrier_start(group, &works[3], error) != CDDP_FAILED);
    for (int i = 1; i < 4; i++)
        OK(cddp_work_wait(works[i], error));
    CHECK(strcmp(word, "hello") == 0);
    CHECK(gathered[0] == 0 && gathered[1] == 1 && gathered[2] == 2);
    CHECK(cddp_allreduce(group, &least, 1, (cddp_type_t)6, CDDP_SUM, error) ==
          CDDP_CONFIG);
    CHECK(strstr(error->text, "of type 6") != NULL);
    return CDDP_OK;
}

Test(api, all_types_and_collectives, .timeout = 60)
{
    const cddp_run_config_t config = {.local = 3};
    cddp_error_t error;

    cr_expect_eq(cddp_run(&config, kinds_main, NULL, &error), CDDP_OK, "%s",
                 error.text);
}

/* Groups of even and of odd ranks work at the same time. */
static cddp_code_t split_main(cddp_group_t *group, void *context,
                              cddp_error_t *error)
{
    const int rank = cddp_group_rank(group), size = cddp_group_size(group);
    int ranks[5], count = 0;
    int64_t sum = rank;
    cddp_group_t *own = NULL;

    (void)context;
    for (int r = rank % 2; r < size; r += 2)
        ranks[count++] = r;
    OK(cddp_group_split(group, ranks, count, &own, error));
    CHECK(cddp_group_size(own) == count);
    CHECK(cddp_group_rank(own) == rank / 2);
    OK(cddp_allreduce(own, &sum, 1, CDDP_INT64, CDDP_SUM, error));
    CHECK(sum == (rank % 2 == 0 ? 0 + 2 + 4 : 1 + 3));
    cddp_group_close(own);
    CHECK(cddp_group_ranks(group, CDDP_SPLIT_NODE, ranks) == size);
    CHECK(cddp_group_ranks(group, CDDP_SPLIT_ACROSS, ranks) == 1);
    CHECK(ranks[0] == rank);
    own = group;
    OK(cddp_group_split(group, NULL, 0, &own, error));
    CHECK(own == NULL);
    CHECK(cddp_group_split(group, (int[]){rank, rank}, 2, &own, error) ==
          CDDP_CONFIG);
    return CDDP_OK;
}

Test(api, sub_groups, .timeout = 60)
{
    const cddp_run_config_t config = {.local = 5};
    cddp_error_t error;

    cr_expect_eq(cddp_run(&config, split_main, NULL, &error), CDDP_OK, "%s",
                 error.text);
}

/* ---- a training loop ----------------------------------------------------- */

enum { ROWS = 90, FEATURES = 6, CLASSES = 3, BATCH = 20, EPOCHS = 2 };

static const char model_text[] = "model:\n"
                                 "  input: [6]\n"
                                 "  layers:\n"
                                 "    - linear: {out: 8, bias: false}\n"
                                 "    - batchnorm\n"
                                 "    - relu\n"
                                 "    - linear: {out: 3}\n"
                                 "loss: cross_entropy\n";

static void data_write(const char *path)
{
    static float x[ROWS][FEATURES];
    static int8_t label[ROWS];
    const cmd_shard_field_t fields[] = {
        {"/x", CMD_SHARD_FLOAT32, 1, {FEATURES}, x},
        {"/label", CMD_SHARD_INT8, 0, {0}, label}};
    const cmd_shard_t content = {
        .rows = ROWS, .fields = fields, .field_count = 2, .bound = NAN};
    err_t err = ERR_INIT;

    for (int i = 0; i < ROWS; i++) {
        label[i] = (int8_t)(i % CLASSES);
        for (int f = 0; f < FEATURES; f++)
            x[i][f] = (float)((i * 7 + f * 5) % 11) / 11 +
                      (f % CLASSES == label[i] ? 1 : 0);
    }
    cr_assert_eq(cmd_shard_write(path, &content, &err), ERR_OK, "%s", err.text);
}

/* State of a training loop; [losses] has the loss of each step. */
typedef struct loop {
    const char *path, *directory;
    int64_t from; /* restart after this step; 0: begin anew */
    int64_t stop; /* write a checkpoint after this step */
    double losses[32];
    int steps;
    cddp_model_t *model;
    cddp_data_t *data;
    cddp_ddp_t *ddp;
    float *params, *buffers;
    cddp_progress_t progress;
} loop_t;

static cddp_code_t on_ready(void *context, int index, cddp_error_t *error)
{
    return cddp_ddp_ready(context, index, error);
}

static cddp_code_t exec_run(loop_t *loop, const cddp_batch_t *batch,
                            cddp_error_t *error)
{
    double *sums = cddp_ddp_sums(loop->ddp);
    const cddp_exec_config_t config = {.samples = batch->count,
                                       .training = 1,
                                       .threads = 1,
                                       .params = loop->params,
                                       .grads = cddp_ddp_grads(loop->ddp),
                                       .buffers = loop->buffers,
                                       .moments = sums + 1,
                                       .ready = on_ready,
                                       .context = loop->ddp};
    const cddp_samples_t samples = {
        .input = batch->input, .target = batch->target, .ids = batch->ids};
    cddp_exec_t *exec = NULL;
    float logits[BATCH * CLASSES];
    int64_t correct = -1;

    OK(cddp_exec_open(loop->model, &config, &exec, error));
    OK(cddp_exec_forward(exec, &samples, sums, &correct, error));
    CHECK(correct >= 0 && correct <= batch->count);
    OK(cddp_exec_output(exec, logits, error));
    CHECK(isfinite(logits[0]));
    OK(cddp_exec_backward(
        exec, &samples, 1 / cddp_model_weigh(loop->model, NULL, batch->global),
        0, error));
    cddp_exec_close(exec);
    return CDDP_OK;
}

static cddp_code_t step_run(loop_t *loop, const cddp_batch_t *batch,
                            cddp_error_t *error)
{
    double *sums = cddp_ddp_sums(loop->ddp);
    const float *grads = cddp_ddp_grads(loop->ddp);

    cddp_ddp_begin(loop->ddp);
    memset(sums, 0, (1 + cddp_model_moments(loop->model)) * sizeof *sums);
    if (batch->count > 0)
        OK(exec_run(loop, batch, error));
    OK(cddp_ddp_skip(loop->ddp, error));
    OK(cddp_ddp_wait(loop->ddp, error));
    loop->losses[loop->progress.step] = sums[0] / (double)batch->global;
    cddp_model_fold(loop->model, sums + 1, batch->global, loop->buffers);
    for (size_t i = 0; i < cddp_model_param_elems(loop->model); i++)
        loop->params[i] -= 0.5f * grads[i];
    loop->progress.step++;
    loop->progress.epoch = batch->epoch;
    loop->progress.epoch_step = batch->step + 1;
    return CDDP_OK;
}

static int tensors_of(loop_t *loop, cddp_tensor_t *tensors)
{
    int count = 0;

    for (int i = 0; i < cddp_model_params(loop->model); i++) {
        cddp_param_t param = cddp_model_param(loop->model, i);

        tensors[count] = (cddp_tensor_t){.name = param.name,
                                         .ndim = param.ndim,
                                         .data = loop->params + param.offset};
        memcpy(tensors[count++].dims, param.dims, sizeof param.dims);
    }
    for (int i = 0; i < cddp_model_buffers(loop->model); i++) {
        cddp_param_t param = cddp_model_buffer(loop->model, i);

        tensors[count] = (cddp_tensor_t){.name = param.name,
                                         .ndim = param.ndim,
                                         .data = loop->buffers + param.offset};
        memcpy(tensors[count++].dims, param.dims, sizeof param.dims);
    }
    return count;
}

static cddp_code_t loop_open(cddp_group_t *group, loop_t *loop,
                             cddp_error_t *error)
{
    const char *const files[] = {loop->path, NULL};
    const cddp_data_config_t data = {.files = files,
                                     .input = "/x",
                                     .target = "/label",
                                     .input_elems = FEATURES,
                                     .classes = CLASSES,
                                     .batch = BATCH,
                                     .shuffle = "full",
                                     .seed = 3,
                                     .epochs = EPOCHS,
                                     .epoch = loop->progress.epoch,
                                     .step = loop->progress.epoch_step,
                                     .prefetch = 2};

    OK(cddp_data_open(group, &data, &loop->data, error));
    CHECK(cddp_data_samples(loop->data) == ROWS);
    CHECK(cddp_data_steps(loop->data) == 5);
    return CDDP_OK;
}

static cddp_code_t model_make(cddp_group_t *group, loop_t *loop,
                              cddp_error_t *error)
{
    cddp_view_t views[8];
    cddp_ddp_config_t ddp = {.views = views,
                             .options = "{first_bucket_mb: 0.001}"};

    OK(cddp_model_open("model", model_text, &loop->model, error));
    ddp.view_count = cddp_model_params(loop->model);
    ddp.elems = cddp_model_param_elems(loop->model);
    ddp.sums = 1 + cddp_model_moments(loop->model);
    CHECK(ddp.view_count == 5);
    CHECK(cddp_model_buffers(loop->model) == 2);
    CHECK(cddp_model_hash(loop->model) != 0);
    for (int i = 0; i < ddp.view_count; i++) {
        cddp_param_t param = cddp_model_param(loop->model, i);

        views[i] = (cddp_view_t){param.name, param.offset, param.count};
    }
    OK(cddp_ddp_open(group, &ddp, &loop->ddp, error));
    loop->params = calloc(ddp.elems, sizeof *loop->params);
    loop->buffers =
        calloc(cddp_model_buffer_elems(loop->model), sizeof *loop->buffers);
    cddp_model_init(loop->model, 1, loop->params, loop->buffers);
    return cddp_ddp_broadcast(loop->ddp, loop->params,
                              ddp.elems * sizeof(float), error);
}

static cddp_code_t loop_run(cddp_group_t *group, loop_t *loop,
                            cddp_error_t *error)
{
    cddp_tensor_t tensors[8];
    cddp_checkpoint_config_t checkpoint = {.directory = loop->directory};
    const cddp_batch_t *batch;
    int count, found = 1;

    OK(model_make(group, loop, error));
    count = tensors_of(loop, tensors);
    checkpoint.model = cddp_model_hash(loop->model);
    OK(cddp_checkpoint_read(group, &checkpoint, tensors, count, &found,
                            &loop->progress, error));
    CHECK((found != 0) == (loop->from > 0));
    CHECK(loop->progress.step == loop->from);
    OK(loop_open(group, loop, error));
    for (;;) {
        OK(cddp_data_next(loop->data, &batch, error));
        if (batch == NULL)
            break;
        OK(step_run(loop, batch, error));
        if (loop->progress.step == loop->stop)
            return cddp_checkpoint_write(group, &checkpoint, &loop->progress,
                                         tensors, count, error);
    }
    return cddp_ddp_check(loop->ddp, loop->params,
                          cddp_model_param_elems(loop->model) * sizeof(float),
                          error);
}

/* If a rank names no tensors, or tensors other than those of rank 0, all ranks
 * fail. Ranks may name the tensors that they read in different orders. */
static cddp_code_t odd_read(cddp_group_t *group, void *directory,
                            cddp_error_t *error)
{
    float weight[2] = {1, 2}, slot[2] = {3, 4};
    const cddp_tensor_t tensors[] = {{"model/weight", 1, {2}, weight},
                                     {"optimizer/slot", 1, {2}, slot}};
    const cddp_tensor_t turned[] = {tensors[1], tensors[0]};
    const cddp_checkpoint_config_t config = {.directory = directory};
    const int odd = cddp_group_rank(group) == 1;
    cddp_progress_t progress = {.step = 1};
    cddp_error_t why;
    int found;

    CHECK(cddp_checkpoint_read(group, &config, tensors, odd ? 1 : 2, &found,
                               &progress, &why) == CDDP_CONFIG);
    CHECK(strstr(why.text, "rank 1 passes 1 tensors") != NULL);
    CHECK(cddp_checkpoint_write(group, &config, &progress,
                                odd ? turned : tensors, 2,
                                &why) == CDDP_CONFIG);
    CHECK(strstr(why.text, "rank 1 passes other tensors") != NULL);
    OK(cddp_checkpoint_write(group, &config, &progress, tensors, 2, error));
    CHECK(cddp_checkpoint_read(group, &config, tensors, odd ? 1 : 2, &found,
                               &progress, &why) == CDDP_CONFIG);
    CHECK(strstr(why.text, "rank 1") != NULL);
    CHECK(cddp_checkpoint_read(group, &config, tensors, odd ? 0 : 2, &found,
                               &progress, &why) == CDDP_CONFIG);
    CHECK(strstr(why.text, odd ? "needs a tensor" : "rank 1") != NULL);
    weight[0] = slot[1] = 0;
    OK(cddp_checkpoint_read(group, &config, odd ? turned : tensors, 2, &found,
                            &progress, error));
    CHECK(found && weight[0] == 1 && slot[1] == 4);
    return CDDP_OK;
}

Test(api, ranks_that_name_different_tensors_are_refused, .timeout = 60)
{
    const cddp_run_config_t two = {.local = 2};
    cddp_error_t error = {0};
    char directory[300];
    err_t err = ERR_INIT;

    snprintf(directory, sizeof directory, "%s/cddp-odd-XXXXXX",
             getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
    cr_assert_not_null(mkdtemp(directory));
    cr_expect_eq(cddp_run(&two, odd_read, directory, &error), CDDP_OK, "%s",
                 error.text);
    cr_assert_eq(file_remove_tree(directory, &err), ERR_OK);
}

/* Ranks share the plan; rank 0 stores its losses there. */
static cddp_code_t loop_main(cddp_group_t *group, void *context,
                             cddp_error_t *error)
{
    loop_t *plan = context, loop = *plan;
    cddp_code_t code = loop_run(group, &loop, error);

    if (cddp_group_rank(group) == 0) {
        memcpy(plan->losses, loop.losses, sizeof loop.losses);
        plan->steps = (int)loop.progress.step;
    }
    cddp_data_close(loop.data);
    cddp_ddp_close(loop.ddp);
    cddp_model_close(loop.model);
    free(loop.params);
    free(loop.buffers);
    return code;
}

static void loop_try(loop_t *plan, int ranks)
{
    const cddp_run_config_t config = {.local = ranks};
    cddp_error_t error;

    cr_assert_eq(cddp_run(&config, loop_main, plan, &error), CDDP_OK, "%s",
                 error.text);
}

/* One rank, and three ranks followed by two ranks that resume: all have nearly
 * the same losses. */
Test(api, a_loop_over_all_parts, .timeout = 120)
{
    char directory[] = "/tmp/cddp-api-XXXXXX";
    char *path, *checkpoints;
    loop_t whole = {0}, first = {0}, rest = {0};

    cr_assert_not_null(mkdtemp(directory));
    path = str_printf("%s/data.h5", directory);
    checkpoints = str_printf("%s/checkpoints", directory);
    data_write(path);
    whole.path = first.path = rest.path = path;
    whole.directory = first.directory = rest.directory = checkpoints;
    loop_try(&whole, 1);
    first.stop = rest.from = 4;
    loop_try(&first, 3);
    loop_try(&rest, 2);
    cr_expect_eq(whole.steps, 10);
    cr_expect_eq(first.steps, 4);
    cr_expect_eq(rest.steps, 10);
    cr_expect_lt(whole.losses[9], 0.7 * whole.losses[0]);
    for (int s = 0; s < 10; s++) {
        double there = s < 4 ? first.losses[s] : rest.losses[s];

        /* Batch norm uses the statistics of a rank's own samples, so bits
         * differ. */
        cr_expect_float_eq(there, whole.losses[s], 0.3 * whole.losses[0],
                           "step %d: %g, alone %g", s, there, whole.losses[s]);
    }
    cr_expect_eq(first.losses[4], 0);
    cr_assert_eq(file_remove_tree(directory, NULL), ERR_OK);
    free(checkpoints);
    free(path);
}
