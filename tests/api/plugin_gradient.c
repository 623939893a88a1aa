/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * plugin_gradient MODEL-YAML: do the gradients of a model (whose layers may be
 * of a plugin) agree with finite differences of its loss? This is a user's
 * program, built against the installed library. Every parameter is tested
 * along one random direction, because differences of single float32 numbers
 * are lost in rounding.
 */
#include <cddp/cddp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 3, INPUT = 2 * 5 * 6, TARGET = 4 };

static float input[SAMPLES * INPUT], target[SAMPLES * TARGET];
static const uint64_t ids[SAMPLES] = {0, 1, 2};

/* A number in [-1, 1] that depends on i only. */
static float number(size_t i)
{
    return (float)((double)((i + 1) * 2654435761u % 65536) / 32768 - 1);
}

static double loss_of(cddp_exec_t *exec, int back)
{
    const cddp_samples_t samples = {
        .input = input, .target = target, .ids = ids};
    cddp_error_t error = {.text = ""};
    double loss = NAN;

    if (cddp_exec_forward(exec, &samples, &loss, NULL, &error) != CDDP_OK ||
        (back && cddp_exec_backward(exec, &samples, 1, 0, &error) != CDDP_OK))
        printf("%s\n", error.text);
    return loss;
}

/* Compare the derivative of the loss by one parameter, along the direction
 * number(i), with finite differences. Returns whether they differ. */
static int param_check(cddp_exec_t *exec, const cddp_param_t *param, float *at,
                       const float *grads)
{
    const float step = 0x1p-8f;
    double told = 0, sides[2], found;

    for (size_t i = 0; i < param->count; i++)
        told += (double)grads[param->offset + i] * number(i);
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < param->count; i++)
            at[param->offset + i] += (side == 0 ? step : -2 * step) * number(i);
        sides[side] = loss_of(exec, 0);
    }
    for (size_t i = 0; i < param->count; i++)
        at[param->offset + i] += step * number(i);
    found = (sides[0] - sides[1]) / (2 * (double)step);
    printf("%-16s told %.6g found %.6g\n", param->name, told, found);
    return !(fabs(told - found) <= 2e-3 * (1 + fabs(found))) || told == 0;
}

static int check(const cddp_model_t *model, cddp_error_t *error)
{
    const size_t elems = cddp_model_param_elems(model);
    float *params = calloc(elems, sizeof *params);
    float *grads = calloc(elems, sizeof *grads);
    const cddp_exec_config_t config = {.samples = SAMPLES,
                                       .training = 1,
                                       .threads = 1,
                                       .params = params,
                                       .grads = grads};
    cddp_exec_t *exec = NULL;
    int wrong = 1;

    cddp_model_init(model, 1, params, NULL);
    if (cddp_exec_open(model, &config, &exec, error) == CDDP_OK) {
        wrong = 0;
        loss_of(exec, 1);
        for (int p = 0; p < cddp_model_params(model); p++) {
            cddp_param_t param = cddp_model_param(model, p);

            wrong += param_check(exec, &param, params, grads);
        }
    }
    cddp_exec_close(exec);
    free(grads);
    free(params);
    return wrong;
}

int main(int argc, char **argv)
{
    cddp_error_t error = {.text = ""};
    cddp_model_t *model = NULL;
    int wrong = 1;

    for (size_t i = 0; i < SAMPLES * INPUT; i++)
        input[i] = number(i + 7);
    for (size_t i = 0; i < SAMPLES * TARGET; i++)
        target[i] = number(i + 3);
    if (argc == 2 &&
        cddp_model_open("model", argv[1], &model, &error) == CDDP_OK)
        wrong = check(model, &error);
    cddp_model_close(model);
    if (error.text[0] != '\0')
        printf("%s\n", error.text);
    return wrong;
}
