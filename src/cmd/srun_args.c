/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/srun_args.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

const char srun_args_help[] =
    "usage: cddp-srun [options] [options of cddp-train] [RUN.yaml]\n"
    "\n"
    "Train within an allocation of Slurm (sbatch, salloc) until the run is\n"
    "complete: start cddp-train by srun, start it again in place after a\n"
    "failure of a rank, a node or the file system, and requeue the job when\n"
    "its time runs out. The training resumes by itself.\n"
    "\n"
    "      --srun=OPTION     an option for srun; may be repeated\n"
    "      --program=PATH    start PATH instead of cddp-train\n"
    "  -h, --help            print this text\n"
    "      --version         print version, features and libraries\n"
    "\n"
    "Environment: RUNDIR: the run directory, instead of run.dir of the run\n"
    "file. CDDP_MIN_NODES: do not restart on fewer nodes (half of them).\n"
    "\n"
    "Exit status: that of the training (see cddp-train --help); 70 after\n"
    "three starts in a row without a newer checkpoint.\n";

/* ---- the command line ---------------------------------------------------- */

/* If [word] is "[name]=VALUE", return VALUE; otherwise NULL. */
static const char *value_of(const char *word, const char *name)
{
    const size_t length = strlen(name);

    return strncmp(word, name, length) == 0 && word[length] == '='
               ? word + length + 1
               : NULL;
}

static err_code_t option_add(srun_args_t *args, const char *value, err_t *err)
{
    if (args->option_count == SRUN_OPTIONS_MOST)
        return err_set(err, ERR_USAGE,
                       "more than %d options --srun: put some into one of "
                       "srun's variables (SLURM_..., SRUN_...)",
                       SRUN_OPTIONS_MOST);
    args->options[args->option_count++] = value;
    return ERR_OK;
}

err_code_t srun_args_parse(int argc, char **argv, srun_args_t *out, err_t *err)
{
    srun_args_t args = {.program = "cddp-train"};
    int i = 1;

    for (; i < argc; i++) {
        const char *option = value_of(argv[i], "--srun");
        const char *program = value_of(argv[i], "--program");

        if (option != NULL) {
            const err_code_t rc = option_add(&args, option, err);

            if (rc != ERR_OK)
                return rc;
        } else if (program != NULL) {
            args.program = program;
        } else if (strcmp(argv[i], "--srun") == 0 ||
                   strcmp(argv[i], "--program") == 0) {
            return err_set(err, ERR_USAGE, "%s needs a value: %s=...", argv[i],
                           argv[i]);
        } else if (strcmp(argv[i], "-h") == 0 ||
                   strcmp(argv[i], "--help") == 0) {
            args.help = true;
        } else if (strcmp(argv[i], "--version") == 0) {
            args.version = true;
        } else {
            break;
        }
    }
    args.rest = argv + i;
    args.rest_count = argc - i;
    *out = args;
    return ERR_OK;
}

/* ---- lines --------------------------------------------------------------- */

/* [text] becomes the line's; memory for a command line is always there, or the
 * process ends, as in str. */
static void line_take(srun_line_t *line, char *text)
{
    char **args = realloc(line->args, ((size_t)line->count + 2) * sizeof *args);

    if (args == NULL)
        abort();
    args[line->count++] = text;
    args[line->count] = NULL;
    line->args = args;
}

static void line_add(srun_line_t *line, const char *text)
{
    line_take(line, str_dup(text));
}

void srun_line_free(srun_line_t *line)
{
    for (int i = 0; i < line->count; i++)
        free(line->args[i]);
    free(line->args);
    *line = (srun_line_t){0};
}

/* The program and its arguments. $RUNDIR overrides the run file. */
static void program_add(srun_line_t *line, const srun_args_t *args)
{
    const char *run_dir = getenv("RUNDIR");

    for (int i = 0; i < args->rest_count; i++)
        line_add(line, args->rest[i]);
    if (run_dir == NULL || run_dir[0] == '\0')
        return;
    line_add(line, "--set");
    line_take(line, str_printf("run.dir=%s", run_dir));
}

srun_line_t srun_line_rundir(const srun_args_t *args)
{
    srun_line_t line = {0};

    line_add(&line, args->program);
    line_add(&line, "--print-rundir");
    program_add(&line, args);
    return line;
}

/* Leave out the nodes to avoid, if there are any. */
static void nodes_add(srun_line_t *line, const srun_size_t *size)
{
    str_buf_t out = {0};
    int left = 0;

    for (int i = 0; i < size->nodes->count; i++) {
        const slurm_node_t *node = &size->nodes->list[i];

        if (slurm_node_avoided(node))
            str_buf_add(&out, "%s%s", out.length > 0 ? "," : "", node->name);
        else
            left++;
    }
    if (out.length > 0 && left > 0 && size->tasks_per_node > 0) {
        line_take(line, str_printf("--exclude=%s", out.text));
        line_take(line, str_printf("--nodes=%d", left));
        line_take(line, str_printf("--ntasks=%d", left * size->tasks_per_node));
        line_take(line,
                  str_printf("--ntasks-per-node=%d", size->tasks_per_node));
    }
    str_buf_free(&out);
}

srun_line_t srun_line_step(const srun_args_t *args, const srun_size_t *size)
{
    srun_line_t line = {0};

    line_add(&line, "srun");
    line_add(&line, "--mpi=pmix");
    /* All ranks end within seconds of each other. If a rank hangs after it has
     * left the group, no other rank notices, and srun would wait for it for
     * ever. This is an option, not SLURM_WAIT, because a site sets that
     * variable for other programs. An option of the user comes later on the
     * line and wins. */
    line_add(&line, "--wait=120");
    if (size->again) {
        /* If the slurmstepd of the last step was killed, Slurm believes for
         * ever that the step still runs and keeps its CPUs busy. */
        line_add(&line, "--overlap");
        /* If the controller was away when the last step ended, Slurm may take
         * the nodes for busy, and srun would wait for minutes, as it is not
         * told when they are free. With this option it gives up after so many
         * seconds. */
        line_add(&line, "--immediate=" SRUN_BUSY_PATIENCE);
    }
    for (int i = 0; i < args->option_count; i++)
        line_add(&line, args->options[i]);
    nodes_add(&line, size);
    line_add(&line, args->program);
    program_add(&line, args);
    return line;
}
