#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# cddp-bench allreduce with ranks as threads, with both backends, and with one
# rank; cddp-bench io: form of its rows and exit statuses, no speed.
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

trap 'rm -rf bench.$$ bench.$$.*' EXIT
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

# check_io WHAT "LAYOUT..." THREADS ARGUMENTS: rows of these layouts, with the warm
# page cache and, unless it says that it cannot, the cold one; no file is left.
io_header=what,layout,cache,threads,bytes,rounds,MBps,limit_MBps,ratio,ratio_low
io_header+=,ratio_high,limit
check_io() {
    local what=$1 layouts=$2 threads=$3 layout
    shift 3
    ./cddp-bench io "$what" --csv --rounds 2 --threads "$threads" "$@" \
        >bench.$$ 2>bench.$$.said
    [ "$(head -1 bench.$$)" = "$io_header" ]
    tail -n +2 bench.$$ | awk -F, -v what="$what" -v threads="$threads" '
        NF != 12 || $1 != what || $3 !~ /^(warm|cold)$/ || $4 != threads ||
            !($5 >= 1000000) || $6 != 2 || !($7 > 0) || !($8 > 0) ||
            !($10 > 0) || $9 < $10 || $11 < $9 || $12 == "" {
            print "bad row: " $0; bad = 1}
        END {exit bad}'
    [ "$(awk -F, '$3 == "warm" {printf "%s ", $2}' bench.$$)" = "$layouts " ]
    for layout in $layouts; do
        [ "$what" = write ] || grep -q "^$what,$layout,cold," bench.$$ ||
            grep -q "$layout.*page cache" bench.$$.said
    done
}
mkdir bench.$$.io
check_io read "contiguous ordered float16 chunked gzip" 2 --bytes 3M bench.$$.io
check_io read gzip 1 --layout gzip --bytes 1M bench.$$.io
check_io read chunked 3 --layout=chunked --bytes 5M bench.$$.io
check_io write checkpoint 2 --bytes 3M bench.$$.io
[ "$(wc -l <bench.$$)" -eq 2 ]
check_io load checkpoint 1 --bytes 20M bench.$$.io
TMPDIR=$PWD/bench.$$.io check_io load checkpoint 3 --bytes 1M
[ -z "$(ls -A bench.$$.io)" ]
./cddp-bench io read --layout contiguous --bytes 1M --rounds 1 bench.$$.io \
    2>/dev/null | tail -n +2 | grep -q '^read  *contiguous  *warm .* pread$'
./cddp-bench io read --layout float16 --bytes 1M --rounds 1 bench.$$.io \
    2>/dev/null | tail -n +2 | grep -q '^read  *float16  *warm .* float32$'
# Memory is not dropped from the page cache.
if [ "$(stat -fc %T /dev/shm)" = tmpfs ] && [ -w /dev/shm ]; then
    check_io read contiguous 1 --layout contiguous --bytes 1M /dev/shm
    grep -q 'contiguous.h5 stay in the page cache' bench.$$.said
    [ "$(wc -l <bench.$$)" -eq 2 ]
fi

# refuse_io STATUS TEXT ARGUMENTS
refuse_io() {
    local expected=$1 text=$2 status=0
    shift 2
    ./cddp-bench io "$@" >/dev/null 2>bench.$$ || status=$?
    [ "$status" -eq "$expected" ] && grep -q -e "$text" bench.$$
}
refuse_io 64 'read, write or load'
refuse_io 64 'did you mean write' wrte
refuse_io 64 --bytes read --bytes 1000K
refuse_io 64 --bytes read --bytes 65G
refuse_io 64 --layout read --layout zip
refuse_io 64 --layout write --layout gzip
refuse_io 64 --threads load --threads 0
refuse_io 64 'one directory' read a b
refuse_io 74 bench.$$.none read bench.$$.none
