/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The options of a field are read with the option table of the run file. The
 * options that are members of cddp_field_t are left out of this table. */
#include "api/field.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "conf/conf.h"

#define ROWS_MAX 16

/* Is [name] an option that is not used here? cddp_field_t has it as a member
 * (path, scale, shift), its value is always the same here (cast), or it names
 * another file (stats). */
static bool left_out(const char *name)
{
    static const char *const names[] = {"path", "cast", "scale", "shift",
                                        "stats"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Set [rows] to the options that a program may give. */
static void rows_take(opt_row_t rows[ROWS_MAX])
{
    int count = 0;

    for (const opt_row_t *row = hdf5io_input_options; row->name != NULL; row++)
        if (!left_out(row->name))
            rows[count++] = *row;
    check(count < ROWS_MAX, "%d options", count);
    rows[count] = (opt_row_t){.name = NULL};
}

/* Read the options [text] (NULL: none) to [out]. */
static err_code_t options_read(const char *text, const char *path,
                               hdf5io_field_t *out, err_t *err)
{
    char *name = str_printf("options of %s", path);
    opt_row_t rows[ROWS_MAX];
    tree_t *tree = NULL;
    err_code_t rc = ERR_OK;

    rows_take(rows);
    if (text != NULL)
        rc = conf_parse(name, text, &tree, err);
    if (rc == ERR_OK)
        rc = opt_fill(rows, tree, "", out, err);
    if (rc != ERR_OK)
        *out = (hdf5io_field_t){0};
    tree_free(tree);
    free(name);
    return rc;
}

static err_code_t field_make(const cddp_field_t *field, hdf5io_field_t *out,
                             err_t *err)
{
    err_code_t rc = options_read(field->options, field->path, out, err);

    if (rc != ERR_OK)
        return rc;
    out->path = (char *)field->path;
    out->cast = HDF5IO_CAST_FLOAT32;
    out->scale = field->scale != 0 ? field->scale : 1;
    out->shift = field->shift;
    return ERR_OK;
}

static hdf5io_want_t want_of(const cddp_field_t *field,
                             const hdf5io_field_t *made)
{
    hdf5io_want_t want = {.field = made,
                          .as = HDF5IO_AS_REALS,
                          .elems = field->elems > 0 ? field->elems : 1};

    if (field->tokens > 0)
        want.as = HDF5IO_AS_TOKENS;
    if (field->classes > 0)
        want.as = HDF5IO_AS_CLASSES;
    want.limit = field->classes > 0 ? field->classes : field->tokens;
    return want;
}

static err_code_t inputs_make(const cddp_field_t *inputs, api_fields_t *fields,
                              hdf5io_dataset_config_t *out, err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int k = 0; k < out->input_count && rc == ERR_OK; k++) {
        rc = field_make(&inputs[k], &fields->inputs[k], err);
        fields->input_count = k + 1;
        out->inputs[k] = want_of(&inputs[k], &fields->inputs[k]);
        snprintf(fields->shapes[k], sizeof fields->shapes[k], "[%lld]",
                 (long long)out->inputs[k].elems);
        out->inputs[k].shape = fields->shapes[k];
    }
    return rc;
}

static err_code_t targets_make(const cddp_field_t *targets,
                               api_fields_t *fields,
                               hdf5io_dataset_config_t *out, err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int k = 0; k < out->target_count && rc == ERR_OK; k++) {
        rc = field_make(&targets[k], &fields->targets[k], err);
        fields->target_count = k + 1;
        out->targets[k] = want_of(&targets[k], &fields->targets[k]);
    }
    return rc;
}

err_code_t api_fields_open(const cddp_data_config_t *config,
                           api_fields_t *fields, hdf5io_dataset_config_t *out,
                           err_t *err)
{
    const bool several = config->inputs != NULL;
    const cddp_field_t input = {.path = config->input,
                                .elems = config->input_elems,
                                .tokens = config->tokens,
                                .scale = config->scale,
                                .shift = config->shift,
                                .options = config->input_options};
    const cddp_field_t target = {.path = config->sequence > 0 ? config->input
                                                              : config->target,
                                 .elems = config->target_elems,
                                 .classes = config->classes,
                                 .options = config->target_options};
    err_code_t rc;

    out->input_count = several ? config->input_count : 1;
    out->target_count = several ? config->target_count : 1;
    rc = inputs_make(several ? config->inputs : &input, fields, out, err);
    return rc == ERR_OK ? targets_make(several ? config->targets : &target,
                                       fields, out, err)
                        : rc;
}

void api_fields_close(api_fields_t *fields)
{
    opt_row_t rows[ROWS_MAX];

    rows_take(rows);
    for (int k = 0; k < fields->input_count; k++)
        opt_free(rows, &fields->inputs[k]);
    for (int k = 0; k < fields->target_count; k++)
        opt_free(rows, &fields->targets[k]);
}
