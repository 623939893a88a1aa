/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/retry.h"
#include "base/str.h"
#include "dev/dev.h"
#include "obs/tb_event.h"
#include "train/config_rows.h"
#include "train/dir_name.h"
#include "train/writers.h"

/* The run file is a tree of tables; that of the data is in config_data.c. */
static const char *const precisions[] = {"fp32", "bf16", "auto", "tf32", NULL};
static const char *const recomputes[] = {"none", "blocks", NULL};
static const char *const diverges[] = {"stop", "rollback", NULL};
static const char *const scales[] = {"none", "linear", "sqrt", NULL};
static const char *const asyncs[] = {"auto", "true", "false", NULL};
static const char *const bests[] = {"none", "valid_accuracy", "valid_loss",
                                    NULL};
static const char *const writers[] = {"auto", "node", "rank", NULL};
static const char *const verifies[] = {"cache", "disk", NULL};
static const char *const tensorboards[] = {"auto", "true", "false", NULL};
static const char *const traces[] = {"none", "chrome", NULL};

static const opt_row_t run_options[] = {
    CONFIG(run.name, "name", OPT_TEXT, "run", .free = true,
           .help = "short name of the run; part of the default directory"),
    CONFIG(run.dir, "dir", OPT_TEXT, "", .free = true,
           .help = "run directory, for checkpoints and metrics. {name} "
                   "(run.name), {array} (SLURM_ARRAY_TASK_ID, the number of "
                   "the task in a Slurm array) and {job} (id of the Slurm "
                   "job) are replaced; put quotes around a value with them. "
                   "Empty: runs/{name}, or runs/{name}-{array} if "
                   "SLURM_ARRAY_TASK_ID is set"),
    CONFIG(run.seed, "seed", OPT_INT, "1", .min = 0, .max = 9e15,
           .help = "key of all random numbers: initial weights, order of "
                   "samples, dropout"),
    {.name = NULL}};

static const opt_row_t loop_options[] = {
    CONFIG(train.epochs, "epochs", OPT_INT, "1", .min = 1, .max = 1e9,
           .help = "number of passes over the training samples"),
    CONFIG(train.batch, "batch", OPT_INT, "256", .min = 1, .max = 1e9,
           .unit = "samples",
           .help = "global batch: samples per update, over all ranks"),
    CONFIG(train.accumulate, "accumulate", OPT_INT, "1", .min = 1, .max = 1e6,
           .unit = "micro-batches",
           .help =
               "number of micro-batches into which a rank divides its share of "
               "a batch, to save memory; gradients are reduced once per batch"),
    CONFIG(train.device, "device", OPT_CHOICE, "auto", .choices = dev_choices,
           .free = true,
           .help = "where the model computes. cuda: on one NVIDIA GPU for each "
                   "rank; auto: cuda if every rank has a GPU, cpu if none "
                   "has one"),
    CONFIG(train.share_gpu, "share_gpu", OPT_BOOL, "false", .free = true,
           .help = "true: several ranks may compute on one GPU, for tests; "
                   "false: this is an error"),
    CONFIG(train.graphs, "graphs", OPT_BOOL, "true", .free = true,
           .help = "true: on a GPU a step is captured once and launched as one "
                   "graph, where this is possible; false: the operations of a "
                   "step are launched one by one. The bits are the same"),
    CONFIG(train.precision, "precision", OPT_CHOICE, "fp32",
           .choices = precisions,
           .help = "fp32; bf16 (mixed precision): linear, conv, "
                   "attention, lstm and gru multiply numbers rounded to "
                   "bfloat16, while sums, parameters, gradients and "
                   "checkpoints stay float32; tf32: the same with numbers "
                   "rounded to 10 bits of mantissa, on GPUs only; auto: bf16 "
                   "if the CPU or GPU of every rank supports it, else fp32"),
    CONFIG(train.recompute, "recompute", OPT_CHOICE, "none",
           .choices = recomputes, .free = true,
           .help = "blocks: keep for backward only the tensors between "
                   "blocks of layers, and compute each block again before "
                   "its backward. The same bits in less memory, for up to "
                   "one more forward per step (see docs/ARCHITECTURE.md)"),
    CONFIG(train.threads, "threads", OPT_INT, "0", .min = 0, .max = 4096,
           .free = true,
           .help =
               "number of compute threads per rank; 0: all cores that the rank "
               "may use, divided by the number of ranks that share them"),
    CONFIG(train.clip_norm, "clip_norm", OPT_REAL, "0", .min = 0, .max = 1e30,
           .help = "scale gradients so that their global norm is at most "
                   "this; 0: off"),
    CONFIG(train.clip_value, "clip_value", OPT_REAL, "0", .min = 0, .max = 1e30,
           .help = "clamp each gradient to plus or minus this, after "
                   "clip_norm; 0: off"),
    CONFIG(train.scale_lr, "scale_lr", OPT_CHOICE, "none", .choices = scales,
           .help = "multiply the learning rate by batch / base_batch "
                   "(linear), or by its square root (sqrt)"),
    CONFIG(train.base_batch, "base_batch", OPT_INT, "256", .min = 1, .max = 1e9,
           .unit = "samples",
           .help = "global batch that the optimizer's learning rate is "
                   "meant for"),
    CONFIG(train.log_every, "log_every", OPT_INT, "1", .min = 1, .max = 1e9,
           .unit = "steps", .free = true,
           .help = "a row of metrics.jsonl is written every N steps"),
    CONFIG(train.eval_every, "eval_every", OPT_EVERY, "1 epoch",
           .help = "when to evaluate on the validation shards; always at "
                   "the end, too"),
    CONFIG(train.reproducible, "reproducible", OPT_BOOL, "false",
           .help = "true: the same bits on any number of ranks, whatever "
                   "train.threads is; see docs/ARCHITECTURE.md"),
    CONFIG(train.microbatch, "microbatch", OPT_INT, "16", .min = 1, .max = 1e9,
           .unit = "samples",
           .help = "reproducible mode: samples per micro-batch, whatever the "
                   "number of ranks. The bits depend on it"),
    CONFIG(train.leaf_threads, "leaf_threads", OPT_INT, "1", .min = 1,
           .max = 4096,
           .help = "reproducible mode: number of threads that compute one "
                   "micro-batch. The bits depend on it. A rank with more "
                   "threads computes several micro-batches in parallel"),
    {.name = NULL}};

static const opt_row_t checkpoint_options[] = {
    CONFIG(checkpoint.every, "every", OPT_EVERY, "10 min", .free = true,
           .help = "when to write checkpoints; always at the end and "
                   "before a requeue, too"),
    CONFIG(checkpoint.keep, "keep", OPT_INT, "3", .min = 1, .max = 1e6,
           .free = true, .help = "number of newest checkpoints to keep"),
    CONFIG(checkpoint.keep_every, "keep_every", OPT_INT, "0", .min = 0,
           .max = 9e15, .unit = "steps", .free = true,
           .help = "checkpoints at multiples of this are never deleted; 0: "
                   "none"),
    CONFIG(checkpoint.best, "best", OPT_CHOICE, "none", .choices = bests,
           .free = true,
           .help = "the best evaluation so far makes a checkpoint due, which "
                   "is kept until another is better; best.json names it. "
                   "valid_accuracy: of a classifier"),
    CONFIG(checkpoint.io, "io", OPT_CHOICE, "independent",
           .choices = train_config_ios, .free = true,
           .help = "independent: one file or several files (see writers); "
                   "mpi: one shared file, by MPI-IO"),
    CONFIG(checkpoint.writers, "writers", OPT_INTS, "auto", .min = 1,
           .max = 1e6, .choices = writers, .free = true,
           .help = "how many shards a checkpoint has, with io: independent. "
                   "rank: each rank writes a file; node: the ranks of a node "
                   "write one file together; a number: that many files, each "
                   "of them written by consecutive ranks, and more if ranks "
                   "of different nodes would write one file. auto: node if "
                   "there are more than 64 ranks, else rank"),
    CONFIG(checkpoint.async, "async", OPT_CHOICE, "auto", .choices = asyncs,
           .free = true,
           .help = "true: write checkpoints in a thread while training goes "
                   "on, from a copy of what the rank writes; not with io: mpi. "
                   "auto: true, except with io: mpi. The last checkpoint of a "
                   "run, or of a start that ends, is waited for"),
    CONFIG(checkpoint.verify, "verify", OPT_CHOICE, "cache",
           .choices = verifies, .free = true,
           .help = "cache: a save ends when storage has confirmed all bytes "
                   "(fsync). disk: it also reads all files back, past the "
                   "page cache, from the disk or its server, before older "
                   "checkpoints are deleted"),
    CONFIG(checkpoint.format, "format", OPT_INT, "2", .min = 1, .max = 2,
           .free = true,
           .help = "version of the manifest (docs/FORMATS.md). 2: with a hash "
                   "of each 4 MiB, so that ranks can divide the work of a "
                   "resume. 1: without these hashes, for earlier versions of "
                   "cddp. Those versions take a checkpoint of version 2 for a "
                   "damaged one: they resume from an older checkpoint, and "
                   "their next save renames the newer one to superseded-*. "
                   "cddp-ckpt repair makes it a checkpoint again"),
    CONFIG(checkpoint.failures, "failures", OPT_INT, "3", .min = 1, .max = 1e6,
           .free = true,
           .help = "checkpoints in a row that cannot be written (no space, a "
                   "quota, an error of the storage), after which the run ends "
                   "with status 74. Before, it goes on, and tries again after "
                   "a quarter of every. The last checkpoint has one try"),
    CONFIG(checkpoint.local, "local", OPT_TEXT, "", .free = true,
           .help = "directory of each node, in memory (/dev/shm) or on a local "
                   "disk. The run writes local checkpoints there, between the "
                   "other checkpoints. A restart on the same nodes resumes "
                   "from the newest local checkpoint and reads no other "
                   "checkpoint. Needs async. Empty: no local checkpoints"),
    CONFIG(checkpoint.local_every, "local_every", OPT_EVERY, "100 steps",
           .free = true,
           .help = "number of steps from one local checkpoint to the next. A "
                   "local checkpoint that is due while another checkpoint is "
                   "being written is left out"),
    CONFIG(checkpoint.reserve, "reserve", OPT_SECONDS, "60 s", .min = 0,
           .max = 86400, .unit = "s", .free = true,
           .help = "time that is kept for the last checkpoint before the time "
                   "limit of the job, until one was measured; at most half of "
                   "the time that the job has left at its start"),
    CONFIG(checkpoint.init, "init", OPT_TEXT, "", .free = true,
           .help = "where the initial weights are, each parameter and running "
                   "statistic under its name: a safetensors file, as cddp-ckpt "
                   "export writes it; or the directory of a checkpoint; or a "
                   "run directory, whose newest checkpoint is taken. A run "
                   "that resumes takes its own checkpoint instead. Empty: "
                   "random weights"),
    CONFIG(checkpoint.init_skip, "init_skip", OPT_TEXTS, "[]", .free = true,
           .help = "names of tensors, perhaps with *, that init does not set: "
                   "they have random values, as for a new head, and the file "
                   "need not have them"),
    {.name = NULL}};

static const opt_row_t fault_options[] = {
    CONFIG(fault.timeout, "timeout", OPT_SECONDS, "60 s", .min = 1,
           .max = 86400, .unit = "s", .free = true,
           .help = "a rank that shows no sign of life, or no progress, for "
                   "this time has failed"),
    CONFIG(fault.io_timeout, "io_timeout", OPT_SECONDS, "600 s", .min = 0,
           .max = 86400, .unit = "s", .free = true,
           .help = "timeout of a rank that opens or reads data, or writes "
                   "or reads a checkpoint: storage may be slow"),
    CONFIG(fault.diverge, "diverge", OPT_CHOICE, "stop", .choices = diverges,
           .free = true,
           .help = "what to do when a loss or gradient is not finite, or when "
                   "a loss is a spike. stop: end with status 70; rollback: go "
                   "back to the newest checkpoint, which is older than that, "
                   "and leave out the samples of the step (see "
                   "docs/ARCHITECTURE.md)"),
    CONFIG(fault.spike, "spike", OPT_REAL, "0", .min = 0, .max = 1e9,
           .free = true,
           .help = "a step's loss is a spike if it is more than this number "
                   "of standard deviations above the mean of the last 200 "
                   "losses (of fewer at first, at least 20); 0: no loss is"),
    CONFIG(fault.rollbacks, "rollbacks", OPT_INT, "3", .min = 0,
           .max = HDF5IO_SKIPS_MAX, .free = true,
           .help = "how often a run may go back; the next time it ends with "
                   "status 70"),
    CONFIG(fault.signals, "signals", OPT_TEXTS, "[USR1, TERM]", .free = true,
           .help = "signals after which a run writes a checkpoint and ends "
                   "with 75: some of " SLURM_SIGNAL_NAMES
                   ". INT and HUP always do; USR1, if left out, is ignored, "
                   "and TERM ends the run at once"),
    CONFIG(fault.io_retries, "io_retries", OPT_INT, "3", .min = 1,
           .max = RETRY_TRIES_MOST, .free = true,
           .help = "how often data is opened and read again after an error of "
                   "storage (ESTALE, EIO, ETIMEDOUT), within a quarter of "
                   "io_timeout"),
    {.name = NULL}};

static const opt_row_t obs_options[] = {
    CONFIG(obs.every, "every", OPT_SECONDS, "60 s", .min = 1, .max = 86400,
           .unit = "s", .free = true,
           .help = "how often a run whose output is no terminal prints a line "
                   "of progress (the first one comes 10 s after the first "
                   "step), how often the files for TensorBoard and "
                   "Prometheus are written, and how often ranks compare their "
                   "loads (for the first time after 10 s)"),
    CONFIG(obs.tensorboard, "tensorboard", OPT_CHOICE, "auto",
           .choices = tensorboards, .free = true,
           .help = "write files for TensorBoard to the directory tb in the run "
                   "directory. auto: if this build can (cddp-info tells)"),
    CONFIG(obs.prometheus, "prometheus", OPT_TEXT, "", .free = true,
           .help = "directory of the textfile collector of Prometheus's "
                   "node_exporter, on a local disk of each host: it gets a "
                   "file for each rank while the run lasts. Empty: none"),
    CONFIG(obs.trace, "trace", OPT_CHOICE, "none", .choices = traces,
           .free = true,
           .help = "chrome: write what each thread of each rank does when, "
                   "during trace_steps, to trace.json in the run directory, "
                   "which ui.perfetto.dev shows"),
    CONFIG(obs.trace_steps, "trace_steps", OPT_TEXT, "11:20", .free = true,
           .help = "the first and the last step that trace traces, counted "
                   "from 1, as FIRST:LAST"),
    {.name = NULL}};

const opt_row_t train_options[] = {
    {.name = "run",
     .type = OPT_SECTION,
     .fallback = "",
     .rows = run_options,
     .help = "the run"},
    {.name = "data",
     .type = OPT_SECTION,
     .fallback = "",
     .rows = train_data_options,
     .help = "where samples come from"},
    CONFIG(model, "model", OPT_TREE, NULL,
           .help = "input shape and layers: see the tables of layers"),
    CONFIG(loss, "loss", OPT_TREE, NULL,
           .help = "see the tables of losses. Beside its kind, a loss may "
                   "have sample_weight: the name in data.target of a "
                   "weight for each sample. Several losses: a list, each "
                   "with from, target and weight beside its kind"),
    CONFIG(metrics, "metrics", OPT_TREE, "", .free = true,
           .help = "list of what evaluations compute besides loss and "
                   "accuracy. For classes: top5 (or another number), "
                   "miou, iou1 (of class 1), perplexity, bits. For "
                   "numbers: mae, rmse, r2 (mean over the outputs). auto "
                   "(default): those that suit the loss. Several losses: "
                   "a map from their names to such lists"),
    CONFIG(optimizer, "optimizer", OPT_TREE, NULL,
           .help = "see the tables of optimizers"),
    CONFIG(schedule, "schedule", OPT_TREE, "",
           .help = "learning rate over the run; absent: constant"),
    CONFIG(ema, "ema", OPT_SECTION, "", .rows = optim_ema_options,
           .help = "moving average of the weights"),
    {.name = "train",
     .type = OPT_SECTION,
     .fallback = "",
     .rows = loop_options,
     .help = "the training loop"},
    CONFIG(ddp, "ddp", OPT_SECTION, "", .rows = ddp_options,
           .help = "how gradients are reduced"),
    {.name = "checkpoint",
     .type = OPT_SECTION,
     .fallback = "",
     .rows = checkpoint_options,
     .help = "saving and resuming"},
    {.name = "fault",
     .type = OPT_SECTION,
     .fallback = "",
     .rows = fault_options,
     .help = "when a rank counts as failed, and what follows divergence"},
    {.name = "obs",
     .type = OPT_SECTION,
     .fallback = "",
     .rows = obs_options,
     .help = "what a run tells about itself"},
    {.name = NULL}};

/* Refuse [section].[key] with what is wrong about it. */
static err_code_t refuse(const tree_t *tree, const char *section,
                         const char *key, const char *why, err_t *err)
{
    const tree_t *node = tree_get(tree_get(tree, section), key);
    char at[512];

    if (node == NULL)
        node = tree_get(tree, section);
    tree_place_format(tree_place(node), at, sizeof at);
    return err_set(err, ERR_CONFIG, "%s: %s.%s %s", at, section, key, why);
}

/* Refuse settings that do not work with local SGD, where ranks differ between
 * two averages. */
static err_code_t local_check(const tree_t *tree, const train_config_t *config,
                              err_t *err)
{
    if (config->ddp.local_sgd.period == 0)
        return ERR_OK;
    if (config->train.reproducible)
        return refuse(tree, "ddp", "local_sgd",
                      "and train.reproducible are both set; local updates "
                      "depend on the number of ranks, so choose one of the two",
                      err);
    if (ddp_hook_wanted(&config->ddp))
        return refuse(tree, "ddp", "local_sgd",
                      "and ddp.hook are both set; between averages no "
                      "gradients are reduced, so a hook has no effect: choose "
                      "one of the two",
                      err);
    if (config->ddp.zero != 0)
        return refuse(tree, "ddp", "local_sgd",
                      "and ddp.zero are both set; between averages each rank "
                      "updates all its parameters and needs all of the "
                      "optimizer's state, so choose one of the two",
                      err);
    if (config->fault.diverge == TRAIN_DIVERGE_ROLLBACK)
        return refuse(tree, "ddp", "local_sgd",
                      "and fault.diverge: rollback are both set; a step that "
                      "is left out may be one that averages, so choose one of "
                      "the two",
                      err);
    return ERR_OK;
}

bool train_config_async(const train_config_t *config)
{
    return config->checkpoint.async == TRAIN_ASYNC_TRUE ||
           (config->checkpoint.async == TRAIN_ASYNC_AUTO &&
            config->checkpoint.io != TRAIN_IO_MPI);
}

bool train_trace_steps(const train_config_t *config, int64_t *first,
                       int64_t *last)
{
    const char *text = config->obs.trace_steps;
    const char *colon = strchr(text, ':');
    char head[32];

    if (colon == NULL || (size_t)(colon - text) >= sizeof head)
        return false;
    snprintf(head, sizeof head, "%.*s", (int)(colon - text), text);
    return str_to_int(head, first) && str_to_int(colon + 1, last) &&
           *first >= 1 && *last >= *first;
}

/* Check the rules that involve several keys. */
static err_code_t config_check(const tree_t *tree, const train_config_t *config,
                               err_t *err)
{
    opt_unit_t eval = config->train.eval_every.unit;
    opt_unit_t check = config->ddp.check_every.unit;
    int64_t first, last;

    if (eval == OPT_TIME)
        return refuse(tree, "train", "eval_every",
                      "is a time; give steps, epochs or never, so that a run "
                      "evaluates at the same steps every time",
                      err);
    if (check != OPT_STEPS && check != OPT_NEVER)
        return refuse(tree, "ddp", "check_every",
                      "is no number of steps; expected '100 steps' or never",
                      err);
    if (config->train.reproducible && ddp_hook_wanted(&config->ddp))
        return refuse(
            tree, "ddp", "hook",
            "and train.reproducible are both set; what a hook sends "
            "depends on the number of ranks, so choose one of the two",
            err);
    if (config->obs.tensorboard == TRAIN_TB_TRUE && !obs_tb_built())
        return refuse(tree, "obs", "tensorboard",
                      "is true, but this build was configured without "
                      "libprotobuf-c, protoc-c or ISA-L, which write these "
                      "files; leave it out, or install these and build again",
                      err);
    if (config->checkpoint.io == TRAIN_IO_MPI && train_config_async(config))
        return refuse(tree, "checkpoint", "async",
                      "is true, but the collective calls of checkpoint.io: mpi "
                      "are made between steps; leave it out, or set "
                      "checkpoint.io to independent",
                      err);
    if (train_writers_wrong(config) != NULL)
        return refuse(tree, "checkpoint", "writers",
                      train_writers_wrong(config), err);
    if (config->checkpoint.local[0] != '\0' && !train_config_async(config))
        return refuse(tree, "checkpoint", "local",
                      "is set, but local checkpoints can be written only while "
                      "training goes on: leave out checkpoint.async and "
                      "checkpoint.io, or leave out checkpoint.local",
                      err);
    if (config->checkpoint.local_every.unit != OPT_STEPS ||
        config->checkpoint.local_every.value < 1)
        return refuse(tree, "checkpoint", "local_every",
                      "is no number of steps; expected '100 steps'", err);
    if (!train_trace_steps(config, &first, &last))
        return refuse(tree, "obs", "trace_steps",
                      "is not FIRST:LAST, such as 11:20, with 1 <= FIRST <= "
                      "LAST",
                      err);
    return local_check(tree, config, err);
}

static err_code_t signals_check(const tree_t *tree,
                                const train_config_t *config, err_t *err)
{
    const opt_texts_t *signals = &config->fault.signals;
    char why[256];

    for (int i = 0; i < signals->count; i++) {
        if (slurm_signal_number(signals->items[i]) != 0)
            continue;
        snprintf(why, sizeof why,
                 "has '%.40s', expected some of " SLURM_SIGNAL_NAMES,
                 signals->items[i]);
        return refuse(tree, "fault", "signals", why, err);
    }
    return ERR_OK;
}

/* With data.sequence there must be no target; otherwise each target needs a
 * path. */
static err_code_t fields_check(const tree_t *tree, const train_config_t *config,
                               err_t *err)
{
    const opt_map_t *targets = &config->data.target;
    const bool sequence = config->data.sequence > 0;
    char at[512];

    if (sequence && config->data.input.count > 1)
        return refuse(tree, "data", "input",
                      "names several inputs, but data.sequence cuts samples "
                      "from one stream of numbers; name one input, or leave "
                      "data.sequence out",
                      err);
    if (sequence && config->data.samples == TRAIN_SAMPLES_FILES)
        return refuse(tree, "data", "samples",
                      "is files, but data.sequence cuts each file into "
                      "samples; leave one of the two out",
                      err);
    for (int k = 0; k < targets->count; k++) {
        const bool path = train_field(targets, k)->path[0] != '\0';

        if (sequence && path)
            return refuse(tree, "data", "target",
                          "and data.sequence are both set; the target of a "
                          "sequence is its next number, so take data.target "
                          "out",
                          err);
        if (sequence || path)
            continue;
        if (targets->names[k] == NULL)
            return refuse(tree, "data", "target",
                          "has no path: name the HDF5 dataset that holds the "
                          "targets, or set data.sequence",
                          err);
        tree_place_format(targets->places[k], at, sizeof at);
        return err_set(err, ERR_CONFIG,
                       "%s: data.target.%s has no path: name the HDF5 dataset "
                       "that holds it",
                       at, targets->names[k]);
    }
    return ERR_OK;
}

/* Replace the pattern run.dir by the directory that it stands for. */
static err_code_t dir_resolve(const tree_t *tree, const slurm_job_t *job,
                              train_config_t *config, err_t *err)
{
    err_t why = ERR_INIT;
    char *dir = NULL;

    if (train_dir_name(config->run.dir, config->run.name, job, &dir, &why) !=
        ERR_OK)
        return refuse(tree, "run", "dir", why.text, err);
    free(config->run.dir);
    config->run.dir = dir;
    return ERR_OK;
}

/* Does the run file have a value for [key] of [section]? */
static bool is_chosen(const tree_t *tree, const char *section, const char *key)
{
    const tree_t *map = tree_get(tree, section);
    const tree_t *node = map == NULL ? NULL : tree_get(map, key);

    return node != NULL && tree_kind(node) != TREE_NULL;
}

err_code_t train_config_read(const tree_t *tree, const slurm_job_t *job,
                             train_config_t *config, err_t *err)
{
    train_config_t read = {0};
    err_code_t rc;

    rc = opt_fill(train_options, tree, "", &read, err);
    if (rc != ERR_OK)
        return rc;
    read.data.lanes_chosen = is_chosen(tree, "data", "lanes");
    rc = fields_check(tree, &read, err);
    if (rc == ERR_OK)
        rc = train_config_stats(&read.data.input, "input", err);
    if (rc == ERR_OK)
        rc = train_config_stats(&read.data.target, "target", err);
    if (rc == ERR_OK)
        rc = config_check(tree, &read, err);
    if (rc == ERR_OK)
        rc = signals_check(tree, &read, err);
    if (rc == ERR_OK)
        rc = dir_resolve(tree, job, &read, err);
    if (rc != ERR_OK) {
        opt_free(train_options, &read);
        return rc;
    }
    *config = read;
    return ERR_OK;
}

void train_config_free(train_config_t *config)
{
    opt_free(train_options, config);
}

const hdf5io_field_t *train_field(const opt_map_t *fields, int index)
{
    return (const hdf5io_field_t *)fields->items + index;
}

double train_lr_factor(const train_config_t *config)
{
    double ratio =
        (double)config->train.batch / (double)config->train.base_batch;

    switch ((train_scale_t)config->train.scale_lr) {
    case TRAIN_SCALE_LINEAR:
        return ratio;
    case TRAIN_SCALE_SQRT:
        return sqrt(ratio);
    case TRAIN_SCALE_NONE:
        break;
    }
    return 1;
}

uint64_t train_config_hash(const train_config_t *config)
{
    str_buf_t text = {0};
    uint64_t hash;

    opt_print(train_options, config, 0, &text);
    hash = hash_bytes(text.text, text.length);
    str_buf_free(&text);
    return hash;
}
