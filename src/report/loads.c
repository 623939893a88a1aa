/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "report/loads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/numeric.h"
#include "base/str.h"

/* Largest time of a step, in seconds, and largest number of steps of a row. */
#define SECONDS_MAX 1e9
#define STEPS_MAX 1e12

enum { DATA, COMPUTE, COMM, THROTTLED, DELAY, NUMBERS };
static const char *const keys[NUMBERS] = {
    [DATA] = "data_s",           [COMPUTE] = "compute_s", [COMM] = "comm_s",
    [THROTTLED] = "throttled_s", [DELAY] = "delay_s",
};

/* A rank on a host. Its times are sums over steps. "own" is data + compute. */
typedef struct cell {
    int rank, host;
    int next; /* index of another cell of this rank; -1: none */
    double steps, own, median;
    double most; /* largest ratio of "own" and median in a row */
    double sums[NUMBERS];
} cell_t;

/* The content of a row. Each list about ranks has [ranks] numbers. */
typedef struct found {
    int ranks, hosts;
    double steps;
    int host[REPORT_LOADS_MAX]; /* of each rank: index of its host in the row */
    int host_index[REPORT_LOADS_MAX]; /* of each host of the row: its number */
    double at[NUMBERS][REPORT_LOADS_MAX];
    double sorted[REPORT_LOADS_MAX];
} found_t;

struct report_loads {
    json_t *hosts;       /* list of names */
    json_t *host_number; /* name -> index in the list */
    int count, room;     /* of cells */
    cell_t *cells;
    int first[REPORT_LOADS_MAX]; /* first cell of a rank, plus 1; 0: none */
    int64_t bad, left_out;
    found_t found; /* scratch */
};

err_code_t report_loads_open(report_loads_t **out, err_t *err)
{
    report_loads_t *loads = NULL;
    err_code_t rc =
        mem_new(report_loads_t, 1, "the loads of ranks", &loads, err);

    if (rc != ERR_OK)
        return rc;
    loads->hosts = json_array();
    loads->host_number = json_object();
    if (loads->hosts == NULL || loads->host_number == NULL) {
        report_loads_close(loads);
        return err_set(err, ERR_MEMORY, "out of memory for the loads of ranks");
    }
    *out = loads;
    return ERR_OK;
}

void report_loads_close(report_loads_t *loads)
{
    if (loads == NULL)
        return;
    json_decref(loads->host_number);
    json_decref(loads->hosts);
    mem_free(loads->cells);
    mem_free(loads);
}

int64_t report_loads_bad(const report_loads_t *loads)
{
    return loads == NULL ? 0 : loads->bad;
}

int64_t report_loads_left_out(const report_loads_t *loads)
{
    return loads == NULL ? 0 : loads->left_out;
}

/* ---- reading a row ------------------------------------------------------- */

/* Begin to read the list called [key] of [row]. The result is bad if the row
 * has no such list. */
static report_list_t list_find(const report_row_t *row, const char *key)
{
    const report_field_t *field = report_row_find(row, key);
    const bool found = field != NULL && field->kind == REPORT_OTHER;

    return report_list_of(found ? field->text : (report_text_t){"", 0});
}

/* Read the list called [key] of [row] to [out]: numbers from 0 to [most].
 * Returns how many numbers there are; -1: the row has no such list. */
static int numbers_take(const report_row_t *row, const char *key, double most,
                        double *out)
{
    report_list_t list = list_find(row, key);
    report_field_t item;
    int count = 0;

    while (report_list_next(&list, &item)) {
        if (count == REPORT_LOADS_MAX || item.kind != REPORT_NUMBER ||
            item.number < 0 || item.number > most)
            return -1;
        out[count++] = item.number;
    }
    return list.bad ? -1 : count;
}

/* Read the hosts of the ranks. */
static bool places_take(const report_row_t *row, found_t *out)
{
    out->ranks = numbers_take(row, "host", REPORT_LOADS_MAX - 1, out->sorted);
    out->hosts = 0;
    for (int r = 0; r < out->ranks; r++) {
        out->host[r] = (int)out->sorted[r];
        if (out->host[r] != out->sorted[r])
            return false;
        if (out->host[r] >= out->hosts)
            out->hosts = out->host[r] + 1;
    }
    return out->ranks > 0 && out->hosts <= out->ranks;
}

/* The number of a host for which there is no room. */
#define NO_HOST REPORT_LOADS_MAX

/* Return the number of the host called [name]. A new host gets the next number,
 * or NO_HOST. -1: out of memory. */
static int host_number(report_loads_t *loads, report_text_t name)
{
    char *text = str_printf("%.*s", (int)name.length, name.at);
    char *visible = str_visible_dup(text);
    const json_t *known = json_object_get(loads->host_number, visible);
    int number = (int)json_array_size(loads->hosts);

    if (known != NULL)
        number = (int)json_integer_value(known);
    else if (number < NO_HOST &&
             (json_array_append_new(loads->hosts, json_string(visible)) != 0 ||
              json_object_set_new(loads->host_number, visible,
                                  json_integer(number)) != 0))
        number = -1;
    free(visible);
    free(text);
    return number;
}

/* Does [row] have a name for each host of its ranks, and no other name? Are all
 * names texts? */
static bool names_count(const report_row_t *row, const found_t *found)
{
    report_list_t list = list_find(row, "hosts");
    report_field_t item;
    int count = 0;

    for (; report_list_next(&list, &item); count++)
        if (item.kind != REPORT_TEXT || count == found->hosts)
            return false;
    return !list.bad && count == found->hosts;
}

/* Give the hosts of [row], which names_count has accepted, their numbers. */
static bool names_take(report_loads_t *loads, const report_row_t *row)
{
    report_list_t list = list_find(row, "hosts");
    report_field_t item;
    bool good = true;

    for (int h = 0; report_list_next(&list, &item); h++) {
        loads->found.host_index[h] = host_number(loads, item.text);
        good &= loads->found.host_index[h] >= 0;
    }
    return good;
}

/* Read [row], and its object "ranks" to [object]. False: the row has another
 * form. */
static bool row_take(report_loads_t *loads, const report_row_t *row,
                     report_row_t *object)
{
    const report_field_t *field = report_row_find(row, "ranks");
    found_t *found = &loads->found;

    found->steps = report_row_number(row, "steps", 0);
    if (field == NULL || field->kind != REPORT_OTHER || found->steps < 1 ||
        found->steps > STEPS_MAX ||
        !report_row_parse(field->text.at, field->text.length, object) ||
        !places_take(object, found) || !names_count(object, found))
        return false;
    for (int i = 0; i < NUMBERS; i++)
        if (numbers_take(object, keys[i], SECONDS_MAX, found->at[i]) !=
            found->ranks)
            return false;
    return true;
}

/* ---- adding a row -------------------------------------------------------- */

/* What rank [r] of the row needed for itself. */
static double own(const found_t *found, int r)
{
    return found->at[DATA][r] + found->at[COMPUTE][r];
}

/* The median over the ranks of the row. If two numbers are in the middle, it is
 * the lower one, as in obs/straggler.h. */
static double own_median(found_t *found)
{
    for (int r = 0; r < found->ranks; r++)
        found->sorted[r] = own(found, r);
    qsort(found->sorted, (size_t)found->ranks, sizeof *found->sorted,
          numeric_compare);
    return found->sorted[(found->ranks - 1) / 2];
}

/* Make room for another cell. */
static err_code_t room_make(report_loads_t *loads, err_t *err)
{
    const int room = loads->room == 0 ? 64 : 2 * loads->room;
    cell_t *cells = NULL;
    err_code_t rc;

    if (loads->count < loads->room)
        return ERR_OK;
    rc = mem_new(cell_t, (size_t)room, "the loads of ranks", &cells, err);
    if (rc != ERR_OK)
        return rc;
    if (loads->count > 0)
        memcpy(cells, loads->cells, (size_t)loads->count * sizeof *cells);
    mem_free(loads->cells);
    loads->cells = cells;
    loads->room = room;
    return ERR_OK;
}

/* Find or make the cell of rank [rank] on host [host]. *out is NULL if there
 * are too many cells or hosts. */
static err_code_t cell_get(report_loads_t *loads, int rank, int host,
                           cell_t **out, err_t *err)
{
    err_code_t rc;

    *out = NULL;
    for (int i = loads->first[rank] - 1; i >= 0; i = loads->cells[i].next)
        if (loads->cells[i].host == host) {
            *out = &loads->cells[i];
            return ERR_OK;
        }
    if (loads->count == REPORT_LOADS_MAX || host == NO_HOST) {
        loads->left_out++;
        return ERR_OK;
    }
    rc = room_make(loads, err);
    if (rc != ERR_OK)
        return rc;
    *out = &loads->cells[loads->count++];
    **out =
        (cell_t){.rank = rank, .host = host, .next = loads->first[rank] - 1};
    loads->first[rank] = loads->count;
    return ERR_OK;
}

static void cell_add(cell_t *cell, const found_t *found, int r, double median)
{
    const double mine = own(found, r);

    cell->steps += found->steps;
    cell->own += found->steps * mine;
    cell->median += found->steps * median;
    if (median > 0 && mine / median > cell->most)
        cell->most = mine / median;
    for (int i = 0; i < NUMBERS; i++)
        cell->sums[i] += found->steps * found->at[i][r];
}

err_code_t report_loads_add(report_loads_t *loads, const report_row_t *row,
                            err_t *err)
{
    found_t *found = &loads->found;
    report_row_t object;
    err_code_t rc = ERR_OK;
    double median;

    if (!row_take(loads, row, &object)) {
        loads->bad++;
        return ERR_OK;
    }
    if (!names_take(loads, &object))
        return err_set(err, ERR_MEMORY, "out of memory for the loads of ranks");
    median = own_median(found);
    for (int r = 0; rc == ERR_OK && r < found->ranks; r++) {
        cell_t *cell = NULL;

        rc = cell_get(loads, r, found->host_index[found->host[r]], &cell, err);
        if (cell != NULL)
            cell_add(cell, found, r, median);
    }
    return rc;
}

/* ---- the page ------------------------------------------------------------ */

/* [value] with four significant digits, so that the page stays small. */
static json_t *number_json(double value)
{
    char text[32];

    numeric_print(text, sizeof text, "%.4g", value);
    return json_real(numeric_parse(text, NULL));
}

static json_t *cell_json(const cell_t *cell)
{
    json_t *list =
        json_pack("[i, i, I]", cell->host, cell->rank, (json_int_t)cell->steps);
    int bad = json_array_append_new(
        list, number_json(cell->median > 0 ? cell->own / cell->median : 1));

    bad |= json_array_append_new(
        list, number_json(cell->median > 0 ? cell->most : 1));
    for (int i = 0; i < NUMBERS; i++)
        bad |= json_array_append_new(list,
                                     number_json(cell->sums[i] / cell->steps));
    if (bad == 0)
        return list;
    json_decref(list);
    return NULL;
}

json_t *report_loads_json(const report_loads_t *loads)
{
    json_t *ranks, *out;
    int bad = 0;

    if (loads == NULL || loads->count == 0)
        return json_null();
    ranks = json_array();
    for (int i = 0; i < loads->count; i++)
        bad |= json_array_append_new(ranks, cell_json(&loads->cells[i]));
    out = json_pack("{s:O, s:o}", "hosts", loads->hosts, "ranks", ranks);
    if (bad == 0)
        return out;
    json_decref(out);
    return NULL;
}
