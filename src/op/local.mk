# SPDX-License-Identifier: BSD-3-Clause
# What all backends share. The plugin for GPUs has its own copy of it.
noinst_LTLIBRARIES += liboppure.la
liboppure_la_SOURCES = \
	src/op/op.h \
	src/op/op_attention.h \
	src/op/op_broadcast.c \
	src/op/op_broadcast.h \
	src/op/op_classes.c \
	src/op/op_config.h \
	src/op/op_custom.c \
	src/op/op_custom.h \
	src/op/op_desc.c \
	src/op/op_desc.h \
	src/op/op_geometry.h \
	src/op/op_half.c \
	src/op/op_half.h \
	src/op/op_hash.c \
	src/op/op_hash.h \
	src/op/op_kind.h \
	src/op/op_loss.h \
	src/op/op_lowrank.c \
	src/op/op_lowrank.h \
	src/op/op_mask.c \
	src/op/op_mask.h \
	src/op/op_ops.h \
	src/op/op_rules.c \
	src/op/op_shape.c \
	src/op/op_shape.h \
	src/op/op_shape_norm.c \
	src/op/op_shape_token.c \
	src/op/op_shape_view.c \
	src/op/op_shape_window.c \
	src/op/op_step.c \
	src/op/op_step.h \
	src/op/op_sync.h \
	src/op/op_table.inc \
	src/op/op_tokens.c \
	src/op/op_tokens.h
liboppure_la_CFLAGS = $(AM_CFLAGS) $(VECTOR_CFLAGS) $(ALIGN_CFLAGS)

noinst_LTLIBRARIES += libop.la
libop_la_SOURCES = \
	src/op/op.c \
	src/op/registry.c \
	src/op/ref/activation.c \
	src/op/ref/adaptive.c \
	src/op/ref/add.c \
	src/op/ref/attention.c \
	src/op/ref/batchnorm.c \
	src/op/ref/broadcast.c \
	src/op/ref/concat.c \
	src/op/ref/conv.c \
	src/op/ref/conv_transpose.c \
	src/op/ref/cross_entropy.c \
	src/op/ref/custom.c \
	src/op/ref/dropout.c \
	src/op/ref/embedding.c \
	src/op/ref/flatten.c \
	src/op/ref/linear.c \
	src/op/ref/matmul.c \
	src/op/ref/max.c \
	src/op/ref/mean.c \
	src/op/ref/mse.c \
	src/op/ref/mul.c \
	src/op/ref/norm.c \
	src/op/ref/pad.c \
	src/op/ref/permute.c \
	src/op/ref/pointwise.c \
	src/op/ref/pool.c \
	src/op/ref/position.c \
	src/op/ref/prelu.c \
	src/op/ref/recurrent.c \
	src/op/ref/ref.c \
	src/op/ref/ref.h \
	src/op/ref/relu.c \
	src/op/ref/rotary.c \
	src/op/ref/softmax.c \
	src/op/ref/syncbatchnorm.c \
	src/op/ref/upsample.c \
	src/op/ref/upsample_linear.c \
	src/op/ref/window.h \
	src/op/cpu/cpu.c \
	src/op/cpu/cpu.h \
	src/op/cpu/onednn/layout_v2.c \
	src/op/cpu/onednn/layout_v3.c \
	src/op/cpu/onednn/onednn.c \
	src/op/cpu/onednn/onednn.h \
	src/op/cpu/onednn/onednn_make.h \
	src/op/cpu/onednn/onednn_v2.c \
	src/op/cpu/onednn/onednn_v3.c \
	src/op/cpu/onednn/reorder.c \
	src/op/cpu/onednn/reorder.h \
	src/op/cpu/ops/activation.c \
	src/op/cpu/ops/adaptive.c \
	src/op/cpu/ops/add.c \
	src/op/cpu/ops/attention.c \
	src/op/cpu/ops/attention.h \
	src/op/cpu/ops/attention_bf16.c \
	src/op/cpu/ops/attention_softmax.c \
	src/op/cpu/ops/avgpool_ceil.c \
	src/op/cpu/ops/batchnorm.c \
	src/op/cpu/ops/bias.c \
	src/op/cpu/ops/bias.h \
	src/op/cpu/ops/box.h \
	src/op/cpu/ops/broadcast.c \
	src/op/cpu/ops/combine.c \
	src/op/cpu/ops/combine.h \
	src/op/cpu/ops/concat.c \
	src/op/cpu/ops/conv.c \
	src/op/cpu/ops/conv_im2col.c \
	src/op/cpu/ops/conv_im2col.h \
	src/op/cpu/ops/cross_entropy.c \
	src/op/cpu/ops/custom.c \
	src/op/cpu/ops/dropout.c \
	src/op/cpu/ops/embedding.c \
	src/op/cpu/ops/linear.c \
	src/op/cpu/ops/linear.h \
	src/op/cpu/ops/linear_bf16.c \
	src/op/cpu/ops/linear_passes.c \
	src/op/cpu/ops/loss.c \
	src/op/cpu/ops/loss.h \
	src/op/cpu/ops/matmul.c \
	src/op/cpu/ops/max.c \
	src/op/cpu/ops/maxpool.c \
	src/op/cpu/ops/mean.c \
	src/op/cpu/ops/mse.c \
	src/op/cpu/ops/mul.c \
	src/op/cpu/ops/norm.c \
	src/op/cpu/ops/norm.h \
	src/op/cpu/ops/norm_params.c \
	src/op/cpu/ops/norm_rows.c \
	src/op/cpu/ops/norm_sums.c \
	src/op/cpu/ops/pad.c \
	src/op/cpu/ops/pointwise.c \
	src/op/cpu/ops/pool.c \
	src/op/cpu/ops/position.c \
	src/op/cpu/ops/prelu.c \
	src/op/cpu/ops/product.c \
	src/op/cpu/ops/product.h \
	src/op/cpu/ops/rearrange.c \
	src/op/cpu/ops/recurrent.c \
	src/op/cpu/ops/relu.c \
	src/op/cpu/ops/relu.h \
	src/op/cpu/ops/rotary.c \
	src/op/cpu/ops/softmax.c \
	src/op/cpu/ops/softmax.h \
	src/op/cpu/ops/softmax_dense.c \
	src/op/cpu/ops/softmax_rows.c \
	src/op/cpu/ops/softmax_soft.c \
	src/op/cpu/ops/syncbatchnorm.c \
	src/op/cpu/ops/tiles.c \
	src/op/cpu/ops/tiles.h \
	src/op/cpu/ops/upsample.c \
	src/op/cpu/ops/upsample_linear.c \
	src/op/cpu/ops/windows.c \
	src/op/cpu/ops/windows.h \
	src/op/cpu/ops/winner.h \
	src/op/cpu/vector/channels.c \
	src/op/cpu/vector/channels.h \
	src/op/cpu/vector/channels_loops.inc \
	src/op/cpu/vector/channels_native.c \
	src/op/cpu/vector/channels_native.h \
	src/op/cpu/vector/chunk.h \
	src/op/cpu/vector/gemm_bf16.c \
	src/op/cpu/vector/gemm_bf16.h \
	src/op/cpu/vector/rows.c \
	src/op/cpu/vector/rows.h
libop_la_CFLAGS = $(AM_CFLAGS) $(VECTOR_CFLAGS) $(ALIGN_CFLAGS) $(ONEDNN_CFLAGS)
libop_la_LIBADD = liboppure.la libopfma.la $(ONEDNN_LIBS)

# Matrix products and activations of our own: with fused multiply-add.
noinst_LTLIBRARIES += libopfma.la
libopfma_la_SOURCES = \
	src/op/cpu/vector/activations.c \
	src/op/cpu/vector/activations.h \
	src/op/cpu/vector/gemm.c \
	src/op/cpu/vector/gemm.h \
	src/op/cpu/vector/gemm_small.c \
	src/op/cpu/vector/gemm_small.h
libopfma_la_CFLAGS = $(AM_CFLAGS) $(VECTOR_CFLAGS) $(ALIGN_CFLAGS) \
	-ffp-contract=fast
libfar_la_SOURCES += src/op/far/far.c
# End of src/op
