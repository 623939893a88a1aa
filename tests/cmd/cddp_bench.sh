#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# cddp-bench allreduce: ranks as threads, with both backends, and one rank.
set -eu
header=bytes,ranks,algorithm,min_us,median_us,p99_us,algbw_GBps,busbw_GBps,bound_us
export UCX_TLS=self,sysv,posix,cma,tcp UCX_NET_DEVICES=lo

check() {
    local ranks=$1 rows=$2
    shift 2
    ./cddp-bench allreduce --csv "$@" >bench.$$
    [ "$(head -1 bench.$$)" = "$header" ]
    tail -n +2 bench.$$ | awk -F, -v ranks="$ranks" -v rows="$rows" '
        NF != 9 || $2 != ranks || $3 == "" || !($4 > 0) || $5 < $4 ||
            $6 < $5 || !($9 > 0) {print "bad row: " $0; bad = 1}
        END {exit bad || NR != rows}'
}

trap 'rm -f bench.$$' EXIT
check 1 3 --sizes 4:64
check 3 4 --sizes 4:256 --local 3 --rounds 5
check 2 2 --sizes 64K:256K --local 2 --backend ucx
check 2 2 --sizes 4K:16K --local 2 --backend ucx --plain
if ./cddp-bench allreduce --sizes 3 2>bench.$$; then exit 1; fi
grep -q -- --sizes bench.$$
