#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# A storm of faults: for $CDDP_STORM_SECONDS (45; make check-long: 1800) a job
# under cddp-srun has a fault every $CDDP_STORM_EVERY seconds (4; 20), which
# include the time to recover. The order of the faults is random
# ($CDDP_STORM_SEED), but each kind comes once before any kind comes again. The
# run is in reproducible mode, and ends with the bits of an undisturbed run.
# shellcheck disable=SC2119,SC2120,SC2317 # cases are called by name
seconds=${CDDP_STORM_SECONDS:-45}
# The undisturbed run may take longer than the storm.
RUN_LIMIT=${RUN_LIMIT:-$((seconds * 4 + 120))}
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"
# shellcheck source=SCRIPTDIR/lifelib.sh
. "$(dirname "$0")/lifelib.sh"
small_data
every=${CDDP_STORM_EVERY:-4}
away=${CDDP_STORM_AWAY:-4}
seed=${CDDP_STORM_SEED:-$RANDOM}
# Within so many seconds after a fault a step must be done again, also after a
# requeue.
recovery=240
declare -A counts

kinds=(kill segv abrt stop cut down slurmd slurmstepd controller usr1 requeue)

# ---- the faults --------------------------------------------------------------

victim_pid()
{
    local pid_of

    # A step that has just been started may have no such rank yet.
    until pid_of=$(rank_pid "$victim"); do
        job_lives
        sleep 0.1
    done
    echo "$pid_of"
}

job_lives()
{
    case $(job_field "$job" JobState) in
    RUNNING | PENDING | COMPLETING | REQUEUED | CONFIGURING | '') ;;
    *) fail "the job ended: $(job_field "$job" JobState)" ;;
    esac
}

signal_rank()
{
    kill -"$1" "$(victim_pid)"
}

fault_kill() { signal_rank KILL; }
fault_segv() { signal_rank SEGV; }
fault_abrt() { signal_rank ABRT; }
fault_stop() { signal_rank STOP; }
# Notice of the time limit: the run writes a checkpoint, ends with 75 and is
# requeued.
fault_usr1() { signal_rank USR1; }
# This is what a preemption with REQUEUE does.
fault_requeue() { scontrol requeue "$job"; }

fault_cut()
{
    local before

    before=$(begun fault)
    ip link set v2 down
    wait_until 60 more fault "$before"
    ip link set v2 up
}

# A node goes down, so Slurm requeues the job.
fault_down()
{
    local node before

    node=$(other_node)
    before=$(job_field "$job" Restarts)
    scontrol update nodename="$node" state=down reason=storm
    wait_until 60 more_restarts "$before"
    nodes_return
}

fault_slurmd()
{
    daemon kill slurmd-n2
    sleep "$away" # for so long: time is what is tested
    daemon start slurmd-n2
}

fault_slurmstepd()
{
    local rank

    rank=$(victim_pid)
    kill -KILL "$(awk '/^PPid/ {print $2}' "/proc/$rank/status")"
    kill -KILL "$rank"
}

fault_controller()
{
    daemon kill slurmctld
    sleep "$away" # for so long: time is what is tested
    daemon start slurmctld
    wait_until 60 controller_answers
}

# Does the Slurm step go on after this kind of fault, without a new start?
unnoticed()
{
    case $1 in
    slurmd | controller) return 0 ;;
    esac
    return 1
}

# ---- the storm ---------------------------------------------------------------

begun()
{
    grep -c "\"event\":\"$1\"" run/lives.jsonl 2>/dev/null || true
}

more()
{
    [ "$(begun "$1")" -gt "$2" ]
}

more_restarts()
{
    [ "$(job_field "$job" Restarts)" -gt "$1" ]
}

# Draw the next kind of fault and the next rank. $queue holds the kinds that
# have not come yet, in random order. Do not call this in a subshell, whose
# random numbers would have another seed.
queue=()
kind=
victim=0
next_draw()
{
    local i j

    if [ ${#queue[@]} -eq 0 ]; then
        queue=("${kinds[@]}")
        for ((i = ${#queue[@]} - 1; i > 0; i--)); do
            j=$((RANDOM % (i + 1)))
            kind=${queue[i]} queue[i]=${queue[j]} queue[j]=$kind
        done
    fi
    kind=${queue[0]}
    queue=("${queue[@]:1}")
    victim=$((RANDOM % 4))
}

# A step is done again, and then a checkpoint is written.
recovered()
{
    local end=$((SECONDS + recovery))

    until more first_step "$1" && more checkpoint "$2"; do
        job_lives
        [ "$SECONDS" -lt "$end" ] || fail "no step within $recovery s"
        sleep 0.2
    done
}

# cddp-srun leaves out a node that was the culprit twice in a row, until the job is
# requeued. Faults need both nodes: a link between them, and four ranks.
on_both_nodes()
{
    grep '"event":"begin"' run/lives.jsonl | tail -n 1 |
        grep -qF '"nodes":"n[1-2]"'
}

bring_both_nodes()
{
    local steps saves

    steps=$(begun first_step)
    saves=$(begun checkpoint)
    fault_requeue
    recovered "$steps" "$saves"
    note "a node was left out: requeued"
}

one_fault()
{
    local begin=$SECONDS steps saves

    on_both_nodes || bring_both_nodes
    next_draw
    steps=$(begun first_step)
    saves=$(begun checkpoint)
    ! unnoticed "$kind" || steps=$((steps - 1))
    "fault_$kind"
    recovered "$steps" "$saves"
    counts[$kind]=$((${counts[$kind]:-0} + 1))
    note "$kind: a checkpoint again after $((SECONDS - begin)) s"
}

# Both the run and an undisturbed run continue to the end of the current epoch.
compare()
{
    local epochs

    epochs=$(sed -nE 's/^ *"epoch": ([0-9]+),?$/\1/p' \
        "$(newest run)/MANIFEST.json" | head -n 1)
    life_options+=(--set train.epochs=$((epochs + 1)))
    note "$((epochs + 1)) epochs"
    run 0 srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix "$train" \
        "${life_options[@]}" full.yaml
    run 0 srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix "$train" \
        "${life_options[@]}" --set run.dir=straight \
        --set checkpoint.every=never full.yaml
    run 0 cddp-ckpt diff "$(newest straight)" "$(newest run)"
}

storm()
{
    local begin next number=0

    need ip link show v2 -- "a cluster in namespaces"
    note "seed $seed"
    RANDOM=$seed
    life_file
    life_options+=(--set checkpoint.every="50 steps")
    sbatch_options=(--time=120)
    trap 'ip link set v2 up; cluster_mend' EXIT
    supervise_job --set train.epochs=1000000
    wait_until 60 happened checkpoint
    begin=$SECONDS
    next=$SECONDS
    while [ $((SECONDS - begin)) -lt "$seconds" ]; do
        one_fault
        number=$((number + 1))
        next=$((next + every))
        [ "$next" -le "$SECONDS" ] || sleep $((next - SECONDS))
    done
    note "$number faults of ${#counts[@]} kinds in $((SECONDS - begin)) s:" \
        "$(for kind in "${!counts[@]}"; do
            echo "$kind ${counts[$kind]}"
        done | sort | paste -sd,)"
    scancel "$job"
    wait_until 60 job_is_gone
    nodes_ready
    compare
}

job_is_gone()
{
    ! squeue -h -j "$job" -o %t 2>/dev/null | grep -q .
}

test_case "faults for $seconds s change no bit" storm
test_done
