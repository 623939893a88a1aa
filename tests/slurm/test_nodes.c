/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "slurm/nodes.h"

#include <criterion/criterion.h>

static slurm_nodes_t three(void)
{
    slurm_nodes_t nodes = {0};
    err_t err = ERR_INIT;

    cr_assert_eq(slurm_nodes_take("n1\nn2\n\nn10\n", &nodes, &err), ERR_OK,
                 "%s", err.text);
    cr_assert_eq(nodes.count, 3);
    return nodes;
}

Test(nodes, names_are_taken_one_by_one)
{
    slurm_nodes_t nodes = three();

    cr_assert_str_eq(nodes.list[0].name, "n1");
    cr_assert_str_eq(nodes.list[2].name, "n10");
    slurm_nodes_free(&nodes);
}

Test(nodes, down_is_what_slurm_calls_so_or_what_is_silent)
{
    slurm_nodes_t nodes = three();

    slurm_nodes_states(&nodes, "n1 alloc\nn2 down\nn10 mix*\nn99 down\n");
    cr_assert(!nodes.list[0].down);
    cr_assert(nodes.list[1].down);
    cr_assert(nodes.list[2].down);
    slurm_nodes_states(&nodes, "n10 drng\nn2 fail\nn1");
    cr_assert(!nodes.list[0].down, "a line without a state says nothing");
    cr_assert(slurm_node_avoided(&nodes.list[1]));
    cr_assert(!slurm_node_avoided(&nodes.list[2]),
              "a draining node serves its job to the end");
    slurm_nodes_free(&nodes);
}

Test(nodes, what_the_job_has_lost_is_avoided)
{
    slurm_nodes_t nodes = three();

    slurm_nodes_states(&nodes, "n1 alloc\nn2 idle\nn10 alloc\n");
    slurm_nodes_held(&nodes, "n1\nn10\nn99");
    cr_assert(!slurm_node_avoided(&nodes.list[0]));
    cr_assert(slurm_node_avoided(&nodes.list[1]), "it is up, but not ours");
    cr_assert(!slurm_node_avoided(&nodes.list[2]));
    slurm_nodes_free(&nodes);
}

Test(nodes, a_node_is_avoided_after_two_faults_in_a_row)
{
    slurm_nodes_t nodes = three();

    slurm_nodes_fault(&nodes, "n2");
    cr_assert(!slurm_node_avoided(&nodes.list[1]));
    slurm_nodes_fault(&nodes, "");
    slurm_nodes_fault(&nodes, "n2");
    cr_assert(!slurm_node_avoided(&nodes.list[1]), "not in a row");
    slurm_nodes_fault(&nodes, "n2");
    cr_assert(slurm_node_avoided(&nodes.list[1]));
    slurm_nodes_fault(&nodes, "n10");
    cr_assert(slurm_node_avoided(&nodes.list[1]),
              "a node that was left out proved nothing");
    cr_assert(!slurm_node_avoided(&nodes.list[2]));
    slurm_nodes_free(&nodes);
}
