# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# shellcheck shell=bash
#
# Shared by the benchmarks on a slow link: $work, a scratch directory that is
# removed when the script ends, and
#   link_limit RATE        limit the links of devcluster's two nodes by a token
#                          bucket, until the script ends
#   metric_mean KEY AFTER  mean of KEY in $work/run/metrics.jsonl over the steps
#                          behind step AFTER
work=$(mktemp -d)
chmod 755 "$work"
limited=()

link_leave()
{
    local link

    for link in "${limited[@]}"; do
        tc qdisc del dev "$link" root
    done
    rm -rf "$work"
}
trap link_leave EXIT

link_limit()
{
    local link

    for link in v1 v2; do
        tc qdisc add dev $link root tbf rate "$1" burst 256k latency 100ms
        limited+=("$link")
    done
}

metric_mean()
{
    sed -nE "s/^\{\"step\": ([0-9]+),.*\"$1\": ([^,}]+)[,}].*/\1 \2/p" \
        "$work/run/metrics.jsonl" |
        awk -v after="$2" '$1 > after {s += $2; n++}
                           END {printf "%.6f", s / n}'
}
