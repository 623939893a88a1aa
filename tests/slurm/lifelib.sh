# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# shellcheck shell=bash disable=SC2034,SC2154 # used in, set by the other files
#
# Shared by the tests of cddp-srun with the real program, in addition to lib.sh
# and trainlib.sh. The run is ./full.yaml in reproducible mode, so it has the
# bits of an undisturbed run, with any number of ranks and any interruption.
#   life_open               make $DATA and the undisturbed run in $straight
#   life_file               make full.yaml in the current directory
#   life_options            array: options of cddp-srun and cddp-train
#   supervise ARG...        start cddp-srun ARG... in an allocation of 4 ranks
#                           on 2 nodes, as start does
#   supervise_job ARG...    submit the template with cddp-train's ARG... on 4
#                           ranks of 2 nodes, and with the options of sbatch in
#                           $sbatch_options; the output is ./log
#   job_find                set $job to the job of the last supervise
#   at RANK CALL SIGNAL     set the fault point of the next start, in the
#                           environment and in $point_options (fault_point.c).
#                           Calls of H5Fopen always count, other calls after
#                           lives.jsonl has the text $after (first_step)
#   happened EVENT [COUNT]  lives.jsonl has COUNT (1) lines of this event
#   attempts                print the number of starts in lives.jsonl
#   rank_pid RANK           print the process id of a rank of job $job
#   same_bits               the newest checkpoint of ./run equals that of
#                           $straight
#   other_node              print the node of $job that does not run its batch
#                           script
#   daemon kill|start NAME  kill or start a daemon: slurmctld or slurmd-n2
#   nodes_return            start the daemons that were killed, and take lost
#                           nodes back
#   nodes_ready             do nodes_return, and wait until all nodes are idle
#   cluster_mend            do nodes_return, end the jobs of this file, and wait
#                           until all nodes are idle

devcluster=$SOURCE/slurm/devcluster
life_options=(--set train.reproducible=true --set train.microbatch=10
              --set fault.timeout="6 s" --set checkpoint.every="5 steps")
point_options=()
sbatch_options=()
fault_point=$BUILD/tests/slurm/.libs/fault_point.so
export PATH=$BUILD:$PATH

life_open()
{
    small_data
    straight=$(mktemp -d "${TMPDIR:-/tmp}/cddp-straight.XXXXXX")
    trap 'rm -rf "$DATA" "$straight"' EXIT
    chmod 755 "$straight"
    # Two checkpoints, after 2 epochs and after more; the first one stays, too.
    (
        cd "$straight" || exit 1
        life_file
        run 0 "$train" "${life_options[@]}" --set checkpoint.every=never \
            --set train.epochs=2 full.yaml
        run 0 "$train" "${life_options[@]}" --set checkpoint.every=never \
            full.yaml
    ) || exit 1
}

# The file has no schedule, so a step does not depend on the number of epochs.
life_file()
{
    run_file full
    sed -i '/^schedule:/d' full.yaml
}

supervise()
{
    start salloc -Q -J "$SLURM_JOB_NAME" -N2 -n4 --ntasks-per-node=2 --time=10 cddp-srun \
        "${point_options[@]}" "${life_options[@]}" "$@" full.yaml
}

supervise_job()
{
    submit -N2 -n4 --ntasks-per-node=2 --time=10 --output=log \
        "${sbatch_options[@]}" "$SOURCE/slurm/batch/train.sbatch" \
        "${point_options[@]}" full.yaml "${life_options[@]}" "$@"
}

# Find the job of this file, after supervise.
job_find()
{
    wait_until 60 job_found
}

# Fails if the controller is too busy.
job_found()
{
    job=$(squeue -h -n "$SLURM_JOB_NAME" -o %i) && [ -n "$job" ]
}

at()
{
    expect_file "$fault_point"
    rm -f hit
    export FAULT_RANK=$1 FAULT_CALL=$2 FAULT_SIGNAL=$3 FAULT_COUNT=1
    export FAULT_HIT=$PWD/hit FAULT_TIMES=${FAULT_TIMES:-1}
    unset FAULT_AFTER
    [ "$2" = H5Fopen ] || export FAULT_AFTER=$PWD/run/lives.jsonl
    export FAULT_TEXT=${after:-first_step}
    point_options=("--srun=--export=ALL,LD_PRELOAD=$fault_point")
}

happened()
{
    local count

    count=$(grep -c "\"event\": *\"$1\"" run/lives.jsonl 2>/dev/null) || true
    [ "${count:-0}" -ge "${2:-1}" ]
}

attempts()
{
    grep '"event": *"begin"' run/lives.jsonl |
        grep -oE '"restart": *[0-9]+, *"attempt": *[0-9]+' | sort -u | wc -l
}

rank_pid()
{
    task_pid "$job" "$1" cddp-train
}

newest()
{
    echo "$1/checkpoints/$(cd "$1/checkpoints" && printf '%s\n' step-* |
        tail -n 1)"
}

same_bits()
{
    local last

    last=$(newest run)
    run 0 cddp-ckpt diff "$straight/run/checkpoints/${last##*/}" "$last"
    expect_equal status "$(summary_field run/summary.json status)" 0
}

# Print the node of the job that does not run the batch script.
other_node()
{
    [ "$(job_field "$job" BatchHost)" = n1 ] && echo n2 || echo n1
}

daemon()
{
    "$devcluster" "$@"
}

nodes_are_idle()
{
    [ "$(sinfo -h -N -o %t 2>/dev/null | grep -c '^idle$')" -eq 2 ]
}

nodes_return()
{
    local name

    for name in slurmctld slurmd-n1 slurmd-n2; do
        daemon start $name
    done
    wait_until 60 controller_answers
    nodes_resume
}

# A busy controller may refuse, so nodes_ready asks again.
nodes_resume()
{
    local name

    for name in n1 n2; do
        case $(sinfo -h -n $name -o %t) in
        down* | fail*) scontrol update nodename=$name state=resume || true ;;
        esac
    done
}

nodes_idle_again()
{
    nodes_are_idle && return
    nodes_resume
    sleep 0.5
    nodes_are_idle
}

nodes_ready()
{
    nodes_return
    wait_until 300 nodes_idle_again
}

# A case that has hurt the cluster runs this at its EXIT. It ends the jobs of
# this file, because nodes become idle only then.
cluster_mend()
{
    nodes_return
    scancel -Q --name="$SLURM_JOB_NAME" || true
    wait_until 300 nodes_idle_again
}

controller_answers()
{
    scontrol ping 2>/dev/null | grep -q ' UP'
}
