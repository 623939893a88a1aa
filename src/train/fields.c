/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/fields.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* The inputs or targets that the model has. */
typedef struct names {
    const char *key; /* "input" or "target" */
    int count;
    const char *names[NN_FIELDS_MAX + 1]; /* NULL-terminated */
    const char *places[NN_FIELDS_MAX]; /* for each name: the layer or loss that
                                          needs it, for messages */
    const char *whose;                 /* what needs the names, for messages */
} names_t;

static int names_find(const names_t *wanted, const char *name)
{
    int k = 0;

    while (k < wanted->count && strcmp(wanted->names[k], name) != 0)
        k++;
    return k;
}

/* Fail: [field] is in the run file, but nothing in the model reads it. */
static err_code_t fail_unread(const names_t *wanted, const opt_map_t *fields,
                              int field, err_t *err)
{
    const char *name = fields->names[field];
    const char *nearest = str_nearest(name, wanted->names);
    str_buf_t known = {0};
    char at[512];

    for (int k = 0; k < wanted->count; k++)
        str_buf_add(&known, "%s%s", k == 0 ? "" : ", ", wanted->names[k]);
    tree_place_format(fields->places[field], at, sizeof at);
    err_set(err, ERR_CONFIG,
            "%s: data.%s.%s: %s is called '%s'%s%s%s (there: %s); take it out, "
            "or name it there",
            at, wanted->key, name, wanted->whose, name,
            nearest == NULL ? "" : "; did you mean '",
            nearest == NULL ? "" : nearest, nearest == NULL ? "" : "'?",
            known.text);
    str_buf_free(&known);
    return ERR_CONFIG;
}

/* Fail: the model needs [wanted]->names[k], which is not in the run file. */
static err_code_t fail_absent(const names_t *wanted, const opt_map_t *fields,
                              int k, err_t *err)
{
    const bool named = fields->names[0] != NULL;
    const char *nearest = NULL;
    const char *names[OPT_MAP_MAX + 1] = {NULL};

    for (int i = 0; i < fields->count && named; i++)
        names[i] = fields->names[i];
    if (named)
        nearest = str_nearest(wanted->names[k], names);
    return err_set(err, ERR_CONFIG,
                   "%s needs data.%s.%s, which is not there%s%s%s; add "
                   "'%s: {path: /NAME}' below data.%s",
                   wanted->places[k], wanted->key, wanted->names[k],
                   nearest == NULL ? "" : " (is it '",
                   nearest == NULL ? "" : nearest, nearest == NULL ? "" : "'?)",
                   wanted->names[k], wanted->key);
}

static bool names_alike(const names_t *wanted)
{
    int k = 1;

    while (k < wanted->count && strcmp(wanted->names[k], wanted->names[0]) == 0)
        k++;
    return k >= wanted->count;
}

/* Find the field of the run file for each name of the model. */
static err_code_t match(const names_t *wanted, const opt_map_t *fields,
                        int of[NN_FIELDS_MAX], err_t *err)
{
    const bool named = fields->names[0] != NULL;

    /* Several losses may use one target; then all names are equal. */
    for (int k = 0; k < wanted->count; k++) {
        of[k] = !named && names_alike(wanted) ? 0 : -1;
        for (int i = 0; i < fields->count && named; i++)
            if (strcmp(wanted->names[k], fields->names[i]) == 0)
                of[k] = i;
    }
    /* Report an unknown name first: a misspelt name is likelier than a missing
     * one. */
    for (int i = 0; i < fields->count && fields->names[i] != NULL; i++)
        if (names_find(wanted, fields->names[i]) == wanted->count)
            return fail_unread(wanted, fields, i, err);
    for (int k = 0; k < wanted->count; k++)
        if (of[k] < 0)
            return fail_absent(wanted, fields, k, err);
    return ERR_OK;
}

static void shape_format(const nn_input_info_t *input, char *out, size_t room)
{
    size_t at = (size_t)snprintf(out, room, "[");

    for (int d = 0; d < input->ndim && at < room; d++)
        at += (size_t)snprintf(out + at, room - at, "%s%lld",
                               d == 0 ? "" : ", ", (long long)input->dims[d]);
    if (at < room)
        snprintf(out + at, room - at, "]");
}

static err_code_t inputs_match(const train_config_t *config,
                               const nn_graph_t *graph, train_fields_t *texts,
                               hdf5io_dataset_config_t *out, err_t *err)
{
    const opt_map_t *fields = &config->data.input;
    names_t wanted = {.key = "input",
                      .count = nn_graph_inputs(graph),
                      .whose = "no input of the model"};
    int of[NN_FIELDS_MAX];
    err_code_t rc;

    for (int k = 0; k < wanted.count; k++) {
        nn_input_info_t input = nn_graph_input_info(graph, k);

        wanted.names[k] = input.name;
        wanted.places[k] = texts->inputs[k];
        snprintf(texts->inputs[k], sizeof texts->inputs[k],
                 "%s: model.input%s%s", input.place,
                 wanted.count > 1 ? "." : "",
                 wanted.count > 1 ? input.name : "");
        shape_format(&input, texts->shapes[k], sizeof texts->shapes[k]);
    }
    if (config->data.sequence > 0 && wanted.count > 1)
        return err_set(err, ERR_CONFIG,
                       "%s is a second input, but data.sequence cuts samples "
                       "from one stream of numbers; leave data.sequence out, "
                       "or all inputs but one",
                       wanted.places[1]);
    rc = match(&wanted, fields, of, err);
    for (int k = 0; k < wanted.count && rc == ERR_OK; k++) {
        nn_input_info_t input = nn_graph_input_info(graph, k);

        out->inputs[k] = (hdf5io_want_t){
            .field = train_field(fields, of[k]),
            .as = input.tokens > 0 ? HDF5IO_AS_TOKENS : HDF5IO_AS_REALS,
            .limit = input.tokens,
            .elems = input.elems,
            .shape = texts->shapes[k],
            .name = fields->names[of[k]],
            .place = input.place};
    }
    out->input_count = wanted.count;
    return rc;
}

#define PROBABILITIES \
    "takes probabilities, which are not below 0 and sum to 1 (within 0.001)"

/* Require that the probabilities sum to 1 along the axis of classes. */
static void soft_want(const nn_loss_info_t *loss, hdf5io_want_t *out)
{
    hdf5io_sum_t way = {.count = loss->classes, .step = 1};

    for (int d = loss->class_axis; d < loss->ndim; d++)
        way.step *= loss->dims[d];
    out->shares = "the loss cross_entropy with soft_target " PROBABILITIES
                  " over the classes: normalize them, or leave soft_target out "
                  "if these are class numbers";
    out->sums[0] = way;
    out->sums[1].count = 0;
}

/* kl does not know which axis has the classes, so the probabilities may sum to
 * 1 along the first axis, along the last axis, or over the whole sample. */
static void kl_want(const nn_loss_info_t *loss, hdf5io_want_t *out)
{
    const int64_t elems = loss->elems;
    const int64_t first = loss->ndim > 0 ? loss->dims[0] : 1;
    const int64_t last = loss->ndim > 0 ? loss->dims[loss->ndim - 1] : 1;

    out->shares = "the loss kl " PROBABILITIES ": normalize them, or set its "
                  "log_target if these are logarithms";
    out->sums[0] = (hdf5io_sum_t){first, elems / first};
    out->sums[1] = (hdf5io_sum_t){last, 1};
    out->sums[2] = (hdf5io_sum_t){elems, 1};
}

/* Set the sums that [target] must have if a loss takes it for probabilities. If
 * two losses do, the sums of the one that knows the axis of classes are used,
 * as they are stricter. */
static void shares_want(const nn_graph_t *graph, int target, hdf5io_want_t *out)
{
    bool soft = false;

    for (int i = 0; i < nn_graph_losses(graph); i++) {
        const nn_loss_info_t loss = nn_graph_loss_info(graph, i);

        if (loss.target != target || !loss.shares)
            continue;
        if (loss.soft)
            soft_want(&loss, out);
        else if (!soft)
            kl_want(&loss, out);
        soft = soft || loss.soft;
    }
}

static err_code_t targets_match(const train_config_t *config,
                                const nn_graph_t *graph, train_fields_t *texts,
                                hdf5io_dataset_config_t *out, err_t *err)
{
    const opt_map_t *fields = &config->data.target;
    names_t wanted = {.key = "target",
                      .count = nn_graph_targets(graph),
                      .whose = "no target of a loss"};
    int of[NN_FIELDS_MAX];
    err_code_t rc;

    for (int k = 0; k < wanted.count; k++) {
        nn_target_info_t target = nn_graph_target_info(graph, k);
        nn_loss_info_t loss = nn_graph_loss_info(graph, target.loss);

        wanted.names[k] = target.name;
        wanted.places[k] = texts->targets[k];
        snprintf(texts->targets[k], sizeof texts->targets[k], "%s: %sloss %s",
                 loss.place, target.weights ? "sample_weight of " : "",
                 loss.kind);
    }
    if (config->data.sequence > 0 && wanted.count > 1)
        return err_set(err, ERR_CONFIG,
                       "%s reads a target of its own, but with data.sequence "
                       "there is one target, the next number; make all losses "
                       "read it, in one way and without sample_weight",
                       wanted.places[1]);
    rc = match(&wanted, fields, of, err);
    for (int k = 0; k < wanted.count && rc == ERR_OK; k++) {
        nn_target_info_t target = nn_graph_target_info(graph, k);

        out->targets[k] = (hdf5io_want_t){
            .field = train_field(fields, of[k]),
            .as = target.classes > 0 ? HDF5IO_AS_CLASSES : HDF5IO_AS_REALS,
            .limit = target.classes,
            .ignore = target.ignore,
            .ignored = target.ignored,
            .elems = target.elems,
            .name = fields->names[of[k]],
            .place = texts->targets[k]};
        shares_want(graph, k, &out->targets[k]);
    }
    out->target_count = wanted.count;
    return rc;
}

err_code_t train_fields_match(const train_config_t *config,
                              const nn_graph_t *graph, train_fields_t *texts,
                              hdf5io_dataset_config_t *out, err_t *err)
{
    err_code_t rc = inputs_match(config, graph, texts, out, err);

    return rc == ERR_OK ? targets_match(config, graph, texts, out, err) : rc;
}
