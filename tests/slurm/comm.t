#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# All-reduces over two real nodes: the node stage takes part, whichever way the
# ranks lie on the nodes, and all ranks hold the same bits.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
probe=$BUILD/tests/slurm/comm_probe

# same_bits N: per size N ranks, one hash and one algorithm.
same_bits()
{
    expect_lines out '^[0-9]+ n[12] ' $((5 * $1))
    expect_equal 'results' "$(cut -d' ' -f3-5 out | sort -u | wc -l)" 5
    expect_lines out ' node\+(doubling|halving) ' $((5 * $1))
}

two_and_two()
{
    run 0 srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix "$probe"
    expect_lines out '^[0-9] n1 4 ' 2
    same_bits 4
}

three_and_one()
{
    printf 'n1\nn1\nn2\nn1\n' >hosts
    SLURM_HOSTFILE=$PWD/hosts run 0 srun -N2 -n4 --distribution=arbitrary \
        --mpi=pmix "$probe"
    expect_lines out '^[0-9] n1 4 ' 3
    expect_text out '^2 n2 4 '
    same_bits 4
}

test_case "two ranks on each of two nodes" two_and_two
test_case "three ranks on one node, one on the other" three_and_one
test_done
