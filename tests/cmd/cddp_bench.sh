#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# cddp-bench allreduce with ranks as threads, with both backends, and with one
# rank.
set -eu
header=bytes,ranks,algorithm,min_us,median_us,p99_us,algbw_GBps,busbw_GBps,bound_us
header+=,bound_by,lanes,slices,segment_bytes
export UCX_TLS=self,sysv,posix,cma,tcp UCX_NET_DEVICES=lo

check() {
    local ranks=$1 rows=$2
    shift 2
    ./cddp-bench allreduce --csv "$@" >bench.$$
    [ "$(head -1 bench.$$)" = "$header" ]
    tail -n +2 bench.$$ | awk -F, -v ranks="$ranks" -v rows="$rows" '
        NF != 13 || $2 != ranks || $3 == "" || !($4 > 0) || $5 < $4 ||
            $6 < $5 || !($9 > 0) || $10 != "memory" ||
            $11 < 0 || $12 < 0 || $13 < 0 {print "bad row: " $0; bad = 1}
        END {exit bad || NR != rows}'
}

trap 'rm -f bench.$$ bench.$$.table' EXIT
check 1 3 --sizes 4:64
check 3 4 --sizes 4:256 --local 3 --rounds 5
check 2 2 --sizes 64K:256K --local 2 --backend ucx
check 2 2 --sizes 4K:16K --local 2 --backend ucx --plain
# A table is measured, read again, and changes the algorithm.
./cddp-bench allreduce --local 2 --backend ucx --rounds 3 --sizes 64:16K \
    --tune bench.$$.table >bench.$$
head -1 bench.$$ | grep -qx 'collective,where,bytes,algorithm,median_us'
awk -F, 'NR > 1 && (NF != 5 || !($5 > 0)) {print; exit 1}' bench.$$
grep -q '^allreduce,local,64,shot,' bench.$$
grep -q '^reduce-scatter,local,4096,ring,' bench.$$
# The algorithm for arenas is measured, too.
for row in allreduce,arena,16384 reduce-scatter,arena,64 gather-ranges,arena,64; do
    grep -q "^$row,node," bench.$$
    grep -q "^$row,flat," bench.$$
done
head -1 bench.$$.table | grep -qx 'cddp comm table 1'
grep -Eq '^allreduce +arena +wide +any +any +(node|flat)$' bench.$$.table
if grep -E '^gather-ranges +arena +(wide|half) ' bench.$$.table; then exit 1; fi
sed -i 's/^\(allreduce  *local .*\) [a-z]*$/\1 direct/' bench.$$.table
check 2 1 --sizes 4K --local 2 --backend ucx --plain --table bench.$$.table
tail -1 bench.$$ | grep -q ',direct,'
if ./cddp-bench allreduce --tune x 2>bench.$$; then exit 1; fi
grep -q 'start several' bench.$$
if ./cddp-bench allreduce --local 2 --tune x --backend threads 2>bench.$$; then
    exit 1
fi
grep -q 'only ucx' bench.$$
if ./cddp-bench allreduce --sizes 3 2>bench.$$; then exit 1; fi
grep -q -- --sizes bench.$$
