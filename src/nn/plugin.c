/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Plugins. The tables of a plugin are converted to option rows and registry
 * rows, so that its layers are read, checked and reported like built-in ones.
 * The options of a plugin are numbers only, stored as an array of doubles in
 * op_config_t.
 */
#include "nn/plugin.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cddp/plugin.h"
#include "nn/recipe.h"

#define SYMBOL "cddp_plugin"

/* The value of one option, as opt_fill writes it. */
typedef struct plugin_value {
    int64_t whole; /* used if cddp_option_t.whole */
    double real;   /* used otherwise */
} plugin_value_t;

_Static_assert(sizeof(plugin_value_t[CDDP_OPTIONS_MAX]) <= NN_OPTIONS_MAX,
               "NN_OPTIONS_MAX");
_Static_assert(NN_FIELDS_MAX <= CDDP_INPUTS_MAX, "CDDP_INPUTS_MAX");
_Static_assert(OP_DIMS_MAX <= CDDP_DIMS_MAX, "CDDP_DIMS_MAX");

/* A plugin's table of options, and the option rows made from it. */
typedef struct plugin_rows {
    const cddp_option_t *options;
    int count;
    opt_row_t rows[CDDP_OPTIONS_MAX + 1];
} plugin_rows_t;

typedef struct plugin_kind {
    nn_kind_t kind; /* the first member, as nn_layer_t.kind points to it */
    const cddp_layer_t *layer;
    plugin_rows_t rows;
} plugin_kind_t;

struct nn_plugin {
    void *handle;
    const cddp_plugin_t *plugin;
    tree_place_t place; /* where the run file names the plugin; valid while it
                           is opened */
    plugin_rows_t rows; /* options of its function build */
    int count;
    plugin_kind_t kinds[CDDP_LAYERS_MAX];
    const nn_kind_t *all[NN_KINDS_MAX +
                         1]; /* built-in kinds, then the plugin's, then NULL */
};

/* ---- options ------------------------------------------------------------- */

static err_code_t rows_make(plugin_rows_t *rows, const cddp_option_t *options,
                            tree_place_t place, const char *of, err_t *err)
{
    rows->options = options;
    for (; options != NULL && options->name != NULL; options++) {
        const size_t at = (size_t)rows->count * sizeof(plugin_value_t);

        if (rows->count == CDDP_OPTIONS_MAX)
            return nn_fail_at(place, err,
                              "%s of the plugin has more than %d options", of,
                              CDDP_OPTIONS_MAX);
        rows->rows[rows->count++] =
            (opt_row_t){.name = options->name,
                        .type = options->whole != 0 ? OPT_INT : OPT_REAL,
                        .offset = at + (options->whole != 0
                                            ? offsetof(plugin_value_t, whole)
                                            : offsetof(plugin_value_t, real)),
                        .fallback = options->fallback,
                        .min = options->min,
                        .max = options->max,
                        .help = options->help != NULL ? options->help : ""};
    }
    return ERR_OK;
}

static void rows_values(const plugin_rows_t *rows, const plugin_value_t *from,
                        double *to)
{
    for (int i = 0; i < rows->count; i++)
        to[i] =
            rows->options[i].whole != 0 ? (double)from[i].whole : from[i].real;
}

/* ---- kinds --------------------------------------------------------------- */

static err_code_t plugin_configure(nn_layer_t *layer, const void *options,
                                   const tree_t *tree, err_t *err)
{
    const plugin_kind_t *kind = (const plugin_kind_t *)layer->kind;

    (void)tree;
    (void)err;
    layer->config.custom = kind->layer;
    rows_values(&kind->rows, options, layer->config.custom_options);
    return ERR_OK;
}

static nn_slot_t slot_of(const cddp_layer_param_t *param)
{
    static const nn_fill_t fills[] = {[CDDP_BEGIN_ZERO] = NN_FILL_ZERO,
                                      [CDDP_BEGIN_ONE] = NN_FILL_ONE,
                                      [CDDP_BEGIN_FAN_IN] = NN_FILL_FAN_IN};
    const unsigned begin = (unsigned)param->begin;

    return (nn_slot_t){.name = param->name,
                       .fill = begin < sizeof fills / sizeof fills[0]
                                   ? fills[begin]
                                   : NN_FILL_ZERO};
}

static err_code_t kind_make(nn_plugin_t *plugin, const cddp_layer_t *layer,
                            err_t *err)
{
    plugin_kind_t *kind = &plugin->kinds[plugin->count];

    if (layer->name == NULL || layer->shape == NULL || layer->forward == NULL ||
        layer->backward == NULL)
        return nn_fail_at(plugin->place, err,
                          "layer %d of the plugin has no name, shape, forward "
                          "or backward",
                          plugin->count);
    for (int i = 0; plugin->all[i] != NULL; i++)
        if (strcmp(plugin->all[i]->name, layer->name) == 0)
            return nn_fail_at(plugin->place, err,
                              "the plugin calls a layer '%s', but there is one "
                              "of that name; call it otherwise",
                              layer->name);
    kind->layer = layer;
    kind->kind = (nn_kind_t){.name = layer->name,
                             .op = OP_CUSTOM,
                             .help = layer->help != NULL ? layer->help : "",
                             .rows = kind->rows.rows,
                             .several = layer->several != 0,
                             .configure = plugin_configure};
    for (int i = 0; i < CDDP_PARAMS_MAX; i++)
        kind->kind.params[i] = slot_of(&layer->params[i]);
    return rows_make(&kind->rows, layer->options, plugin->place, layer->name,
                     err);
}

static err_code_t kinds_make(nn_plugin_t *plugin, err_t *err)
{
    const cddp_layer_t *const *layers = plugin->plugin->layers;
    int all = 0;
    err_code_t rc = ERR_OK;

    while (nn_layer_kinds()[all] != NULL) {
        plugin->all[all] = nn_layer_kinds()[all];
        all++;
    }
    for (; layers != NULL && *layers != NULL && rc == ERR_OK; layers++) {
        if (plugin->count == CDDP_LAYERS_MAX || all == NN_KINDS_MAX)
            return nn_fail_at(plugin->place, err,
                              "the plugin has more than %d layers",
                              CDDP_LAYERS_MAX);
        rc = kind_make(plugin, *layers, err);
        plugin->all[all++] = &plugin->kinds[plugin->count++].kind;
    }
    return rc;
}

/* ---- loading ------------------------------------------------------------- */

/* Check that the plugin was built for this version. Below 1.0 every minor
 * version may change the interface. */
static err_code_t version_check(const tree_t *node, const cddp_plugin_t *plugin,
                                err_t *err)
{
    if (plugin->interface == CDDP_PLUGIN_INTERFACE &&
        plugin->major == CDDP_VERSION_MAJOR &&
        (plugin->minor == CDDP_VERSION_MINOR ||
         (plugin->major > 0 && plugin->minor < CDDP_VERSION_MINOR)))
        return ERR_OK;
    return nn_fail_at(
        tree_place(node), err,
        "plugin %s was built for cddp %d.%d.%d (plugin interface %d), but this "
        "is cddp %s (plugin interface %d); compile it again with the headers "
        "of this version",
        tree_text(node), plugin->major, plugin->minor, plugin->patch,
        plugin->interface, CDDP_VERSION, CDDP_PLUGIN_INTERFACE);
}

static err_code_t plugin_load(nn_plugin_t *plugin, const tree_t *node,
                              err_t *err)
{
    const char *path = tree_text(node), *reason;

    if (path == NULL || path[0] == '\0')
        return nn_fail_at(tree_place(node), err,
                          "model.plugin is the name of a shared object, such "
                          "as ./libmine.so");
    /* dlopen would look for a mere name in LD_LIBRARY_PATH and in the system's
     * directories: that could be anybody's library. */
    if (strchr(path, '/') == NULL)
        return nn_fail_at(tree_place(node), err,
                          "model.plugin is '%s', which is no path: expected "
                          "one with a slash, such as ./%s",
                          path, path);
    plugin->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (plugin->handle == NULL) {
        reason = dlerror(); /* a text that begins with the path */
        return nn_fail_at(tree_place(node), err,
                          "the plugin cannot be loaded: %s",
                          reason == NULL ? path : reason);
    }
    plugin->plugin = dlsym(plugin->handle, SYMBOL);
    if (plugin->plugin == NULL)
        return nn_fail_at(tree_place(node), err,
                          "%s is no plugin of cddp, as it defines no " SYMBOL
                          "; write CDDP_PLUGIN(...) in its source",
                          path);
    return version_check(node, plugin->plugin, err);
}

err_code_t nn_plugin_open(const tree_t *model, nn_plugin_t **out, err_t *err)
{
    const tree_t *node = tree_get(model, "plugin");
    nn_plugin_t *plugin = NULL;
    err_code_t rc;

    rc = mem_new(nn_plugin_t, 1, "a plugin", &plugin, err);
    if (rc != ERR_OK)
        return rc;
    plugin->place = tree_place(node);
    rc = plugin_load(plugin, node, err);
    if (rc == ERR_OK)
        rc = kinds_make(plugin, err);
    if (rc == ERR_OK)
        rc = rows_make(&plugin->rows, plugin->plugin->options, plugin->place,
                       "build", err);
    if (rc == ERR_OK)
        *out = plugin;
    else
        nn_plugin_close(plugin);
    return rc;
}

void nn_plugin_close(nn_plugin_t *plugin)
{
    if (plugin == NULL)
        return;
    if (plugin->handle != NULL)
        dlclose(plugin->handle);
    mem_free(plugin);
}

const nn_kind_t *const *nn_plugin_kinds(const nn_plugin_t *plugin)
{
    return plugin == NULL ? nn_layer_kinds() : plugin->all;
}

/* ---- building ------------------------------------------------------------ */

static void host_add(cddp_builder_t *builder, const char *kind,
                     const char *name, const char *from, const char *options)
{
    nn_recipe_t *recipe = (nn_recipe_t *)builder;

    if (kind == NULL)
        kind =
            ""; /* an unknown kind, which is reported when the list is read */
    if (options == NULL || options[0] == '\0')
        nn_recipe_plain(recipe, kind, name, from);
    else
        nn_recipe_add(recipe, kind, name, from, "%s", options);
}

static void host_loss(cddp_builder_t *builder, const cddp_built_loss_t *loss)
{
    const char *const keys[] = {"from",       loss->from,   "target",
                                loss->target, "name",       loss->name,
                                "weight",     loss->weight, NULL};

    nn_recipe_loss((nn_recipe_t *)builder, loss->kind == NULL ? "" : loss->kind,
                   loss->options, keys);
}

static err_code_t build_call(const nn_graph_t *graph, nn_recipe_t *recipe,
                             const double *options, err_t *err)
{
    static const cddp_host_t host = {
        .version = CDDP_VERSION, .add = host_add, .loss = host_loss};
    cddp_build_t build = {.host = &host,
                          .builder = (cddp_builder_t *)recipe,
                          .options = options,
                          .inputs = graph->input_count};
    cddp_error_t error = {.culprit = -1};
    cddp_code_t rc;

    for (int k = 0; k < graph->input_count; k++) {
        const nn_input_t *input = &graph->inputs[k];

        build.names[k] = input->name;
        build.input[k].ndim = input->ndim;
        memcpy(build.input[k].dims, input->dims, sizeof input->dims);
    }
    rc = graph->plugin->plugin->build(&build, &error);
    if (rc == CDDP_OK)
        return ERR_OK;
    nn_fail_at(recipe->place, err, "the plugin: %s",
               error.text[0] != '\0' ? error.text
                                     : err_code_text((err_code_t)rc));
    if (err != NULL)
        err->code = (err_code_t)rc;
    return (err_code_t)rc;
}

err_code_t nn_plugin_build(const nn_graph_t *graph, const tree_t *model,
                           nn_built_t *out, err_t *err)
{
    const nn_plugin_t *plugin = graph->plugin;
    plugin_value_t values[CDDP_OPTIONS_MAX] = {{0}};
    double options[CDDP_OPTIONS_MAX] = {0};
    nn_recipe_t recipe = {.place = tree_place(tree_get(model, "plugin"))};
    tree_t *own;
    err_code_t rc;

    if (plugin->plugin->build == NULL)
        return nn_fail_at(recipe.place, err,
                          "the plugin builds no model; give model.layers, "
                          "which may use its layers");
    own = nn_model_options(model, "plugin");
    rc = opt_fill(plugin->rows.rows, own, "model", values, err);
    tree_free(own);
    if (rc != ERR_OK)
        return rc;
    rows_values(&plugin->rows, values, options);
    recipe.list = tree_new(TREE_LIST, NULL, recipe.place);
    recipe.losses = tree_new(TREE_LIST, NULL, recipe.place);
    rc = build_call(graph, &recipe, options, err);
    if (rc == ERR_OK) {
        *out = (nn_built_t){recipe.list, recipe.losses};
    } else {
        tree_free(recipe.list);
        tree_free(recipe.losses);
    }
    return rc;
}
