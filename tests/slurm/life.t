#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# A rank, a node or a daemon of Slurm fails under cddp-srun. The job must end
# with 0, and the model must have the bits of an undisturbed run. Only if no
# start makes progress, the job ends with 70. Each kind of death at each point
# takes two seconds, and nodes that stay busy take a minute, so all of these run
# only with CDDP_LIFE_ALL=1 (make check-long).
# shellcheck disable=SC2119,SC2120,SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"
# shellcheck source=SCRIPTDIR/lifelib.sh
. "$(dirname "$0")/lifelib.sh"
# For so many seconds the controller is down.
away=${CDDP_LIFE_AWAY:-5}
life_options+=(--set train.epochs=12)
life_open

# ---- a rank ------------------------------------------------------------------

# The words that srun prints for a death by a signal.
words_of()
{
    case $1 in
    KILL) echo Killed ;;
    SEGV) echo 'Segmentation fault' ;;
    ABRT) echo Aborted ;;
    esac
}

# death SIGNAL RANK CALL: the step is started again once, in the same
# allocation, and the output names the cause and the culprit.
death()
{
    local host=n1

    [ "$2" -lt 2 ] || host=n2
    life_file
    at "$2" "$3" "$1"
    supervise --set train.epochs=2
    finish 0
    expect_file hit
    expect_text bg.err "^srun: error: $host: task $2: $(words_of "$1")"
    expect_text bg.err "cddp-train: rank $2 on $host "
    expect_lines bg.err ': restart, restart in place' 1
    if [ "$3" != H5Fopen ]; then
        expect_lines run/lives.jsonl \
            "\"event\":\"fault\".*\"attempt\":1.*\"culprit\":$2,\"host\":\"$host\"" 1
    fi
    expect_text run/lives.jsonl '"event":"begin".*"restart":0,"attempt":2'
    same_bits
}

# After the first checkpoint, each start has the same fault.
death_again()
{
    local after='"checkpoint"' FAULT_TIMES=9

    life_file
    at 2 ucp_tag_send_nbx SEGV
    supervise --set checkpoint.every="20 steps"
    finish 70
    expect_text bg.err '3 starts in a row wrote no checkpoint newer than step 20'
    # If a peer dies while UCX 1.13 connects to it, an assertion of UCX may end
    # another rank (tcp_cm.c, ACCEPTING), and srun may name that one.
    expect_lines bg.err 'cause [123]: (rank|srun names task) [0-3] on n[12]' 3
    expect_text bg.err 'cause [123]: (rank 2|srun names task 2) on n2'
    expect_text bg.err 'the job ends with 70: no start made progress'
    # The start that wrote the checkpoint, and three starts after it.
    expect_equal "deaths" "$(wc -l <hit)" 4
}

stopped()
{
    life_file
    at 3 ucp_tag_send_nbx STOP
    supervise --set train.epochs=2
    finish 0
    expect_text bg.err '^cddp-train: rank 3 on n2 '
    expect_lines run/lives.jsonl \
        '"event":"fault".*"attempt":1.*"culprit":3,"host":"n2"' 1
    expect_lines bg.err ': restart, restart in place' 1
    same_bits
}

# The rank stops at its point, the link goes down, and then the rank continues.
cut_link()
{
    local begin

    need ip link show v2 -- "a cluster in namespaces"
    life_file
    at 2 ucp_tag_send_nbx STOP
    supervise --set train.epochs=2
    wait_until 60 test -s hit
    begin=$SECONDS
    trap 'ip link set v2 up; cluster_mend' EXIT
    ip link set v2 down
    kill -CONT "$(cat hit)"
    wait_until 60 happened fault
    # The link is down for 20 s: this test is about that time.
    sleep $((20 - (SECONDS - begin) > 0 ? 20 - (SECONDS - begin) : 0))
    ip link set v2 up
    finish 0
    expect_text bg.err '^cddp-train: rank [0-3] on n[12] (gives no sign of life|died or lost its connection) \(it last reported step '
    expect_text run/lives.jsonl \
        '"event":"fault".*"attempt":1.*"culprit":[0-3],"host":"n[12]"'
    expect_lines bg.err ': restart, restart in place' 1
    nodes_ready
    same_bits
}

# ---- a node ------------------------------------------------------------------

node_down()
{
    scontrol update nodename="$1" state=down reason=test
}

# Print the nodes of attempt $1, as the history has them.
nodes_of()
{
    sed -nE "s/.*\"event\":\"begin\".*\"attempt\":$1,\"nodes\":\"([^\"]*)\".*/\1/p" \
        run/lives.jsonl | tail -n 1
}

# With --no-kill the allocation survives the loss of a node, and the run goes on
# with the ranks of the other node.
node_lost()
{
    local node

    life_file
    sbatch_options=(--no-kill)
    supervise_job
    wait_until 60 happened first_step
    node=$(other_node)
    trap cluster_mend EXIT
    node_down "$node"
    wait_job "$job" 'COMPLETED|FAILED' 120
    expect_equal state "$(job_field "$job" JobState)" COMPLETED
    expect_equal restarts "$(job_field "$job" Restarts)" 0
    expect_equal "nodes at first" "$(nodes_of 1)" 'n[1-2]'
    expect_no_text run/lives.jsonl "\"attempt\":[2-9],\"nodes\":\"[^\"]*$node"
    expect_text run/lives.jsonl '"event":"begin".*"restart":0,"attempt":[2-9]'
    expect_text log "^srun: error: Node failure on $node\$"
    expect_no_text log 'CDDP_MIN_NODES'
    same_bits
}

# Without --no-kill Slurm ends the job and requeues it.
node_lost_job()
{
    life_file
    supervise_job
    wait_until 60 happened first_step
    trap cluster_mend EXIT
    node_down "$(other_node)"
    wait_until 60 job_was_requeued "$job"
    nodes_ready
    wait_job "$job" COMPLETED 120
    expect_equal restarts "$(job_field "$job" Restarts)" 1
    expect_text run/lives.jsonl '"event":"resumed".*"restart":1,"attempt":1'
    same_bits
}

# ---- daemons of Slurm --------------------------------------------------------

# The ranks do not need slurmd while they run.
slurmd_killed()
{
    life_file
    supervise
    wait_until 60 happened first_step
    trap cluster_mend EXIT
    daemon kill slurmd-n2
    finish 0
    expect_equal attempts "$(attempts)" 1
    nodes_ready
    same_bits
}

# If slurmstepd is gone, srun does not notice the end of the tasks, and Slurm
# believes that the step still runs. (While the tasks live, the loss has no
# effect.)
slurmstepd_killed()
{
    local rank

    life_file
    supervise
    wait_until 60 happened first_step
    trap cluster_mend EXIT
    job_find
    rank=$(rank_pid 3)
    kill -KILL "$(awk '/^PPid/ {print $2}' "/proc/$rank/status")"
    kill -KILL "$rank"
    finish 0
    expect_text bg.err 'still runs 30 s after .* it is killed'
    expect_equal attempts "$(attempts)" 2
    expect_text run/lives.jsonl \
        '"event":"fault".*"attempt":1.*"culprit":3,"host":"n2"'
    same_bits
}

# controller_away CALL: the controller is killed while rank 2 stops before CALL,
# in a step or in a save, and is started again after $away seconds.
controller_away()
{
    life_file
    at 2 "$1" STOP
    supervise
    wait_until 60 test -s hit
    happened first_step || fail "the point came in start-up"
    trap cluster_mend EXIT
    daemon kill slurmctld
    kill -CONT "$(cat hit)"
    sleep "$away" # for so long: time is what is tested
    daemon start slurmctld
    finish 0
    expect_equal attempts "$(attempts)" 1
    same_bits
}

# Slurm 22.05 may take the nodes for busy after that, and an srun without
# --immediate would then wait for minutes.
rank_dies_without_controller()
{
    local rank

    life_file
    supervise
    wait_until 60 happened first_step
    trap cluster_mend EXIT
    job_find
    rank=$(rank_pid 2)
    daemon kill slurmctld
    kill -KILL "$rank"
    wait_text 60 bg.err 'srun ended with'
    daemon start slurmctld
    finish 0
    expect_equal attempts "$(attempts)" 2
    expect_text run/lives.jsonl '"event":"begin".*"restart":0,"attempt":2'
    same_bits
}

controller_away_in_requeue()
{
    life_file
    supervise_job
    wait_until 60 happened first_step
    trap cluster_mend EXIT
    daemon kill slurmctld
    kill -USR1 "$(rank_pid 1)"
    wait_until 60 happened requeue
    sleep "$away" # for so long: time is what is tested
    daemon start slurmctld
    wait_until 60 controller_answers
    wait_job "$job" COMPLETED 150
    expect_equal restarts "$(job_field "$job" Restarts)" 1
    expect_no_text log 'is not requeued'
    same_bits
}

# A rank dies. From then on srun creates no step in this job, and says with the
# words of Slurm 22.05 that the nodes are busy. Only a requeue helps.
nodes_stay_busy()
{
    life_file
    mkdir bin
    cat >bin/srun <<WRAP
#!/bin/bash
# The first start of each life runs.
if [ "\${SLURM_RESTART_COUNT:-0}" -eq 0 ] && grep -q first_step run/lives.jsonl
then
    echo "srun: error: Unable to create step for job \$SLURM_JOB_ID:" \
        "Requested nodes are busy" >&2
    exit 1
fi
exec $(command -v srun) "\$@"
WRAP
    chmod +x bin/srun
    PATH=$PWD/bin:$PATH supervise_job
    wait_until 60 happened first_step
    kill -KILL "$(rank_pid 2)"
    wait_job "$job" COMPLETED 300
    expect_equal restarts "$(job_field "$job" Restarts)" 1
    expect_lines log 'restart, srun created no step' 10
    expect_lines log 'requeue, the nodes stay busy, though no step runs' 1
    expect_text run/lives.jsonl '"event":"begin".*"restart":1'
    same_bits
}

test_case "KILL in start-up" death KILL 3 H5Fopen
test_case "KILL in an all-reduce" death KILL 2 ucp_tag_send_nbx
test_case "KILL in a checkpoint" death KILL 3 fsync
test_case "KILL in an evaluation" death KILL 1 pread:valid-00.h5
test_case "KILL in shutdown" death KILL 0 rename:summary.json
test_case "SEGV in an evaluation" death SEGV 2 pread:valid-00.h5
test_case "ABRT in a checkpoint" death ABRT 1 fsync
if [ -n "${CDDP_LIFE_ALL:-}" ]; then
    test_case "ABRT in start-up" death ABRT 2 H5Fopen
    test_case "SEGV in an all-reduce" death SEGV 1 ucp_tag_send_nbx
    test_case "SEGV in start-up" death SEGV 1 H5Fopen
    test_case "SEGV in a checkpoint" death SEGV 2 fsync
    test_case "SEGV in shutdown" death SEGV 0 rename:summary.json
    test_case "ABRT in an all-reduce" death ABRT 3 ucp_tag_send_nbx
    test_case "ABRT in an evaluation" death ABRT 0 pread:valid-00.h5
    test_case "ABRT in shutdown" death ABRT 0 rename:summary.json
    test_case "the nodes stay busy after a death" nodes_stay_busy
fi
test_case "SEGV again and again: 70" death_again
test_case "STOP of a rank" stopped
test_case "a link is cut for 20 s" cut_link
test_case "a node is down, with --no-kill" node_lost
test_case "a node is down, without --no-kill" node_lost_job
test_case "slurmd is killed" slurmd_killed
test_case "slurmstepd is killed" slurmstepd_killed
test_case "the controller is away in a step" controller_away ucp_tag_send_nbx
test_case "the controller is away in a save" controller_away fsync
test_case "a rank dies while the controller is away" \
    rank_dies_without_controller
test_case "the controller is away in a requeue" controller_away_in_requeue
test_done
