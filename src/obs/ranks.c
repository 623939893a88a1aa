/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "obs/ranks.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "obs/metrics.h"

/* A row covers at least 1 / PART of the windows since the start. */
#define PART 8

struct obs_ranks {
    int ranks, hosts;
    int64_t steps, windows; /* since the last row */
    int64_t all_windows;    /* since the start */
    int *host;              /* [ranks] */
    char **names;           /* [hosts] */
    obs_load_t *sums;       /* [ranks]: over the steps since the last row */
};

/* The numbers of a row, and their keys. */
static const struct {
    const char *key;
    obs_load_number_t number;
} columns[] = {{"data_s", OBS_LOAD_DATA},
               {"compute_s", OBS_LOAD_COMPUTE},
               {"comm_s", OBS_LOAD_COMM},
               {"throttled_s", OBS_LOAD_THROTTLED},
               {"delay_s", OBS_LOAD_DELAY}};

/* ---- opening and closing ------------------------------------------------- */

static int host_count(const obs_ranks_places_t *places)
{
    int count = 0;

    for (int r = 0; r < places->ranks; r++)
        if (places->hosts[r] >= count)
            count = places->hosts[r] + 1;
    return count;
}

static const char what[] = "what each rank needs for a step";

static err_code_t ranks_alloc(obs_ranks_t *ranks, err_t *err)
{
    err_code_t rc = mem_new(int, (size_t)ranks->ranks, what, &ranks->host, err);

    if (rc == ERR_OK)
        rc = mem_new(char *, (size_t)ranks->hosts, what, &ranks->names, err);
    return rc == ERR_OK ? mem_new(obs_load_t, (size_t)ranks->ranks, what,
                                  &ranks->sums, err)
                        : rc;
}

err_code_t obs_ranks_open(const obs_ranks_places_t *places, obs_ranks_t **out,
                          err_t *err)
{
    obs_ranks_t *ranks = NULL;
    err_code_t rc = mem_new(obs_ranks_t, 1, what, &ranks, err);

    if (rc != ERR_OK)
        return rc;
    ranks->ranks = places->ranks;
    ranks->hosts = host_count(places);
    rc = ranks_alloc(ranks, err);
    if (rc != ERR_OK) {
        obs_ranks_close(ranks);
        return rc;
    }
    for (int r = 0; r < ranks->ranks; r++)
        ranks->host[r] = places->hosts[r];
    for (int h = 0; h < ranks->hosts; h++)
        ranks->names[h] = str_dup(places->names[h]);
    *out = ranks;
    return ERR_OK;
}

void obs_ranks_close(obs_ranks_t *ranks)
{
    if (ranks == NULL)
        return;
    for (int h = 0; ranks->names != NULL && h < ranks->hosts; h++)
        free(ranks->names[h]);
    mem_free(ranks->sums);
    mem_free(ranks->names);
    mem_free(ranks->host);
    mem_free(ranks);
}

/* ---- windows ------------------------------------------------------------- */

void obs_ranks_add(obs_ranks_t *ranks, const obs_load_t *loads, int64_t steps)
{
    for (int r = 0; r < ranks->ranks; r++)
        for (int i = 0; i < OBS_LOAD_NUMBERS; i++)
            ranks->sums[r].at[i] += (double)steps * loads[r].at[i];
    ranks->steps += steps;
    ranks->windows++;
    ranks->all_windows++;
}

int64_t obs_ranks_windows(const obs_ranks_t *ranks)
{
    return ranks->windows;
}

bool obs_ranks_due(const obs_ranks_t *ranks)
{
    return ranks->windows > 0 && PART * ranks->windows >= ranks->all_windows;
}

/* ---- a row --------------------------------------------------------------- */

/* Append [text] in quotes. */
static void text_print(const char *text, str_buf_t *out)
{
    char escaped[3];

    str_buf_add(out, "\"");
    for (const char *c = text; *c != '\0'; c++)
        str_buf_add(out, "%s", obs_text_escape(*c, escaped));
    str_buf_add(out, "\"");
}

/* Append the means of [number]. JSON has only finite numbers; others become 0
 * here. */
static void means_print(const obs_ranks_t *ranks, obs_load_number_t number,
                        str_buf_t *out)
{
    const double steps = ranks->steps > 0 ? (double)ranks->steps : 1;

    for (int r = 0; r < ranks->ranks; r++) {
        const double mean = ranks->sums[r].at[number] / steps;

        str_buf_add(out, "%s%.4g", r > 0 ? "," : "",
                    isfinite(mean) ? mean : 0.0);
    }
}

int64_t obs_ranks_print(obs_ranks_t *ranks, str_buf_t *out)
{
    const int64_t steps = ranks->steps;

    str_buf_add(out, "{\"hosts\": [");
    for (int h = 0; h < ranks->hosts; h++) {
        str_buf_add(out, h > 0 ? ", " : "");
        text_print(ranks->names[h], out);
    }
    str_buf_add(out, "], \"host\": [");
    for (int r = 0; r < ranks->ranks; r++)
        str_buf_add(out, "%s%d", r > 0 ? "," : "", ranks->host[r]);
    str_buf_add(out, "]");
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        str_buf_add(out, ", \"%s\": [", columns[i].key);
        means_print(ranks, columns[i].number, out);
        str_buf_add(out, "]");
    }
    str_buf_add(out, "}");
    for (int r = 0; r < ranks->ranks; r++)
        ranks->sums[r] = (obs_load_t){.at = {0}};
    ranks->steps = ranks->windows = 0;
    return steps;
}
