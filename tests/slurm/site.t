#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# What an ordinary account does with an installed cddp: it loads the module, makes
# data, and submits the installed batch template; a signal ends the job, which is
# requeued and resumes. Then the commands of docs/USER.md that are for Slurm. The
# account sees nothing of the build directory.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=SCRIPTDIR/trainlib.sh
. "$(dirname "$0")/trainlib.sh"
# shellcheck source=SCRIPTDIR/../site/modulelib.sh
. "$SOURCE/tests/site/modulelib.sh"
umask 022
build=$BUILD
# cddp, the tools, and the shell of the account; made by the first case.
scratch=$(mktemp -d "${TMPDIR:-/tmp}/cddp-site.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
# Prefixes of commands that the account runs: in a shell that has `module`, and in a
# shell that has loaded the module.
shell=()
user=()

# The tools may be in a directory that only root can enter, and contain its path.
# So the account gets a copy with other paths. Sets $command, which runs the tool.
copy_tools()
{
    local part

    mkdir -p "$scratch/tools"
    for part in lmod tcl; do
        [ ! -d "$tools/$part" ] || cp -a "$tools/$part" "$scratch/tools"
    done
    grep -rlIF "$tools/" "$scratch/tools" |
        xargs -r sed -i "s|$tools/|$scratch/tools/|g"
    module_tools "$scratch/tools"
    if [ -n "$lmod" ]; then
        command=("$lua" "$lmod")
    elif [ -n "$modulecmd" ]; then
        command=("$tclsh" "$modulecmd")
    else
        skip "Lmod or Environment Modules (tests/site/unpack)"
    fi
    note "the module is loaded by ${command[1]##*/}"
}

# Write the script that runs a command in a shell that knows `module`.
login_write()
{
    chmod 755 "$scratch"
    copy_tools
    module_install
    cat >"$scratch/login" <<END
module()
{
    eval "\$(${command[*]} bash "\$@")"
}
export -f module
module use "$scratch/modules" && exec "\$@"
END
}

# Go to the home of the account. Its shell has only the system's commands and
# Slurm's, until it loads the module.
account_open()
{
    account_home
    [ -e "$scratch/login" ] || login_write
    shell=("${as[@]}" bash "$scratch/login")
    # shellcheck disable=SC2016 # for its shell
    user=("${shell[@]}" bash -c 'module load cddp && exec "$@"' bash)
}

ordinary_account()
{
    account_open
    DATA=data
    run_file full
    run 0 "${user[@]}" cddp-data make ising -o data --seed 11 --train 2500 \
        --valid 600 --shards 3
    straight=$PWD/straight
    run 0 "${user[@]}" srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix \
        cddp-train --set run.dir=straight/run full.yaml
    expect_no_text err 'strangers on the network'
    # shellcheck disable=SC2016 # the module sets it
    run 0 "${user[@]}" bash -c 'sbatch --parsable -N2 --ntasks-per-node=2 \
        --output=log "$CDDP_ROOT/share/cddp/train.sbatch" full.yaml'
    job=$(cat out)
    wait_text 120 run/metrics.jsonl '"step": 30,'
    run 0 "${as[@]}" scancel --signal=USR1 "$job.0"
    wait_job "$job" 'COMPLETED|FAILED|CANCELLED' 120
    expect_equal state "$(job_field "$job" JobState)" COMPLETED
    expect_equal restarts "$(job_field "$job" Restarts)" 1
    expect_equal account "$(job_field "$job" UserId)" \
        "$account($(id -u "$account"))"
    expect_text log 'resumed from'
    expect_equal owner "$(stat -c %U run/checkpoints/step-*1008)" "$account"
    same_end
}

# The blocks of the guide that write files, and those for Slurm. Here sbatch waits
# for the end of the job, and fails if the job does.
guide()
{
    local task

    need /usr/bin/python3 -c 'import h5py' -- "python3-h5py"
    account_open
    awk '/^```sh$/ {copy = getline > 0 && /^cat /}
         /^```sh slurm$/ {copy = getline > 0}
         /^```$/ {copy = 0}
         copy' "$SOURCE/docs/USER.md" >commands
    expect_lines commands '^sbatch ' 2
    RUN_LIMIT=600 run 0 "${shell[@]}" env SBATCH_WAIT=1 \
        OMP_WAIT_POLICY=passive bash -evu commands
    expect_lines out '^Submitted batch job' 2
    for task in '' -1 -2 -3; do
        expect_file "runs/planet$task/summary.json"
        expect_text "runs/planet$task/lives.jsonl" '"event":"end".*"status":0'
    done
    expect_text runs/planet-3/config.yaml 'lr: 3(e-3|\.0e-3)'
    expect_text out '^accuracy 0\.[89]'
}

test_case "an ordinary account trains with the module that is installed" \
    ordinary_account
test_case "the guide for users: its commands for Slurm" guide
test_done
