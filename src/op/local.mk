# SPDX-License-Identifier: BSD-3-Clause
# libgomp is the OpenMP runtime that oneDNN runs on.
noinst_LTLIBRARIES += libop.la
libop_la_SOURCES = \
	src/op/op.c src/op/op.h src/op/op_config.h src/op/op_kind.h src/op/op_loss.h src/op/op_ops.h src/op/op_shape.c \
	src/op/op_shape.h src/op/op_desc.c src/op/op_rules.c \
	src/op/op_shape_view.c src/op/op_classes.c \
	src/op/op_shape_token.c \
	src/op/op_shape_window.c \
	src/op/op_shape_norm.c \
	src/op/op_tokens.c \
	src/op/op_custom.c src/op/op_custom.h \
	src/op/ref/custom.c src/op/cpu/custom.c \
	src/op/op_mask.c src/op/op_mask.h src/op/registry.c \
	src/op/ref/ref.c src/op/ref/ref.h \
	src/op/ref/linear.c src/op/ref/conv.c src/op/ref/relu.c \
	src/op/ref/pool.c src/op/ref/batchnorm.c src/op/ref/dropout.c \
	src/op/ref/flatten.c src/op/ref/cross_entropy.c src/op/ref/mse.c \
	src/op/ref/add.c src/op/ref/mul.c src/op/ref/concat.c \
	src/op/ref/permute.c src/op/ref/mean.c src/op/ref/upsample.c \
	src/op/ref/activation.c \
	src/op/ref/pointwise.c \
	src/op/ref/attention.c src/op/ref/position.c \
	src/op/ref/conv_transpose.c \
	src/op/ref/recurrent.c \
	src/op/ref/embedding.c src/op/ref/rotary.c \
	src/op/ref/upsample_linear.c src/op/ref/max.c src/op/ref/pad.c \
	src/op/ref/window.h src/op/ref/adaptive.c \
	src/op/ref/norm.c src/op/ref/syncbatchnorm.c \
	src/op/ref/softmax.c src/op/ref/prelu.c \
	src/op/op_spread.c src/op/op_spread.h src/op/op_attention.h \
	src/op/ref/spread.c src/op/cpu/spread.c \
	src/op/ref/matmul.c src/op/cpu/matmul.c \
	src/op/cpu/avgpool_ceil.c \
	src/op/cpu/cpu.c src/op/cpu/cpu.h \
	src/op/cpu/isa.c src/op/cpu/isa.h \
	src/op/cpu/onednn.c src/op/cpu/onednn.h src/op/cpu/onednn_make.h \
	src/op/cpu/onednn_v2.c src/op/cpu/onednn_v3.c \
	src/op/cpu/port.c src/op/cpu/port.h \
	src/op/cpu/openmp.h \
	src/op/cpu/team.c src/op/cpu/team.h \
	src/op/cpu/loss.c src/op/cpu/loss.h \
	src/op/cpu/vector.h src/op/cpu/zip.h src/op/cpu/stage.h \
	src/op/cpu/linear.c src/op/cpu/linear.h src/op/cpu/linear_bf16.c \
	src/op/cpu/product.c src/op/cpu/product.h \
	src/op/cpu/bias.c src/op/cpu/bias.h \
	src/op/cpu/conv.c src/op/cpu/pool.c src/op/cpu/maxpool.c \
	src/op/cpu/windows.c src/op/cpu/windows.h src/op/cpu/winner.h \
	src/op/cpu/relu.c src/op/cpu/relu.h \
	src/op/cpu/batchnorm.c src/op/cpu/dropout.c src/op/cpu/flatten.c \
	src/op/cpu/cross_entropy.c src/op/cpu/mse.c \
	src/op/cpu/softmax.h src/op/cpu/softmax_rows.c \
	src/op/cpu/softmax_dense.c src/op/cpu/softmax_soft.c \
	src/op/cpu/combine.c src/op/cpu/combine.h \
	src/op/cpu/add.c src/op/cpu/mul.c src/op/cpu/concat.c \
	src/op/cpu/permute.c src/op/cpu/mean.c src/op/cpu/upsample.c \
	src/op/cpu/math.h src/op/cpu/activation.c \
	src/op/cpu/pointwise.c \
	src/op/cpu/attention.c src/op/cpu/attention.h \
	src/op/cpu/attention_bf16.c src/op/cpu/pairs.c src/op/cpu/pairs.h \
	src/op/cpu/position.c src/op/cpu/embedding.c \
	src/op/cpu/rotary.c src/op/cpu/recurrent.c \
	src/op/cpu/upsample_linear.c src/op/cpu/max.c src/op/cpu/pad.c \
	src/op/cpu/adaptive.c \
	src/op/cpu/channels.c src/op/cpu/channels.h \
	src/op/cpu/channels_loops.inc \
	src/op/cpu/channels_native.c src/op/cpu/channels_native.h \
	src/op/cpu/columns.c src/op/cpu/columns.h \
	src/op/cpu/tiles.c src/op/cpu/tiles.h \
	src/op/cpu/norm.c src/op/cpu/norm.h \
	src/op/cpu/norm_sums.c src/op/cpu/norm_params.c \
	src/op/cpu/softmax.c src/op/cpu/prelu.c \
	src/op/cpu/syncbatchnorm.c
libop_la_CFLAGS = $(AM_CFLAGS) $(VECTOR_CFLAGS) $(ONEDNN_CFLAGS)
libop_la_LIBADD = libopblock.la $(ONEDNN_LIBS) -lgomp

# Products and curves of our own: with fused multiply-add.
noinst_LTLIBRARIES += libopblock.la
libopblock_la_SOURCES = src/op/cpu/block.c src/op/cpu/block.h \
	src/op/cpu/curve.c src/op/cpu/curve.h \
	src/op/cpu/gemm.c src/op/cpu/gemm.h
libopblock_la_CFLAGS = $(AM_CFLAGS) $(VECTOR_CFLAGS) -ffp-contract=fast
# End of src/op
