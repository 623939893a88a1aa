/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "conf/conf.h"
#include "fuzz/fuzz.h"
#include "nn/nn.h"
#include "train/config.h"

static const err_code_t allowed[] = {ERR_CONFIG, ERR_MEMORY, ERR_OK};

/* The printed configuration must read back as the same one. */
static void print_and_read(const train_config_t *config)
{
    train_config_t again = {0};
    str_buf_t text = {0};
    err_t err = ERR_INIT;
    tree_t *tree = NULL;

    opt_print(train_options, config, 0, &text);
    if (conf_parse("printed", text.text, &tree, &err) != ERR_OK ||
        train_config_read(tree, NULL, &again, &err) != ERR_OK ||
        train_config_hash(&again) != train_config_hash(config)) {
        fprintf(stderr, "fuzz: not what it was: %s\n%s\n", err.text, text.text);
        abort();
    }
    train_config_free(&again);
    tree_free(tree);
    str_buf_free(&text);
}

err_code_t fuzz_run_file(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1);
    train_config_t config = {0};
    nn_graph_t *graph = NULL;
    err_t err = ERR_INIT;
    tree_t *tree = NULL;
    err_code_t rc;

    if (text == NULL)
        abort();
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    rc = conf_parse("run.yaml", text, &tree, &err);
    fuzz_check(rc, &err, allowed);
    if (rc != ERR_OK)
        goto free_text;
    rc = train_config_read(tree, NULL, &config, &err);
    fuzz_check(rc, &err, allowed);
    if (rc != ERR_OK)
        goto free_tree;
    print_and_read(&config);
    rc = nn_graph_open(config.model, config.loss, &graph, &err);
    fuzz_check(rc, &err, allowed);
    if (rc == ERR_OK)
        nn_graph_close(graph);
    train_config_free(&config);
free_tree:
    tree_free(tree);
free_text:
    free(text);
    return rc;
}
