/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Optimizers: steps computed by hand, a float64 reference for every mode over
 * many steps, state, and error messages. */
#include "optim/optim_rig.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "conf/conf.h"

#define ELEMS 37 /* not a multiple of a vector's length */
#define STEPS 50

static err_code_t open_try(const char *yaml, size_t elems, optim_t **out,
                           err_t *err)
{
    const optim_view_t view = {.name = "w", .count = elems, .ndim = 1};
    tree_t *tree = NULL;
    err_code_t rc = conf_parse("o.yaml", yaml, &tree, err);

    cr_assert_eq(rc, ERR_OK, "%s", err->text);
    rc = optim_open(tree_get(tree, "optimizer"), NULL,
                    &(optim_layout_t){.dev = optim_rig_dev(),
                                      .views = &view,
                                      .view_count = 1,
                                      .elems = elems},
                    out, err);
    tree_free(tree);
    return rc;
}

static optim_t *open_yaml(const char *yaml, size_t elems)
{
    optim_t *optim = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(open_try(yaml, elems, &optim, &err), ERR_OK, "%s", err.text);
    return optim;
}

/* ---- by hand ------------------------------------------------------------- */

Test(optim, sgd_by_hand)
{
    optim_t *optim = open_yaml("optimizer: {sgd: {lr: 0.5}}", 2);
    float p[2] = {1, -2};
    const float g[2] = {0.5f, 4};

    cr_expect_str_eq(optim_name(optim), "sgd");
    cr_expect_eq(optim_lr(optim), 0.5);
    cr_expect_eq(optim_slots(optim), 0);
    optim_rig_step(optim, p, g, 0.5, 1);
    cr_expect_eq(p[0], 0.75f);
    cr_expect_eq(p[1], -4);
    /* The rate passed to optim_step is used, not the configured one. */
    optim_rig_step(optim, p, g, 0.25, 2);
    cr_expect_eq(p[1], -5);
    optim_close(optim);
}

Test(optim, momentum_by_hand)
{
    optim_t *optim = open_yaml("optimizer: {sgd: {lr: 1, momentum: 0.5}}", 1);
    float p = 0;
    const float g = 1;

    optim_rig_step(optim, &p, &g, 1, 1);
    cr_expect_eq(p, -1); /* buffer 1 */
    optim_rig_step(optim, &p, &g, 1, 2);
    cr_expect_eq(p, -2.5f); /* buffer 1.5 */
    cr_assert_eq(optim_slots(optim), 1);
    cr_expect_str_eq(optim_slot_name(optim, 0), "momentum");
    cr_expect_eq(optim_slot_data(optim, 0)[0], 1.5f);
    optim_close(optim);
}

Test(optim, nesterov_by_hand)
{
    optim_t *optim = open_yaml(
        "optimizer: {sgd: {lr: 1, momentum: 0.5, nesterov: true}}", 1);
    float p = 0;
    const float g = 1;

    optim_rig_step(optim, &p, &g, 1, 1);
    cr_expect_eq(p, -1.5f); /* g + 0.5 * 1 */
    optim_rig_step(optim, &p, &g, 1, 2);
    cr_expect_eq(p, -3.25f); /* g + 0.5 * 1.5 */
    optim_close(optim);
}

Test(optim, first_adamw_step_is_lr_in_the_gradients_direction)
{
    optim_t *optim =
        open_yaml("optimizer: {adamw: {lr: 0.1, weight_decay: 0.5}}", 2);
    float p[2] = {1, 1};
    const float g[2] = {1e-3f, -40};

    optim_rig_step(optim, p, g, 0.1, 1);
    cr_expect_float_eq(p[0], 1 - 0.05 - 0.1, 1e-5);
    cr_expect_float_eq(p[1], 1 - 0.05 + 0.1, 1e-5);
    cr_expect_str_eq(optim_slot_name(optim, 0), "exp_avg");
    cr_expect_str_eq(optim_slot_name(optim, 1), "exp_avg_sq");
    cr_expect_float_eq(optim_slot_data(optim, 0)[1], -4, 1e-5);
    cr_expect_float_eq(optim_slot_data(optim, 1)[1], 1.6, 1e-5);
    optim_close(optim);
}

/* adam adds weight decay to the gradient, so the first step does not depend on
 * the decay's magnitude, only on its effect on the sign. */
Test(optim, first_adam_step_is_lr_in_the_direction_with_decay)
{
    optim_t *optim =
        open_yaml("optimizer: {adam: {lr: 0.1, weight_decay: 0.5}}", 2);
    float p[2] = {1, -8};
    const float g[2] = {1e-3f, 1};

    optim_rig_step(optim, p, g, 0.1, 1);
    cr_expect_float_eq(p[0], 1 - 0.1, 1e-5);
    /* gradient with decay is 1 - 4, which is negative */
    cr_expect_float_eq(p[1], -8 + 0.1, 1e-5);
    optim_close(optim);
}

Test(optim, the_first_gradient_is_not_dampened)
{
    optim_t *optim = open_yaml(
        "optimizer: {sgd: {lr: 1, momentum: 0.5, dampening: 0.75}}", 1);
    float p = 0;
    const float g = 1;

    optim_rig_step(optim, &p, &g, 1, 1);
    cr_expect_eq(p, -1); /* buffer 1 */
    optim_rig_step(optim, &p, &g, 1, 2);
    cr_expect_eq(p, -1.75f); /* buffer 0.5 + 0.25 */
    optim_close(optim);
}

/* With beta2 = 0 the mean of squares is the last square. A gradient of 10 and
 * then one of 1 both divide by 10, and NaN stays NaN. */
Test(optim, amsgrad_divides_by_the_largest)
{
    optim_t *optim = open_yaml("optimizer: {adam: {lr: 1, beta1: 0, beta2: 0, "
                               "eps: 1e-20, amsgrad: true}}",
                               1);
    float p = 0, g = 10;

    cr_assert_eq(optim_slots(optim), 3);
    cr_expect_str_eq(optim_slot_name(optim, 2), "max_exp_avg_sq");
    optim_rig_step(optim, &p, &g, 1, 1);
    cr_expect_float_eq(p, -1, 1e-6);
    g = 1;
    optim_rig_step(optim, &p, &g, 1, 2);
    cr_expect_float_eq(p, -1.1, 1e-6);
    cr_expect_eq(optim_slot_data(optim, 1)[0], 1);
    cr_expect_eq(optim_slot_data(optim, 2)[0], 100);
    g = NAN;
    optim_rig_step(optim, &p, &g, 1, 3);
    cr_expect(isnan(optim_slot_data(optim, 2)[0]));
    optim_close(optim);
}

Test(optim, rmsprop_by_hand)
{
    optim_t *optim = open_yaml(
        "optimizer: {rmsprop: {lr: 1, alpha: 0.75, momentum: 0.5}}", 1);
    float p = 0;
    const float g = 4;

    optim_rig_step(optim, &p, &g, 1, 1);
    cr_expect_float_eq(p, -2, 1e-6); /* mean square 4 */
    optim_rig_step(optim, &p, &g, 1, 2);
    /* mean square 7; buffer 0.5 * 2 + 4 / sqrt(7) */
    cr_expect_float_eq(p, -2 - (1 + 4 / sqrt(7)), 1e-6);
    cr_assert_eq(optim_slots(optim), 2);
    cr_expect_str_eq(optim_slot_name(optim, 0), "square_avg");
    cr_expect_str_eq(optim_slot_name(optim, 1), "momentum");
    optim_close(optim);
}

/* Equal gradients have a variance of 0, so only eps is left. */
Test(optim, centered_rmsprop_divides_by_the_spread)
{
    optim_t *optim = open_yaml(
        "optimizer: {rmsprop: {lr: 1, alpha: 0.5, centered: true}}", 1);
    float p = 0;
    const float g = 4;

    optim_rig_step(optim, &p, &g, 1, 1);
    cr_expect_float_eq(p, -2, 1e-6); /* mean square 8, mean 2, spread 2 */
    cr_expect_str_eq(optim_slot_name(optim, 1), "grad_avg");
    optim_close(optim);
}

/* ---- per tensor ---------------------------------------------------------- */

static const optim_view_t two_views[] = {
    {.name = "a.weight", .offset = 0, .count = 2, .ndim = 2},
    {.name = "a.bias", .offset = 2, .count = 1, .ndim = 1}};

static optim_t *open_two(const char *yaml)
{
    const optim_layout_t layout = {.dev = optim_rig_dev(),
                                   .views = two_views,
                                   .view_count = 2,
                                   .elems = 3};
    tree_t *tree = NULL;
    optim_t *optim = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(conf_parse("o.yaml", yaml, &tree, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_eq(
        optim_open(tree_get(tree, "optimizer"), NULL, &layout, &optim, &err),
        ERR_OK, "%s", err.text);
    tree_free(tree);
    return optim;
}

Test(optim, lars_scales_each_tensor_by_its_norms)
{
    optim_t *optim =
        open_two("optimizer: {lars: {lr: 1, trust: 0.5, momentum: 0.5}}");
    float p[3] = {3, 4, 1};
    const float g[3] = {0, 10, 2};

    optim_rig_step(optim, p, g, 1, 1);
    /* weight: 0.5 * 5 / 10; bias: as SGD */
    cr_expect_float_eq(p[0], 3, 1e-6);
    cr_expect_float_eq(p[1], 4 - 2.5, 1e-6);
    cr_expect_float_eq(p[2], 1 - 2, 1e-6);
    cr_expect_float_eq(optim_slot_data(optim, 0)[1], 2.5, 1e-6);
    /* The momentum contains the rate: with a rate of 0 the parameters still
     * move. */
    optim_rig_step(optim, p, g, 0, 2);
    cr_expect_float_eq(p[1], 4 - 2.5 - 1.25, 1e-6);
    optim_close(optim);
}

Test(optim, lars_counts_decay_in_the_ratio)
{
    optim_t *optim = open_two("optimizer: {lars: {lr: 1, trust: 1, momentum: "
                              "0, weight_decay: 2, adapt_vectors: true}}");
    float p[3] = {3, 4, 5};
    const float g[3] = {6, 8, -10};

    optim_rig_step(optim, p, g, 1, 1);
    /* 5 / (10 + 2 * 5) times (g + 2 p) */
    cr_expect_float_eq(p[0], 3 - 0.25 * 12, 1e-6);
    cr_expect_float_eq(p[1], 4 - 0.25 * 16, 1e-6);
    cr_expect_float_eq(p[2], 5, 1e-6);
    optim_close(optim);
}

Test(optim, lamb_moves_each_tensor_by_its_norm)
{
    optim_t *optim =
        open_two("optimizer: {lamb: {lr: 0.1, eps: 1e-20, weight_decay: 0}}");
    float p[3] = {3, 4, 7};
    const float g[3] = {-2, 0.5f, 1e-3f};

    optim_rig_step(optim, p, g, 0.1, 1);
    /* In the first step the direction of Adam is the sign of the gradient, a
     * vector of norm sqrt 2. The bias gets no trust ratio. */
    cr_expect_float_eq(p[0], 3 + 0.1 * 5 / sqrt(2), 1e-6);
    cr_expect_float_eq(p[1], 4 - 0.1 * 5 / sqrt(2), 1e-6);
    cr_expect_float_eq(p[2], 7 - 0.1, 1e-6);
    optim_close(optim);
}

Test(optim, adapting_a_tensor_of_zeros_starts_as_without)
{
    static const char *const all[] = {
        "optimizer: {lars: {adapt_vectors: true}}",
        "optimizer: {lamb: {adapt_vectors: true}}"};

    for (int k = 0; k < 2; k++) {
        optim_t *optim = open_two(all[k]);
        float p[3] = {0};
        const float g[3] = {1, 1, 1};

        optim_rig_step(optim, p, g, 0.125, 1);
        for (int i = 0; i < 3; i++)
            cr_expect_float_eq(p[i], -0.125, 1e-6);
        optim_close(optim);
    }
}

/* ---- against a reference in float64 -------------------------------------- */

typedef struct reference {
    double lr, momentum, weight_decay, beta1, beta2, eps;
    int nesterov, adamw;
    double p[ELEMS], first[ELEMS], second[ELEMS];
} reference_t;

/* torch.optim.SGD, from its documentation. */
static void reference_sgd(reference_t *r, int i, double g, int step)
{
    g += r->weight_decay * r->p[i];
    if (r->momentum != 0) {
        r->first[i] = step == 1 ? g : r->momentum * r->first[i] + g;
        g = r->nesterov ? g + r->momentum * r->first[i] : r->first[i];
    }
    r->p[i] -= r->lr * g;
}

/* torch.optim.AdamW, from its documentation. */
static void reference_adamw(reference_t *r, int i, double g, int step)
{
    double m, v;

    r->p[i] -= r->lr * r->weight_decay * r->p[i];
    r->first[i] = r->beta1 * r->first[i] + (1 - r->beta1) * g;
    r->second[i] = r->beta2 * r->second[i] + (1 - r->beta2) * g * g;
    m = r->first[i] / (1 - pow(r->beta1, step));
    v = r->second[i] / (1 - pow(r->beta2, step));
    r->p[i] -= r->lr * m / (sqrt(v) + r->eps);
}

static void follow(const char *yaml, reference_t *r)
{
    optim_t *optim = open_yaml(yaml, ELEMS);
    float p[ELEMS], g[ELEMS];
    rng_t rng;

    rng_open(&rng, 1, RNG_ISING, 0, 0);
    for (int i = 0; i < ELEMS; i++) {
        p[i] = (float)rng_normal(&rng);
        r->p[i] = (double)p[i];
    }
    for (int step = 1; step <= STEPS; step++) {
        r->lr = 0.01 + 0.01 * (step % 3);
        for (int i = 0; i < ELEMS; i++) {
            g[i] = (float)(0.3 + rng_normal(&rng));
            if (r->adamw)
                reference_adamw(r, i, (double)g[i], step);
            else
                reference_sgd(r, i, (double)g[i], step);
        }
        optim_rig_step(optim, p, g, r->lr, step);
    }
    for (int i = 0; i < ELEMS; i++)
        cr_expect_float_eq((double)p[i], r->p[i], 2e-6 * (1 + fabs(r->p[i])),
                           "%s: %d: %.9g, not %.9g", yaml, i, (double)p[i],
                           r->p[i]);
    optim_close(optim);
}

Test(optim, every_mode_follows_the_reference)
{
    follow("optimizer: sgd", &(reference_t){0});
    follow("optimizer: {sgd: {weight_decay: 0.1}}",
           &(reference_t){.weight_decay = 0.1});
    follow("optimizer: {sgd: {momentum: 0.9, weight_decay: 0.1}}",
           &(reference_t){.momentum = 0.9, .weight_decay = 0.1});
    follow("optimizer: {sgd: {momentum: 0.9, nesterov: true, weight_decay: "
           "0.1}}",
           &(reference_t){.momentum = 0.9, .nesterov = 1, .weight_decay = 0.1});
    follow("optimizer: adamw", &(reference_t){.adamw = 1,
                                              .beta1 = 0.9,
                                              .beta2 = 0.999,
                                              .eps = 1e-8,
                                              .weight_decay = 0.01});
    follow("optimizer: {adamw: {beta1: 0.7, beta2: 0.95, eps: 0.01, "
           "weight_decay: 0.2}}",
           &(reference_t){.adamw = 1,
                          .beta1 = 0.7,
                          .beta2 = 0.95,
                          .eps = 0.01,
                          .weight_decay = 0.2});
}

Test(optim, gaps_between_parameters_stay_zero)
{
    static const char *const all[] = {
        "optimizer: {sgd: {momentum: 0.9, weight_decay: 0.1}}",
        "optimizer: {adam: {weight_decay: 0.1}}",
        "optimizer: adamw",
        "optimizer: {adamw: {amsgrad: true}}",
        "optimizer: {sgd: {momentum: 0.9, dampening: 0.5}}",
        "optimizer: rmsprop",
        "optimizer: {rmsprop: {centered: true, momentum: 0.9}}",
        "optimizer: {lamb: {adapt_vectors: true}}",
        "optimizer: {lars: {adapt_vectors: true}}"};

    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        optim_t *optim = open_yaml(all[k], 20);
        float p[20] = {0};
        const float g[20] = {0};

        optim_rig_step(optim, p, g, 0.1, 1);
        optim_rig_step(optim, p, g, 0.1, 2);
        for (int i = 0; i < 20; i++)
            cr_expect_eq(p[i], 0);
        optim_close(optim);
    }
}

/* If the state is copied, as in a checkpoint, a copy of the optimizer continues
 * with equal bits. */
static void expect_state_is_all(const char *yaml)
{
    optim_t *a = open_yaml(yaml, ELEMS);
    optim_t *b = open_yaml(yaml, ELEMS);
    float p[ELEMS], q[ELEMS], g[ELEMS];

    for (int i = 0; i < ELEMS; i++) {
        p[i] = (float)i;
        g[i] = (float)(i % 5) - 2;
    }
    optim_rig_step(a, p, g, 0.1, 1);
    memcpy(q, p, sizeof q);
    for (int s = 0; s < optim_slots(a); s++)
        memcpy(optim_slot_data(b, s), optim_slot_data(a, s), sizeof q);
    optim_rig_step(a, p, g, 0.1, 2);
    optim_rig_step(b, q, g, 0.1, 2);
    cr_expect_arr_eq(p, q, sizeof q);
    optim_close(a);
    optim_close(b);
}

Test(optim, state_is_all_there_is)
{
    expect_state_is_all("optimizer: adamw");
    expect_state_is_all("optimizer: {adamw: {amsgrad: true}}");
    expect_state_is_all("optimizer: {sgd: {momentum: 0.9, dampening: 0.5}}");
}

/* ---- errors -------------------------------------------------------------- */

typedef struct wrong {
    const char *yaml, *begins, *says;
} wrong_t;

static const wrong_t wrongs[] = {
    {"optimizer: adamv\n",
     "o.yaml:1:12: unknown optimizer 'adamv'; did you mean 'adam'?",
     "(known: sgd, adam, adamw, rmsprop, lamb, lars)"},
    {"optimizer: {lion: }\n", "o.yaml:1:13: unknown optimizer 'lion' (known",
     "sgd, adam, adamw"},
    {"optimizer: {sgd: {lrr: 1}}\n", "o.yaml:1:19: unknown key 'lrr'", "'lr'"},
    {"optimizer: {sgd: {lr: fast}}\n", "o.yaml:1:23: optimizer.sgd.lr",
     "'fast'"},
    {"optimizer: {sgd: {lr: -1}}\n", "o.yaml:1:23: optimizer.sgd.lr", "-1"},
    {"optimizer: {sgd: {nesterov: true}}\n",
     "o.yaml:1:13: optimizer.sgd.nesterov needs a momentum above 0",
     "momentum: 0.9"},
    {"optimizer: {sgd: {dampening: 0.5}}\n",
     "o.yaml:1:13: optimizer.sgd.dampening", "needs a momentum above 0"},
    {"optimizer: {sgd: {momentum: 0.9, dampening: 0.5, nesterov: true}}\n",
     "o.yaml:1:13: optimizer.sgd.dampening", "nesterov: false"},
    {"optimizer: {adamw: {eps: 0}}\n", "o.yaml:1:26: optimizer.adamw.eps", "0"},
    {"optimizer: [sgd]\n", "o.yaml:1:12: optimizer is a name or a map", ""},
    {"optimizer: {sgd: , adamw: }\n", "o.yaml:1:12: optimizer is a name or",
     "'groups' beside it"},
    {"optimizer: {groups: []}\n", "o.yaml:1:12: optimizer is a name or", ""},
    {"optimizer: {lars: {trust: -1}}\n", "o.yaml:1:27: optimizer.lars.trust",
     "-1"},
    {"optimizer: {rmsprop: {beta: 1}}\n", "o.yaml:1:23: unknown key 'beta'",
     "alpha"},
    {"other: 1\n", "the run file has no optimizer", "adamw"},
};

Test(optim, every_sentence_has_its_place)
{
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        const wrong_t *w = &wrongs[i];
        optim_t *optim = NULL;
        err_t err = ERR_INIT;

        cr_expect_eq(open_try(w->yaml, 3, &optim, &err), ERR_CONFIG, "%s",
                     w->yaml);
        cr_expect_null(optim);
        cr_expect_eq(strncmp(err.text, w->begins, strlen(w->begins)), 0,
                     "expected: %s\n   found: %s", w->begins, err.text);
        cr_expect_not_null(strstr(err.text, w->says), "%s", err.text);
        optim_close(optim);
    }
}

Test(optim, documentation_names_every_kind)
{
    str_buf_t text = {0};

    optim_document(&text);
    cr_expect_not_null(strstr(text.text, "optimizer.sgd"));
    cr_expect_not_null(strstr(text.text, "nesterov"));
    cr_expect_not_null(strstr(text.text, "optimizer.adam\n"));
    cr_expect_not_null(strstr(text.text, "optimizer.adamw"));
    cr_expect_not_null(strstr(text.text, "optimizer.rmsprop"));
    cr_expect_not_null(strstr(text.text, "optimizer.lamb"));
    cr_expect_not_null(strstr(text.text, "optimizer.lars"));
    cr_expect_not_null(strstr(text.text, "optimizer.groups"));
    cr_expect_not_null(strstr(text.text, "freeze"));
    cr_expect_not_null(strstr(text.text, "constant"));
    cr_expect_not_null(strstr(text.text, "schedule.cosine"));
    cr_expect_not_null(strstr(text.text, "warmup_steps"));
    str_buf_free(&text);
}
