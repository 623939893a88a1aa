/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The registry of kinds of layers and losses: finding a row by name, reading
 * its options, documenting it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "nn/preset.h"
#include "nn/registry.h"

#define NN_ADDRESS(name) &nn_kind_##name,
static const nn_kind_t *const layer_kinds[] = {NN_LAYER_KINDS(NN_ADDRESS) NULL};
static const nn_kind_t *const loss_kinds[] = {NN_LOSS_KINDS(NN_ADDRESS) NULL};

_Static_assert(sizeof layer_kinds / sizeof layer_kinds[0] <= NN_KINDS_MAX,
               "NN_KINDS_MAX is too small");

const nn_kind_t *const *nn_layer_kinds(void)
{
    return layer_kinds;
}

const nn_kind_t *const *nn_loss_kinds(void)
{
    return loss_kinds;
}

static const opt_row_t *option_rows(const nn_kind_t *const *kinds,
                                    const char *name)
{
    for (; *kinds != NULL; kinds++)
        if (strcmp((*kinds)->name, name) == 0)
            return (*kinds)->rows;
    return NULL;
}

const opt_row_t *nn_layer_option_rows(const char *name)
{
    return option_rows(layer_kinds, name);
}

const opt_row_t *nn_loss_option_rows(const char *name)
{
    return option_rows(loss_kinds, name);
}

/* Report a [name] that no row has. */
static err_code_t kind_unknown(const nn_kind_t *const *kinds, const char *what,
                               const char *name, tree_place_t place, err_t *err)
{
    const char *names[NN_KINDS_MAX + 1];
    char at[NN_PLACE_TEXT];
    str_buf_t known = {0};
    const char *nearest;
    err_code_t rc;
    int i;

    for (i = 0; kinds[i] != NULL; i++) {
        names[i] = kinds[i]->name;
        str_buf_add(&known, "%s%s", i == 0 ? "" : ", ", kinds[i]->name);
    }
    names[i] = NULL;
    tree_place_format(place, at, sizeof at);
    nearest = str_nearest(name, names);
    if (nearest != NULL)
        rc = err_set(err, ERR_CONFIG,
                     "%s: unknown %s '%s'; did you mean '%s'? (known: "
                     "%s)",
                     at, what, name, nearest, known.text);
    else
        rc = err_set(err, ERR_CONFIG, "%s: unknown %s '%s' (known: %s)", at,
                     what, name, known.text);
    str_buf_free(&known);
    return rc;
}

err_code_t nn_kind_find(const nn_kind_t *const *kinds, const char *what,
                        const char *name, tree_place_t place,
                        const nn_kind_t **out, err_t *err)
{
    for (int i = 0; kinds[i] != NULL; i++)
        if (strcmp(kinds[i]->name, name) == 0) {
            *out = kinds[i];
            return ERR_OK;
        }
    return kind_unknown(kinds, what, name, place, err);
}

err_code_t nn_kind_configure(nn_layer_t *layer, const tree_t *tree,
                             tree_place_t place, const char *path, err_t *err)
{
    _Alignas(max_align_t) unsigned char options[NN_OPTIONS_MAX] = {0};
    const opt_row_t *rows = layer->kind->rows;
    tree_t *empty = NULL;
    str_buf_t later = {0};
    err_code_t rc;

    /* An empty map instead of NULL, so that a missing required option is
     * reported at the place of the layer. */
    if (tree == NULL || tree_kind(tree) == TREE_NULL) {
        empty = tree_new(TREE_MAP, NULL, place);
        tree = empty;
    }
    rc = opt_fill(rows, tree, path, options, err);
    if (rc != ERR_OK)
        goto out;
    if (layer->kind->configure != NULL)
        rc = layer->kind->configure(layer, options, tree, err);
    nn_hash_options(layer->kind, options, &later);
    layer->later_options = later.text; /* NULL if nothing was printed */
    opt_free(rows, options);
out:
    tree_free(empty);
    return rc;
}

static void document_kinds(const nn_kind_t *const *kinds, const char *title,
                           const char *section, str_buf_t *out)
{
    char *name;

    str_buf_add(out, "## %s\n\n", title);
    for (int i = 0; kinds[i] != NULL; i++) {
        str_buf_add(out, "### %s\n\n%s.\n\n", kinds[i]->name, kinds[i]->help);
        if (kinds[i]->rows[0].name == NULL) {
            str_buf_add(out, "No options.\n\n");
            continue;
        }
        name = str_printf("%s.%s", section, kinds[i]->name);
        opt_document(kinds[i]->rows, name, out);
        str_buf_add(out, "\n");
        free(name);
    }
}

/* Documentation of the graph: how layers are connected, and keys common to all
 * kinds. */
static const char graph_text[] =
    "## The graph\n\n"
    "`model.layers` is a list. A layer is a kind (`- relu`) or a map with one "
    "kind\nas key and its options below it "
    "(`- conv: {out: 32, kernel: 3}`). Further keys of\nthe map:\n\n"
    "| key | value | default | meaning |\n"
    "|---|---|---|---|\n"
    "| `name` | a text | kind and number | the name that other layers use, and "
    "under which its parameters are stored |\n"
    "| `from` | a name or a list | the layer before | the earlier layers whose "
    "outputs it reads; `input`, or an input's name, is the sample |\n"
    "| `share` | a name | none | use the parameters of this earlier layer of "
    "the same kind (linear: or of an embedding) |\n"
    "| `init` | a name or a map | PyTorch's | how its parameters are "
    "initialized, see below |\n\n"
    "`- repeat: {times: 3, layers: [...]}` means its layers three times, one "
    "after the\nother. Inside, `entry` is the layer that the iteration reads "
    "first, so that\n`{add: , from: [c, entry]}` ends a residual block. A "
    "name given inside gets the\nnumber of the iteration (`c_1`, `c_2`, ...); "
    "layers of the same iteration leave the\nnumber out. The output of every "
    "layer must be used; the loss reads that of the last\nlayer.\n\n"
    "A model with several inputs names them: `model.input: {image: [1, 32, "
    "32], meta:\n[4]}`. `data.input` then has each under its name, and the "
    "first layer names the\ninput that it reads in `from`.\n\n"
    "`- {preset: {resnet18: {classes: 64}}, from: image, name: seen}` means "
    "the layers of\na preset that reads an input. Its last layer is called "
    "`seen`, and `_seen` is\nappended to the names of the others. So a model "
    "may have several presets, and join\ntheir outputs.\n\n"
    "`model: {plugin: ./libmine.so, ...}` loads layers of your own, which can "
    "be used like\nthose below. Without `layers` the plugin builds the model, "
    "and the other keys are its\noptions. It may have several inputs, and "
    "losses of its own, which are used by `loss:\nplugin`. `cddp/plugin.h`, "
    "`examples/c/plugin.c` and `examples/c/plugin-two.c` show how\nto write "
    "one.\n\n";

static const char losses_text[] =
    "## Several losses\n\n"
    "`loss` may be a list, `[{cross_entropy: , from: which, target: phase}, "
    "{mse: ,\nfrom: how_much, target: energy, weight: 0.3}]`. Further keys "
    "of a loss, beside its\nkind:\n\n"
    "| key | value | default | meaning |\n"
    "|---|---|---|---|\n"
    "| `from` | a name | the last layer | the layer whose output it reads |\n"
    "| `target` | a name | `target` | its target in `data.target`; several "
    "losses may read one |\n"
    "| `weight` | a number, 0 to 1e30 | `1` | its factor in the sum that is "
    "minimized; 0: it is only reported |\n"
    "| `name` | a text | its target's | the beginning of the names of its "
    "metrics: `phase_loss`, `phase_accuracy` |\n\n"
    "Each loss is divided by its own number of targets over all ranks. A loss "
    "for which no\ntarget counts in a step is left out of that step. "
    "`metrics` may be a map of these\nnames, too: `{phase: [top2], energy: "
    "[mae, r2]}`.\n\n";

void nn_graph_document(str_buf_t *out)
{
    str_buf_add(out, "%s", graph_text);
    nn_init_document(out);
    document_kinds(layer_kinds, "Layers", "model.layers", out);
    nn_preset_document(out);
    document_kinds(loss_kinds, "Losses", "loss", out);
    str_buf_add(out, "%s", losses_text);
}
