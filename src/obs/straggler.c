/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "obs/straggler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/numeric.h"

#define WINDOWS OBS_STRAGGLER_WINDOWS

/* A slow link must explain at least this part of a step. */
#define LINK_PART (OBS_STRAGGLER_FACTOR - 1)

/* A slow rank needs more time than the median; this difference must be at least
 * this part of a step. Otherwise the rank is not the reason why steps are long.
 */
#define OWN_PART 0.1

/* A cause must explain at least this part of what a rank computes longer. */
#define CAUSE_PART 0.5

/* A core below this part of the median frequency is slow because of it. */
#define HERTZ_PART 0.9

struct obs_straggler {
    int ranks, hosts;
    int windows;       /* windows seen so far */
    int *host;         /* [ranks] */
    int *host_ranks;   /* [hosts]: number of their ranks */
    obs_load_t *loads; /* [WINDOWS][ranks], a ring */
    double *links;     /* [WINDOWS][hosts], a ring; 0: not measured */
    double bytes;      /* of a message */
    /* What was found in the newest window, and in the one before. */
    bool *slow, *slow_before;           /* [ranks] */
    bool *host_slow, *host_slow_before; /* [hosts] */
    bool *link_slow, *link_slow_before; /* [hosts] */
    double *sorted;                     /* scratch: [ranks] */
};

const char *obs_slow_text(obs_slow_cause_t cause)
{
    static const char *const texts[] = {
#define SLOW_TEXT(name, text) text,
        OBS_SLOW_MAP(SLOW_TEXT)
#undef SLOW_TEXT
    };

    return texts[cause];
}

/* ---- opening and closing ------------------------------------------------- */

static err_code_t flags_new(size_t count, bool **out, err_t *err)
{
    return mem_new(bool, count, "the search for slow ranks", out, err);
}

/* Memory for [ranks] ranks on [hosts] hosts. */
static err_code_t straggler_alloc(obs_straggler_t *s, err_t *err)
{
    static const char what[] = "the search for slow ranks";
    const size_t ranks = (size_t)s->ranks, hosts = (size_t)s->hosts;
    err_code_t rc = mem_new(int, ranks, what, &s->host, err);

    if (rc == ERR_OK)
        rc = mem_new(int, hosts, what, &s->host_ranks, err);
    if (rc == ERR_OK)
        rc = mem_new(obs_load_t, WINDOWS * ranks, what, &s->loads, err);
    if (rc == ERR_OK)
        rc = mem_new(double, WINDOWS *hosts, what, &s->links, err);
    if (rc == ERR_OK)
        rc = mem_new(double, ranks, what, &s->sorted, err);
    if (rc == ERR_OK)
        rc = flags_new(ranks, &s->slow, err);
    if (rc == ERR_OK)
        rc = flags_new(ranks, &s->slow_before, err);
    if (rc == ERR_OK)
        rc = flags_new(hosts, &s->host_slow, err);
    if (rc == ERR_OK)
        rc = flags_new(hosts, &s->host_slow_before, err);
    if (rc == ERR_OK)
        rc = flags_new(hosts, &s->link_slow, err);
    return rc == ERR_OK ? flags_new(hosts, &s->link_slow_before, err) : rc;
}

err_code_t obs_straggler_open(const int *hosts, int ranks,
                              obs_straggler_t **out, err_t *err)
{
    obs_straggler_t *s = NULL;
    err_code_t rc =
        mem_new(obs_straggler_t, 1, "the search for slow ranks", &s, err);

    if (rc != ERR_OK)
        return rc;
    s->ranks = ranks;
    for (int r = 0; r < ranks; r++)
        if (hosts[r] >= s->hosts)
            s->hosts = hosts[r] + 1;
    rc = straggler_alloc(s, err);
    if (rc != ERR_OK) {
        obs_straggler_close(s);
        return rc;
    }
    for (int r = 0; r < ranks; r++) {
        s->host[r] = hosts[r];
        s->host_ranks[hosts[r]]++;
    }
    *out = s;
    return ERR_OK;
}

void obs_straggler_close(obs_straggler_t *s)
{
    if (s == NULL)
        return;
    mem_free(s->link_slow_before);
    mem_free(s->link_slow);
    mem_free(s->host_slow_before);
    mem_free(s->host_slow);
    mem_free(s->slow_before);
    mem_free(s->slow);
    mem_free(s->sorted);
    mem_free(s->links);
    mem_free(s->loads);
    mem_free(s->host_ranks);
    mem_free(s->host);
    mem_free(s);
}

/* ---- numbers ------------------------------------------------------------- */

/* The median of [count] numbers, which it sorts. */
static double median(double *numbers, int count)
{
    qsort(numbers, (size_t)count, sizeof *numbers, numeric_compare);
    return numbers[(count - 1) / 2];
}

/* The time that a rank needs for itself. */
static double own(const obs_load_t *load)
{
    return load->at[OBS_LOAD_DATA] + load->at[OBS_LOAD_COMPUTE];
}

static double own_median(const obs_load_t *loads, int ranks, double *sorted)
{
    for (int r = 0; r < ranks; r++)
        sorted[r] = own(&loads[r]);
    return median(sorted, ranks);
}

static double load_median(const obs_load_t *loads, int ranks,
                          obs_load_number_t number, double *sorted)
{
    for (int r = 0; r < ranks; r++)
        sorted[r] = loads[r].at[number];
    return median(sorted, ranks);
}

bool obs_straggler_links_matter(const obs_load_t *loads, int ranks,
                                double *sorted)
{
    const double step = load_median(loads, ranks, OBS_LOAD_STEP, sorted);

    return load_median(loads, ranks, OBS_LOAD_COMM, sorted) > LINK_PART * step;
}

/* The loads of window [w] of the ring. */
static const obs_load_t *window_loads(const obs_straggler_t *s, int w)
{
    return s->loads + (size_t)w * (size_t)s->ranks;
}

/* ---- ranks --------------------------------------------------------------- */

/* Set s->slow: who is above the median in all windows. */
static void slow_find(obs_straggler_t *s)
{
    for (int r = 0; r < s->ranks; r++)
        s->slow[r] = s->windows >= WINDOWS;
    for (int w = 0; w < WINDOWS; w++) {
        const obs_load_t *loads = window_loads(s, w);
        const double step =
            load_median(loads, s->ranks, OBS_LOAD_STEP, s->sorted);
        const double middle = own_median(loads, s->ranks, s->sorted);

        for (int r = 0; r < s->ranks; r++)
            s->slow[r] = s->slow[r] &&
                         own(&loads[r]) > OBS_STRAGGLER_FACTOR * middle &&
                         own(&loads[r]) - middle > OWN_PART * step;
    }
}

/* The mean over windows of what the ranks of [slow] have above the median over
 * all ranks. */
static double excess(obs_straggler_t *s, const obs_slow_t *slow,
                     obs_load_number_t number)
{
    double sum = 0;
    int count = 0;

    for (int w = 0; w < WINDOWS; w++) {
        const obs_load_t *loads = window_loads(s, w);
        const double middle = load_median(loads, s->ranks, number, s->sorted);

        for (int r = 0; r < s->ranks; r++) {
            if (slow->rank >= 0 ? r != slow->rank : s->host[r] != slow->host)
                continue;
            sum += loads[r].at[number] - middle;
            count++;
        }
    }
    return sum / count;
}

static obs_slow_cause_t cause_of(obs_straggler_t *s, const obs_slow_t *slow)
{
    const double compute = excess(s, slow, OBS_LOAD_COMPUTE);
    const obs_load_t *newest = window_loads(s, (s->windows - 1) % WINDOWS);
    const double hertz =
        load_median(newest, s->ranks, OBS_LOAD_HERTZ, s->sorted);

    if (excess(s, slow, OBS_LOAD_DATA) > compute)
        return OBS_SLOW_DATA;
    /* Throttled threads count as ready, too, so this is asked first. */
    if (excess(s, slow, OBS_LOAD_THROTTLED) > CAUSE_PART * compute)
        return OBS_SLOW_THROTTLED;
    if (excess(s, slow, OBS_LOAD_DELAY) > CAUSE_PART * compute)
        return OBS_SLOW_SHARED_CORE;
    if (excess(s, slow, OBS_LOAD_HERTZ) < (HERTZ_PART - 1) * hertz)
        return OBS_SLOW_FREQUENCY;
    return OBS_SLOW_COMPUTE;
}

/* Fill in the numbers of a slow rank or host. */
static void slow_fill(obs_straggler_t *s, obs_slow_t *slow)
{
    slow->cause = cause_of(s, slow);
    slow->median = 0;
    for (int w = 0; w < WINDOWS; w++)
        slow->median +=
            own_median(window_loads(s, w), s->ranks, s->sorted) / WINDOWS;
    slow->seconds = slow->median;
    for (int w = 0; w < WINDOWS; w++) {
        const obs_load_t *loads = window_loads(s, w);
        const double middle = own_median(loads, s->ranks, s->sorted);

        for (int r = 0; r < s->ranks; r++)
            if (slow->rank >= 0)
                slow->seconds +=
                    r == slow->rank ? (own(&loads[r]) - middle) / WINDOWS : 0;
            else if (s->host[r] == slow->host)
                slow->seconds += (own(&loads[r]) - middle) /
                                 (WINDOWS * s->host_ranks[slow->host]);
    }
}

/* Set s->host_slow: hosts of several ranks, all of them slow. */
static void hosts_find(obs_straggler_t *s)
{
    for (int h = 0; h < s->hosts; h++)
        s->host_slow[h] = s->hosts > 1 && s->host_ranks[h] > 1;
    for (int r = 0; r < s->ranks; r++)
        s->host_slow[s->host[r]] = s->host_slow[s->host[r]] && s->slow[r];
}

/* ---- links --------------------------------------------------------------- */

/* Does the link of host [h] explain why steps were long in window [w]? */
static bool link_is_slow(obs_straggler_t *s, int w, int h)
{
    const obs_load_t *loads = window_loads(s, w);
    const double *links = s->links + (size_t)w * (size_t)s->hosts;
    double step, bytes, middle;

    memcpy(s->sorted, links, (size_t)s->hosts * sizeof *links);
    middle = median(s->sorted, s->hosts);
    step = load_median(loads, s->ranks, OBS_LOAD_STEP, s->sorted);
    bytes = load_median(loads, s->ranks, OBS_LOAD_BYTES, s->sorted);
    return middle > 0 && links[h] > OBS_STRAGGLER_FACTOR * middle &&
           (links[h] - middle) / s->bytes * bytes > LINK_PART * step;
}

/* A message of a rank that is slow itself takes long, whatever the link is. */
static bool host_has_slow(const obs_straggler_t *s, int h)
{
    for (int r = 0; r < s->ranks; r++)
        if (s->host[r] == h && s->slow[r])
            return true;
    return false;
}

static void links_find(obs_straggler_t *s)
{
    for (int h = 0; h < s->hosts; h++) {
        s->link_slow[h] = s->windows >= WINDOWS && !host_has_slow(s, h);
        for (int w = 0; s->link_slow[h] && w < WINDOWS; w++)
            s->link_slow[h] = link_is_slow(s, w, h);
    }
}

static void link_fill(obs_straggler_t *s, obs_slow_t *slow)
{
    slow->cause = OBS_SLOW_COMM;
    slow->seconds = slow->median = 0;
    for (int w = 0; w < WINDOWS; w++) {
        const double *links = s->links + (size_t)w * (size_t)s->hosts;

        slow->seconds += links[slow->host] / WINDOWS;
        memcpy(s->sorted, links, (size_t)s->hosts * sizeof *links);
        slow->median += median(s->sorted, s->hosts) / WINDOWS;
    }
}

/* ---- a window ------------------------------------------------------------ */

/* Add a window to the ring. What was found becomes what was found before. */
static void window_add(obs_straggler_t *s, const obs_window_t *window)
{
    const size_t at = (size_t)(s->windows % WINDOWS);
    const size_t ranks = (size_t)s->ranks, hosts = (size_t)s->hosts;

    memcpy(s->loads + at * ranks, window->loads, ranks * sizeof *s->loads);
    memset(s->links + at * hosts, 0, hosts * sizeof *s->links);
    if (window->links != NULL)
        memcpy(s->links + at * hosts, window->links, hosts * sizeof *s->links);
    s->bytes = window->bytes;
    s->windows++;
    memcpy(s->slow_before, s->slow, ranks * sizeof *s->slow);
    memcpy(s->host_slow_before, s->host_slow, hosts * sizeof *s->host_slow);
    memcpy(s->link_slow_before, s->link_slow, hosts * sizeof *s->link_slow);
}

int obs_straggler_window(obs_straggler_t *s, const obs_window_t *window,
                         obs_slow_t *found, int room)
{
    int count = 0;

    window_add(s, window);
    slow_find(s);
    hosts_find(s);
    links_find(s);
    for (int h = 0; h < s->hosts && count < room; h++) {
        found[count] = (obs_slow_t){.rank = -1, .host = h};
        if (s->host_slow[h] && !s->host_slow_before[h])
            slow_fill(s, &found[count++]);
    }
    for (int r = 0; r < s->ranks && count < room; r++) {
        found[count] = (obs_slow_t){.rank = r, .host = s->host[r]};
        if (s->slow[r] && !s->slow_before[r] && !s->host_slow[s->host[r]])
            slow_fill(s, &found[count++]);
    }
    for (int h = 0; h < s->hosts && count < room; h++) {
        found[count] = (obs_slow_t){.rank = -1, .host = h};
        if (s->link_slow[h] && !s->link_slow_before[h])
            link_fill(s, &found[count++]);
    }
    return count;
}

char *obs_slow_format(const obs_slow_t *slow, const char *host, char *out,
                      size_t room)
{
    const double times = slow->median > 0 ? slow->seconds / slow->median : 0;
    /* From 0.9995 s on, %.3g would print milliseconds with an exponent. */
    const bool is_long = slow->seconds >= 0.9995;
    char who[320];

    if (slow->cause == OBS_SLOW_COMM)
        snprintf(who, sizeof who, "messages from %.250s are slow", host);
    else if (slow->rank < 0)
        snprintf(who, sizeof who, "all ranks on %.250s are slow", host);
    else
        snprintf(who, sizeof who, "rank %d on %.250s is slow", slow->rank,
                 host);
    snprintf(out, room, "%s: %s; %.3g %s%s, %.1f times the median", who,
             obs_slow_text(slow->cause),
             is_long ? slow->seconds : 1000 * slow->seconds,
             is_long ? "s" : "ms",
             slow->cause == OBS_SLOW_COMM ? "" : " a step", times);
    return out;
}
