#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
#
# All-reduces over two real nodes: the node stage is used however ranks are
# placed on the nodes, and all ranks get equal bits.
# shellcheck disable=SC2317 # cases are called by name
# shellcheck source=SCRIPTDIR/lib.sh
. "$(dirname "$0")/lib.sh"
probe=$BUILD/tests/slurm/comm_probe

# same_bits N: for each size there are N ranks, one hash and one algorithm.
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

# A table measured on the cluster's nodes and read by a run, which uses its
# algorithms.
tuned()
{
    local bench=("$BUILD/cddp-bench" allreduce --sizes 4K:64K --rounds 3)
    local two=(srun -N2 -n4 --ntasks-per-node=2 --mpi=pmix)

    run 0 "${two[@]}" "${bench[@]}" --tune table
    expect_lines out '^allreduce,slice,4096,(doubling|halving|ring),' 3
    expect_lines out '^allgather,net,65536,(bruck|ring),' 2
    expect_lines out '^allreduce,net,4096,(doubling|ring|direct),' 3
    expect_lines out '^allreduce,arena,65536,(node|flat),' 2
    expect_no_text out ',local,'
    expect_no_text out '(scatter|ranges),arena,'
    expect_text table 'cddp-bench allreduce --tune: 4 ranks on 2 nodes'
    sed -i 's/^\(allreduce  *slice .*\) [a-z]*$/\1 ring/
        s/^\(allreduce  *arena .*\) flat$/\1 node/' table
    run 0 "${two[@]}" "${bench[@]}" --csv --table table
    expect_lines out '^[0-9]+,4,node\+ring,.*,(memory|link),[0-9]+,[0-9]+,[0-9]+$' 3
    expect_text out '^65536,.*,link,'
    # One rank on each node: nothing is reduced within nodes.
    run 0 srun -N2 -n2 --mpi=pmix "${bench[@]}" --tune table
    expect_no_text out ',(slice|arena),'
}

# A file of that name exists on one node only.
table_is_missing()
{
    local start_at=$SECONDS

    cat >missing <<END
#!/bin/sh
[ \$SLURM_PROCID = 0 ] && table= || table=$PWD/none
exec "$BUILD/cddp-bench" allreduce --sizes 4K --table "\$table"
END
    chmod +x missing
    run 74 srun -N2 -n2 --mpi=pmix ./missing
    expect_lines err 'rank 1 on n2 cannot join: .*none' 2
    in_time 50 "$start_at" || fail "it took a time-out to find"
}

test_case "two ranks on each of two nodes" two_and_two
test_case "three ranks on one node, one on the other" three_and_one
test_case "a table is tuned over two nodes and used" tuned
test_case "a table that one node does not have ends all" table_is_missing
test_done
