/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Shapes of the ops that combine several inputs, and of those that change the
 * shape or order of one input, or select, pad or reduce it. */
#include <inttypes.h>
#include <stdio.h>

#include "op/op_broadcast.h"
#include "op/op_desc.h"
#include "op/op_geometry.h"
#include "op/op_shape.h"

/* ---- several inputs ------------------------------------------------------ */

/* Do a and b have equal types and, except for dimension [axis] (-1: no
 * exception), equal dimensions? */
static bool shapes_agree(const op_desc_t *a, const op_desc_t *b, int axis)
{
    bool same = a->ndim == b->ndim && a->type == b->type;

    for (int i = 0; i < a->ndim && same; i++)
        same = b->dims[i] > 0 && (i == axis || a->dims[i] == b->dims[i]);
    return same;
}

/* Report that other[i] does not fit the first input. */
static err_code_t combine_refuse(const op_config_t *config, int i, err_t *err)
{
    const bool elements = config->kind == OP_ADD || config->kind == OP_MUL;
    char first[OP_TEXT_MAX], other[OP_TEXT_MAX];
    op_desc_t none;

    /* other[i] may still broadcast. Then another pair of inputs is the
     * error. */
    if (elements && !op_broadcast_fits(config))
        return op_shape_broadcast(config, &none, err);
    return err_set(err, ERR_CONFIG,
                   "%s takes inputs of the same shape%s, but its input 1 is %s "
                   "and its input %d is %s",
                   op_kind_name(config->kind),
                   config->kind == OP_CONCAT ? " but for the axis" : "",
                   op_desc_text(&config->in, first), i + 2,
                   op_desc_text(&config->other[i], other));
}

err_code_t op_shape_combine(const op_config_t *config, op_desc_t *out,
                            err_t *err)
{
    const bool concat = config->kind == OP_CONCAT;
    const int axis = concat ? config->view.axis : -1;
    const char *name = op_kind_name(config->kind);
    err_code_t rc =
        op_check_input(config, concat ? 2 : 1, OP_DIMS_MAX, "[N, ...]", err);
    char first[OP_TEXT_MAX];
    op_desc_t shape;

    if (rc != ERR_OK)
        return rc;
    if (config->others < 1 || config->others >= OP_INPUTS_MAX)
        return err_set(err, ERR_CONFIG,
                       "%s takes 2 to %d inputs, but it got %d", name,
                       OP_INPUTS_MAX, config->others + 1);
    op_desc_text(&config->in, first);
    if (concat && (axis < 1 || axis >= config->in.ndim))
        return err_set(err, ERR_CONFIG,
                       "concat on %s: there is no axis %d to concatenate along "
                       "(1 to %d)",
                       first, axis, config->in.ndim - 1);
    op_desc_fill(&shape, config->in.type, config->in.ndim, config->in.dims);
    for (int i = 0; i < config->others; i++) {
        if (!shapes_agree(&config->in, &config->other[i], axis))
            return combine_refuse(config, i, err);
        if (concat)
            shape.dims[axis] += config->other[i].dims[axis];
    }
    op_desc_fill(out, shape.type, shape.ndim, shape.dims);
    return ERR_OK;
}

/* ---- one input ----------------------------------------------------------- */

static err_code_t shape_reshape(const op_config_t *config, op_desc_t *out,
                                err_t *err)
{
    const op_view_t *view = &config->view;
    op_desc_t shape = {.ndim = view->ndim + 1, .type = config->in.type};
    char from[OP_TEXT_MAX], to[OP_TEXT_MAX];
    double elems = 1;

    if (view->ndim < 1 || view->ndim >= OP_DIMS_MAX)
        return err_set(err, ERR_CONFIG,
                       "reshape gives a sample 1 to %d dimensions, not %d",
                       OP_DIMS_MAX - 1, view->ndim);
    shape.dims[0] = config->in.dims[0];
    for (int i = 0; i < view->ndim; i++) {
        shape.dims[i + 1] = view->dims[i];
        elems *= view->dims[i] < 1 ? 0 : (double)view->dims[i];
    }
    if (elems != (double)op_desc_sample(&config->in))
        return err_set(err, ERR_CONFIG,
                       "reshape: the %" PRId64
                       " elements of a sample of its input %s do not fill %s",
                       op_desc_sample(&config->in),
                       op_desc_text(&config->in, from),
                       op_desc_text(&shape, to));
    op_desc_fill(out, shape.type, shape.ndim, shape.dims);
    return ERR_OK;
}

static err_code_t shape_permute(const op_config_t *config, op_desc_t *out,
                                err_t *err)
{
    const op_desc_t *in = &config->in;
    const op_view_t *view = &config->view;
    bool seen[OP_DIMS_MAX] = {false}, valid = view->ndim == in->ndim - 1;
    int64_t dims[OP_DIMS_MAX] = {in->dims[0]};
    char text[OP_TEXT_MAX];

    for (int i = 0; i < view->ndim && valid; i++) {
        int64_t from = view->dims[i];

        valid = from >= 1 && from < in->ndim && !seen[from];
        if (!valid)
            break;
        seen[from] = true;
        dims[i + 1] = in->dims[from];
    }
    if (!valid)
        return err_set(err, ERR_CONFIG,
                       "permute on %s: the order must name each of the "
                       "dimensions 1 to %d once",
                       op_desc_text(in, text), in->ndim - 1);
    op_desc_fill(out, in->type, in->ndim, dims);
    return ERR_OK;
}

static err_code_t shape_slice(const op_config_t *config, op_desc_t *out,
                              err_t *err)
{
    const op_desc_t *in = &config->in;
    const op_view_t *view = &config->view;
    op_desc_t shape = *in;
    char text[OP_TEXT_MAX];

    op_desc_text(in, text);
    if (view->axis < 1 || view->axis >= in->ndim)
        return err_set(err, ERR_CONFIG,
                       "slice on %s: there is no axis %d (1 to %d)", text,
                       view->axis, in->ndim - 1);
    if (view->start < 0 || view->size < 1 ||
        view->size > in->dims[view->axis] - view->start)
        return err_set(err, ERR_CONFIG,
                       "slice on %s: %" PRId64 " elements from %" PRId64
                       " on do not lie in dimension %d, which has %" PRId64,
                       text, view->size, view->start, view->axis,
                       in->dims[view->axis]);
    shape.dims[view->axis] = view->size;
    op_desc_fill(out, in->type, in->ndim, shape.dims);
    return ERR_OK;
}

op_reduce_t op_reduce_of(const op_config_t *config)
{
    const op_desc_t *in = &config->in;
    op_reduce_t reduce = {1, 1, 1};

    for (int i = 0; i < in->ndim; i++) {
        if (i < config->view.axis)
            reduce.outer *= in->dims[i];
        else if (i <= config->view.axis_last)
            reduce.count *= in->dims[i];
        else
            reduce.inner *= in->dims[i];
    }
    return reduce;
}

/* The shape of mean and max. */
static err_code_t shape_reduce(const op_config_t *config, op_desc_t *out,
                               err_t *err)
{
    const op_desc_t *in = &config->in;
    const op_view_t *view = &config->view;
    int64_t dims[OP_DIMS_MAX];
    char text[OP_TEXT_MAX];
    int ndim = 0;

    if (view->axis < 1 || view->axis_last < view->axis ||
        view->axis_last >= in->ndim)
        return err_set(err, ERR_CONFIG,
                       "%s on %s: the dimensions %d to %d are not among 1 "
                       "to %d",
                       op_kind_name(config->kind), op_desc_text(in, text),
                       view->axis, view->axis_last, in->ndim - 1);
    for (int i = 0; i < in->ndim; i++)
        if (i < view->axis || i > view->axis_last)
            dims[ndim++] = in->dims[i];
    if (ndim < 2)
        return err_set(err, ERR_CONFIG,
                       "%s on %s over all dimensions of a sample leaves "
                       "nothing to go on with",
                       op_kind_name(config->kind), op_desc_text(in, text));
    op_desc_fill(out, in->type, ndim, dims);
    return ERR_OK;
}

static err_code_t shape_softmax(const op_config_t *config, op_desc_t *out,
                                err_t *err)
{
    const op_desc_t *in = &config->in;
    const op_view_t *view = &config->view;
    char text[OP_TEXT_MAX];

    if (view->axis < 1 || view->axis >= in->ndim ||
        view->axis_last != view->axis)
        return err_set(err, ERR_CONFIG,
                       "%s on %s: there is no dimension %d to sum over (1 to "
                       "%d)",
                       op_kind_name(config->kind), op_desc_text(in, text),
                       view->axis, in->ndim - 1);
    op_desc_fill(out, in->type, in->ndim, in->dims);
    return ERR_OK;
}

static err_code_t shape_upsample(const op_config_t *config, op_desc_t *out,
                                 err_t *err)
{
    const op_desc_t *in = &config->in;
    const op_view_t *view = &config->view;
    op_desc_t shape = *in;
    char text[OP_TEXT_MAX];

    if (in->ndim < 3 || view->ndim != in->ndim - 2 ||
        (config->kind == OP_UPSAMPLE_LINEAR && view->ndim > OP_SPACE_MAX))
        return err_set(err, ERR_CONFIG,
                       "%s on %s takes one factor for each dimension after "
                       "the channels, but has %d",
                       op_kind_name(config->kind), op_desc_text(in, text),
                       view->ndim);
    for (int i = 0; i < view->ndim; i++) {
        if (view->dims[i] < 1)
            return err_set(err, ERR_CONFIG,
                           "%s on %s: the factor %" PRId64 " is not at least 1",
                           op_kind_name(config->kind), op_desc_text(in, text),
                           view->dims[i]);
        shape.dims[i + 2] *= view->dims[i];
    }
    op_desc_fill(out, in->type, in->ndim, shape.dims);
    return ERR_OK;
}

op_tap_t op_upsample_tap(int64_t at, int64_t factor, int64_t size)
{
    double place = ((double)at + 0.5) / (double)factor - 0.5;
    op_tap_t tap = {0};

    if (place > 0)
        tap.first = (int64_t)place;
    tap.second = tap.first + 1 < size ? tap.first + 1 : tap.first;
    tap.weight = place > 0 ? place - (double)tap.first : 0;
    return tap;
}

int64_t op_pad_source(const op_config_t *config, int i, int64_t at)
{
    const int64_t size = config->in.dims[2 + i];
    int64_t source = at - config->pad.before[i];

    if (source >= 0 && source < size)
        return source;
    if (!config->pad.reflect)
        return -1;
    return source < 0 ? -source : 2 * (size - 1) - source;
}

err_code_t op_shape_pad(const op_config_t *config, op_desc_t *out, err_t *err)
{
    const op_pad_t *pad = &config->pad;
    op_desc_t shape = config->in;
    err_code_t rc = op_check_input(config, 3, 2 + OP_SPACE_MAX,
                                   "[N, channels, 1 to 3 dimensions]", err);
    char text[OP_TEXT_MAX];

    if (rc != ERR_OK)
        return rc;
    for (int i = 0; i < shape.ndim - 2; i++) {
        const int64_t most =
            pad->before[i] > pad->after[i] ? pad->before[i] : pad->after[i];

        if (pad->before[i] < 0 || pad->after[i] < 0)
            return err_set(err, ERR_CONFIG,
                           "pad on %s: it can only add elements",
                           op_desc_text(&config->in, text));
        if (pad->reflect && most >= shape.dims[2 + i])
            return err_set(err, ERR_CONFIG,
                           "pad on %s: %" PRId64
                           " elements cannot be mirrored in a dimension of "
                           "%" PRId64 ", which gives at most one less",
                           op_desc_text(&config->in, text), most,
                           shape.dims[2 + i]);
        shape.dims[2 + i] += pad->before[i] + pad->after[i];
    }
    op_desc_fill(out, shape.type, shape.ndim, shape.dims);
    return ERR_OK;
}

err_code_t op_shape_view(const op_config_t *config, op_desc_t *out, err_t *err)
{
    err_code_t rc = op_check_input(config, 2, OP_DIMS_MAX, "[N, ...]", err);

    if (rc != ERR_OK)
        return rc;
    if (config->kind == OP_POSITION || config->kind == OP_PRELU) {
        op_desc_fill(out, config->in.type, config->in.ndim, config->in.dims);
        return ERR_OK;
    }
    if (config->kind == OP_RESHAPE)
        return shape_reshape(config, out, err);
    if (config->kind == OP_PERMUTE)
        return shape_permute(config, out, err);
    if (config->kind == OP_SLICE)
        return shape_slice(config, out, err);
    if (config->kind == OP_MEAN || config->kind == OP_MAX)
        return shape_reduce(config, out, err);
    if (config->kind == OP_SOFTMAX || config->kind == OP_LOG_SOFTMAX)
        return shape_softmax(config, out, err);
    return shape_upsample(config, out, err);
}
