/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Plugins with one fault each, chosen by -DFAULT=...; see plugin.sh. */
#include <cddp/plugin.h>

enum {
    OLD = 1,
    NAMELESS,
    CLASH,
    SHAPE,
    REFUSES,
    NO_BUILD,
    BUILD_FAILS,
    NO_KIND,
    INTERFACE,
    NO_VALUE,
    BAD_LOSS
};

#if FAULT == 2
const int cddp_something_else = 1;
#else

static cddp_code_t shape(cddp_shapes_t *shapes, cddp_error_t *error)
{
    if (FAULT == REFUSES)
        return cddp_refuse(error, "[%lld] is odd",
                           (long long)shapes->in[0].dims[1]);
    shapes->out = shapes->in[0];
    shapes->out.dims[0] += FAULT == SHAPE;
    return CDDP_OK;
}

static cddp_code_t run(const cddp_call_t *call, cddp_error_t *error)
{
    (void)call;
    return cddp_refuse(error, "not today");
}

__attribute__((unused)) static cddp_code_t build(const cddp_build_t *build,
                                                 cddp_error_t *error)
{
    const cddp_built_loss_t loss = {.kind = "cross_entropyy"};

    if (FAULT == BUILD_FAILS)
        return cddp_refuse(error, "it is full moon");
    if (FAULT == BAD_LOSS)
        build->host->loss(build->builder, &loss);
    build->host->add(build->builder, FAULT == NO_KIND ? NULL : "mine", NULL,
                     NULL, NULL);
    build->host->add(build->builder, "linear", NULL, NULL,
                     FAULT == NO_VALUE ? "out" : "out 2");
    return CDDP_OK;
}

static const cddp_layer_t mine = {.name = FAULT == CLASH ? "relu" : "mine",
                                  .shape = shape,
                                  .forward = run,
                                  .backward = run};
static const cddp_layer_t *const layers[] = {&mine, NULL};

#if FAULT == 1
#undef CDDP_VERSION_MINOR
#define CDDP_VERSION_MINOR 99
#endif
#if FAULT == 9
#undef CDDP_PLUGIN_INTERFACE
#define CDDP_PLUGIN_INTERFACE 1
#endif
#if FAULT == 6
CDDP_PLUGIN(.layers = layers);
#else
CDDP_PLUGIN(.layers = layers, .build = build);
#endif
#endif
