# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libnn.la
libnn_la_SOURCES = \
	src/nn/batch_check.c \
	src/nn/cost.c src/nn/cost.h \
	src/nn/exec.c \
	src/nn/fail.c src/nn/fail.h \
	src/nn/recipe.c src/nn/recipe.h \
	src/nn/shape.c src/nn/shape.h \
	src/nn/exec_store.c src/nn/exec_fuse.c \
	src/nn/exec_plan.c \
	src/nn/exec_priv.h \
	src/nn/exec_recompute.c \
	src/nn/fill.c \
	src/nn/graph.c \
	src/nn/graph_build.c \
	src/nn/graph_from.c \
	src/nn/graph_hash.c \
	src/nn/graph_input.c \
	src/nn/graph_item.c \
	src/nn/graph_loss.c \
	src/nn/graph_losses.c \
	src/nn/graph_tables.c \
	src/nn/init.c \
	src/nn/init.h \
	src/nn/layer_activation.c \
	src/nn/layer_attention.c \
	src/nn/layer_combine.c \
	src/nn/layer_conv.c \
	src/nn/layer_embedding.c \
	src/nn/layer_linear.c \
	src/nn/layer_norm.c \
	src/nn/layer_plain.c \
	src/nn/layer_pool.c \
	src/nn/layer_recurrent.c \
	src/nn/layer_resize.c \
	src/nn/layer_sample_norm.c \
	src/nn/layer_view.c \
	src/nn/loss.c \
	src/nn/loss_classes.c \
	src/nn/nn.h \
	src/nn/nn_exec.h \
	src/nn/nn_build.h \
	src/nn/nn_priv.h \
	src/nn/plan.c \
	src/nn/plugin.c \
	src/nn/plugin.h \
	src/nn/preset.c \
	src/nn/preset.h \
	src/nn/preset_cosmoflow.c \
	src/nn/preset_deepcam.c \
	src/nn/preset_gpt2.c \
	src/nn/preset_lstm.c \
	src/nn/preset_resnet.c \
	src/nn/preset_simple.c \
	src/nn/preset_unet.c \
	src/nn/preset_vit.c \
	src/nn/registry.c \
	src/nn/registry.h
libnn_la_CFLAGS = $(AM_CFLAGS)
libnn_la_LIBADD = -lm
# End of src/nn
