/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/score_priv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "train/spread.h"

/* Maximum number of classes for miou, which needs three sums for each class. */
#define CLASSES_MAX 4096
/* Maximum number of outputs for r2, which needs several sums for each
 * output. */
#define OUTPUTS_MAX 65536

/* Kinds of losses that a score can be used with, a bit each. */
enum { CLASSES = 1, NUMBERS = 2, YES_NO = 4 };

/* ---- values -------------------------------------------------------------- */

static double share_value(const score_t *score, const train_scores_t *all,
                          double loss, const double *sums)
{
    (void)score;
    (void)all;
    (void)loss;
    return sums[0] / sums[1];
}

static double iou_value(const score_t *score, const train_scores_t *all,
                        double loss, const double *sums)
{
    (void)score;
    (void)all;
    (void)loss;
    return sums[0] / (sums[1] + sums[2] - sums[0]);
}

/* The mean IoU over the classes that occur in labels or predictions. */
static double miou_value(const score_t *score, const train_scores_t *all,
                         double loss, const double *sums)
{
    double sum = 0, there = 0;

    for (int64_t k = 0; k < all->classes; k++) {
        if (sums[3 * k + 1] + sums[3 * k + 2] == 0)
            continue;
        sum += iou_value(score, all, loss, sums + 3 * k);
        there++;
    }
    return sum / there;
}

static double entropy_value(const train_scores_t *all, double loss,
                            const double *sums)
{
    return all->plain ? loss : sums[0] / sums[1];
}

static double perplexity_value(const score_t *score, const train_scores_t *all,
                               double loss, const double *sums)
{
    (void)score;
    return exp(entropy_value(all, loss, sums));
}

static double bits_value(const score_t *score, const train_scores_t *all,
                         double loss, const double *sums)
{
    (void)score;
    return entropy_value(all, loss, sums) / log(2.0);
}

static double mae_value(const score_t *score, const train_scores_t *all,
                        double loss, const double *sums)
{
    (void)score;
    (void)all;
    (void)loss;
    return sums[0] / sums[2];
}

static double rmse_value(const score_t *score, const train_scores_t *all,
                         double loss, const double *sums)
{
    (void)score;
    (void)all;
    (void)loss;
    return sqrt(sums[1] / sums[2]);
}

/* The mean of r2 over outputs. */
static double r2_value(const score_t *score, const train_scores_t *all,
                       double loss, const double *sums)
{
    double sum = 0;

    (void)score;
    (void)loss;
    for (int64_t k = 0; k < all->rows; k++)
        sum += train_spread_r2(sums + 1 + k * TRAIN_SPREAD_SUMS, sums[0]);
    return sums[0] < 2 ? (double)NAN : sum / (double)all->rows;
}

static const score_kind_t kinds[] = {
    /* every classifier has this score */
    {"accuracy", -1, CLASSES, NULL, NULL, 0, ALL, 0},
    {"accuracy", -1, YES_NO, train_score_yes_no_add, share_value, 2, ALL, 0},
    {"top", 1, CLASSES, train_score_top_add, share_value, 2, ALL, 0},
    {"miou", -1, CLASSES, train_score_miou_add, miou_value, 0, CLASS, 3},
    {"iou", 0, CLASSES, train_score_iou_add, iou_value, 3, ALL, 0},
    {"perplexity", -1, CLASSES, train_score_entropy_add, perplexity_value, 2,
     ALL, 0},
    {"bits", -1, CLASSES, train_score_entropy_add, bits_value, 2, ALL, 0},
    {"mae", -1, NUMBERS, train_score_difference_add, mae_value, 3, ALL, 0},
    {"rmse", -1, NUMBERS, train_score_difference_add, rmse_value, 3, ALL, 0},
    {"r2", -1, NUMBERS, train_score_spread_add, r2_value, 1, OUTPUT,
     TRAIN_SPREAD_SUMS},
};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* ---- opening ------------------------------------------------------------- */

static int loss_suits(const nn_loss_info_t *loss)
{
    if (loss->classes > 0)
        return CLASSES;
    return strcmp(loss->kind, "bce") == 0 ? YES_NO | NUMBERS : NUMBERS;
}

static err_code_t fail(tree_place_t place, err_t *err, const char *name,
                       const char *why)
{
    char at[512];

    tree_place_format(place, at, sizeof at);
    return err_set(err, ERR_CONFIG, "%s: metrics: %s %s", at, name, why);
}

/* Return whether [name] is the name of a score of [kind]. If so, set *k to the
 * number at the end of the name. */
static bool kind_match(const score_kind_t *kind, const char *name, int64_t *k)
{
    size_t length = strlen(kind->name);

    *k = 0;
    if (kind->first < 0)
        return strcmp(name, kind->name) == 0;
    return strncmp(name, kind->name, length) == 0 &&
           str_to_int(name + length, k) && *k >= kind->first;
}

static err_code_t fail_unsuited(const train_scores_t *all, tree_place_t place,
                                err_t *err, const char *name)
{
    char why[160];

    snprintf(why, sizeof why, "does not go with the loss %s%s", all->loss,
             all->several ? "; of several losses, metrics is a map by their "
                            "names, as in {energy: [mae]}"
                          : "");
    return fail(place, err, name, why);
}

/* Fail: the number at the end of the name is too large. */
static err_code_t fail_beyond(const train_scores_t *all, tree_place_t place,
                              err_t *err, const char *name)
{
    char why[80];

    snprintf(why, sizeof why, "is beyond the model's %lld classes",
             (long long)all->classes);
    return fail(place, err, name, why);
}

static err_code_t score_add(train_scores_t *all, int suits, const char *name,
                            tree_place_t place, err_t *err)
{
    const score_kind_t *kind = NULL;
    bool known = false;
    int64_t k = 0;
    score_t *score;

    for (int i = 0; i < KINDS && kind == NULL; i++)
        if (kind_match(&kinds[i], name, &k)) {
            known = true;
            if ((kinds[i].suits & suits) != 0)
                kind = &kinds[i];
        }
    if (kind == NULL && known)
        return fail_unsuited(all, place, err, name);
    if (kind == NULL)
        return fail(place, err, name,
                    "is unknown (known: accuracy, top5, miou, iou1, "
                    "perplexity, bits, mae, rmse, r2)");
    if (kind->first >= 0 && k >= all->classes + (kind->first == 1))
        return fail_beyond(all, place, err, name);
    if (kind->of == CLASS && all->classes > CLASSES_MAX)
        return fail(place, err, name, "is for up to 4096 classes");
    if (kind->of == OUTPUT && all->rows > OUTPUTS_MAX)
        return fail(place, err, name, "is for up to 65536 outputs of a sample");
    for (int i = 0; i < all->count; i++)
        if (all->scores[i].kind == kind && all->scores[i].k == k)
            return fail(place, err, name, "is named twice");
    if (kind->add == NULL)
        return ERR_OK;
    if (all->count == TRAIN_SCORES_MAX)
        return fail(place, err, name, "is one too many: 12 are possible");
    score = &all->scores[all->count++];
    *score = (score_t){.kind = kind, .k = k, .at = all->sums};
    all->sums += (size_t)kind->sums;
    if (kind->of != ALL)
        all->sums += (size_t)kind->each *
                     (size_t)(kind->of == CLASS ? all->classes : all->rows);
    all->look =
        all->look || kind->add != train_score_entropy_add || !all->plain;
    return ERR_OK;
}

/* Choose the default scores of the loss. */
static err_code_t scores_choose(train_scores_t *all, const char *loss,
                                int suits, err_t *err)
{
    const tree_place_t nowhere = {.file = "metrics"};
    err_code_t rc = ERR_OK;

    if (suits == CLASSES && all->rows > 1 && all->inner == 1)
        rc = score_add(all, suits, "perplexity", nowhere, err);
    else if (suits == CLASSES && all->rows > 1 && all->classes <= CLASSES_MAX)
        rc = score_add(all, suits, "miou", nowhere, err);
    else if ((suits & YES_NO) != 0)
        rc = score_add(all, suits, "accuracy", nowhere, err);
    else if (suits == NUMBERS && strcmp(loss, "kl") != 0) {
        rc = score_add(all, suits, "mae", nowhere, err);
        if (rc == ERR_OK && all->rows <= OUTPUTS_MAX)
            rc = score_add(all, suits, "r2", nowhere, err);
    }
    return rc;
}

static err_code_t scores_read(train_scores_t *all, const tree_t *metrics,
                              int suits, err_t *err)
{
    err_code_t rc = ERR_OK;

    if (tree_kind(metrics) == TREE_SCALAR)
        return score_add(all, suits, tree_text(metrics), tree_place(metrics),
                         err);
    if (tree_kind(metrics) != TREE_LIST)
        return fail(tree_place(metrics), err, "it", "is no list of names");
    for (size_t i = 0; i < tree_count(metrics) && rc == ERR_OK; i++) {
        const tree_t *item = tree_at(metrics, i);
        const char *name = tree_text(item);

        rc = name == NULL ? fail(tree_place(item), err, "this", "is no name")
                          : score_add(all, suits, name, tree_place(item), err);
    }
    return rc;
}

static void scores_shape(train_scores_t *all, const nn_loss_info_t *loss)
{
    all->classes = loss->classes;
    all->rows = loss->terms;
    all->inner = 1;
    if (all->classes == 0)
        return;
    for (int d = loss->class_axis; d < loss->ndim; d++)
        all->inner *= loss->dims[d];
    all->ignore = loss->ignore;
    all->ignored = loss->ignored;
    all->plain = loss->plain;
    all->soft = loss->soft;
}

/* Check that every key of a map of metrics is the name of a loss. */
static err_code_t names_check(const tree_t *metrics, const nn_graph_t *graph,
                              err_t *err)
{
    const char *names[NN_FIELDS_MAX + 1] = {NULL}, *near;
    char why[200];

    for (int k = 0; k < nn_graph_losses(graph); k++)
        names[k] = nn_graph_loss_info(graph, k).name;
    for (size_t i = 0; i < tree_count(metrics); i++) {
        const char *name = tree_key(metrics, i);
        int k = 0;

        while (names[k] != NULL && strcmp(names[k], name) != 0)
            k++;
        if (names[k] != NULL)
            continue;
        near = str_nearest(name, names);
        snprintf(why, sizeof why,
                 "is the name of no loss%s%s%s: a loss has its target's, or "
                 "its own",
                 near == NULL ? "" : "; did you mean '",
                 near == NULL ? "" : near, near == NULL ? "" : "'?");
        return fail(tree_key_place(metrics, i), err, name, why);
    }
    return ERR_OK;
}

err_code_t train_scores_open(const tree_t *metrics, const nn_graph_t *graph,
                             int loss, train_scores_t **out, err_t *err)
{
    const nn_loss_info_t info = nn_graph_loss_info(graph, loss);
    const int suits = loss_suits(&info);
    train_scores_t *all = NULL;
    const char *text;
    err_code_t rc;

    if (metrics != NULL && tree_kind(metrics) == TREE_MAP) {
        rc = names_check(metrics, graph, err);
        if (rc != ERR_OK)
            return rc;
        metrics = tree_get(metrics, info.name);
    }
    text = metrics == NULL ? "auto" : tree_text(metrics);
    rc = mem_new(train_scores_t, 1, "metrics", &all, err);
    if (rc != ERR_OK)
        return rc;
    scores_shape(all, &info);
    all->loss = info.kind;
    all->several = nn_graph_losses(graph) > 1;
    rc = text != NULL && strcmp(text, "auto") == 0
             ? scores_choose(all, info.kind, suits, err)
             : scores_read(all, metrics, suits, err);
    if (rc != ERR_OK) {
        mem_free(all);
        return rc;
    }
    *out = all;
    return ERR_OK;
}

void train_scores_close(train_scores_t *scores)
{
    mem_free(scores);
}

/* ---- using --------------------------------------------------------------- */

size_t train_scores_sums(const train_scores_t *scores)
{
    return scores->sums;
}

bool train_scores_look(const train_scores_t *scores)
{
    return scores->look;
}

void train_scores_add(const train_scores_t *scores, const float *output,
                      const void *target, int64_t samples, double *sums)
{
    const score_batch_t batch = {.all = scores,
                                 .x = output,
                                 .labels = scores->soft ? NULL : target,
                                 .values = target,
                                 .rows = samples * scores->rows};

    for (int i = 0; i < scores->count; i++) {
        const score_t *score = &scores->scores[i];

        score->kind->add(score, &batch, sums + score->at);
    }
}

int train_scores_values(const train_scores_t *scores, double loss,
                        const double *sums, obs_value_t *out)
{
    for (int i = 0; i < scores->count; i++) {
        const score_t *score = &scores->scores[i];

        if (score->kind->first < 0)
            snprintf(out[i].name, sizeof out[i].name, "%s", score->kind->name);
        else
            snprintf(out[i].name, sizeof out[i].name, "%s%lld",
                     score->kind->name, (long long)score->k);
        out[i].value =
            score->kind->value(score, scores, loss, sums + score->at);
    }
    return scores->count;
}
