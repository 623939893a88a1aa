# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# shellcheck shell=bash disable=SC2034 # set for the cases
#
# Library of the tests that run on a real Slurm (tests/slurm/*.t). A test file:
#
#     #!/bin/bash
#     # shellcheck source=SCRIPTDIR/lib.sh disable=SC2317
#     . "$(dirname "$0")/lib.sh"
#
#     ranks_say_hello()
#     {
#         run 0 srun -N2 -n2 hostname
#         expect_text out 'n1'
#     }
#
#     test_case "ranks say hello" ranks_say_hello
#     test_done
#
# `make check-slurm` runs all of them: it starts a cluster by slurm/devcluster,
# runs every file there and takes the cluster down (run-slurm-tests). One file:
# `make check-slurm SLURM_TESTS=boot.t`; with CDDP_CASES=REGEX only the cases
# whose names match run, and the others are skipped. On a cluster that stays up:
#     export CDDP_DEVCLUSTER_DIR=/tmp/mine; slurm/devcluster up
#     BUILD=... slurm/devcluster exec tests/slurm/boot.t
#
# A case is a function. It runs in a shell of its own with `set -e`, in an empty
# directory ($WORK, also the current one) under $TMPDIR, which is removed when
# the case passes and shown when it fails. Jobs that it leaves are cancelled (by
# their name, so pass no --job-name). The file prints TAP.
#
# Where things are: $BUILD (top build directory: $BUILD/cddp-train), $SOURCE
# (top source directory). Both are the same path on all nodes.
#
# The cluster: nodes n1, n2 (8 CPUs each, more than there are), one partition,
# KillWait 10 s, RequeueExit 75, a requeued job starts after about 15 s. `srun
# -N2 -n4` may give 3 + 1 tasks; for 2 + 2 add --ntasks-per-node=2. Process ids
# are those of the machine: a task's $$ can be killed from here.
#
# Words for a case:
#   run STATUS CMD...        run CMD, output in ./out and ./err, expect STATUS
#                            ("any", or "nonzero"); found one is in $status; at
#                            most $RUN_LIMIT seconds (default 120)
#   start CMD...             run CMD in the background, output in ./bg.out
#                            and ./bg.err, its id in $pid. Both files exist when
#                            start returns
#   finish STATUS            wait for it, at most $RUN_LIMIT seconds
#   expect_text FILE REGEX   FILE has a line that matches (grep -E)
#   expect_no_text FILE REGEX
#   expect_lines FILE REGEX COUNT
#   expect_equal WHAT FOUND EXPECTED
#   expect_file FILE...      FILEs exist
#   fail TEXT                the case fails
#   skip TEXT                the case is skipped; say what is missing
#   need CMD... -- TEXT      skip with TEXT unless CMD succeeds
#   $faketime                the library of libfaketime, which may be missing
#   need_mpi                 skip unless cddp is built with parallel HDF5; the
#                            environment that MPI needs is set
#   submit ARG...            sbatch ARG..., job id in $job
#   job_field ID FIELD       print a field of `scontrol show job`
#   wait_job ID STATES SEC   until its state is one of "RUNNING|COMPLETED"
#   requeue_job ID           scontrol requeue, until the job has been requeued
#                            once: a busy controller may refuse, or may do it
#                            without an answer
#   wait_until SEC CMD...    until CMD succeeds; polls every 0.1 s, as neither
#                            Slurm nor a shared file offers an event
#   wait_text SEC FILE REGEX until FILE has a line that matches. If FILE is
#                            bg.out or bg.err: fails when the command of start
#                            has ended without such a line
#   in_order FIRST SECOND    numbers: FIRST <= SECOND
#   in_time SEC BEGIN        at most SEC seconds have passed since $SECONDS was
#                            BEGIN. SEC must include a multiple of the time of a
#                            start, as other tests may run on the same cores
#   busy                     print how many programs share a core, at least 1.
#                            The limits of run, start, wait_until and wait_text
#                            are multiplied by this number, as they are only
#                            meant to end what hangs
#   task_pid JOB RANK NAME   print the process id of that rank of this cluster's
#                            JOB, whose program is NAME. Kill only what this
#                            says: the machine may run other people's cddp-train
set -u

SOURCE=${SOURCE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
BUILD=${BUILD:-$SOURCE}
RUN_LIMIT=${RUN_LIMIT:-120}
faketime=/usr/lib/$(uname -m)-linux-gnu/faketime/libfaketime.so.1
WORK=
pid=
job=
status=0
# The name of all jobs of this file, for srun and sbatch.
export SLURM_JOB_NAME=cddp-test-$$ SBATCH_JOB_NAME=cddp-test-$$
test_number=0
test_failed=0

note()
{
    printf '%s\n' "$*" | sed 's/^/# /'
}

# Print why the case fails, now and again right before "not ok", since often only
# the end of a long log is shown.
complain()
{
    note "$*" | tee -a ${WORK:+"$WORK.why"}
}

fail()
{
    complain "${BASH_SOURCE[-1]##*/}: $*"
    exit 1
}

skip()
{
    printf '%s\n' "$*" >"$WORK.skip"
    exit 77
}

# The command may contain --, too: the last one ends it.
need()
{
    local i=$#

    while [ "$i" -gt 1 ] && [ "${!i}" != -- ]; do
        i=$((i - 1))
    done
    [ "$i" -gt 1 ] || fail "need without -- TEXT: $*"
    "${@:1:i-1}" >/dev/null 2>&1 </dev/null || skip "${*:i+1}"
}

need_mpi()
{
    need grep -q 'define HAVE_PARALLEL_HDF5' "$BUILD/config.h" -- \
        "parallel HDF5 (libhdf5-openmpi-dev)"
    # As the module and the batch template do, which say why.
    export SLURM_PMIX_FENCE=ring
}

# Does the exit status $1 fit what was expected, $2?
status_fits()
{
    case $2 in
    any) return 0 ;;
    nonzero) [ "$1" -ne 0 ] ;;
    *) [ "$1" -eq "$2" ] ;;
    esac
}

busy()
{
    awk -v cores="$(nproc)" '{n = int($1 / cores + 0.999)}
        END {print (n > 1 ? n : 1)}' /proc/loadavg
}

in_time()
{
    [ $((SECONDS - $2)) -le "$1" ]
}

run_limit()
{
    echo $((RUN_LIMIT * $(busy)))
}

run()
{
    local expected=$1

    shift
    status=0
    timeout --foreground -k 10 "$(run_limit)" "$@" >out 2>err </dev/null ||
        status=$?
    status_fits "$status" "$expected" ||
        fail "exit status $status, expected $expected: $*"
}

start()
{
    # A case may read these files before the command has opened them.
    : >bg.out 2>bg.err
    timeout --foreground -k 10 "$(run_limit)" "$@" >bg.out 2>bg.err \
        </dev/null &
    pid=$!
}

finish()
{
    status=0
    wait "$pid" || status=$?
    status_fits "$status" "$1" || fail "exit status $status, expected $1"
}

expect_text()
{
    grep -qE -- "$2" "$1" || fail "$1 has no line like: $2"
}

expect_no_text()
{
    ! grep -E -- "$2" "$1" || fail "$1 has a line like: $2"
}

expect_lines()
{
    local count

    count=$(grep -cE -- "$2" "$1") || true
    [ "$count" -eq "$3" ] || fail "$1 has $count lines like: $2, expected $3"
}

expect_equal()
{
    [ "$2" = "$3" ] || fail "$1 is '$2', expected '$3'"
}

expect_file()
{
    local file

    for file in "$@"; do
        [ -e "$file" ] || fail "$file is not there"
    done
}

in_order()
{
    awk -v a="$1" -v b="$2" 'BEGIN {exit !(a <= b)}'
}

wait_until()
{
    local begin=$SECONDS limit=$1

    shift
    until "$@"; do
        in_time $((limit * $(busy))) "$begin" ||
            fail "waited $((SECONDS - begin)) s in vain for: $*"
        sleep 0.1
    done
}

# Has the command of start ended? Then it writes nothing more.
start_is_over()
{
    [ -n "$pid" ] && ! kill -0 "$pid" 2>/dev/null
}

# text_or_end FILE REGEX: does FILE have a line that matches? Fails the case if no
# such line can come any more.
text_or_end()
{
    local over=no

    # Ask this before the search: the search then finds all that the command wrote.
    if [[ $1 = bg.* ]] && start_is_over; then
        over=yes
    fi
    ! grep -qsE -- "$2" "$1" || return 0
    [ "$over" = yes ] || return 1
    status=0
    wait "$pid" || status=$?
    fail "the command of start has ended with status $status, and $1 has no line like: $2"
}

wait_text()
{
    wait_until "$1" text_or_end "$2" "$3"
}

submit()
{
    job=$(sbatch --parsable "$@") || fail "sbatch refused: $*"
}

# A busy controller may not answer, so it is asked again.
job_field()
{
    local said end=$((SECONDS + 60))

    until said=$(scontrol show job "$1" 2>&1) ||
        [[ $said = *"Invalid job id"* ]] || [ "$SECONDS" -ge "$end" ]; do
        sleep 0.5
    done
    grep -oE "(^| )$2=[^ ]*" <<<"$said" | head -n 1 | cut -d= -f2-
}

job_state_is()
{
    job_field "$1" JobState | grep -qxE "$2"
}

wait_job()
{
    wait_until "$3" job_state_is "$1" "$2"
}

job_was_requeued()
{
    [ "$(job_field "$1" Restarts)" = 1 ]
}

requeue_job()
{
    scontrol requeue "$1" || wait_until 60 requeue_again "$1"
}

requeue_again()
{
    job_was_requeued "$1" || scontrol requeue "$1"
}

# Found by what only this task carries in its environment: the cluster, the job
# and the rank. Fails if there is not exactly one.
task_pid()
{
    local file pid found=()

    while read -r file; do
        pid=${file#/proc/}
        pid=${pid%/environ}
        if grep -qsxzF "SLURM_JOB_ID=$1" "$file" &&
            grep -qsxzF "SLURM_PROCID=$2" "$file" &&
            grep -qszF "SLURM_STEP_ID=" "$file" &&
            [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "${3:0:15}" ]; then
            found+=("$pid")
        fi
    done < <(grep -lsxzF "SLURM_CONF=$SLURM_CONF" /proc/[0-9]*/environ)
    [ ${#found[@]} -eq 1 ] || return 1
    echo "${found[0]}"
}

# Show what a failed case left: the ends of its small files.
test_explain()
{
    local file

    note "left in $WORK:"
    for file in "$WORK"/*; do
        if [ ! -f "$file" ] || [ ! -s "$file" ] || ! grep -qI . "$file"; then
            continue
        fi
        note "--- ${file##*/}"
        tail -n 30 "$file" | sed 's/^/# /'
    done
}

test_case()
{
    local name=$1 rc=0 why

    shift
    test_number=$((test_number + 1))
    if [[ ! $name =~ ${CDDP_CASES:-} ]]; then
        echo "ok $test_number - $name # SKIP not in CDDP_CASES"
        return
    fi
    WORK=$(mktemp -d "${TMPDIR:-/tmp}/cddp-slurm-test.XXXXXX")
    chmod 755 "$WORK"
    (
        set -eE
        level=$BASH_SUBSHELL
        # Say which bare command failed; $(...) may fail as it likes.
        trap '[ "$BASH_SUBSHELL" -ne "$level" ] ||
              complain "line $LINENO failed: $BASH_COMMAND"' ERR
        cd "$WORK"
        "$@"
    )
    rc=$?
    scancel --name="$SLURM_JOB_NAME" 2>/dev/null
    case $rc in
    0) echo "ok $test_number - $name" ;;
    77)
        why=$(cat "$WORK.skip" 2>/dev/null)
        echo "ok $test_number - $name # SKIP $why"
        ;;
    *)
        test_failed=$((test_failed + 1))
        test_explain
        [ ! -e "$WORK.why" ] || cat "$WORK.why"
        echo "not ok $test_number - $name"
        return
        ;;
    esac
    rm -rf "$WORK" "$WORK.skip" "$WORK.why"
}

test_done()
{
    echo "1..$test_number"
    exit $((test_failed > 0))
}
