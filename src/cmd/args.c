/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/args.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"

err_code_t cmd_sets_take(cmd_sets_t *sets, const char *text, err_t *err)
{
    if (sets->count == CMD_SETS_MAX)
        return err_set(err, ERR_USAGE,
                       "more than %d times --set: put them into the run file",
                       CMD_SETS_MAX);
    sets->items[sets->count++] = text;
    return ERR_OK;
}

err_code_t cmd_number_take(const cmd_number_t *of, const char *text, int *out,
                           err_t *err)
{
    int64_t number;

    if (!str_to_int(text, &number) || number < of->least || number > of->most)
        return err_set(err, ERR_USAGE,
                       "%s: expected a number of %s from %d to %d, found "
                       "\"%s\"",
                       of->option, of->what, of->least, of->most, text);
    *out = (int)number;
    return ERR_OK;
}

/* Explain why getopt_long refused the word [given]. If optopt is a letter,
 * [given] contains it, perhaps after other letters. If optopt is a known
 * option, it was given a value but takes none. */
static err_code_t option_refuse(const cmd_options_t *options, const char *given,
                                err_t *err)
{
    if (optopt > UCHAR_MAX ||
        (optopt > 0 && strchr(options->letters, optopt) != NULL))
        return err_set(err, ERR_USAGE,
                       "option %s takes no value; try %s --help", given,
                       options->command);
    if (optopt > 0)
        return err_set(err, ERR_USAGE, "unknown option -%c; try %s --help",
                       optopt, options->command);
    return err_set(err, ERR_USAGE, "unknown option %s; try %s --help", given,
                   options->command);
}

err_code_t cmd_options_take(const cmd_options_t *options, int argc, char **argv,
                            void *args, err_t *err)
{
    err_code_t rc = ERR_OK;
    int option;

    opterr = 0;
    optind = 0; /* start anew: tests parse more than once */
    while (rc == ERR_OK &&
           (option = getopt_long(argc, argv, options->letters, options->options,
                                 NULL)) != -1) {
        const char *given = argv[optind - 1];

        if (option == ':')
            rc = err_set(err, ERR_USAGE,
                         "option %s needs a value; try %s --help", given,
                         options->command);
        else if (option == '?')
            rc = option_refuse(options, given, err);
        else
            rc = options->take(args, option, err);
    }
    return rc;
}

err_code_t cmd_command_refuse(const char *program, const char *name,
                              const char *const *names, err_t *err)
{
    const char *near = str_nearest(name, names);

    return err_set(err, ERR_USAGE, "unknown command %s%s%s%s; try %s --help",
                   name, near ? " (did you mean " : "", near ? near : "",
                   near ? "?)" : "", program);
}
