/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "obs/spent.h"

#include <math.h>
#include <stdio.h>

static const char *const keys[] = {
#define KEY(name, key, text) [OBS_SPENT_##name] = (key),
    OBS_SPENT_MAP(KEY)
#undef KEY
};

static const char *const texts[] = {
#define TEXT(name, key, text) [OBS_SPENT_##name] = (text),
    OBS_SPENT_MAP(TEXT)
#undef TEXT
};

const char *obs_spent_key(obs_spent_kind_t kind)
{
    return keys[kind];
}

/* The time since the last mark, which moves to [now]. */
static double interval(obs_spent_t *spent, double now)
{
    const double seconds = fmax(0.0, now - spent->mark);

    spent->mark = now;
    return seconds;
}

void obs_spent_mark(obs_spent_t *spent, obs_spent_kind_t kind, double now)
{
    spent->seconds[kind] += interval(spent, now);
}

void obs_spent_step(obs_spent_t *spent, const obs_spent_step_t *step,
                    double now)
{
    const double took = interval(spent, now);
    const double parts =
        step->data + step->forward + step->backward + step->comm;
    const double scale = parts > took ? took / parts : 1.0;

    spent->seconds[OBS_SPENT_DATA] += scale * step->data;
    spent->seconds[OBS_SPENT_FORWARD] += scale * step->forward;
    spent->seconds[OBS_SPENT_BACKWARD] += scale * step->backward;
    spent->seconds[OBS_SPENT_COMM] += scale * step->comm;
    spent->seconds[OBS_SPENT_UPDATE] += took - scale * parts;
}

void obs_spent_continue(obs_spent_t *spent, const obs_spent_t *before,
                        double started, int complete)
{
    for (int kind = 0; kind < OBS_SPENT_KINDS; kind++)
        spent->seconds[kind] += before->seconds[kind];
    if (!complete)
        spent->seconds[OBS_SPENT_LOST] += fmax(0.0, started - before->wall);
}

double obs_spent_total(const obs_spent_t *spent)
{
    double total = 0;

    for (int kind = 0; kind < OBS_SPENT_KINDS; kind++)
        total += spent->seconds[kind];
    return total;
}

char *obs_spent_format(const obs_spent_t *spent, char *out, size_t room)
{
    const double total = obs_spent_total(spent);
    size_t at = 0;

    out[0] = '\0';
    for (int kind = 0; kind <= OBS_SPENT_KINDS; kind++) {
        const int last = kind == OBS_SPENT_KINDS;
        const double seconds = last ? total : spent->seconds[kind];

        if (at >= room || (!last && !(seconds > 0)))
            continue;
        at +=
            (size_t)snprintf(out + at, room - at, "  %-22s %10.1f s %5.1f %%\n",
                             last ? "wall time" : texts[kind], seconds,
                             total > 0 ? 100 * seconds / total : 0.0);
    }
    return out;
}

char *obs_duration_format(double seconds, char *out, size_t room)
{
    const long long whole = isfinite(seconds) ? llround(seconds) : -1;

    if (whole < 0)
        snprintf(out, room, "?");
    else if (whole < 100)
        snprintf(out, room, "%lld s", whole);
    else if (whole < 100LL * 60)
        snprintf(out, room, "%lld min", (whole + 30) / 60);
    else if (whole < 48LL * 3600)
        snprintf(out, room, "%lld h %02lld min", whole / 3600, whole / 60 % 60);
    else
        snprintf(out, room, "%lld d %02lld h", whole / 86400,
                 whole / 3600 % 24);
    return out;
}
