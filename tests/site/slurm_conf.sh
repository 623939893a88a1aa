#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# Slurm accepts the example of a slurm.conf, and refuses it with a wrong line. Its
# commands read the file before they ask a controller, of which there is none here.
example=${srcdir:-.}/slurm/slurm.conf.example
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if ! command -v scontrol >/dev/null; then
    echo "SKIP: scontrol was not found: install slurm-client"
    exit 77
fi

# read_conf [LINE]: print what Slurm says of a file with the example and LINE.
read_conf()
{
    {
        cat <<'CONF'
ClusterName=example
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=1
AuthType=auth/none
MessageTimeout=2
NodeName=n1 CPUs=1
PartitionName=p Nodes=n1 GraceTime=300
CONF
        cat "$example"
        echo "${1-}"
    } >"$scratch/slurm.conf"
    SLURM_CONF=$scratch/slurm.conf timeout 60 scontrol show config 2>&1
}
unreadable="arsing error|not a valid|configuration file"

out=$(read_conf)
! grep -E "$unreadable" <<<"$out" || exit 1
for line in RequeueExits=75 KillWait=long; do
    out=$(read_conf "$line")
    grep -qE "$unreadable" <<<"$out" || {
        echo "FAIL: Slurm accepts $line: $out"
        exit 1
    }
done
